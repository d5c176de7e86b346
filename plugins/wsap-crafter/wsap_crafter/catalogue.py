"""Crafter's achievements, skills, transfer rules, portable items and vocabulary, without importing the game."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from wsap_core.protocol import Achievement, Bonus, TransferRule

ACHIEVEMENTS: tuple[Achievement, ...] = (
    Achievement("collect_coal", "Mine coal with a wood pickaxe.", "rare"),
    Achievement("collect_diamond", "Mine a diamond with an iron pickaxe.", "legendary"),
    Achievement("collect_drink", "Drink water.", "common"),
    Achievement("collect_iron", "Mine iron with a stone pickaxe.", "rare"),
    Achievement("collect_sapling", "Find a sapling in the grass.", "common"),
    Achievement("collect_stone", "Mine stone with a wood pickaxe.", "uncommon"),
    Achievement("collect_wood", "Take wood from a tree.", "common"),
    Achievement("defeat_skeleton", "Defeat a skeleton in the tunnels.", "rare"),
    Achievement("defeat_zombie", "Defeat a zombie.", "uncommon"),
    Achievement("eat_cow", "Kill and eat a cow.", "uncommon"),
    Achievement("eat_plant", "Eat a plant that has ripened.", "rare"),
    Achievement("make_iron_pickaxe", "Make an iron pickaxe.", "legendary"),
    Achievement("make_iron_sword", "Make an iron sword.", "legendary"),
    Achievement("make_stone_pickaxe", "Make a stone pickaxe.", "rare"),
    Achievement("make_stone_sword", "Make a stone sword.", "rare"),
    Achievement("make_wood_pickaxe", "Make a wood pickaxe.", "uncommon"),
    Achievement("make_wood_sword", "Make a wood sword.", "uncommon"),
    Achievement("place_furnace", "Place a furnace.", "rare"),
    Achievement("place_plant", "Plant a sapling.", "common"),
    Achievement("place_stone", "Place a stone.", "uncommon"),
    Achievement("place_table", "Place a table.", "common"),
    Achievement("wake_up", "Sleep until rested.", "common"),
)
"""The 22 achievements, in the game's order.

Rarity: "common" is reached by random play in a few of a hundred episodes, "uncommon" requires at most a wooden tool or
a fight by day, "rare" requires a plan, "legendary" requires iron.
"""

PREREQUISITES: Mapping[str, tuple[str, ...]] = {
    "collect_coal": ("make_wood_pickaxe",),
    "collect_diamond": ("make_iron_pickaxe",),
    "collect_iron": ("make_stone_pickaxe",),
    "collect_stone": ("make_wood_pickaxe",),
    "eat_plant": ("place_plant",),
    "make_iron_pickaxe": ("place_table", "place_furnace", "collect_coal", "collect_iron"),
    "make_iron_sword": ("place_table", "place_furnace", "collect_coal", "collect_iron"),
    "make_stone_pickaxe": ("place_table", "collect_stone"),
    "make_stone_sword": ("place_table", "collect_stone"),
    "make_wood_pickaxe": ("place_table",),
    "make_wood_sword": ("place_table",),
    "place_furnace": ("collect_stone",),
    "place_plant": ("collect_sapling",),
    "place_stone": ("collect_stone",),
    "place_table": ("collect_wood",),
}
"""Achievement -> the achievements that the game's rules require before it; others require none."""

SKILLS: Mapping[str, tuple[str, ...]] = {
    "exploration": ("collect_coal", "collect_iron", "collect_diamond"),
    "resource_management": ("collect_wood", "collect_stone", "collect_sapling"),
    "combat": ("defeat_zombie", "defeat_skeleton"),
    "crafting": ("place_table", *(a.name for a in ACHIEVEMENTS if a.name.startswith("make_"))),
    "survival": ("collect_drink", "eat_cow", "wake_up"),
    "planning": ("place_plant", "eat_plant", "place_furnace"),
    "adaptation": ("place_stone",),
}
"""Skill domain -> the achievements that are evidence for it, each for one domain.

Ores must be found, a furnace and a field must be planned, and a placed stone adapts the land with a bridge or a wall.
Nothing in Crafter is evidence for social skill or for puzzles.
"""

TRANSFER_RULES: tuple[TransferRule, ...] = (
    TransferRule("combat-wood-sword", "combat", 0.3, Bonus("item", "wood_sword"), "a wood sword"),
    TransferRule("combat-stone-sword", "combat", 0.7, Bonus("item", "stone_sword"), "a stone sword"),
    TransferRule("crafting-wood-pickaxe", "crafting", 0.3, Bonus("item", "wood_pickaxe"), "a wood pickaxe"),
    TransferRule("crafting-stone-pickaxe", "crafting", 0.7, Bonus("item", "stone_pickaxe"), "a stone pickaxe"),
    TransferRule("resources-wood", "resource_management", 0.3, Bonus("item", "wood", 3), "3 wood"),
    TransferRule("resources-stone", "resource_management", 0.6, Bonus("item", "stone", 3), "3 stone"),
    TransferRule("survival-sapling", "survival", 0.3, Bonus("item", "sapling"), "a sapling to plant"),
    TransferRule("survival-food", "survival", 0.5, Bonus("stat", "food", 3), "3 food, if the body is hungry"),
    TransferRule("survival-drink", "survival", 0.5, Bonus("stat", "drink", 3), "3 drink, if the body is thirsty"),
)
"""The bonuses for skills. All are inventory; health does not change, because it determines rewards."""


class Portable(NamedTuple):
    """Category and tier of a portable thing."""

    category: str
    tier: int


PORTABLE: Mapping[str, Portable] = {
    "wood_sword": Portable("weapon", 2),
    "stone_sword": Portable("weapon", 4),
    "iron_sword": Portable("weapon", 6),
    "wood_pickaxe": Portable("tool", 2),
    "stone_pickaxe": Portable("tool", 4),
    "iron_pickaxe": Portable("tool", 6),
    "coal": Portable("material", 3),
    "iron": Portable("material", 5),
    "diamond": Portable("material", 8),
}
"""The things that can leave or enter Crafter, in each category from the plainest to the best."""

VOCABULARY = (
    *(
        "crafter",
        "grass",
        "grassland",
        "sand",
        "water",
        "path",
        "stone",
        "tree",
        "forest",
        "wood",
        "lava",
        "coal",
        "iron",
    ),
    *("diamond", "table", "furnace", "plant", "sapling", "cow", "zombie", "skeleton", "arrow", "pickaxe", "sword"),
    *("sleep", "asleep", "drink", "eat", "ripe", "tunnel", "cave", "health", "food", "energy", "collect", "creature"),
)
"""The words for things in the game, which skins rename."""
