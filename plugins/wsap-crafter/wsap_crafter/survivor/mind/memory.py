"""The agent's map from its observations: ground, cows and plants."""

from __future__ import annotations

from dataclasses import dataclass, field

from wsap_core.protocol.values import JsonValue
from wsap_crafter.survivor.mind.grid import SIZE, VIEW_COLUMNS, VIEW_ROWS, WIDTH, distance
from wsap_crafter.survivor.mind.knowledge import GRASS, PATH, RIPE, SAPLING, UNKNOWN, UPDATE_RANGE, WALKABLE
from wsap_crafter.survivor.mind.percept import Percept

_HIDDEN = frozenset("CZSa@")
"""Characters that hide the ground beneath them."""
_BENEATH = {"C": GRASS, "Z": GRASS, "S": PATH, "@": GRASS, "a": UNKNOWN}
"""The most likely ground beneath if unknown: cows and zombies spawn on grass, skeletons on path."""
_FORGET_COW = 2000
"""Steps after which the position of a cow is forgotten."""
BLOCKS = WIDTH // 4
"""Blocks of four by four cells along each side of the board."""
_BLOCK_SAMPLES = tuple(row * WIDTH + column for row in (-2, 0, 2) for column in (-3, 0, 3))
"""Cells of the view whose blocks count as seen."""


def block_of(cell: int) -> int:
    """Return the block of a cell."""
    row, column = divmod(cell, WIDTH)
    return row // 4 * BLOCKS + column // 4


@dataclass
class Memory:
    """The agent's memory of one world."""

    ground: bytearray = field(default_factory=lambda: bytearray(bytes([UNKNOWN]) * SIZE))
    """One character a cell, as in the view; `?` for unknown cells."""
    cows: dict[int, int] = field(default_factory=dict)
    """Cell of a cow -> the step at which it was seen."""
    plants: dict[int, int] = field(default_factory=dict)
    """Cell of a plant -> its number of updates since it was first seen."""
    walls: dict[int, None] = field(default_factory=dict)
    """Cells that fence plants in; paths must not dig through them."""
    visited: list[int] = field(default_factory=lambda: [-1] * (BLOCKS * BLOCKS))
    """The step at which each block of four by four cells was last seen; -1 for never."""
    occupied: set[int] = field(default_factory=set)
    """Cells in view that a creature or an arrow occupies now. Only for membership tests."""

    def update(self, percept: Percept) -> None:
        """Update the memory from an observation."""
        ground = self.ground
        start = percept.cell - 3 * WIDTH - 4
        for row in percept.rows:
            seen = row.encode("ascii")
            if ground[start : start + VIEW_COLUMNS] != seen:
                self._take_row(start, row)
            start += WIDTH
        for offset in _BLOCK_SAMPLES:
            self.visited[block_of(percept.cell + offset)] = percept.step
        self.occupied = {*percept.cows, *percept.zombies, *percept.skeletons, *percept.arrows}
        self._update_cows(percept)
        self._update_plants(percept)

    def _take_row(self, start: int, row: str) -> None:
        ground = self.ground
        for cell, character in enumerate(row, start):
            if character in _HIDDEN:
                if ground[cell] == UNKNOWN or ground[cell] not in WALKABLE:
                    ground[cell] = _BENEATH[character]
            else:
                ground[cell] = ord(character)
                if character in "pP" and cell not in self.plants:
                    self.plants[cell] = 0

    def _update_cows(self, percept: Percept) -> None:
        if not self.cows and not percept.cows:
            return
        now = percept.step
        for cell in [c for c, when in self.cows.items() if in_view(percept.cell, c) or now - when > _FORGET_COW]:
            del self.cows[cell]
        for cell in percept.cows:
            self.cows[cell] = now

    def _update_plants(self, percept: Percept) -> None:
        for cell in list(self.plants):
            if distance(cell, percept.cell) < UPDATE_RANGE:
                self.plants[cell] += 1
            if self.ground[cell] not in (SAPLING, RIPE):
                del self.plants[cell]

    def free(self, cell: int) -> bool:
        """Return whether the player could step onto a cell now."""
        return self.ground[cell] in WALKABLE and cell not in self.occupied

    def knows(self, codes: bytes) -> bool:
        """Return whether the map has ground of any of these kinds."""
        return any(code in self.ground for code in codes)

    def to_json(self) -> dict[str, JsonValue]:
        """Return the memory as JSON values."""
        return {
            "ground": self.ground.decode("ascii"),
            "cows": list(self.cows.items()),
            "plants": list(self.plants.items()),
            "walls": list(self.walls),
            "visited": self.visited,
        }

    @classmethod
    def from_json(cls, data: dict[str, JsonValue]) -> Memory:
        """Return the memory from `to_json`; raise ValueError if the map has another size."""
        ground = bytearray(data["ground"], "ascii")
        if len(ground) != SIZE or len(data["visited"]) != BLOCKS * BLOCKS:
            raise ValueError("its map does not have the world's size")
        return cls(
            ground=ground,
            cows=dict(data["cows"]),
            plants=dict(data["plants"]),
            walls=dict.fromkeys(data["walls"]),
            visited=list(data["visited"]),
        )


def in_view(player: int, cell: int) -> bool:
    """Return whether a cell is in the view of a player."""
    row, column = divmod(player, WIDTH)
    other_row, other_column = divmod(cell, WIDTH)
    return abs(row - other_row) <= VIEW_ROWS // 2 and abs(column - other_column) <= VIEW_COLUMNS // 2
