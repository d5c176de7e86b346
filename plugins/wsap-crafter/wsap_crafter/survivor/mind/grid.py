"""The geometry of a Crafter world: cells as numbers, directions as differences of them.

A cell is the number ``(y + MARGIN) * WIDTH + x + MARGIN``, so that a step is an addition. The margin keeps the view
within the board.
"""

from __future__ import annotations

from typing import NamedTuple

SIDE = 64
"""Cells along each side of the world."""
MARGIN = 4
"""Cells outside the world on each side of the board, as far as the view extends beyond an edge."""
WIDTH = SIDE + 2 * MARGIN
"""Cells in a row of the board."""
SIZE = WIDTH * WIDTH
"""Cells of the board, margin included."""
VIEW_COLUMNS, VIEW_ROWS = 9, 7
"""The view's size in cells, with the player in the middle."""

NORTH, SOUTH, EAST, WEST = -WIDTH, WIDTH, 1, -1
DIRECTIONS = (NORTH, EAST, SOUTH, WEST)
"""The four steps, in the order for ties."""
BY_NAME = {"north": NORTH, "south": SOUTH, "east": EAST, "west": WEST}
MOVE = {NORTH: "move_up", SOUTH: "move_down", EAST: "move_right", WEST: "move_left"}
"""The action that turns to a direction, and steps there if the cell is free."""
RING = (-WIDTH - 1, -WIDTH, -WIDTH + 1, -1, 1, WIDTH - 1, WIDTH, WIDTH + 1)
"""The eight cells around one."""


class Place(NamedTuple):
    """Coordinates in the world."""

    x: int
    """0 to 63, growing eastwards."""
    y: int
    """0 to 63, growing southwards."""


def cell_at(x: int, y: int) -> int:
    """Return the cell at the world's coordinates."""
    return (y + MARGIN) * WIDTH + x + MARGIN


def place_of(cell: int) -> Place:
    """Return a cell's coordinates in the world."""
    row, column = divmod(cell, WIDTH)
    return Place(column - MARGIN, row - MARGIN)


def distance(one: int, other: int) -> int:
    """Return the Manhattan distance of two cells."""
    row, column = divmod(one, WIDTH)
    other_row, other_column = divmod(other, WIDTH)
    return abs(row - other_row) + abs(column - other_column)


def reach(one: int, other: int) -> int:
    """Return the larger of the two axes' distances: 1 for the eight neighbours."""
    row, column = divmod(one, WIDTH)
    other_row, other_column = divmod(other, WIDTH)
    return max(abs(row - other_row), abs(column - other_column))


def bearing(origin: int, target: int) -> str:
    """Return the way to a target as text, such as ``6 tiles east`` or ``9 tiles north-west``."""
    if origin == target:
        return "right here"
    here, there = place_of(origin), place_of(target)
    dx, dy = there.x - here.x, there.y - here.y
    steps = abs(dx) + abs(dy)
    vertical = "" if 2 * abs(dy) < abs(dx) else "north" if dy < 0 else "south"
    horizontal = "" if 2 * abs(dx) < abs(dy) else "west" if dx < 0 else "east"
    way = "-".join(part for part in (vertical, horizontal) if part)
    return f"{steps} tile{'' if steps == 1 else 's'} {way}"
