"""Building the permanent home (see `site`), and its state."""

from __future__ import annotations

from collections.abc import Mapping

from wsap_crafter.survivor.crafting import gather
from wsap_crafter.survivor.mind.grid import distance
from wsap_crafter.survivor.mind.knowledge import DAY, GRASS, LAVA, MOST, RIPE, RIPENING, SAPLING, STONE, WALKABLE, WATER
from wsap_crafter.survivor.mind.percept import Percept
from wsap_crafter.survivor.mind.state import Decision, State
from wsap_crafter.survivor.moves import put_any
from wsap_crafter.survivor.shelter import SHOT, lets_in
from wsap_crafter.survivor.site import WALL, beyond, find_site, ring_of

_NEAR = 45
"""Maximum distance at which the agent returns to an unfinished home."""
_DONE = 205
"""The hour by which the home must be finished for work on it to start or continue."""


def ring_gaps(state: State) -> list[int]:
    """Return the cells of the ring to be closed from inside except the door: open ones, and water except the well."""
    ground = state.memory.ground
    kept = (*state.plots, state.door, state.well)
    return [
        cell for cell, outward in ring_of(state.home).items() if cell not in kept and lets_in(ground, cell, outward)
    ]


def outer_gaps(state: State) -> list[int]:
    """Return the cells beyond the plots that must still be walled up."""
    ground = state.memory.ground
    return [cell for cell, outward in beyond(state.home, state.plots).items() if lets_in(ground, cell, outward)]


def breach(state: State) -> int:
    """Return an open cell beyond a bare plot through which something may come in, or 0."""
    ground = state.memory.ground
    for cell, outward in beyond(state.home, state.plots).items():
        if ground[cell] in WALKABLE and ground[cell - outward] in WALKABLE and cell - 2 * outward in state.home:
            return cell
    return 0


def shore(state: State) -> int:
    """Return the cell across the water behind the well from which arrows may come while it is open, or 0."""
    if not is_wet(state):
        return 0
    outward = ring_of(state.home)[state.well]
    for cell in range(state.well + outward, state.well + SHOT * outward, outward):
        if state.memory.ground[cell] not in (WATER, LAVA):
            return cell
    return 0


def is_wet(state: State) -> bool:
    """Return whether the home has water."""
    return bool(state.well) and state.memory.ground[state.well] == WATER


def unplanted(state: State) -> list[int]:
    """Return the plots without a plant."""
    return [plot for plot in state.plots if state.memory.ground[plot] == GRASS]


def ripe_plants(state: State) -> list[int]:
    """Return the plots whose plants are ripe."""
    return [plot for plot in state.plots if state.memory.ground[plot] == RIPE]


def ripening(state: State) -> int:
    """Return the steps until the oldest plant at home is ripe, if the player stays near."""
    if ripe_plants(state):
        return 0
    return RIPENING - max((state.memory.plants.get(plot, 0) for plot in state.plots), default=0)


def finished(state: State, percept: Percept) -> bool:
    """Return whether the home is finished except for gaps that can be closed from inside with the stones at hand."""
    if not state.settled or outer_gaps(state):
        return False
    return len(ring_gaps(state)) + (state.memory.ground[state.door] in WALKABLE) <= percept.has("stone")


def homestead(state: State, percept: Percept) -> Decision | None:
    """Find a site for a home, gather stones, and build it; later repair damage."""
    if not (percept.has("stone_pickaxe") and percept.has("stone_sword")):
        return None
    _check(state)
    if (not state.settled and not find_site(state, percept)) or not state.home or state.complete:
        return None
    away = distance(percept.cell, state.home[0])
    if state.settled and percept.cell not in state.home and away > _NEAR:
        return None
    walls = len(outer_gaps(state)) + len(ring_gaps(state)) + 1
    if percept.step % DAY + away + WALL * walls > _DONE:
        return None
    return _supply(state, percept) or _raise(state, percept)


def late(state: State, percept: Percept) -> Decision | None:
    """Finish an unfinished home by nightfall."""
    return homestead(state, percept) if state.settled and percept.health >= 5 else None


def _check(state: State) -> None:
    """Give up plots that can no longer be planted, and a home with too few plots."""
    ground = state.memory.ground
    state.plots = tuple(plot for plot in state.plots if ground[plot] in (GRASS, SAPLING, RIPE))
    if state.home and len(state.plots) < 2:
        state.home, state.plots, state.door, state.well, state.settled = (), (), 0, 0, False


def _supply(state: State, percept: Percept) -> Decision | None:
    """Gather stones before building starts, and before the room is closed from inside."""
    outer, ring = len(outer_gaps(state)), len(ring_gaps(state)) + 1
    need = 1 if state.settled and outer else min(MOST, outer + ring)
    if percept.has("stone") < need:
        found = gather(state, percept, ("stone",))
        if found is not None or state.settled:
            return found
    state.settled = True
    return None


def _raise(state: State, percept: Percept) -> Decision | None:
    """Wall up the open cells around the plots, the nearest first."""
    if not percept.has("stone"):
        return None
    free = {
        cell: ("place_stone", "Building a home")
        for cell in outer_gaps(state)
        if cell not in state.memory.occupied and cell != percept.cell
    }
    return (put_any(state, percept, free) or _put_through_a_wall(state, percept, free)) if free else None


def _put_through_a_wall(state: State, percept: Percept, targets: Mapping[int, tuple[str, str]]) -> Decision | None:
    """Open a wall again to get to targets that can't be reached otherwise."""
    memory = state.memory
    walls = memory.walls
    memory.walls = {cell: None for cell in walls if memory.ground[cell] != STONE}
    decision = put_any(state, percept, targets)
    memory.walls = walls
    return decision
