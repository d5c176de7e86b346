"""Thirst, hunger, tiredness, wounds, and the night."""

from __future__ import annotations

from .explore import explore
from .grid import bearing
from .knowledge import DAWN, DAY, DUSK, EVENING, MOST, WATER
from .mind import Decision, Mind
from .moves import fetch
from .percept import Percept
from .shelter import build, sealed

_WATER = bytes((WATER,))


def drink(mind: Mind, percept: Percept) -> Decision | None:
    """Drink when thirsty, or when water is close; once begun, to the full."""
    if percept.drink >= MOST:
        mind.drinking = False
        return None
    evening = EVENING <= percept.step % DAY < DUSK
    urgent = percept.drink <= (6 if evening else 3)
    limit = 1000 if urgent else 3 if percept.drink >= 7 else 8
    if not urgent and not mind.drinking and percept.drink > 6 and "collect_drink" in percept.unlocked:
        return None
    decision = fetch(mind, percept, f"water<{limit}", _thirst(mind, percept), wanted=_WATER, limit=limit)
    if decision is not None:
        mind.drinking = True
        return decision
    mind.drinking = False
    if urgent:
        return explore(mind, percept, b"~_", "water")
    return None


def _thirst(mind: Mind, percept: Percept) -> str:
    if mind.errand.startswith("water") and mind.way:
        return f"Thirsty ({percept.drink}/9): going to the water {bearing(percept.cell, mind.way[0])}"
    return f"Thirsty ({percept.drink}/9): going to the water"


def eat(mind: Mind, percept: Percept) -> Decision | None:
    """Eat a cow when hungry, or when one is close and there is room for it."""
    evening = EVENING <= percept.step % DAY < DUSK
    urgent = percept.food <= (4 if evening else 3)
    first = "eat_cow" not in percept.unlocked
    if percept.food > 5 and not first:
        return None
    cows = mind.memory.cows
    if cows:
        limit = 1000 if urgent else 8
        cells = tuple(cows) if urgent or percept.cows else percept.cows
        reason = f"Hungry ({percept.food}/9): going for a cow" if not first else "Going for a cow"
        if cells:
            errand = f"cow<{limit}@{hash_free(cells)}"
            decision = fetch(mind, percept, errand, reason, cells=cells, limit=limit)
            if decision is not None:
                return decision
    return explore(mind, percept, b".T", "cows") if urgent else None


def hash_free(cells: tuple[int, ...]) -> str:
    """Return the cells as text, for errands that change as creatures move."""
    return ",".join(map(str, cells))


def decide_rest(mind: Mind, percept: Percept) -> None:
    """Set or clear the mind's reason for rest."""
    starving = percept.food == 0 or percept.drink == 0
    hour = percept.step % DAY
    dark = DUSK <= hour < DAWN
    if mind.resting:
        over = {
            "sleep": percept.energy >= MOST,
            "heal": percept.health >= 8,
            "night": not dark,
        }[mind.resting]
        thirsty = min(percept.food, percept.drink) <= 1 and percept.health >= 4 and percept.energy >= 3
        if over or starving or thirsty:
            mind.resting, mind.refuge = "", ()
    if mind.resting or starving or min(percept.food, percept.drink) <= 2:
        return
    if percept.energy <= 2 or (dark and percept.energy <= 7):
        mind.resting = "sleep"
    elif percept.health <= 4:
        mind.resting = "heal"
    elif dark and hour < DAWN - 15:
        mind.resting = "night"


def rest(mind: Mind, percept: Percept) -> Decision | None:
    """Seek a shelter and rest in it, if there is a reason to."""
    decide_rest(mind, percept)
    if not mind.resting:
        return None
    why = {"sleep": "Tired", "heal": "Wounded", "night": "Waiting for the morning"}[mind.resting]
    if sealed(mind, percept):
        if percept.energy < MOST:
            return Decision("sleep", f"{why}: sleeping in the shelter")
        return Decision("noop", f"{why}: resting in the shelter")
    return build(mind, percept, why)
