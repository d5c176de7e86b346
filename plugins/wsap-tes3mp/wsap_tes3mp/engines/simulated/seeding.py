"""What enters and leaves the world: at its start, every dawn, with agents, and at their death."""

from __future__ import annotations

import random

from wsap_tes3mp.engines.simulated.definitions import Door, definitions
from wsap_tes3mp.engines.simulated.state import Body, Items, Thing, World, move_items
from wsap_tes3mp.protocol.bridge import ItemsReceipt, ItemsRequest
from wsap_tes3mp.protocol.perception import InventoryItem

_PLANTS_EACH = 2
_FLOTSAM = 15
"""Gold washed into an empty wreck each night, so that nobody stays too poor to continue."""
_LOOT = ("food", "gift", "potion", "weapon", "armour", "junk")
_REMEMBERED = 64
"""Number of transfer receipts a body keeps."""
_WORDS = {
    "weapon": ("sword", "axe", "spear", "bow", "dagger", "knife", "mace", "hammer", "blade", "club", "staff", "weapon"),
    "armour": ("armour", "armor", "shield", "helm", "mail", "plate", "cloak"),
    "food": ("bread", "meat", "fruit", "apple", "fish", "food", "cake", "plant"),
    "potion": ("potion", "drink", "elixir", "salve", "water"),
}
"""Kind -> words by which the ids and names of imported items are recognized."""


def new_world(seed: int) -> World:
    """Return the initial world of a seed."""
    chance = random.Random(f"{seed}/world")
    world, defined = World(seed), definitions()
    world.facts = {part: chance.choice(options) for part, options in defined.chosen.items()}
    for door in defined.doors:
        _hang(world, door, chance)
    gifts = defined.of_kind("gift")
    names = chance.sample(defined.names, len(defined.people))
    for name, (role, person) in zip(names, defined.people.items(), strict=True):
        thing = world.put("npc", role, name, _spot(person.cell, chance))
        thing.health = 100
        world.cast[role] = thing.id
        world.likes[role] = chance.choice(gifts)
    for key, container in defined.containers.items():
        spot = _spot(container.cell, chance)
        world.put("container", key, container.name, spot, {} if container.fixed else _loot(chance))
    for kind, creature in defined.creatures.items():
        for cell in creature.cells:
            world.put("creature", kind, creature.name, _spot(cell, chance))
    for item in chance.sample((*gifts, "rope", "ballast", "anchor", "smoked_eel"), 5):
        world.lay(item, 1, _spot(chance.choice(("quay", "shed", "rock")), chance))
    renew(world)
    world.brought.clear()
    return world


def renew(world: World) -> None:
    """Renew the world at dawn: plants grow, creatures revive, the chandler restocks, the sea brings a little gold."""
    chance, defined = world.roll(), definitions()
    for plant in defined.of_kind("plant"):
        for _ in range(_PLANTS_EACH - sum(thing.base == plant for thing in world.things.values())):
            world.create(world.lay(plant, 0, _spot("causeway", chance)).items, plant)
    for thing in world.things.values():
        if thing.kind == "creature" and thing.health <= 0:
            creature = defined.creatures[thing.base]
            _replace(world, thing, dict(creature.drop))
            thing.health, thing.name = creature.health, creature.name
            _, thing.x, thing.y = _spot(thing.cell, chance)
    wreck = next(thing for thing in world.things.values() if thing.base == "wreck_chest")
    if not wreck.items:
        world.create(wreck.items, "gold", _FLOTSAM)
    trader = world.things[world.cast["trader"]]
    wares = dict.fromkeys((*defined.of_kind("gift"), *defined.of_kind("powder"), "bread"), 2)
    for item in chance.sample(("salve", "gaff", "cutlass", "oilskin", "scale_vest", "smoked_eel"), 3):
        wares[item] = 1
    _replace(world, trader, {**wares, "gold": 150})
    world.version += 1


def new_body(world: World, agent_id: str, name: str, embodiment: str) -> Body:
    """Return a new body on the quay, with the inventory and dispositions of the seed."""
    chance = random.Random(f"{world.seed}/body/{agent_id}")
    cell, x, y = _spot("quay", chance)
    body = Body(agent_id, name, cell, x, y, embodiment)
    body.dispositions = {person: chance.randint(35, 48) for person in world.cast.values()}
    for item, count in {"gold": chance.randint(35, 50), "bread": 2, "club": 1, "salve": 1}.items():
        world.create(body.items, item, count)
    body.equipped = ["club"]
    return body


