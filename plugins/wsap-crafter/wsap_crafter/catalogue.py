"""What can be achieved in Crafter, in words. Light: the game itself is not imported."""

from __future__ import annotations

from collections.abc import Mapping

from wsap_core.models import Achievement

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

Rarity: "common" is what random play reaches in a few of a hundred episodes, "uncommon" what takes a
tool of wood at most or a fight by day, "rare" what takes a plan, "legendary" what takes iron.
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
"""What must have been achieved before, as the game's rules have it; nothing for the rest."""

SKILLS: Mapping[str, tuple[str, ...]] = {
    "combat": ("defeat_zombie", "defeat_skeleton"),
    "crafting": tuple(a.name for a in ACHIEVEMENTS if a.name.startswith("make_")),
    "building": ("place_table", "place_furnace", "place_stone"),
    "gathering": ("collect_wood", "collect_stone", "collect_coal", "collect_iron", "collect_diamond"),
    "farming": ("collect_sapling", "place_plant", "eat_plant"),
    "survival": ("collect_drink", "eat_cow", "wake_up"),
}
"""Skill domain to the achievements that are evidence for it."""
