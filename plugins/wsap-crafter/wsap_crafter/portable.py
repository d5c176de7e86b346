"""Portable items and things of Crafter: what becomes what."""

from __future__ import annotations

from collections.abc import Mapping

from wsap_core.protocol import PortableItem
from wsap_crafter.bodies import GAME_ID
from wsap_crafter.catalogue import PORTABLE

MOST = 9
"""As many of one thing as Crafter's player can carry."""


def thing_for(item: PortableItem) -> str | None:
    """Return what an item is in Crafter, or None if there is nothing like it.

    A hint for Crafter is followed if it names a thing of the item's category that is not above its
    tier; so what left Crafter comes back as itself. Otherwise it is the thing of the category whose tier is
    nearest, the plainer of two.
    """
    hint = item.hints.get(GAME_ID, "")
    meant = PORTABLE.get(hint)
    if meant is not None and meant.category == item.category and meant.tier <= item.tier:
        return hint
    alike = [name for name, thing in PORTABLE.items() if thing.category == item.category]
    return min(alike, key=lambda name: abs(PORTABLE[name].tier - item.tier), default=None)


def item_of(thing: str) -> PortableItem:
    """Return a thing of Crafter as a new portable item, which has no id yet."""
    category, tier = PORTABLE[thing]
    return PortableItem("", thing.replace("_", " "), category, tier, {}, GAME_ID, {GAME_ID: thing})


def own_things(inventory: Mapping[str, int], kept: Mapping[str, int], given: Mapping[str, int]) -> list[str]:
    """Return what leaves with an agent besides what it brought along, each thing as often as it goes.

    All coal, iron and diamonds; and the best sword and pickaxe that are the world's own, unless what was
    brought along is as good. Lesser tools stay with the body, and so does what skills were worth: it is
    given to each new body again, and would multiply.

    Args:
        inventory: what the body carries.
        kept: how much of that was brought along.
        given: how much of it was a bonus.
    """
    own = {name: inventory[name] - kept.get(name, 0) - given.get(name, 0) for name in PORTABLE}
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
