"""The order in which the agent's concerns are asked; the first that wants something decides."""

from __future__ import annotations

from . import combat, crafting, farm, needs
from .explore import explore
from .grid import DIRECTIONS
from .knowledge import is_night
from .mind import Decision, Mind
from .moves import advance
from .percept import Percept

_BY_DAY = (
    combat.defend,
    farm.pluck,
    needs.rest,
    combat.hunt,
    needs.drink,
    needs.eat,
    farm.harvest,
    farm.first_sapling,
    crafting.wooden,
    crafting.lay_stone,
    crafting.stony,
    crafting.furnace,
    farm.garden,
    crafting.stock_up,
    crafting.iron,
    farm.linger,
    crafting.diamond,
)
"""Safety first, then the body's needs, then the way up the tree of tools."""
_BY_NIGHT = (
    combat.defend,
    farm.pluck,
    needs.rest,
    combat.hunt,
    needs.drink,
    needs.eat,
    crafting.night_work,
    needs.stay_in,
)
"""Off the grass, where the zombies gather: underground as long as health allows, otherwise in a shelter."""
_STUCK = 60
"""Decisions on one cell after which the agent shakes itself loose."""


def think(mind: Mind, percept: Percept) -> Decision:
    """Take in what is seen and return what to do next."""
    mind.memory.update(percept)
    farm.note_walls(mind)
    mind.step, mind.unlocked = percept.step, percept.unlocked
    decision = _choose(mind, percept)
    mind.doing = decision.reason
    return decision


def _choose(mind: Mind, percept: Percept) -> Decision:
    if percept.sleeping:
        return Decision("sleep", "Sleeping")
    if percept.cell == mind.last_cell and not mind.resting:
        mind.standing += 1
    else:
        mind.last_cell, mind.standing = percept.cell, 0
    if mind.standing > _STUCK and mind.standing % 10 < 3:
        loose = _shake(mind, percept)
        if loose is not None:
            return loose
    night = is_night(percept.step) and percept.has("wood_pickaxe")
    for concern in _BY_NIGHT if night else _BY_DAY:
        decision = concern(mind, percept)
        if decision is not None:
            return decision
    return idle(mind, percept)


def _shake(mind: Mind, percept: Percept) -> Decision | None:
    """Step aside and plan everything anew, after having stood on one cell for too long."""
    mind.way, mind.errand, mind.refuge, mind.garden, mind.lookout = [], "", (), 0, 0
    for turn in range(4):
        cell = percept.cell + DIRECTIONS[(percept.step + turn) % 4]
        if mind.memory.free(cell):
            return advance(mind, percept, cell, "Getting nowhere here: trying another way")
    return None


def idle(mind: Mind, percept: Percept) -> Decision:
    """Do something sensible when every goal is reached or out of reach."""
    decision = explore(mind, percept, b".:T~", "anything new")
    return decision or Decision("noop", "Enjoying the view")
