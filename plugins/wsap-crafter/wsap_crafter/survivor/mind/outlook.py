"""The agent's plan as text."""

from __future__ import annotations

from wsap_crafter.survivor.mind.grid import bearing
from wsap_crafter.survivor.mind.knowledge import ACHIEVEMENTS
from wsap_crafter.survivor.mind.state import State

_STEPS = (
    ("collect_sapling", "Search the grass for a sapling"),
    ("collect_wood", "Gather wood, up to nine pieces"),
    ("place_table", "Place a table"),
    ("make_wood_pickaxe", "Make a wood pickaxe"),
    ("make_wood_sword", "Make a wood sword"),
    ("collect_stone", "Mine stone"),
    ("place_stone", "Place a stone"),
    ("make_stone_pickaxe", "Make a stone pickaxe"),
    ("make_stone_sword", "Make a stone sword"),
    ("place_furnace", "Build a furnace"),
    ("place_plant", "Plant the sapling where it can be fenced in with stones"),
    ("collect_drink", "Drink when water is near"),
    ("eat_cow", "Eat a cow when hungry"),
    ("wake_up", "Sleep at night in a walled shelter, and wake up rested"),
    ("collect_coal", "Mine coal"),
    ("collect_iron", "Find and mine iron"),
    ("make_iron_pickaxe", "Make an iron pickaxe at table and furnace"),
    ("make_iron_sword", "Make an iron sword at table and furnace"),
    ("defeat_zombie", "Defeat a zombie"),
    ("defeat_skeleton", "Defeat a skeleton in the tunnels"),
    ("collect_diamond", "Find and mine a diamond"),
    ("eat_plant", "Wait for the plant to ripen, and eat it"),
)


def outlook(state: State) -> list[str]:
    """Return the current aim, then the missing achievements in the usual order."""
    now = []
    if state.doing:
        now.append(f"Now: {state.doing}")
    for plant, ticks in state.memory.plants.items():
        where = bearing(state.last_cell, plant) if state.last_cell else "near"
        now.append(f"Look after the plant {where}, about {ticks} steps old")
    left = [words for name, words in _STEPS if name not in state.unlocked]
    if not left:
        now.append(f"All {ACHIEVEMENTS} achievements are unlocked: live on, well fed and sheltered")
    return now + left
