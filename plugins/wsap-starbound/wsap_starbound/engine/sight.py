"""What a body sees: the tiles that open ones connect with it, within its view."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from wsap_starbound.data import creatures
from wsap_starbound.engine.being import Being
from wsap_starbound.engine.fauna import lit
from wsap_starbound.engine.place import CHARS, SOLID, Cell, Place
from wsap_starbound.engine.universe import Universe

VIEW, SCANNED = (10, 6), (20, 10)
"""Columns and rows of the view to each side: usually, and with a scanner."""
THROUGH = 4
"""How many tiles of rock a scanner sees ores through."""
UNSEEN, SELF, OTHER = "?", "@", "a"
_ORES = "cuid"


@dataclass(frozen=True)
class Sight:
    """What is in view."""

    rows: tuple[str, ...]
    """Characters, the top row first; the body's feet are in the middle."""
    corner: Cell
    """Column and row of the first character; the column may be negative, left of a ring's beginning."""
    seen: frozenset[Cell]
    """The cells that are seen, as offsets from the feet."""
    ground: tuple[tuple[int, int, int], ...]
    """Tiles that are seen: number and offset, nearest first, the nearest of each kind."""


def look(world: Universe, being: Being) -> Sight:
    """Return what a body sees now."""
    known = world.sights.get(being.owner)
    if not isinstance(known, Sight):
        known = world.sights[being.owner] = _look(world, being)
    return known


def _look(world: Universe, being: Being) -> Sight:
    place = world.where(being)
    wide, high = SCANNED if "scanner" in being.abilities else VIEW
    flat = _tiles(place, being, wide, high)
    width = 2 * wide + 3
    middle = (high + 1) * width + wide + 1
    seen = _flood(flat, width, middle)
    chars = [UNSEEN] * len(flat)
    nearest: dict[int, tuple[int, int, int]] = {}
    cells = []
    for index in seen:
        tile = flat[index]
        chars[index] = CHARS[tile]
        row, column = divmod(index, width)
        dx, dy = column - wide - 1, row - high - 1
        cells.append((dx, dy))
        if tile:
            found = (abs(dx) + abs(dy), dx, dy)
            if tile not in nearest or found < nearest[tile]:
                nearest[tile] = found
    if "scanner" in being.abilities:
        _scan(flat, chars, seen, width)
    known = frozenset(cells)
    for x, y, char in _figures(world, being):
        dx, dy = place.apart(being.x, x), y - being.y
        if (dx, dy) in known:
            chars[middle + dy * width + dx] = char
    lines = tuple("".join(chars[row * width + 1 : (row + 1) * width - 1]) for row in range(1, 2 * high + 2))
    ground = tuple((tile, dx, dy) for tile, (_, dx, dy) in sorted(nearest.items(), key=lambda one: one[1]))
    return Sight(lines, (being.x - wide, being.y - high), known, ground)


def _tiles(place: Place, being: Being, wide: int, high: int) -> list[int]:
    """Return the numbers of the tiles in view, in a frame of -1; also -1 where there is none."""
    edge, flat = [-1], [-1] * (2 * wide + 3)
    left, right = being.x - wide, being.x + wide + 1
    for y in range(being.y - high, being.y + high + 1):
        if not 0 <= y < place.height:
            flat += [-1] * (2 * wide + 3)
            continue
        line = place.cells[y * place.width : (y + 1) * place.width]
        if left >= 0 and right <= place.width:
            flat += [-1, *line[left:right], -1]
        elif place.planet:
            flat += edge + [line[x % place.width] for x in range(left, right)] + edge
        else:
            flat += edge + [line[x] if 0 <= x < place.width else -1 for x in range(left, right)] + edge
    return flat + [-1] * (2 * wide + 3)


def _flood(flat: list[int], width: int, middle: int) -> set[int]:
    """Return the indices of the open tiles that are connected with the body, and of those beside them."""
    stack = [middle, middle - width] if flat[middle - width] >= 0 else [middle]
    seen = set(stack)
    while stack:
        index = stack.pop()
        for beside in (index - width, index + width, index - 1, index + 1):
            if beside not in seen and flat[beside] >= 0:
                seen.add(beside)
                if not SOLID[flat[beside]]:
                    stack.append(beside)
    return seen


def _scan(flat: list[int], chars: list[str], seen: set[int], width: int) -> None:
    """Show ores behind at most four tiles."""
    open_cells = {index for index in seen if not SOLID[flat[index]]}
    around = [dy * width + dx for dy in range(-THROUGH, THROUGH + 1) for dx in range(-THROUGH, THROUGH + 1)]
    for index, tile in enumerate(flat):
        if tile < 0 or CHARS[tile] not in _ORES or index in seen:
            continue
        if any(index + step in open_cells for step in around):
            chars[index] = CHARS[tile]


def _figures(world: Universe, being: Being) -> Iterator[tuple[int, int, str]]:
    """Yield column, row and character of all creatures and bodies of a place, the body that sees last."""
    place = world.where(being)
    for creature in place.creatures:
        yield creature.x, creature.y, creatures()[creature.kind].char
    for other in sorted(world.present(place.id), key=lambda one: one is being):
        for x, y in other.cells:
            yield x, y, SELF if other is being else OTHER


def in_view(sight: Sight, place: Place, being: Being, x: int, y: int) -> bool:
    """Whether a body sees a cell."""
    return (place.apart(being.x, x), y - being.y) in sight.seen


def light(world: Universe, being: Being) -> str:
    """Return how light it is at a body: "daylight", "torchlight" or "dark"."""
    place = world.where(being)
    if place.planet and not world.night(place) and place.open_sky(being.x, being.y - 1):
        return "daylight"
    return "torchlight" if not place.planet or lit(place, being.x, being.y - 1) else "dark"
