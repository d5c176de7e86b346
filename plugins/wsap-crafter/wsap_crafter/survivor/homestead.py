"""A home for life: a closed corridor beside water, with plants along its sides.

Whoever stands in it drinks, eats and sleeps without opening a door. A plant ripens in some 300 steps and gives
four food, so three of them feed one player for good. Each plant is a wall of the corridor; its other sides are
walled up, since any creature beside a plant tramples it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from .crafting import gather
from .farm import seek_sapling
from .grid import DIRECTIONS, distance
from .knowledge import (
    ACHIEVEMENTS,
    DAY,
    DIAMOND,
    GRASS,
    LAVA,
    MORNING,
    OUTSIDE,
    RIPE,
    RIPENING,
    SAPLING,
    STONE,
    UNKNOWN,
    WALKABLE,
    WATER,
    is_night,
)
from .memory import Memory
from .moves import costs_now, put, put_any
from .needs import inside
from .paths import spread
from .percept import Percept
from .shelter import build, draughty, ends, sealed, sides
from .state import Decision, State

_SEARCH = 70
"""The price within which a place for a home is sought."""
_LENGTHS = (2, 3)
"""Cells of the corridor."""
_PLANTS = 3
"""Plants of a home."""
_DRY = 80
"""The price of a home without water beside it."""
_DRAUGHT = 40
"""The price of a place that skeletons could shoot into over water."""
_WALL = 8
"""The price of a wall to be built."""
_NEAR = 45
"""The distance from which the agent goes home for the night."""
_SOONEST, _LATEST = MORNING, 90
"""The hours between which the agent sets out from home."""
_AFTERNOON = 100
"""The hour after which no new building is begun: zombies come out, and there is ore to be mined."""
_PATIENCE = 600
"""Steps after which a home comes before tools of iron."""
_HOMEWARD = 115
"""The hour at which it turns back."""


def outer(line: tuple[int, ...]) -> list[int]:
    """Return the cells around a corridor that something could step in from."""
    return [*sides(line), *ends(line)]


def _unfenced(memory: Memory, line: tuple[int, ...], plots: tuple[int, ...], door: int) -> list[int]:
    """Return the cells still to be walled up: around the plants, and between them."""
    wanted = dict.fromkeys([*(plot + step for plot in plots for step in DIRECTIONS), *outer(line)])
    kept = {*line, *plots, door}
    return [cell for cell in wanted if cell not in kept and memory.ground[cell] in WALKABLE]


def _unplanted(state: State) -> list[int]:
    return [plot for plot in state.plots if state.memory.ground[plot] == GRASS]


def finished(state: State) -> bool:
    """Return whether the home stands, but for its door."""
    return bool(state.home) and not (_unplanted(state) or _unfenced(state.memory, state.home, state.plots, state.door))


def homestead(state: State, percept: Percept) -> Decision | None:
    """Find a place for a home, gather what it takes, and build it; then mend what has been damaged."""
    if not percept.has("wood_pickaxe"):
        return None
    _check(state)
    if not state.home and not _find_home(state, percept):
        return None
    if finished(state):
        return _close_door(state, percept)
    if not (percept.has("iron_sword") or percept.step > _PATIENCE):
        return None
    late_hour = percept.step % DAY > _AFTERNOON and _has_errands(percept)
    if not state.settled and (late_hour or _sees_diamond(state, percept)):
        return None
    if state.settled and percept.cell not in state.home and distance(percept.cell, state.home[0]) > _NEAR:
        return None
    return _supply(state, percept) or _raise(state, percept)


def _sees_diamond(state: State, percept: Percept) -> bool:
    """Return whether a diamond is known and can be taken now."""
    wanted = "collect_diamond" not in percept.unlocked and percept.has("iron_pickaxe")
    return bool(wanted) and state.memory.knows(bytes((DIAMOND,)))


def _check(state: State) -> None:
    """Give up plots that can no longer be planted, and a home with too few of them."""
    ground = state.memory.ground
    state.plots = tuple(plot for plot in state.plots if ground[plot] in (GRASS, SAPLING, RIPE))
    if state.home and len(state.plots) < 2:
        state.home, state.plots, state.door, state.settled = (), (), 0, False


def _supply(state: State, percept: Percept) -> Decision | None:
    """Gather saplings and stones before the building begins."""
    missing = len(_unplanted(state))
    if percept.has("sapling") < min(missing, 1):
        return seek_sapling(state, percept)
    walls = len(_unfenced(state.memory, state.home, state.plots, state.door))
    need = min(9, walls + 2) if not state.settled else min(2, walls)
    if percept.has("stone") < need:
        found = gather(state, percept, ("stone",))
        if found is not None or state.settled:
            return found
    state.settled = True
    return None


def _raise(state: State, percept: Percept) -> Decision | None:
    """Plant and fence, in whatever order takes the fewest steps."""
    plots = _unplanted(state) if percept.has("sapling") else []
    walls = _unfenced(state.memory, state.home, state.plots, state.door) if percept.has("stone") else []
    for cells, action, reason in (
        (plots, "place_plant", "Planting a sapling in the garden"),
        (walls, "place_stone", "Fencing the garden in"),
    ):
        free = {cell: (action, reason) for cell in cells if cell not in state.memory.occupied and cell != percept.cell}
        decision = (put_any(state, percept, free) or _put_through_a_wall(state, percept, free)) if free else None
        if decision is not None:
            return decision
    return None if percept.has("stone") else gather(state, percept, ("stone",))


def _put_through_a_wall(state: State, percept: Percept, targets: Mapping[int, tuple[str, str]]) -> Decision | None:
    """Open a wall again to get at what can't be reached any more."""
    memory = state.memory
    walls = memory.walls
    memory.walls = {cell: None for cell in walls if memory.ground[cell] != STONE}
    decision = put_any(state, percept, targets)
    memory.walls = walls
    return decision


