"""The first sapling, and plants away from home."""

from __future__ import annotations

from wsap_crafter.survivor.homestead import shore
from wsap_crafter.survivor.mind.grid import DIRECTIONS, bearing, distance
from wsap_crafter.survivor.mind.knowledge import GRASS, RIPE, RIPENING, WALKABLE
from wsap_crafter.survivor.mind.percept import Percept
from wsap_crafter.survivor.mind.state import Decision, State
from wsap_crafter.survivor.moves import advance, head_for, use


def first_sapling(state: State, percept: Percept) -> Decision | None:
    """Search the grass for a sapling, with a chance of 1 in 10, and plant it there."""
    if "place_plant" in percept.unlocked:
        return None
    found = percept.has("sapling")
    if state.memory.ground[percept.ahead] == GRASS and percept.ahead not in state.memory.occupied:
        if found:
            return Decision("place_plant", "Planting the sapling")
        return Decision("do", "Searching the grass for a sapling")
    return _face_grass(state, percept, "Going to plant the sapling" if found else "Going to search for a sapling")


def _face_grass(state: State, percept: Percept, reason: str) -> Decision | None:
    memory = state.memory
    for step in DIRECTIONS:
        if memory.free(percept.cell + step) and memory.ground[percept.cell + 2 * step] == GRASS:
            return advance(state, percept, percept.cell + step, reason)
    following = head_for(state, percept, "grass", wanted=bytes((GRASS,)))
    return None if following is None else advance(state, percept, following, reason)


def note_walls(state: State) -> None:
    """Update the cells that fence plants in, so that no path leads through them."""
    memory = state.memory
    plants = {*memory.plants, *state.plots} if state.settled else memory.plants
    around = [plant + step for plant in plants for step in DIRECTIONS]
    if state.settled:
        around += [cell + step for cell in state.home for step in DIRECTIONS]
        around = [cell for cell in (*around, shore(state)) if cell != state.door and cell not in state.home]
    memory.walls = {cell: None for cell in around if memory.ground[cell] not in WALKABLE}


def _at_home(state: State, plant: int) -> bool:
    """Return whether a plant belongs to the finished home and is eaten from inside."""
    return state.complete and plant in state.plots


def harvest(state: State, percept: Percept) -> Decision | None:
    """Eat a ripe plant, for the achievement or against hunger."""
    if "eat_plant" in percept.unlocked and percept.food > 5:
        return None
    memory = state.memory
    ripe = [
        plant
        for plant, ticks in memory.plants.items()
        if not _at_home(state, plant)
        and (memory.ground[plant] == RIPE or (ticks > RIPENING and memory.ground[plant] not in WALKABLE))
    ]
    if not ripe:
        return None
    plant = min(ripe, key=lambda cell: distance(cell, percept.cell))
    walls, memory.walls = memory.walls, {}
    following = head_for(state, percept, f"harvest@{plant}", cells=(plant,))
    memory.walls = walls
    if following is None:
        return None
    if following == plant:
        ready = memory.ground[plant] == RIPE
        if not ready and (percept.zombies or percept.skeletons):
            return None
        return use(
            percept, plant, "do" if ready else "noop", "Eating the ripe plant" if ready else "Waiting for the plant"
        )
    return advance(state, percept, following, f"Going to the ripe plant, {bearing(percept.cell, plant)}")


def pluck(state: State, percept: Percept) -> Decision | None:
    """Finish a harvest that is a few steps away before anything else, because its fence may be open already."""
    memory = state.memory
    near = any(
        distance(plant, percept.cell) <= 4 and memory.ground[plant] == RIPE
        for plant in memory.plants
        if not _at_home(state, plant)
    )
    return harvest(state, percept) if near and percept.health >= 3 else None
