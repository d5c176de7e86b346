"""A walled pocket of two cells to sleep and heal in.

Creatures move and strike along rows and columns only, and walk on grass, path and sand alone: two cells in line
whose six outer neighbours are anything else are safe. Two, because one can't turn around in a single open cell:
turning towards a free cell is walking onto it. Walking from one cell of the pocket to the other turns the player
to the far end, where the last stone goes.
"""

from __future__ import annotations

from .grid import DIRECTIONS
from .knowledge import LAVA, PATH, UNKNOWN, WALKABLE, WATER
from .moves import advance, costs_now, head_for, put
from .paths import spread
from .percept import Percept
from .state import Decision, State

_SEARCH = 45
"""The price within which a place for a shelter is sought."""
_DRY = 15
"""The price of a shelter without water beside it."""
_SIDE_PRICE = 10
"""The price of walling up a side from outside."""


def beside(line: tuple[int, ...], cell: int) -> list[int]:
    """Return the two cells beside one of two or more cells in line."""
    step = line[1] - line[0]
    return [cell + across for across in DIRECTIONS if across not in (step, -step)]


def sides(line: tuple[int, ...]) -> list[int]:
    """Return the cells beside two or more cells in line."""
    return [spot for cell in line for spot in beside(line, cell)]


def towards(line: tuple[int, ...], here: int, there: int) -> int:
    """Return the next cell from one place in a line to another."""
    return line[here + (1 if there > here else -1)]


def ends(pair: tuple[int, ...]) -> tuple[int, int]:
    """Return the two cells at the ends of a line: the first one's, then the last one's."""
    return 2 * pair[0] - pair[1], 2 * pair[-1] - pair[-2]


def _open(state: State, cell: int) -> bool:
    return state.memory.ground[cell] in WALKABLE


def sealed(state: State, percept: Percept) -> bool:
    """Return whether the player stands in a finished shelter."""
    pair = state.refuge
    return percept.cell in pair and not any(_open(state, cell) for cell in (*sides(pair), *ends(pair)))


def draughty(ground: bytearray, pair: tuple[int, ...]) -> bool:
    """Return whether an arrow could come in: over water or lava, from a path on the other side."""
    for cell in pair:
        for step in DIRECTIONS:
            spot = cell + step
            if ground[spot] == LAVA or (ground[spot] == WATER and PATH in ground[spot : spot + 5 * step : step]):
                return True
    return False


def find_refuge(state: State, percept: Percept) -> bool:
    """Choose the cheapest place for a shelter; False if there is none with the stones at hand."""
    if state.hopeless.get("refuge", -1) > percept.step:
        return False
    memory = state.memory
    ground, costs = memory.ground, costs_now(percept)
    stones, digs = percept.has("stone"), percept.has("wood_pickaxe")
    best_price = 10_000
    best: tuple[int, ...] = ()

    def fit(cell: int) -> bool:
        code = ground[cell]
        return costs[code] > 0 and code != WATER and cell not in memory.walls

    def visit(cell: int, price: int) -> bool:
        nonlocal best_price, best
        if price >= best_price:
            return True
        if not fit(cell):
            return False
        for step in DIRECTIONS:
            pair = (cell, cell + step)
            if not fit(pair[1]):
                continue
            beside_cells, end_cells = sides(pair), ends(pair)
            if any(ground[side] == UNKNOWN for side in (*beside_cells, *end_cells)) or draughty(ground, pair):
                continue
            beside = sum(ground[side] in WALKABLE for side in beside_cells)
            walls = beside + sum(ground[end] in WALKABLE for end in end_cells)
            solid = sum(ground[spot] not in WALKABLE for spot in pair)
            if walls > stones + (solid if digs else 0):
                continue
            water = any(ground[side] == WATER for side in (*beside_cells, *end_cells))
            total = (0 if water else _DRY) + price + _SIDE_PRICE * beside + 2 * walls + 2 * solid
            if total < best_price:
                best_price, best = total, pair
        return False

    spread(ground, percept.cell, costs, visit, blocked={*memory.occupied, *memory.walls}, limit=_SEARCH)
    if not best:
        state.hopeless["refuge"] = percept.step + 15
        return False
    state.refuge = best
    return True


def build(state: State, percept: Percept, reason: str) -> Decision | None:
    """Return the next action towards standing in a finished shelter; None if it can't be done."""
    if not state.refuge and not find_refuge(state, percept):
        return None
    decision = _build(state, percept, state.refuge, reason)
    if decision is None:
        state.refuge = ()
    return decision


def _build(state: State, percept: Percept, pair: tuple[int, ...], reason: str) -> Decision | None:
    needed = sum(_open(state, cell) for cell in (*sides(pair), *ends(pair)))
    solid = sum(not _open(state, cell) for cell in pair)
    if needed > percept.has("stone") + solid or (needed and not percept.has("stone") and not solid):
        return None
    for side in sides(pair):
        if _open(state, side):
            if not percept.has("stone"):
                break
            if side in state.memory.occupied:
                continue
            walled = [wall for wall in sides(pair) if not _open(state, wall)]
            return put(state, percept, side, "place_stone", f"{reason}: walling up a side", walled)
    if percept.cell not in pair:
        following = head_for(state, percept, f"refuge@{pair[0]}", cells=pair, avoid=sides(pair))
        return None if following is None else advance(state, percept, following, f"{reason}: going to a shelter")
    here = pair.index(percept.cell)
    last = len(pair) - 1
    open_ends = [end for end in ends(pair) if _open(state, end)]
    if percept.ahead in open_ends and here in (0, last) and percept.has("stone"):
        if percept.ahead in state.memory.occupied:
            return Decision("do", f"{reason}: something stands in the door")
        return Decision("place_stone", f"{reason}: closing the shelter")
    wanted = 0 if open_ends and open_ends[0] == ends(pair)[0] else last
    other = towards(pair, here, wanted) if here != wanted else pair[1 if here == 0 else here - 1]
    return advance(state, percept, other, f"{reason}: turning round in the shelter")
