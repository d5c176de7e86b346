"""The remaining achievements as goals, with hints and prerequisites."""

from __future__ import annotations

from functools import lru_cache

from wsap_core.protocol import Goal
from wsap_crafter.catalogue import ACHIEVEMENTS, PREREQUISITES
from wsap_crafter.simulation.game import constants

NEXT = "next"
"""The progress of a goal with all prerequisites achieved."""

_INDEX = {achievement.name: i for i, achievement in enumerate(ACHIEVEMENTS)}


def mask_of(achievements: dict[str, int]) -> int:
    """Return the achievements with a count above zero as bits, in the catalogue's order."""
    mask = 0
    for bit, count in enumerate(achievements.values()):
        if count:
            mask |= 1 << bit
    return mask


@lru_cache(maxsize=4096)
def unlocked_names(mask: int) -> tuple[str, ...]:
    """Return the names of the achievements in the mask, in the catalogue's order."""
    return tuple(a.name for i, a in enumerate(ACHIEVEMENTS) if mask >> i & 1)


@lru_cache(maxsize=4096)
def remaining_goals(mask: int) -> tuple[Goal, ...]:
    """Return a goal for each achievement not in the mask, first those that can be reached next."""
    unlocked = set(unlocked_names(mask))
    goals = []
    for achievement in ACHIEVEMENTS:
        if achievement.name not in unlocked:
            missing = tuple(p for p in PREREQUISITES.get(achievement.name, ()) if p not in unlocked)
            goals.append(_goal(achievement.name, missing))
    return tuple(sorted(goals, key=lambda goal: (goal.progress != NEXT, _INDEX[goal.id])))


@lru_cache(maxsize=1024)
def _goal(name: str, missing: tuple[str, ...]) -> Goal:
    description = next(a.description for a in ACHIEVEMENTS if a.name == name)
    progress = f"after {', '.join(missing)}" if missing else NEXT
    return Goal(name, description.rstrip("."), "achievement", progress, (_hint(name),))


def _hint(name: str) -> str:
    verb, _, thing = name.partition("_")
    if verb == "place":
        rule = constants.place[thing]
        return f"{_amounts(rule['uses'])}, facing free {either(rule['where'])}"
    if verb == "make":
        recipe = constants.make[thing]
        return f"{_amounts(recipe['uses'])}, next to {' and '.join(recipe['nearby'])}"
    return _HINTS[name]


def either(words: list[str]) -> str:
    """Return "a", "a or b" or "a, b or c"."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _amounts(needed: dict[str, int]) -> str:
    return ", ".join(f"{amount} {item}" for item, amount in needed.items())


_HINTS = {
    "collect_coal": "do, facing coal, with a wood_pickaxe",
    "collect_diamond": "do, facing a diamond, with an iron_pickaxe",
    "collect_drink": "do, facing water",
    "collect_iron": "do, facing iron, with a stone_pickaxe",
    "collect_sapling": "do, facing grass; about ten tries",
    "collect_stone": "do, facing stone, with a wood_pickaxe",
    "collect_wood": "do, facing a tree",
    "defeat_skeleton": "do, facing a skeleton, until it falls; they live in tunnels",
    "defeat_zombie": "do, facing a zombie, until it falls",
    "eat_cow": "do, facing a cow, until it is eaten",
    "eat_plant": "stay near your sapling and guard it until ripe, then do, facing it",
    "wake_up": "sleep when energy is low, and wake up rested",
}
