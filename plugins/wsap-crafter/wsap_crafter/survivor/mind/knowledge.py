"""The rules of Crafter: costs, tools, walkable ground and times of day.

Source: ``data.yaml`` and ``objects.py`` of the ``crafter`` package, version 1.8.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

GRASS, PATH, SAND, WATER, STONE, TREE, LAVA = b".:_~#TL"
COAL, IRON, DIAMOND, TABLE, FURNACE = b"cidtf"
SAPLING, RIPE = b"pP"
OUTSIDE, UNKNOWN = b" ?"

WALKABLE = frozenset((GRASS, PATH, SAND))
"""Ground that player and creatures walk on; anything else keeps creatures out."""

RECIPES: Mapping[str, Mapping[str, int]] = MappingProxyType({
    "place_table": {"wood": 2},
    "place_furnace": {"stone": 4},
    "make_wood_pickaxe": {"wood": 1},
    "make_wood_sword": {"wood": 1},
    "make_stone_pickaxe": {"wood": 1, "stone": 1},
    "make_stone_sword": {"wood": 1, "stone": 1},
    "make_iron_pickaxe": {"wood": 1, "coal": 1, "iron": 1},
    "make_iron_sword": {"wood": 1, "coal": 1, "iron": 1},
})  # fmt: skip
"""The items that each action uses up."""

MOST = 9
"""Maximum number of an item, and maximum of the four vital signs."""
RIPENING = 301
"""Updates until a plant is ripe, one for each step in which the player is nearer than `UPDATE_RANGE`."""
UPDATE_RANGE = 18
"""The distance from which objects are not updated."""
DAY = 300
"""Steps from one morning to the next."""
MORNING, EVENING, DUSK, BEDTIME = 8, 100, 155, 195
"""Hours, in steps of the day: zombies get fewer; time to drink and eat; time to leave the grass; time to sleep."""
ACHIEVEMENTS = 22
"""Number of achievements."""


def is_night(step: int) -> bool:
    """Return whether many zombies are around: from dusk to the next morning."""
    return step % DAY >= DUSK or (step >= DAY and step % DAY < MORNING)


def is_evening(step: int) -> bool:
    """Return whether it is time to prepare for the night."""
    return EVENING <= step % DAY < DUSK


def strength(inventory: Mapping[str, int]) -> int:
    """Return the damage of a hit with the best sword in the inventory."""
    for sword, damage in (("iron_sword", 5), ("stone_sword", 3), ("wood_sword", 2)):
        if inventory.get(sword):
            return damage
    return 1


def affordable(recipe: str, inventory: Mapping[str, int]) -> bool:
    """Return whether the inventory has the items that the action uses up."""
    return all(inventory.get(item, 0) >= amount for item, amount in RECIPES[recipe].items())
