"""The layout of a home, and the search for its site.

A home is a closed room of two by two cells. The eight cells around it, its ring, contain plants (the plots), water (the
well), a door, and walls; the cells beyond the plots are walls, too, because any creature beside a plant tramples it. In
such a room the player can face every cell of the ring from inside by walking across the room.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from wsap_crafter.survivor.mind.grid import DIRECTIONS, EAST, NORTH, SOUTH, WEST, WIDTH
from wsap_crafter.survivor.mind.knowledge import GRASS, LAVA, PATH, SAPLING, STONE, UNKNOWN, WALKABLE, WATER
from wsap_crafter.survivor.mind.paths import spread
from wsap_crafter.survivor.mind.percept import Percept
from wsap_crafter.survivor.mind.state import State
from wsap_crafter.survivor.moves import costs_now
from wsap_crafter.survivor.shelter import lets_in

WALL = 5
"""The price of building a wall, in steps."""
_SEARCH = 60
"""Maximum price of the path to a site."""
_DEAREST = 80
"""Maximum price of path and building at first; it grows by one in ten steps."""
_PAUSE = 20
"""Steps between two searches."""
_FEWEST, _ENOUGH = 3, 4
"""Minimum and maximum plots: a plant gives four food in 301 steps, in which ten to twelve are used up."""
_FOURTH = 12
"""The value of a fourth plot."""
_DRY, _DRY_WAY = 25, 3
"""The price of a home without a well, and of each step to the water."""
_DRAUGHT = 20
"""The price of a well over which arrows can come."""
_TUNNEL = 2
"""The price of each path cell close by, on which skeletons spawn."""
_FAR = 30
"""Maximum distance of water or stone in prices."""


class Site(NamedTuple):
    """A site for a home."""

    price: int
    room: tuple[int, ...]
    plots: tuple[int, ...]
    door: int
    well: int
    """0 if there is none."""


def room_at(cell: int) -> tuple[int, ...]:
    """Return the four cells of the room with this north-western corner."""
    return cell, cell + EAST, cell + SOUTH, cell + SOUTH + EAST


def ring_of(room: tuple[int, ...]) -> dict[int, int]:
    """Return the eight cells around a room, clockwise, each with its direction from the room."""
    a, b, c, d = room
    return {
        a + NORTH: NORTH, b + NORTH: NORTH, b + EAST: EAST, d + EAST: EAST,
        d + SOUTH: SOUTH, c + SOUTH: SOUTH, c + WEST: WEST, a + WEST: WEST,
    }  # fmt: skip


def beyond(room: tuple[int, ...], plots: tuple[int, ...]) -> dict[int, int]:
    """Return the cells beside the plots outside room and ring, each with its direction from its plot."""
    kept = {*room, *ring_of(room)}
    return {plot + step: step for plot in plots for step in DIRECTIONS if plot + step not in kept}


def find_site(state: State, percept: Percept) -> bool:
    """Choose the cheapest site for a home; False if none is known."""
    if state.hopeless.get("home", -1) > percept.step:
        return bool(state.home)
    state.hopeless["home"] = percept.step + _PAUSE
    costs, ground, stones = costs_now(percept), state.memory.ground, percept.has("stone")
    best = Site(_DEAREST + percept.step // 10, (), (), 0, 0)

    def visit(cell: int, price: int) -> bool:
        nonlocal best
        if price >= best.price:
            return True
        site = _site(ground, costs, cell, stones, best.price - price)
        if site:
            best = site._replace(price=price + site.price)
        return False

    spread(ground, percept.cell, costs, visit, blocked=state.memory.occupied, limit=_SEARCH)
    _, state.home, state.plots, state.door, state.well = best
    return bool(state.home)


def _site(ground: bytearray, costs: tuple[int, ...], cell: int, stones: int, limit: int) -> Site | None:
    """Return the cheapest site with this north-western corner; None if there is none below the limit."""
    room = room_at(cell)
    if any(not costs[ground[spot]] or ground[spot] == WATER for spot in room):
        return None
    ring = ring_of(room)
    codes = [ground[spot] for spot in ring]
    if codes.count(GRASS) < _FEWEST or {UNKNOWN, LAVA, SAPLING} & {*codes}:
        return None
    wells = [(lets_in(ground, spot, outward), spot) for spot, outward in ring.items() if ground[spot] == WATER]
    draught, well = min(wells) if wells else (False, 0)
    price = _DRAUGHT * draught if well else _DRY + _DRY_WAY * _way_to(ground, cell, WATER)
    price += 2 * sum(ground[spot] not in WALKABLE for spot in room)
    around = range(cell - 5 * WIDTH - 6, cell + 7 * WIDTH - 6, WIDTH)
    price += _TUNNEL * sum(ground.count(PATH, row, row + 13) for row in around)
    if price >= limit:
        return None
    found: Site | None = None
    for plots in _choices(ring, codes):
        outer = beyond(room, plots)
        if any(ground[spot] in (UNKNOWN, LAVA, SAPLING) for spot in outer):
            continue
        shell = {**outer, **{spot: outward for spot, outward in ring.items() if spot not in (*plots, well)}}
        walls = sum(lets_in(ground, spot, outward) for spot, outward in shell.items())
        total = price + WALL * walls - _FOURTH * (len(plots) - _FEWEST)
        if walls >= stones:
            total += WALL * (walls - stones) + 2 * _way_to(ground, cell, STONE)
        door = _door(ground, costs, ring, plots, outer) if total < limit else 0
        if door:
            found, limit = Site(total, room, plots, door, well), total
    return found


def _choices(ring: Mapping[int, int], codes: list[int]) -> dict[tuple[int, ...], None]:
    """Return sets of plots close together, so that they share walls."""
    cells = list(ring)
    found: dict[tuple[int, ...], None] = {}
    for start in range(8):
        for length in (3, 4, 5):
            arc = [(start + number) % 8 for number in range(length)]
            plots = tuple(cells[number] for number in arc if codes[number] == GRASS)[:_ENOUGH]
            if len(plots) >= _FEWEST:
                found[plots] = None
    return found


def _way_to(ground: bytearray, cell: int, code: int) -> int:
    """Return the approximate distance of the nearest ground of a kind."""
    for reach in range(1, _FAR, 3):
        for row in range(cell - reach * WIDTH, cell + reach * WIDTH + 1, WIDTH):
            if row >= reach and ground.find(code, row - reach, row + reach + 1) >= 0:
                return reach
    return _FAR


def _door(
    ground: bytearray, costs: tuple[int, ...], ring: Mapping[int, int], plots: tuple[int, ...], outer: Mapping[int, int]
) -> int:
    """Return the cell of the ring for the door, preferably away from the plants; 0 if there is none. Two cells in line
    with it must be free outside, because the door is closed from there."""
    fit = []
    for spot, outward in ring.items():
        way = (spot, spot + outward, spot + 2 * outward)
        if spot not in plots and all(
            costs[ground[cell]] and ground[cell] != WATER and cell not in outer for cell in way
        ):
            beside = sum(spot + step in plots for step in DIRECTIONS)
            fit.append((beside, sum(costs[ground[cell]] for cell in way), spot))
    return min(fit)[2] if fit else 0
