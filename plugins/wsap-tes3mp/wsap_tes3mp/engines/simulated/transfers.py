"""Items that enter the world with agents and leave it with them, and life after death."""

from __future__ import annotations

from wsap_tes3mp.engines.simulated.definitions import definitions
from wsap_tes3mp.engines.simulated.state import Body, World, create, move_items
from wsap_tes3mp.protocol.bridge import ItemsReceipt, ItemsRequest
from wsap_tes3mp.protocol.perception import InventoryItem

_REMEMBERED = 64
_WORDS = {
    "weapon": ("sword", "axe", "spear", "bow", "dagger", "knife", "mace", "hammer", "blade", "club", "staff", "weapon"),
    "armour": ("armour", "armor", "shield", "helm", "mail", "plate", "cloak"),
    "food": ("bread", "meat", "fruit", "apple", "fish", "food", "cake", "plant"),
    "potion": ("potion", "drink", "elixir", "salve", "water"),
}
"""Kind -> words in the ids and names of items from elsewhere that make them of that kind."""


def transfer(world: World, body: Body, request: ItemsRequest) -> ItemsReceipt:
    """Give and take items, and apply bonuses; a transfer id that was used before gets its receipt again."""
    if request.transfer_id in body.receipts:
        return ItemsReceipt.model_validate_json(body.receipts[request.transfer_id])
    given = tuple(_give(world, body, item) for item in request.give)
    taken = tuple(item for item in request.take if _take(world, body, item))
    for domain, level in request.bonuses.items():
        if isinstance(level, int | float) and 0 < level <= 1:
            _strengthen(body, domain, float(level))
    receipt = ItemsReceipt(transfer_id=request.transfer_id, given=given, taken=taken)
    body.receipts[request.transfer_id] = receipt.model_dump_json()
    while len(body.receipts) > _REMEMBERED:
        del body.receipts[next(iter(body.receipts))]
    return receipt


def kind_of(item: InventoryItem) -> str:
    """Return what an item from elsewhere is here: weapon, armour, food, potion, or a curiosity without a use."""
    text = f"{item.item_id} {item.name}".lower()
    return next((kind for kind, words in _WORDS.items() if any(word in text for word in words)), "curiosity")


def destroy(world: World, body: Body) -> None:
    """Let all that a body carries be no more."""
    for item, count in list(body.items.items()):
        move_items(body.items, world.spent, item, count)


def revive(world: World, body: Body) -> None:
    """Bring a body back to life in the inn, at half its health, without a third of its gold."""
    if lost := body.items.get("gold", 0) // 3:
        move_items(body.items, world.spent, "gold", lost)
    width, depth = definitions().cells["inn"].size
    body.cell, body.x, body.y = "inn", width / 2, depth / 2
    body.health = body.max_health // 2
    body.be_silent()
    body.goal = None


def _give(world: World, body: Body, item: InventoryItem) -> InventoryItem:
    item_id = item.item_id
    if item_id not in definitions().items:
        world.foreign.setdefault(item_id, (item.name, kind_of(item)))
    create(world, body.items, item_id, item.count)
    if item.equipped and world.item(item_id).kind in ("weapon", "armour"):
        world.equip(body, item_id)
    return item


def _take(world: World, body: Body, item: InventoryItem) -> bool:
    if body.items.get(item.item_id, 0) < item.count:
        return False
    move_items(body.items, world.spent, item.item_id, item.count)
    body.put_away(item.item_id)
    return True


def _strengthen(body: Body, domain: str, level: float) -> None:
    if domain == "combat":
        body.skill = max(body.skill, level)
    elif domain == "survival" and body.max_health == 100:
        body.max_health += int(level * 40)
        body.health += int(level * 40)
    elif domain == "social":
        body.dispositions = {one: min(100, liking + int(level * 10)) for one, liking in body.dispositions.items()}
