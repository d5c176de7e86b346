"""Exploration of unknown and long unseen regions."""

from __future__ import annotations

from itertools import accumulate
from operator import add

from wsap_crafter.survivor.mind.grid import SIDE, WIDTH, bearing, cell_at
from wsap_crafter.survivor.mind.knowledge import GRASS, UNKNOWN, is_night
from wsap_crafter.survivor.mind.memory import BLOCKS
from wsap_crafter.survivor.mind.paths import spread
from wsap_crafter.survivor.mind.percept import Percept
from wsap_crafter.survivor.mind.state import Decision, State
from wsap_crafter.survivor.moves import advance, costs_now, head_for

_NEAR = 40
"""Maximum price of the lookouts that are compared first."""
_SETTLED = 0.35
"""The share of a lookout's unknown cells that must be left for it to be worth the way."""

_STALE = 600
"""Steps after which grassland is explored again."""
_REVISIT = 0.5
"""The value of a cell of such grassland relative to an unknown one."""

_GRASS_MASK = bytes(1 if code == GRASS else 0 for code in range(256))
_UNKNOWN_MASK = bytes(1 if code == UNKNOWN else 0 for code in range(256))


class _Sums:
    """A summed-area table: counts of marked cells in any rectangle of the board."""

    def __init__(self, marks: bytes | bytearray) -> None:
        rows: list[list[int]] = [[0] * (WIDTH + 1)]
        for start in range(0, WIDTH * WIDTH, WIDTH):
            row = [0, *accumulate(marks[start : start + WIDTH])]
            rows.append(list(map(add, row, rows[-1])))
        self._rows = rows

    def within(self, row: int, column: int, up: int, across: int) -> int:
        """Return the number within `up` rows and `across` columns of a cell."""
        top, bottom = self._rows[max(0, row - up)], self._rows[min(WIDTH, row + up + 1)]
        left, right = max(0, column - across), min(WIDTH, column + across + 1)
        return bottom[right] - bottom[left] - top[right] + top[left]


def _unknown_in_world(ground: bytearray) -> bytes:
    """Return marks for unknown cells within the world, without the margin around it."""
    marks = bytearray(len(ground))
    translated = ground.translate(_UNKNOWN_MASK)
    for y in range(SIDE):
        start = cell_at(0, y)
        marks[start : start + SIDE] = translated[start : start + SIDE]
    return bytes(marks)


def _unknown_around(ground: bytearray, cell: int) -> int:
    """Return the number of unknown cells in the view from a cell, margin included."""
    start = cell - 3 * WIDTH - 4
    return sum(ground.count(UNKNOWN, row, row + 9) for row in range(start, start + 7 * WIDTH, WIDTH))


def explore(
    state: State, percept: Percept, likes: bytes, what: str, *, revisit: bool = False, limit: int = 1000
) -> Decision | None:
    """Walk to the best lookout over unknown ground, preferring regions rich in `likes`; None if everything is known.
    With `revisit`, grassland not seen for long counts as well, because cows may have come there."""
    if percept.cell == state.lookout or _seen_enough(state):
        state.lookout = 0
    for _ in range(2):
        if not state.lookout:
            _choose_lookout(state, percept, likes, revisit, limit)
        if not state.lookout:
            return None
        following = head_for(state, percept, f"lookout@{state.lookout}", cells=(state.lookout,))
        if following is not None and following != percept.cell:
            reason = f"Exploring for {what}, {bearing(percept.cell, state.lookout)}"
            return advance(state, percept, following, reason)
        state.lookout = 0
    return None


def _seen_enough(state: State) -> bool:
    """Return whether most of the lookout's unknown cells have been seen on the way."""
    if not state.lookout or not state.lookout_unknown:
        return False
    return _unknown_around(state.memory.ground, state.lookout) <= _SETTLED * state.lookout_unknown


def _choose_lookout(state: State, percept: Percept, likes: bytes, revisit: bool, limit: int) -> None:
    """Set the state's lookout to the cell with the best value for its price, or to 0 if there is none."""
    if state.hopeless.get("lookout", -1) > percept.step:
        return
    ground = state.memory.ground
    unknown = _Sums(_unknown_in_world(ground))
    liked = _Sums(ground.translate(bytes(1 if code in likes else 0 for code in range(256))))
    known = _Sums(ground.translate(bytes(0 if code in b"? " else 1 for code in range(256))))
    grass = _Sums(ground.translate(_GRASS_MASK)) if revisit else unknown
    visited = state.memory.visited
    dark = is_night(percept.step)
    lawn = _Sums(ground.translate(_GRASS_MASK)) if dark else unknown
    best_score, best_cell = 0.0, 0
    least, patience = (10, 12) if revisit else (4, 6)

    def visit(cell: int, price: int) -> bool:
        nonlocal best_score, best_cell
        row, column = divmod(cell, WIDTH)
        fresh: float = unknown.within(row, column, 3, 4)
        if revisit:
            age = percept.step - visited[row // 4 * BLOCKS + column // 4]
            fresh += grass.within(row, column, 3, 4) * max(0.0, min(1.0, (age - 60) / _STALE)) * _REVISIT
        if fresh >= least:
            region = known.within(row, column, 7, 8)
            share = liked.within(row, column, 7, 8) / region if region else 0.0
            if dark:
                share *= 1.0 - lawn.within(row, column, 7, 8) / max(1, region)
            score = fresh * ((0.0 if dark else 0.2) + share) / (price + patience)
            if score > best_score:
                best_score, best_cell = score, cell
        return False

    costs = costs_now(percept)
    blocked = {*state.memory.occupied, *state.memory.walls}
    for horizon in (_NEAR, limit):
        spread(ground, percept.cell, costs, visit, blocked=blocked, limit=horizon)
        if best_cell:
            break
    known_grass = revisit and best_cell and unknown.within(*divmod(best_cell, WIDTH), 3, 4) < 4
    state.lookout = best_cell
    state.lookout_unknown = _unknown_around(ground, best_cell) if best_cell and not known_grass else 0
    if not best_cell:
        state.hopeless["lookout"] = percept.step + (2 if percept.cell in state.home else 30)