SPAWNS = {"challenging": ("causeway",), "random": ("quay", "causeway", "rock", "inn", "shed", "chapel")}
"""Spawn, other than on the quay -> the cells of which the seed chooses one."""
LOADOUTS: dict[str, Items] = {"bare": {}, "provisioned": {"bread": 4, "salve": 3, "smoked_eel": 3}}
"""Loadout -> the items besides the gold."""
HARM = {"easy": 50, "hard": 150}
"""Difficulty -> percent of the damage that a body takes."""


def settle(world: World, body: Body, *, spawn: str = "", loadout: str = "") -> None:
    """Move a new body to where it begins, and exchange what it carries; "" and other words leave it."""
    chance = random.Random(f"{world.seed}/settle/{body.agent_id}")
    if spawn in SPAWNS:
        body.cell, body.x, body.y = _spot(chance.choice(SPAWNS[spawn]), chance)
    if loadout in LOADOUTS:
        for item, count in list(body.items.items()):
            if item != "gold":
                move_items(body.items, world.spent, item, count)
                body.put_away(item)
        for item, count in LOADOUTS[loadout].items():
            world.create(body.items, item, count)


def _replace(world: World, thing: Thing, items: Items) -> None:
    for item, count in list(thing.items.items()):
        move_items(thing.items, world.spent, item, count)
    for item, count in items.items():
        world.create(thing.items, item, count)


def _spot(cell: str, chance: random.Random) -> tuple[str, float, float]:
    width, depth = definitions().cells[cell].size
    return cell, round(chance.uniform(1, width - 1), 1), round(chance.uniform(1, depth - 1), 1)


def _loot(chance: random.Random) -> Items:
    gold = chance.randint(4, 18)
    return {"gold": gold, **{chance.choice(definitions().of_kind(kind)): 1 for kind in chance.sample(_LOOT, 2)}}


def _hang(world: World, door: Door, chance: random.Random) -> None:
    here, there = door.between
    cells = definitions().cells
    word = "Door" if cells[there].inside else "Path"
    width, depth = cells[there].size
    inner_at = (there, float(chance.randint(1, width - 1)), 0.5)
    if not cells[there].inside:
        inner_at = (there, 1.0, min(float(door.at[1]), depth - 1.0))
    outer = world.put("door", there, f"{word} to {cells[there].name}{door.note}", (here, *door.at))
    inner = world.put("door", here, f"{word} to {cells[here].name}", inner_at)
    outer.partner, inner.partner, outer.key = inner.id, outer.id, door.key


# --- agents -----------------------------------------------------------------------------------------


def transfer(world: World, body: Body, request: ItemsRequest) -> ItemsReceipt:
    """Add and remove items; a repeated transfer id gets its first receipt."""
    if request.transfer_id in body.receipts:
        return ItemsReceipt.model_validate_json(body.receipts[request.transfer_id])
    given = tuple(_give(world, body, item) for item in request.give)
    taken = tuple(item for item in request.take if _take(world, body, item))
    receipt = ItemsReceipt(transfer_id=request.transfer_id, given=given, taken=taken)
    body.receipts[request.transfer_id] = receipt.model_dump_json()
    while len(body.receipts) > _REMEMBERED:
        del body.receipts[next(iter(body.receipts))]
    return receipt


def revive(world: World, body: Body) -> None:
    """Bring a body back to life in the inn, with half its health and without a third of its gold."""
    if lost := body.items.get("gold", 0) // 3:
        move_items(body.items, world.spent, "gold", lost)
    width, depth = definitions().cells["inn"].size
    body.cell, body.x, body.y = "inn", width / 2, depth / 2
    body.health = body.max_health // 2
    body.be_silent()
    body.goal = None


def _give(world: World, body: Body, item: InventoryItem) -> InventoryItem:
    item_id, text = item.item_id, f"{item.item_id} {item.name}".lower()
    if item_id not in definitions().items:
        kind = next((kind for kind, words in _WORDS.items() if any(word in text for word in words)), "curiosity")
        world.foreign.setdefault(item_id, (item.name, kind))
    world.create(body.items, item_id, item.count)
    if item.equipped and world.item(item_id).kind in ("weapon", "armour"):
        world.equip(body, item_id)
    return item


def _take(world: World, body: Body, item: InventoryItem) -> bool:
    if body.items.get(item.item_id, 0) < item.count:
        return False
    move_items(body.items, world.spent, item.item_id, item.count)
    body.put_away(item.item_id)
    return True
