"""A home by the water with a garden around it: where the agent spends its nights, drinks, and eats.

A home is a shelter's pocket of two cells (see `shelter`) with water on one side and plants, its beds, on others;
everything else around the pocket and the beds is walled. From inside, one drinks and harvests in safety.
"""

from __future__ import annotations

from itertools import combinations

from .farm import seek_sapling
from .grid import DIRECTIONS, distance
from .knowledge import DAY, DUSK, GRASS, MORNING, RIPE, SAPLING, UNKNOWN, WALKABLE, WATER, is_night
from .mind import Decision, Mind
from .moves import costs_now, put
from .paths import spread
from .percept import Percept
from .shelter import draughty, ends, sides

_SEARCH = 45
"""The price within which a place for a home is sought."""
_WALL_PRICE, _BED_WORTH = 5, 12
"""What a wall to build costs, and what a bed is worth, in steps."""
_STONES = 6
"""Stones to have before a home is begun."""
_PATIENCE = 60
"""Steps before a place is sought again after none was found."""


def outer(pair: tuple[int, ...]) -> tuple[int, ...]:
    """Return the six cells around a pocket."""
    return (*sides(pair), *ends(pair))


def _walls_for(pair: tuple[int, ...], beds: tuple[int, ...]) -> list[int]:
    """Return every cell that has to keep creatures out of the pocket and off the beds."""
    walls = [cell for cell in outer(pair) if cell not in beds]
    for bed in beds:
        walls.extend(
            near
            for near in (bed + step for step in DIRECTIONS)
            if near not in pair and near not in beds and near not in walls
        )
    return walls


def open_walls(mind: Mind) -> list[int]:
    """Return the cells of the home still to be walled."""
    ground = mind.memory.ground
    return [cell for cell in _walls_for(mind.home, mind.beds) if ground[cell] in WALKABLE]


def living_beds(mind: Mind) -> list[int]:
    """Return the beds in which a plant grows."""
    return [bed for bed in mind.beds if mind.memory.ground[bed] in (SAPLING, RIPE)]


def note_home(mind: Mind) -> None:
    """Mark the home's walls in memory, so that no way leads through them and no stone is taken from them."""
    if not mind.home:
        mind.memory.doors = ()
        return
    doors = ends(mind.home)
    mind.memory.doors = doors
    ground, walls = mind.memory.ground, mind.memory.walls
    for cell in _walls_for(mind.home, mind.beds):
        if cell not in doors and ground[cell] not in WALKABLE:
            walls[cell] = None


def establish(mind: Mind, percept: Percept) -> Decision | None:
    """Found, plant, wall and close up the home, by day."""
    hour = percept.step % DAY
    if is_night(percept.step) or not percept.has("wood_pickaxe"):
        return None
    if not mind.home and not _found(mind, percept):
        return None
    way = distance(mind.home[0], percept.cell)
    if hour + way > DUSK or way > 60:
        return None
    return _plant_and_wall(mind, percept)


def _found(mind: Mind, percept: Percept) -> bool:
    if percept.has("stone") < _STONES or mind.hopeless.get("home", -1) > percept.step:
        return False
    if not find_home(mind, percept):
        mind.hopeless["home"] = percept.step + _PATIENCE
        return False
    return True


def _plant_and_wall(mind: Mind, percept: Percept) -> Decision | None:
    ground = mind.memory.ground
    mind.beds = tuple(bed for bed in mind.beds if ground[bed] in (GRASS, SAPLING, RIPE))
    empty = [bed for bed in mind.beds if ground[bed] == GRASS]
    if empty and percept.has("sapling"):
        for bed in empty:
            decision = put(mind, percept, bed, "place_plant", "Planting a sapling in the garden at home")
            if decision is not None:
                return decision
    missing = open_walls(mind)
    if missing and percept.has("stone") and (living_beds(mind) or not empty):
        missing.sort(key=lambda cell: (cell != percept.ahead, distance(cell, percept.cell)))
        for cell in missing:
            if cell in mind.memory.occupied:
                continue
            decision = put(mind, percept, cell, "place_stone", "Walling the home and its garden", mind.home)
            decision = decision or put(mind, percept, cell, "place_stone", "Walling the home and its garden")
            if decision is not None:
                return decision
    if empty and not percept.has("sapling") and not missing:
        return seek_sapling(mind, percept)
    if empty and not percept.has("sapling") and not living_beds(mind):
        return seek_sapling(mind, percept)
    return None


def find_home(mind: Mind, percept: Percept) -> bool:
    """Choose the best place for a home in reach; False if there is none."""
    memory = mind.memory
    ground = memory.ground
    best: tuple[float, tuple[int, int], tuple[int, ...]] | None = None

    def visit(cell: int, price: int) -> bool:
        nonlocal best
        if ground[cell] not in WALKABLE:
            return False
        for step in DIRECTIONS:
            pair = (cell, cell + step)
            if ground[pair[1]] not in WALKABLE:
                continue
            around = outer(pair)
            codes = [ground[near] for near in around]
            if WATER not in codes or UNKNOWN in codes or draughty(ground, pair):
                continue
            found = _best_beds(ground, pair, around)
            if found is not None and (best is None or found[0] - price > best[0]):
                best = (found[0] - price, pair, found[1])
        return False

    spread(ground, percept.cell, costs_now(percept), visit, blocked=memory.occupied, limit=_SEARCH)
    if best is None or best[0] < -60:
        return False
    mind.home, mind.beds = best[1], best[2]
    return True


def _best_beds(
    ground: bytearray, pair: tuple[int, ...], around: tuple[int, ...]
) -> tuple[float, tuple[int, ...]] | None:
    """Return the worth of the best choice of two to four beds, and the beds."""
    lawn = [cell for cell in around if ground[cell] == GRASS]
    doors = ends(pair)
    best: tuple[float, tuple[int, ...]] | None = None
    for count in (2, 3, 4):
        for beds in combinations(lawn, count):
            if not any(door not in beds and ground[door] != WATER for door in doors):
                continue
            walls = _walls_for(pair, beds)
            codes = [ground[wall] for wall in walls]
            if UNKNOWN in codes:
                continue
            worth = _BED_WORTH * count - _WALL_PRICE * sum(code in WALKABLE for code in codes)
            if best is None or worth > best[0]:
                best = (worth, beds)
    return best


def usable(mind: Mind, percept: Percept) -> bool:
    """Return whether the home is near enough to spend the night there."""
    if not mind.home:
        return False
    way = distance(mind.home[0], percept.cell)
    return way <= (25 if is_night(percept.step) else 70)


def time_to_go(mind: Mind, percept: Percept) -> bool:
    """Return whether to set out for home now, so as to arrive by dusk."""
    if not usable(mind, percept) or not MORNING <= percept.step % DAY < DUSK:
        return False
    return percept.step % DAY + 1.4 * distance(mind.home[0], percept.cell) > DUSK - 15
