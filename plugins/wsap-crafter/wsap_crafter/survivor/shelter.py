"""A shelter of two cells to sleep and heal in.

Creatures move and strike only along rows and columns, and walk only on grass, path and sand: two adjacent cells whose
six neighbours are anything else are safe. In a single cell the player could not turn to the last open neighbour without
walking onto it; walking from one cell of the shelter to the other turns it to the far end, where the last stone goes.
"""

from __future__ import annotations

from wsap_crafter.survivor.mind.grid import DIRECTIONS
from wsap_crafter.survivor.mind.knowledge import LAVA, UNKNOWN, WALKABLE, WATER
from wsap_crafter.survivor.mind.paths import spread
from wsap_crafter.survivor.mind.percept import Percept
from wsap_crafter.survivor.mind.state import Decision, State
from wsap_crafter.survivor.moves import advance, costs_now, head_for, put

SHOT = 7
"""Maximum distance from which an arrow may come over water."""
_SEARCH = 45
"""Maximum price of the path in the first search for a shelter."""
_FARTHER = 200
"""The same in the second search."""
_DRY = 40
"""The price of a shelter without water beside it."""
_SIDE_PRICE = 10
"""The price of walling up a side from outside."""


def beside(line: tuple[int, ...], cell: int) -> list[int]:
    """Return the two cells beside one of two adjacent cells."""
    step = line[1] - line[0]
    return [cell + across for across in DIRECTIONS if across not in (step, -step)]


def sides(line: tuple[int, ...]) -> list[int]:
    """Return the four cells beside two adjacent cells."""
    return [spot for cell in line for spot in beside(line, cell)]


def other_of(pair: tuple[int, ...], cell: int) -> int:
    """Return the other one of two cells."""
    return pair[0] if cell == pair[1] else pair[1]


def ends(pair: tuple[int, ...]) -> tuple[int, int]:
    """Return the two cells at the ends of two adjacent cells: the first one's, then the second one's."""
    return 2 * pair[0] - pair[1], 2 * pair[-1] - pair[-2]


def _open(state: State, cell: int) -> bool:
    return state.memory.ground[cell] in WALKABLE


def sealed(state: State, percept: Percept) -> bool:
    """Return whether the player is in a finished shelter."""
    pair = state.refuge
    return percept.cell in pair and not any(_open(state, cell) for cell in (*sides(pair), *ends(pair)))


def lets_in(ground: bytearray, cell: int, outward: int) -> bool:
    """Return whether creatures could walk in through a cell, or arrows come over water from behind it."""
    for number in range(SHOT):
        code = ground[cell + number * outward]
        if code in WALKABLE:
            return True
        if code not in (WATER, LAVA):
            return False
    return False


def draughty(ground: bytearray, pair: tuple[int, ...]) -> bool:
    """Return whether an arrow could come in over water or lava."""
    return any(
        ground[cell + step] in (WATER, LAVA) and lets_in(ground, cell + step, step)
        for cell in pair
        for step in DIRECTIONS
    )


def _price(ground: bytearray, pair: tuple[int, ...], stones: int, digs: bool) -> int | None:
    """Return the price of walling in two cells, in steps; None if it is impossible with these stones."""
    beside_cells, around = sides(pair), [*sides(pair), *ends(pair)]
    if any(ground[cell] == UNKNOWN for cell in around) or draughty(ground, pair):
        return None
    walls = sum(ground[cell] in WALKABLE for cell in around)
    solid = sum(ground[cell] not in WALKABLE for cell in pair)
    if walls > stones + (solid if digs else 0):
        return None
    dry = 0 if any(ground[cell] == WATER for cell in around) else _DRY
    return dry + _SIDE_PRICE * sum(ground[cell] in WALKABLE for cell in beside_cells) + 2 * walls + 2 * solid


def find_refuge(state: State, percept: Percept) -> bool:
    """Choose the cheapest place for a shelter; False if there is none for the stones at hand."""
    if state.hopeless.get("refuge", -1) > percept.step:
        return False
    memory = state.memory
    ground, costs = memory.ground, costs_now(percept)
    stones, digs = percept.has("stone"), bool(percept.has("wood_pickaxe"))
    best_price = 10_000
    best: tuple[int, ...] = ()

    def fit(cell: int) -> bool:
        code = ground[cell]
        return costs[code] > 0 and code != WATER and cell not in memory.walls

    def visit(cell: int, price: int) -> bool:
        nonlocal best_price, best
        if price >= best_price:
            return True
        for step in DIRECTIONS if fit(cell) else ():
            pair = (cell, cell + step)
            walling = _price(ground, pair, stones, digs) if fit(pair[1]) else None
            if walling is not None and price + walling < best_price:
                best_price, best = price + walling, pair
        return False

    for limit in (_SEARCH, _FARTHER):
        spread(ground, percept.cell, costs, visit, blocked={*memory.occupied, *memory.walls}, limit=limit)
        if best:
            state.refuge = best
            return True
    state.hopeless["refuge"] = percept.step + 6
    return False


def build(state: State, percept: Percept, reason: str) -> Decision | None:
    """Return the next action for getting into a finished shelter; None if that is impossible."""
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
    open_ends = [end for end in ends(pair) if _open(state, end)]
    if percept.ahead in open_ends and percept.has("stone"):
        if percept.ahead in state.memory.occupied:
            return Decision("do", f"{reason}: something stands in the door")
        return Decision("place_stone", f"{reason}: closing the shelter")
    other = other_of(pair, percept.cell)
    return advance(state, percept, other, f"{reason}: turning round in the shelter")
