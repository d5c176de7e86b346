"""Transit: what imported items become here, and which items leave."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from wsap_core.authoring.item_ledger import ItemLedger, Refused
from wsap_core.protocol import Bonus, PortableItem
from wsap_core.protocol.values import JsonValue
from wsap_starbound.catalogue import GAME_ID
from wsap_starbound.data import Item, items
from wsap_starbound.engine.being import ABILITIES, Being

MOST_OUT = 9
"""Most of one material or consumable that leaves with an agent."""
_BEST = ("weapon", "tool", "armor")
"""Categories of which the best leaves, unless one as good was brought."""


def portable() -> dict[str, Item]:
    """Return the items that can leave or enter this world."""
    return {name: item for name, item in items().items() if item.category}


def thing_of(item: PortableItem, being: Being) -> str | Refused:
    """Return what an item becomes here, or why it is refused: what it was here before, or else the thing of its
    category with the nearest tier, the plainer of two."""
    known = portable()
    hint = item.hints.get(GAME_ID, "")
    meant = known.get(hint)
    if meant is None or meant.category != item.category or meant.tier > item.tier:
        alike = [name for name, one in known.items() if one.category == item.category]
        if not alike:
            article = "an" if item.category[:1] in tuple("aeiou") else "a"
            return Refused(f"this world has nothing like {article} {item.category.replace('_', ' ')}")
        hint = min(alike, key=lambda name: (abs(known[name].tier - item.tier), known[name].tier))
    if not being.gain(hint):
        return Refused(f"the body can't carry more {known[hint].name}")
    return hint


def item_of(thing: str) -> PortableItem:
    """Return a thing as a portable item, still without an id."""
    kind = items()[thing]
    return PortableItem("", kind.name, kind.category, kind.tier, {}, GAME_ID, {GAME_ID: thing})


def give_bonus(being: Being, bonus: Bonus) -> JsonValue:
    """Apply a bonus and return what changed; empty for nothing."""
    if bonus.kind == "ability":
        if bonus.name in being.abilities or bonus.name not in ABILITIES:
            return {}
        being.abilities.append(bonus.name)  # type: ignore[arg-type]  # one of ABILITIES
        return {bonus.name: True}
    gained = being.gain(bonus.name, int(bonus.amount))
    return {bonus.name: gained} if gained else {}


def own_things(being: Being, kept: Mapping[str, int], gifts: Mapping[str, int]) -> list[str]:
    """Return what leaves with an agent besides what it brought, one entry for each piece: the best weapon, tool and
    garment that it made unless one as good was brought, and bars, crystals and food. First things and bonuses stay."""
    known = portable()
    own = {name: being.bag.get(name, 0) - kept.get(name, 0) - gifts.get(name, 0) for name in known}
    things: list[str] = []
    for category in _BEST:
        best = max((name for name in known if known[name].category == category and own[name] > 0),
                   key=lambda name: (known[name].tier, name), default="")  # fmt: skip
        brought = [known[name].tier for name in kept if known[name].category == category]
        if best and known[best].tier > max(brought, default=0):
            things.append(best)
    for name, item in known.items():
        if item.category not in _BEST:
            things += [name] * min(MOST_OUT, max(0, own[name]))
    return things


def take_out(being: Being, things: Iterable[str]) -> None:
    """Take things out of the bag."""
    for thing in things:
        being.lose(thing)


def write_off(ledger: ItemLedger, avatar_id: str, being: Being, reason: str) -> None:
    """Write off brought items that the bag no longer has: the world's own pieces were used first, then the oldest."""
    count = ledger.count()
    for item_id, (thing, _) in list(ledger.kept.items()):
        if count[thing] > being.bag.get(thing, 0):
            count[thing] -= 1
            ledger.lose(avatar_id, item_id, reason)
