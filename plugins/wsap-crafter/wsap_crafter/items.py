"""The transfer of items: which thing of Crafter an item becomes, and which things leave with an agent."""

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
"""Maximum number of one thing in the inventory."""


def thing_of(item: PortableItem, inventory: Mapping[str, int]) -> str | Refused:
    """Return the thing that an item becomes in Crafter, or why it is refused.

    The item's hint for Crafter counts if it names a thing of the item's category and at most its tier, so that a thing
    that left Crafter returns unchanged. Otherwise it is the thing of the category with the nearest tier, the plainer
    of two.
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
    """Return a thing of Crafter as a new portable item without id."""
    category, tier = PORTABLE[thing]
    return PortableItem("", thing.replace("_", " "), category, tier, {}, GAME_ID, {GAME_ID: thing})


def own_things(inventory: Mapping[str, int], kept: Mapping[str, int], gifts: Mapping[str, int]) -> list[str]:
    """Return the things that leave with an agent besides those it brought, one entry for each piece.

    These are all coal, iron and diamonds, and the world's best sword and pickaxe unless one as good was brought. Lesser
    tools stay with the body, and so do bonuses, which would multiply because each new body gets them again.

    Args:
        inventory: the things that the body carries.
        kept: those of them that were brought.
        gifts: those of them that were bonuses.
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
    """Write off used items: the world's own pieces are used first, then the oldest item."""
    count = items.count()
    for item_id, (thing, _) in list(items.kept.items()):
        if count[thing] > inventory[thing]:
            count[thing] -= 1
            items.lose(avatar_id, item_id, "used up")


# --- as data ----------------------------------------------------------------------------------


def dump_items(items: ItemLedger, gifts: Mapping[str, int]) -> JsonValue:
    """Return ledger and bonuses as JSON-ready data; None without entries."""
    return None if items == ItemLedger() and not gifts else {**items.to_json(), "given": dict(gifts)}


def load_items(data: JsonValue, inventory: Mapping[str, int]) -> tuple[ItemLedger, Counter[str]]:
    """Return the ledger and the bonuses from untrusted data of `dump_items`.

    Raises ValueError, TypeError, LookupError or AttributeError if the data is invalid or does not agree with the body's
    inventory.
    """
    items, gifts = ItemLedger(), Counter[str]()
    if data is not None:
        items.load_json(data, {rule.id for rule in TRANSFER_RULES})
        gifts.update({thing: whole(amount, 0, MOST) for thing, amount in data["given"].items()})
    carried = items.count() + gifts
    if any(name not in PORTABLE for name in carried.keys() | gifts.keys()):
        raise ValueError("a thing is not portable")
    if any(amount > inventory[thing] for thing, amount in carried.items()):
        raise ValueError("the inventory has fewer things than were brought")
    return items, gifts