def _close_door(state: State, percept: Percept) -> Decision | None:
    """Close the door from outside, after having left."""
    door = state.door
    if (
        state.memory.ground[door] not in WALKABLE
        or door in state.memory.occupied
        or not percept.has("stone")
        or distance(percept.cell, door) > 8
    ):
        return None
    return put(state, percept, door, "place_stone", "Closing the garden's door", avoid=())


class _Site(NamedTuple):
    """A place for a home."""

    price: int
    line: tuple[int, ...]
    plots: tuple[int, ...]
    door: int


def _site(ground: bytearray, costs: tuple[int, ...], cell: int, step: int, length: int) -> _Site | None:
    """Return the home with a corridor from a cell, its door at the far end, and what building it costs."""
    line = tuple(cell + step * number for number in range(length))
    back, door = ends(line)
    passage = (*line, door, door + step, door + 2 * step)
    if any(not costs[ground[spot]] or ground[spot] == WATER for spot in passage):
        return None
    around = [*sides(line), back]
    plots = tuple(spot for spot in around if ground[spot] == GRASS)[:_PLANTS]
    beyond = {plot + way for plot in plots for way in DIRECTIONS} - {*line, *plots, door}
    if len(plots) < _PLANTS or any(ground[spot] in (UNKNOWN, LAVA, OUTSIDE) for spot in (*around, *beyond)):
        return None
    walls = sum(ground[spot] in WALKABLE for spot in beyond | ({*around} - {*plots}))
    dry = WATER not in (ground[spot] for spot in around)
    price = _WALL * walls + (_DRY if dry else 0) + (_DRAUGHT if draughty(ground, line) else 0)
    return _Site(price, line, plots, door)


def _find_home(state: State, percept: Percept) -> bool:
    """Choose the cheapest place for a home; False if none is known."""
    if state.hopeless.get("home", -1) > percept.step:
        return False
    costs, ground = costs_now(percept), state.memory.ground
    best: _Site | None = None

    def visit(cell: int, price: int) -> bool:
        nonlocal best
        if best and price >= best.price:
            return True
        for step in DIRECTIONS:
            for length in _LENGTHS:
                site = _site(ground, costs, cell, step, length)
                if site and (not best or price + site.price < best.price):
                    best = site._replace(price=price + site.price)
        return False

    spread(ground, percept.cell, costs, visit, blocked=state.memory.occupied, limit=_SEARCH)
    if not best:
        state.hopeless["home"] = percept.step + 20
        return False
    _, state.home, state.plots, state.door = best
    state.settled = False
    return True


def _oldest(state: State) -> int:
    """Return the age of the oldest plant at home; a ripe one counts as fully grown."""
    memory = state.memory
    return max(
        (RIPENING if memory.ground[plot] == RIPE else memory.plants.get(plot, 0) for plot in state.plots), default=0
    )


def _has_errands(percept: Percept) -> bool:
    """Return whether anything is left to achieve that can't be done at home."""
    return percept.has("stone") < 2 or len({*percept.unlocked, "eat_plant", "wake_up"}) < ACHIEVEMENTS


def _decide(state: State, percept: Percept) -> None:
    """Set or clear the state's wish to be at home."""
    hour, ripe = percept.step % DAY, _oldest(state) >= RIPENING
    day = not is_night(percept.step)
    starving = percept.food <= 2 and _oldest(state) < RIPENING - 40
    wet = any(state.memory.ground[cell] == WATER for cell in outer(state.home))
    thirsty = percept.drink <= (3 if day else 1) and not wet
    if state.homing:
        fit = percept.health >= 7 and percept.food >= 6 and percept.drink >= 7 and percept.energy >= 5
        waiting = "eat_plant" not in percept.unlocked and (ripe or _oldest(state) > RIPENING - 120)
        if (
            (starving and day)
            or thirsty
            or (_SOONEST <= hour <= _LATEST and fit and not waiting and _has_errands(percept))
        ):
            state.homing = False
    elif not (starving and day) and not thirsty:
        worn = percept.health <= 4 or percept.energy <= 3 or (percept.food <= 4 and ripe)
        fed = percept.food >= 6 and percept.drink >= (7 if wet else 8)
        idle = not _has_errands(percept) and (ripe or fed)
        ready = "eat_plant" not in percept.unlocked and ripe
        if hour >= _HOMEWARD or not day or worn or idle or ready:
            state.homing = True


def live(state: State, percept: Percept) -> Decision | None:
    """Be at home by night, when hungry or hurt, and for good when everything is achieved."""
    state.complete = finished(state)
    if not state.complete:
        state.homing = False
        return None
    _decide(state, percept)
    if not state.homing or distance(percept.cell, state.home[0]) > _NEAR:
        if state.refuge == state.home:
            state.refuge = ()
        return None
    state.refuge = state.home
    if sealed(state, percept):
        state.resting = ""
        return inside(state, percept, "At home")
    return build(state, percept, "Going home")


def late(state: State, percept: Percept) -> Decision | None:
    """Finish by nightfall what has been begun."""
    near = state.settled and distance(percept.cell, state.home[0]) <= 12
    if not near or finished(state) or percept.health < 5 or percept.step % DAY > 200:
        return None
    return _supply(state, percept) or _raise(state, percept)
