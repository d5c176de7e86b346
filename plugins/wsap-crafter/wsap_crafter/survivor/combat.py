"""Fighting nearby creatures, and hunting for achievements."""

from __future__ import annotations

from wsap_crafter.survivor.mind.grid import bearing, distance
from wsap_crafter.survivor.mind.knowledge import is_night, strength
from wsap_crafter.survivor.mind.percept import Percept
from wsap_crafter.survivor.mind.state import Decision, State
from wsap_crafter.survivor.moves import fetch, use

_LONGEST_HUNT = 80
"""Maximum steps of a hunt, because skeletons run away."""
_PAUSE = 120
"""Steps before the next hunt after an unsuccessful one."""


def defend(state: State, percept: Percept) -> Decision | None:
    """Strike at a zombie or skeleton beside the player, preferably the faced one."""
    foes = [cell for cell in (*percept.zombies, *percept.skeletons) if distance(cell, percept.cell) == 1]
    if not foes:
        return None
    foe = percept.ahead if percept.ahead in foes else foes[0]
    name = "zombie" if foe in percept.zombies else "skeleton"
    return use(percept, foe, "do", f"Fighting the {name} beside me")


def hunt(state: State, percept: Percept) -> Decision | None:
    """Hunt a zombie or skeleton in view for the achievement, or a nearby skeleton that shoots."""
    prey, name = _prey(state, percept)
    if not prey:
        return None
    if state.chase_began < 0 or percept.step - state.chase_began > _LONGEST_HUNT + _PAUSE:
        state.chase_began = percept.step
    if percept.step - state.chase_began > _LONGEST_HUNT:
        return None
    near = min(prey, key=lambda cell: distance(cell, percept.cell))
    reason = f"Hunting a {name}, {bearing(percept.cell, near)}"
    return fetch(state, percept, f"hunt@{near}", reason, cells=(near,), limit=16)


def _prey(state: State, percept: Percept) -> tuple[tuple[int, ...], str]:
    """Return the creatures to hunt now, and their kind; none with hardly any food or drink."""
    blow = strength(percept.inventory)
    if min(percept.food, percept.drink) < 2:
        return (), ""
    if percept.skeletons and blow >= 2 and percept.health >= 6:
        prey = tuple(cell for cell in percept.skeletons if state.complete or distance(cell, percept.cell) <= 4)
        if prey and "defeat_skeleton" not in percept.unlocked:
            return prey, "skeleton"
    # A skeleton runs instead of shooting if the player is close.
    close = tuple(cell for cell in percept.skeletons if distance(cell, percept.cell) <= 4)
    if close and state.complete and blow >= 3 and percept.health >= 4:
        return close, "skeleton"
    # With bare hands a zombie takes five blows, and strikes a second time before it falls.
    fit = blow >= 2 and percept.health >= 7 and not is_night(percept.step)
    if percept.zombies and fit and "defeat_zombie" not in percept.unlocked:
        return percept.zombies, "zombie"
    return (), ""
