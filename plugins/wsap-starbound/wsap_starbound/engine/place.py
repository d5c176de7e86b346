"""A place: a grid of tiles, which is a ring on planets, with what lies in its chests."""

from __future__ import annotations

import base64
import zlib
from collections import Counter
from dataclasses import dataclass, field

from wsap_core.protocol.values import JsonValue
from wsap_starbound.data import Planet, planets, tiles

WIDTH, HEIGHT = 160, 96
"""Tiles of a planet."""
SHIP_WIDTH, SHIP_HEIGHT = 26, 10

NAMES = tuple(tiles())
NUMBER = {name: number for number, name in enumerate(NAMES)}
TILES = tuple(tiles().values())
SOLID = tuple(tile.solid for tile in TILES)
_SOLID_BYTES = bytes(SOLID).ljust(256, b"\1")
FLOW = tuple(tile.flow for tile in TILES)
CHARS = tuple(tile.char for tile in TILES)
AIR, WATER, LAVA, SAND = NUMBER["air"], NUMBER["water"], NUMBER["lava"], NUMBER["sand"]

SPREAD = 4
"""How far to the side a liquid looks for a drop, in tiles."""

Cell = tuple[int, int]
"""Column and row; rows count downwards."""


@dataclass
class Creature:
    """A creature."""

    id: str
    kind: str
    x: int
    y: int
    health: int
    facing: int = 1
    ready: int = 0
    """The beat from which it can attack again."""


@dataclass
class Place:
    """A planet, or the inside of a ship."""

    id: str
    planet: str
    """The id of the planet; empty for a ship."""
    width: int
    height: int
    cells: bytearray
    start: Cell
    """Where a body arrives: its feet."""
    ground: list[int]
    """Row of the first natural ground in each column."""
    contents: dict[Cell, Counter[str]] = field(default_factory=dict)
    """Chests, lockers and packs -> what is in them."""
    creatures: list[Creature] = field(default_factory=list)
    restless: set[Cell] = field(default_factory=set)
    """Cells whose sand or liquid may move."""
    lens: Cell | None = None
    """The chamber with the lens: where its pedestal is."""

    @property
    def kind(self) -> Planet | None:
        """The planet; None for a ship."""
        return planets().get(self.planet)

    def wrap(self, x: int) -> int:
        """Return a column, around the ring."""
        return x % self.width

    def inside(self, x: int, y: int) -> bool:
        """Whether there is a tile."""
        return 0 <= y < self.height and (bool(self.planet) or 0 <= x < self.width)

    def at(self, x: int, y: int) -> int:
        """Return the number of a tile; beyond the edges, of what can't be entered."""
        if 0 <= y < self.height:
            if self.planet:
                return self.cells[y * self.width + x % self.width]
            if 0 <= x < self.width:
                return self.cells[y * self.width + x]
        return AIR if y < 0 and self.planet else NUMBER["bedrock"]

    def solid(self, x: int, y: int) -> bool:
        """Whether a tile is in the way."""
        return SOLID[self.at(x, y)]

    def put(self, x: int, y: int, tile: int) -> None:
        """Change a tile, and let what is around it settle."""
        x = x % self.width
        self.cells[y * self.width + x] = tile
        for ax in range(x - SPREAD, x + SPREAD + 1):
            for ay in (y - 1, y):
                if self.inside(ax, ay):
                    self.restless.add((ax % self.width, ay))

    def open_sky(self, x: int, y: int) -> bool:
        """Whether no solid tile is above a cell."""
        column = self.cells[x % self.width : max(0, y) * self.width : self.width]
        return 1 not in column.translate(_SOLID_BYTES)

    def apart(self, x: int, other: int) -> int:
        """Return how many columns `other` is to the right of x, by the shorter way; negative to the left."""
        if not self.planet:
            return other - x
        far = (other - x) % self.width
        return far - self.width if far > self.width // 2 else far

    def to_json(self) -> JsonValue:
        """Return the place as JSON-ready data."""
        return {
            "id": self.id,
            "planet": self.planet,
            "size": [self.width, self.height],
            "cells": base64.b64encode(zlib.compress(bytes(self.cells), 6)).decode(),
            "start": list(self.start),
            "ground": self.ground,
            "contents": [[x, y, dict(held)] for (x, y), held in sorted(self.contents.items())],
            "creatures": [[c.id, c.kind, c.x, c.y, c.health, c.facing, c.ready] for c in self.creatures],
            "restless": [list(cell) for cell in sorted(self.restless)],
            "lens": None if self.lens is None else list(self.lens),
        }
