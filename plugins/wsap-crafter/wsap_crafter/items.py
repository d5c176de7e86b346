"""What agents bring into Crafter's inventory and take out of it: which item becomes which thing, and which leave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from wsap_core.authoring.item_ledger import ItemLedger, Refused
from wsap_core.protocol import PortableItem
from wsap_core.protocol.values import JsonValue
from wsap_crafter.body import GAME_ID
from wsap_crafter.catalogue import PORTABLE, TRANSFER_RULES
from wsap_crafter.snapshot import whole

MOST = 9
"""The most of one thing that Crafter's player can carry."""


def thing_of(item: PortableItem, inventory: Mapping[str, int]) -> str | Refused:
    """Return the thing that an item becomes in Crafter, or why it is refused.

    A hint for Crafter is followed if it names a thing of the item's category whose tier is not above the
    item's; so what left Crafter comes back as itself. Otherwise it is the thing of the category with the
    nearest tier, the plainer of two.
    """
    hint = item.hints.get(GAME_ID, "")
    meant = PORTABLE.get(hint)
    if meant is None or meant.category != item.category or meant.tier > item.tier:
        alike = [name for name, thing in PORTABLE.items() if thing.category == item.category]
        if not alike:
            article = "an" if item.category[0] in "aeiou" else "a"
            return Refused(f"Crafter has nothing like {article} {item.category.replace('_', ' ')}")
        hint = min(alike, key=lambda name: abs(PORTABLE[name].tier - item.tier))
    if inventory[hint] >= MOST:
        return Refused(f"the body carries {MOST} {hint.replace('_', ' ')} already, the most it can")
    return hint


def item_of(thing: str) -> PortableItem:
    """Return a thing of Crafter as a new portable item, which has no id yet."""
    category, tier = PORTABLE[thing]
    return PortableItem("", thing.replace("_", " "), category, tier, {}, GAME_ID, {GAME_ID: thing})


def own_things(inventory: Mapping[str, int], kept: Mapping[str, int], gifts: Mapping[str, int]) -> list[str]:
    """Return what leaves with an agent besides what it brought along, one entry for each piece.

    All coal, iron and diamonds; and the best sword and pickaxe that are the world's own, unless what was
    brought along is as good. Lesser tools stay with the body, and so do bonuses: each new body gets them
    again, and they would multiply.

    Args:
        inventory: what the body carries.
        kept: how much of that was brought along.
        gifts: how much of it was a bonus.
    """
    own = {name: inventory[name] - kept.get(name, 0) - gifts.get(name, 0) for name in PORTABLE}
    things: list[str] = []
    for category in ("weapon", "tool"):
        best_first = [name for name in reversed(tuple(PORTABLE)) if PORTABLE[name].category == category]
        best = next((name for name in best_first if own[name] > 0 or kept.get(name, 0)), None)
        if best is not None and not kept.get(best, 0):
            things.append(best)
    for name, thing in PORTABLE.items():
        if thing.category == "material":
            things += [name] * max(0, own[name])
    return things


def write_off_used(items: ItemLedger, avatar_id: str, inventory: Mapping[str, int]) -> None:
    """Write off what was used up: the world's own pieces are used first, then the oldest item."""
    count = items.count()
    for item_id, (thing, _) in list(items.kept.items()):
        if count[thing] > inventory[thing]:
            count[thing] -= 1
            items.lose(avatar_id, item_id, "used up")


# --- as data ----------------------------------------------------------------------------------


def dump_items(items: ItemLedger, gifts: Mapping[str, int]) -> JsonValue:
    """Return ledger and bonuses as JSON-ready data; None if there was never an entry."""
    return None if items == ItemLedger() and not gifts else {**items.to_json(), "given": dict(gifts)}


def load_items(data: JsonValue, inventory: Mapping[str, int]) -> tuple[ItemLedger, Counter[str]]:
    """Return the ledger and the bonuses of `dump_items`.

    Args:
        data: not trusted.
        inventory: what the body carries, which the ledger has to agree with.

    Raises:
        ValueError, TypeError, LookupError, AttributeError: the data describes no ledger of Crafter.
    """
    items, gifts = ItemLedger(), Counter[str]()
    if data is not None:
        items.load_json(data, {rule.id for rule in TRANSFER_RULES})
        gifts.update({thing: whole(amount, 0, MOST) for thing, amount in data["given"].items()})
    carried = items.count() + gifts
    if any(name not in PORTABLE for name in carried.keys() | gifts.keys()):
        raise ValueError("a thing is not portable")
    if any(amount > inventory[thing] for thing, amount in carried.items()):
        raise ValueError("more was brought along than there is")
    return items, gifts
