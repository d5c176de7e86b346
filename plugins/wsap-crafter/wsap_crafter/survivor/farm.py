"""Saplings: finding one, planting it, fencing it in, waiting for it, eating it."""

from __future__ import annotations

from .grid import DIRECTIONS, WIDTH, bearing, distance
from .knowledge import GRASS, RIPE, RIPENING, UNKNOWN, WALKABLE
from .moves import advance, costs_now, head_for, put, use
from .paths import spread
from .percept import Percept
from .state import Decision, State

_LATEST = 125
"""The step after which a first sapling is planted anywhere, fence or no fence."""
_CLOSE = 18
"""How far a plant may be for going back to it to fence it in."""
_GARDEN_SEARCH = 20
"""The price within which a place for the garden is sought."""
_LINGER = 9
"""How near to a growing plant the agent waits."""


def first_sapling(state: State, percept: Percept) -> Decision | None:
    """Find a sapling early; it is kept for a garden, unless the first day passes without one."""
    if "place_plant" in percept.unlocked:
        return None
    if not percept.has("sapling"):
        return seek_sapling(state, percept)
    if percept.step <= _LATEST:
        return None
    if state.memory.ground[percept.ahead] == GRASS and percept.ahead not in state.memory.occupied:
        return Decision("place_plant", "Planting the sapling")
    return _face_grass(state, percept, "Going to plant the sapling")


def seek_sapling(state: State, percept: Percept) -> Decision | None:
    """Search the grass for a sapling: one try in ten finds one."""
    if state.memory.ground[percept.ahead] == GRASS and percept.ahead not in state.memory.occupied:
        return Decision("do", "Searching the grass for a sapling")
    return _face_grass(state, percept, "Going to search the grass for a sapling")


def _face_grass(state: State, percept: Percept, reason: str) -> Decision | None:
    """Walk so that grass is ahead."""
    memory = state.memory
    for step in DIRECTIONS:
        if memory.free(percept.cell + step) and memory.ground[percept.cell + 2 * step] == GRASS:
            return advance(state, percept, percept.cell + step, reason)
    following = head_for(state, percept, "grass", wanted=bytes((GRASS,)))
    return None if following is None else advance(state, percept, following, reason)


def tended(state: State, plant: int) -> bool:
    """Return whether a plant is fenced in on all four sides."""
    return not any(True for _ in state.memory.open_sides(plant))


def fence(state: State, percept: Percept) -> Decision | None:
    """Wall up the open sides of a plant close by."""
    if not percept.has("stone"):
        return None
    memory = state.memory
    for plant in memory.plants:
        if distance(plant, percept.cell) > _CLOSE or memory.ground[plant] == RIPE or plant in state.plots:
            continue
        sides = [side for side in memory.open_sides(plant) if memory.ground[side] != UNKNOWN]
        sides.sort(key=lambda side: side != percept.ahead)
        for side in sides:
            if side in memory.occupied:
                continue
            decision = put(state, percept, side, "place_stone", "Fencing the sapling in")
            if decision is not None:
                return decision
    return None


def note_walls(state: State) -> None:
    """Bring up to date which cells fence a plant in, so that no way leads through them."""
    memory = state.memory
    plants = {*memory.plants, *state.plots} if state.settled else memory.plants
    around = [plant + step for plant in plants for step in DIRECTIONS]
    if state.settled:
        around += [cell + step for cell in state.home for step in DIRECTIONS if cell + step != state.door]
    memory.walls = {cell: None for cell in around if memory.ground[cell] not in WALKABLE}


def garden(state: State, percept: Percept) -> Decision | None:
    """Keep one fenced plant growing, until a ripe one has been eaten."""
    if "eat_plant" in percept.unlocked or not percept.has("wood_pickaxe"):
        return None
    fencing = fence(state, percept)
    if fencing is not None:
        return fencing
    if any(tended(state, plant) or distance(plant, percept.cell) <= _CLOSE for plant in state.memory.plants):
        return None
    if percept.has("stone") < 3:
        return None
    if not percept.has("sapling"):
        return seek_sapling(state, percept) if _grass_close(state, percept) else None
    return _plant_in_garden(state, percept)


def _plant_in_garden(state: State, percept: Percept) -> Decision | None:
    """Plant the sapling where it is cheap to fence in."""
    if not state.garden or state.memory.ground[state.garden] != GRASS or state.garden in state.memory.occupied:
        state.garden = _find_garden(state, percept)
    if not state.garden:
        return None
    decision = put(state, percept, state.garden, "place_plant", "Planting the sapling where I can fence it in")
    if decision is None:
        state.garden = 0
    return decision


def _grass_close(state: State, percept: Percept) -> bool:
    return any(
        GRASS in state.memory.ground[percept.cell + row - 3 : percept.cell + row + 4]
        for row in (-2 * WIDTH, 0, 2 * WIDTH)
    )


def _find_garden(state: State, percept: Percept) -> int:
    """Return the grass cell that is cheapest to reach and to fence in, or 0."""
    ground = state.memory.ground
    best_price, best = 1000, 0
    if state.hopeless.get("garden", -1) > percept.step:
        return 0

    def visit(cell: int, price: int) -> bool:
        nonlocal best_price, best
        if price >= best_price:
            return True
        if ground[cell] != GRASS or cell == percept.cell:
            return False
        around = [ground[cell + step] for step in DIRECTIONS]
        open_sides = sum(code in WALKABLE for code in around)
        if UNKNOWN in around or not 0 < open_sides <= percept.has("stone"):
            return False
        total = price + 6 * open_sides
        if total < best_price:
            best_price, best = total, cell
        return False

    spread(ground, percept.cell, costs_now(percept), visit, blocked=state.memory.occupied, limit=_GARDEN_SEARCH)
    if not best:
        state.hopeless["garden"] = percept.step + 20
    return best


def _at_home(state: State, plant: int) -> bool:
    """Return whether a plant is a wall of the finished home, from within which it is eaten."""
    return state.complete and plant in state.plots


def harvest(state: State, percept: Percept) -> Decision | None:
    """Eat a ripe plant, for the achievement or out of hunger."""
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
        return use(
            percept,
            plant,
            "do" if ready else "noop",
            "Eating the ripe plant" if ready else "Waiting for the plant",
        )
    return advance(state, percept, following, f"Going to the ripe plant, {bearing(percept.cell, plant)}")


def pluck(state: State, percept: Percept) -> Decision | None:
    """Finish a harvest that is only a few steps away, whatever else there is: its fence may be open already."""
    memory = state.memory
    near = any(
        distance(plant, percept.cell) <= 4 and memory.ground[plant] == RIPE
        for plant in memory.plants
        if not _at_home(state, plant)
    )
    return harvest(state, percept) if near and percept.health >= 3 else None


def linger(state: State, percept: Percept) -> Decision | None:
    """Stay where the plant grows, when there is nothing else to do."""
    if "eat_plant" in percept.unlocked or not state.memory.plants:
        return None
    plant = max(state.memory.plants, key=state.memory.plants.__getitem__)
    if distance(plant, percept.cell) > _LINGER:
        following = head_for(state, percept, f"linger@{plant}", cells=(plant,))
        if following is not None and following != plant:
            return advance(state, percept, following, "Going back to look after the plant")
    state.resting = "wait"
    return None
