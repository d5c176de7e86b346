"""The player's view: the 9 by 7 cells around it as characters, with distance and direction of each.

Rows are ordered from north to south, cells in a row from west to east; the player is in row 3, column 4. A cell's index
in the flattened view (0 to 62) is its *place*. Data by place is computed once, because an observation is built at every
step.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from wsap_crafter.simulation.game import Arrow, Plant
from wsap_crafter.simulation.world import OrderedWorld

WIDTH, HEIGHT = 9, 7
HERE = 31
"""The player's own place."""

_REACH_X, _REACH_Y = WIDTH // 2, HEIGHT // 2

OFFSETS: tuple[tuple[int, int], ...] = tuple((x - _REACH_X, y - _REACH_Y) for y in range(HEIGHT) for x in range(WIDTH))
"""Place -> (cells east, cells south) of the player; negative for west and north."""

DISTANCES: tuple[int, ...] = tuple(abs(x) + abs(y) for x, y in OFFSETS)
"""Place -> Manhattan distance, the number of steps over free ground."""


def direction_of(dx: int, dy: int) -> str:
    """Return the nearest of eight compass directions of an offset; "here" for (0, 0).

    A cell is "north" rather than "northeast" within 22.5 degrees of north, that is if it is more than about 2.4 times
    as far north as east.
    """
    if dx == dy == 0:
        return "here"
    ns, ew = ("south" if dy > 0 else "north"), ("east" if dx > 0 else "west")
    if abs(dy) > 2.4142 * abs(dx):
        return ns
    if abs(dx) > 2.4142 * abs(dy):
        return ew
    return ns + ew


DIRECTIONS: tuple[str, ...] = tuple(direction_of(x, y) for x, y in OFFSETS)

NEAREST_FIRST: tuple[int, ...] = tuple(sorted(range(WIDTH * HEIGHT), key=lambda p: (DISTANCES[p], p)))
"""All places by distance, then in reading order; the player's own is first."""

_NEAREST_FIRST = np.array(NEAREST_FIRST)

FACINGS = {(-1, 0): "west", (1, 0): "east", (0, -1): "north", (0, 1): "south"}
STEPS = {name: step for step, name in FACINGS.items()}
PLACE_TOWARDS = {name: HERE + dx + WIDTH * dy for name, (dx, dy) in STEPS.items()}
"""Direction -> the place next to the player."""

OUTSIDE = " "
GROUND_CHARACTERS = {
    "grass": ".",
    "path": ":",
    "sand": "_",
    "water": "~",
    "stone": "#",
    "tree": "T",
    "lava": "L",
    "coal": "c",
    "iron": "i",
    "diamond": "d",
    "table": "t",
    "furnace": "f",
}
PLAYER_CHARACTER = "@"
OBJECT_CHARACTERS = {"cow": "C", "zombie": "Z", "skeleton": "S", "arrow": "a", "plant": "p", "ripe plant": "P"}
WORDS: dict[str, str] = {
    **{character: name for name, character in GROUND_CHARACTERS.items()},
    **{character: name for name, character in OBJECT_CHARACTERS.items()},
    "p": "sapling",
    PLAYER_CHARACTER: "you",
    OUTSIDE: "edge of the world",
}
"""Map character -> meaning."""


class Seen(NamedTuple):
    """One creature, plant or arrow in view."""

    place: int
    kind: str
    """A key of :data:`OBJECT_CHARACTERS`."""
    heading: str
    """The direction of an arrow; empty for others."""


class Sight(NamedTuple):
    """The view at one step."""

    cells: str
    """63 characters, ground with objects; the player is "@"."""
    ground: str
    """63 characters, ground only."""
    ground_by_distance: str
    """The same, nearest first."""
    seen: tuple[Seen, ...]
    """All objects in view except the player, nearest first."""


def look_around(world: OrderedWorld, player: Any, characters: bytes) -> Sight:
    """Return the player's current view; `characters` is the table of :func:`ground_table`."""
    x, y = player.pos.tolist()
    left, top = x - _REACH_X, y - _REACH_Y
    ground_ids, occupants = _window(world, left, top)
    flat = ground_ids.T.reshape(-1)
    ground_bytes = flat.tobytes().translate(characters)
    by_distance = flat[_NEAREST_FIRST].tobytes().translate(characters)
    cells = bytearray(ground_bytes)
    seen: list[Seen] = []
    standing = occupants.T.reshape(-1)
    places = standing.nonzero()[0].tolist()
    if len(places) > 1:
        slots = world.slots
        for place, index in zip(places, standing[places].tolist(), strict=True):
            if place != HERE:
                here = _seen(place, slots[index])
                seen.append(here)
                cells[place] = _CODES[here.kind]
        seen.sort(key=_by_distance)
    cells[HERE] = _PLAYER_CODE
    everything, ground, nearest = (text.decode("ascii") for text in (cells, ground_bytes, by_distance))
    return Sight(everything, ground, nearest, tuple(seen))


_CODES = {kind: ord(character) for kind, character in OBJECT_CHARACTERS.items()}
_PLAYER_CODE = ord(PLAYER_CHARACTER)


def _by_distance(seen: Seen) -> tuple[int, int]:
    return DISTANCES[seen.place], seen.place


def _seen(place: int, obj: Any) -> Seen:
    kind = type(obj).__name__.lower()
    if isinstance(obj, Plant) and obj.ripe:
        return Seen(place, "ripe plant", "")
    if isinstance(obj, Arrow):
        return Seen(place, kind, FACINGS[int(obj.facing[0]), int(obj.facing[1])])
    return Seen(place, kind, "")


def _window(world: OrderedWorld, left: int, top: int) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint32]]:
    """Return the materials and occupants in view; 0 outside the world."""
    width, height = world.area
    right, bottom = left + WIDTH, top + HEIGHT
    if left >= 0 and top >= 0 and right <= width and bottom <= height:
        return world.materials[left:right, top:bottom], world.occupants[left:right, top:bottom]
    ground = np.zeros((WIDTH, HEIGHT), np.uint8)
    occupants = np.zeros((WIDTH, HEIGHT), np.uint32)
    xs = slice(max(0, left), min(width, right))
    ys = slice(max(0, top), min(height, bottom))
    inner = slice(xs.start - left, xs.stop - left), slice(ys.start - top, ys.stop - top)
    ground[inner] = world.materials[xs, ys]
    occupants[inner] = world.occupants[xs, ys]
    return ground, occupants


def ground_table(world: OrderedWorld) -> bytes:
    """Return the translation table from material numbers to map characters, for ``bytes.translate``."""
    table = bytearray(OUTSIDE.encode() * 256)
    for number, name in world.material_names.items():
        if name is not None:
            table[number] = ord(GROUND_CHARACTERS[name])
    return bytes(table)
