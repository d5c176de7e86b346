"""Walking a planned path, and using or placing things."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from wsap_crafter.survivor.mind.grid import DIRECTIONS, MOVE
from wsap_crafter.survivor.mind.knowledge import WALKABLE, WATER, is_night
from wsap_crafter.survivor.mind.paths import FAR, costs_for, find_route
from wsap_crafter.survivor.mind.percept import Percept
from wsap_crafter.survivor.mind.state import Decision, State

_RETRY = 20
"""Steps before an errand without a path is tried again."""


def costs_now(percept: Percept) -> tuple[int, ...]:
    """Return the player's current cost of each kind of ground."""
    return costs_for(percept.inventory, is_night(percept.step))


def head_for(
    state: State,
    percept: Percept,
    errand: str,
    *,
    wanted: bytes = b"",
    cells: Collection[int] = (),
    avoid: Collection[int] = (),
    limit: int = FAR,
) -> int | None:
    """Return the next cell on the path to the nearest goal (see `paths.find_route`); None if there is no path.

    At a goal among `cells` it is the player's own cell, beside a goal of a `wanted` kind that goal. The path is kept in
    the state for the same errand.
    """
    here = percept.cell
    if here in cells:
        return here
    if state.errand == errand and _still_good(state, percept, wanted, cells, avoid):
        return state.way[-1]
    if state.hopeless.get(errand, -1) > percept.step:
        return None
    memory = state.memory
    blocked = {*memory.occupied, *memory.walls, *avoid}
    way = find_route(
        memory.ground,
        here,
        costs_now(percept),
        wanted=wanted,
        cells=cells,
        blocked=blocked,
        kept={*memory.walls, state.door},
        limit=limit,
    )
    if way is None:
        state.hopeless[errand] = percept.step + (2 if here in state.home else _RETRY)
        return None
    way.reverse()
    state.errand, state.way = errand, way
    return way[-1]


def _still_good(state: State, percept: Percept, wanted: bytes, cells: Collection[int], avoid: Collection[int]) -> bool:
    way, memory = state.way, state.memory
    if way and way[-1] == percept.cell:
        way.pop()
    if not way or abs(way[-1] - percept.cell) not in (1, DIRECTIONS[2]):
        return False
    goal, following = way[0], way[-1]
    if memory.ground[goal] not in wanted and goal not in cells:
        return False
    if following == goal:
        return True
    return (
        costs_now(percept)[memory.ground[following]] > 0
        and following not in memory.occupied
        and following not in memory.walls
        and following not in avoid
    )


def advance(state: State, percept: Percept, cell: int, reason: str) -> Decision:
    """Return the action that brings the player closer to an adjacent cell: a step, a hit, or a stone on water."""
    step = cell - percept.cell
    ground = state.memory.ground[cell]
    if ground in WALKABLE and cell not in state.memory.occupied:
        return Decision(MOVE[step], reason)
    if percept.facing != step:
        return Decision(MOVE[step], reason)
    if ground == WATER:
        return Decision("place_stone", f"{reason} (bridging the water)")
    return Decision("do", reason)


def use(percept: Percept, cell: int, action: str, reason: str) -> Decision:
    """Return the action, or first the turn to the adjacent cell, which must not be free."""
    step = cell - percept.cell
    return Decision(action if percept.facing == step else MOVE[step], reason)


def fetch(
    state: State,
    percept: Percept,
    errand: str,
    reason: str,
    *,
    wanted: bytes = b"",
    cells: Collection[int] = (),
    limit: int = FAR,
) -> Decision | None:
    """Walk to the nearest goal and use it (`do`) from beside it; None if there is no path."""
    target = head_for(state, percept, errand, wanted=wanted, cells=cells, limit=limit)
    if target is None:
        return None
    if target == state.way[0]:
        return use(percept, target, "do", reason)
    return advance(state, percept, target, reason)


def put(
    state: State, percept: Percept, target: int, action: str, reason: str, avoid: Collection[int] = ()
) -> Decision | None:
    """Do `action` to a free cell, walking so that the last step faces it; None if there is no path. Turning to a free
    cell would step onto it, so the player must come from the opposite side, two cells away."""
    return put_any(state, percept, {target: (action, reason)}, avoid)


def put_any(
    state: State, percept: Percept, targets: Mapping[int, tuple[str, str]], avoid: Collection[int] = ()
) -> Decision | None:
    """Do the given action to the nearest of several free cells (see `put`)."""
    if percept.ahead in targets:
        return Decision(*targets[percept.ahead])
    memory = state.memory
    costs = costs_now(percept)
    ground = memory.ground
    blocked = {*memory.occupied, *memory.walls, *avoid, *targets}
    runs: dict[int, tuple[int, int]] = {}
    for target in targets:
        for step in DIRECTIONS:
            stand, run = target - step, target - 2 * step
            if all(costs[ground[cell]] and (cell == percept.cell or cell not in blocked) for cell in (stand, run)):
                runs.setdefault(run, (stand, target))
    if percept.cell in runs:
        state.way = []
        stand, target = runs[percept.cell]
        return advance(state, percept, stand, targets[target][1])
    errand = f"put@{','.join(map(str, targets))}"
    following = head_for(state, percept, errand, cells=runs, avoid=(*targets, *avoid))
    if following is None:
        return None
    goal = runs.get(state.way[0]) if state.way else None
    return advance(state, percept, following, targets[goal[1] if goal else next(iter(targets))][1])
