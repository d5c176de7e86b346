"""The priority of the agent's concerns: the first that returns a decision wins."""

from __future__ import annotations

from wsap_crafter.survivor import combat, crafting, farm, homestead, living, needs
from wsap_crafter.survivor.explore import explore
from wsap_crafter.survivor.mind.grid import DIRECTIONS
from wsap_crafter.survivor.mind.knowledge import is_night
from wsap_crafter.survivor.mind.percept import Percept
from wsap_crafter.survivor.mind.state import Decision, State
from wsap_crafter.survivor.moves import advance

_BY_DAY = (
    combat.defend,
    farm.pluck,
    living.live,
    needs.rest,
    combat.hunt,
    needs.drink,
    needs.eat,
    farm.harvest,
    farm.first_sapling,
    crafting.wooden,
    crafting.lay_stone,
    crafting.stony,
    homestead.homestead,
    crafting.furnace,
    crafting.stock_up,
    crafting.iron,
    crafting.diamond,
)
"""Safety first, then the body's needs, then the tech tree."""
_BY_NIGHT = (
    combat.defend,
    farm.pluck,
    living.live,
    homestead.late,
    needs.rest,
    combat.hunt,
    needs.drink,
    needs.eat,
    crafting.furnace_by_night,
    crafting.night_work,
    needs.stay_in,
)
"""Off the grass, where zombies are: underground as long as health allows, otherwise in a shelter."""
_STUCK = 60
"""Decisions on one cell after which the agent moves away and replans."""


def think(state: State, percept: Percept) -> Decision:
    """Update the state from a percept and return the next decision."""
    state.memory.update(percept)
    farm.note_walls(state)
    state.step, state.unlocked = percept.step, percept.unlocked
    decision = _choose(state, percept)
    state.doing = decision.reason
    return decision


def _choose(state: State, percept: Percept) -> Decision:
    if percept.sleeping:
        return Decision("sleep", "Sleeping")
    if percept.cell == state.last_cell and not (state.resting or state.homing):
        state.standing += 1
    else:
        state.last_cell, state.standing = percept.cell, 0
    if state.standing > _STUCK and state.standing % 10 < 3:
        loose = _shake(state, percept)
        if loose is not None:
            return loose
    night = is_night(percept.step) and percept.has("wood_pickaxe")
    for concern in _BY_NIGHT if night else _BY_DAY:
        decision = concern(state, percept)
        if decision is not None:
            return decision
    return idle(state, percept)


def _shake(state: State, percept: Percept) -> Decision | None:
    """Step aside and replan after too many decisions on one cell."""
    state.way, state.errand, state.refuge, state.lookout = [], "", (), 0
    for turn in range(4):
        cell = percept.cell + DIRECTIONS[(percept.step + turn) % 4]
        if state.memory.free(cell):
            return advance(state, percept, cell, "Getting nowhere here: trying another way")
    return None


def idle(state: State, percept: Percept) -> Decision:
    """Explore or wait if every goal is reached or out of reach."""
    decision = None
    if not is_night(percept.step):
        decision = explore(state, percept, b".:T~", "anything new")
    elif not percept.has("stone"):
        decision = explore(state, percept, b"#:cidL", "rock")
    return decision or Decision("noop", "Enjoying the view")
