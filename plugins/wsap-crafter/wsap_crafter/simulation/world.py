"""Crafter's world in a reproducible order, with the same map and rules.

The original keeps the objects of a chunk in a set ordered by memory address, and draws random numbers while iterating
over it, so that two processes with one seed diverge (danijar/crafter issues 31 and 36). Here a chunk is in order of
insertion. The rest of this module is about speed: positions are plain integers, and dead objects are dropped.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import numpy.typing as npt

from wsap_crafter.simulation.game import Object, World
from wsap_crafter.simulation.random_stream import GameRandom

ChunkKey = tuple[int, int, int, int]


class OrderedSet(dict[Object, None]):
    """A set of objects that iterates in order of insertion, with the two methods that the game calls."""

    def add(self, item: Object) -> None:
        """Add ``item`` at the end unless it is there already."""
        self[item] = None

    def remove(self, item: Object) -> None:
        """Remove ``item``."""
        del self[item]


class OrderedWorld(World):
    """A 64 by 64 (or other) map of materials with the objects on it, in a reproducible order."""

    random: GameRandom
    area: tuple[int, int]
    daylight: float

    def reset(self, seed: int | None = None) -> None:
        """Empty the world and seed its generator; ``None`` takes seed 0."""
        self.random = GameRandom(0 if seed is None else seed)
        self.daylight = 0.0
        self._chunks: defaultdict[ChunkKey, OrderedSet] = defaultdict(OrderedSet)
        self._objects: list[Object | None] = [None]
        self._mat_map: npt.NDArray[np.uint8] = np.zeros(self.area, np.uint8)
        self._obj_map: npt.NDArray[np.uint32] = np.zeros(self.area, np.uint32)
        self._dead = 0

    @property
    def material_ids(self) -> dict[str | None, int]:
        """Material name -> its number on the map; None is 0."""
        ids: dict[str | None, int] = self._mat_ids
        return ids

    @property
    def material_names(self) -> dict[int, str | None]:
        """Number on the map -> material name."""
        names: dict[int, str | None] = self._mat_names
        return names

    @property
    def materials(self) -> npt.NDArray[np.uint8]:
        """The map of material numbers, indexed [x, y]; read-only."""
        return self._mat_map

    @property
    def occupants(self) -> npt.NDArray[np.uint32]:
        """The map of indices into :attr:`slots`, 0 for free cells, indexed [x, y]."""
        return self._obj_map

    @property
    def slots(self) -> list[Object | None]:
        """Objects by index, in the order in which they move; None for dead ones."""
        return self._objects

    @property
    def ordered_chunks(self) -> defaultdict[ChunkKey, OrderedSet]:
        """The chunks in the order in which the game balances them."""
        return self._chunks

    def set_materials(self, materials: npt.NDArray[np.uint8]) -> None:
        """Replace the whole map of materials."""
        self._mat_map[:] = materials

    def compact(self) -> None:
        """Drop dead objects once they outnumber the living, without changing the order of the others."""
        if self._dead > 32 and 2 * self._dead > len(self._objects):
            self.compact_now()

    def compact_now(self) -> None:
        """Drop all dead objects."""
        alive = [obj for obj in self._objects if obj is not None]
        self._objects = [None, *alive]
        for index, obj in enumerate(alive, 1):
            x, y = obj.pos.tolist()
            self._obj_map[x, y] = index
        self._dead = 0

    def remove(self, obj: Object) -> None:
        """Remove a living object."""
        if not obj.removed:
            self._dead += 1
        super().remove(obj)

    def move(self, obj: Object, pos: Any) -> None:
        """Move a living object to a free cell."""
        if obj.removed:
            return
        old_x, old_y = obj.pos.tolist()
        x, y = int(pos[0]), int(pos[1])
        occupants = self._obj_map
        occupants[x, y] = occupants[old_x, old_y]
        occupants[old_x, old_y] = 0
        width, height = self._chunk_size
        if old_x // width != x // width or old_y // height != y // height:
            self._chunks[self.chunk_key((old_x, old_y))].remove(obj)
            self._chunks[self.chunk_key((x, y))].add(obj)
        obj.pos = np.array((x, y))

    def __getitem__(self, pos: Any) -> tuple[str | None, Object | None]:
        x, y = int(pos[0]), int(pos[1])
        if not (0 <= x < self.area[0] and 0 <= y < self.area[1]):
            return None, None
        return self._mat_names[self._mat_map.item(x, y)], self._objects[self._obj_map.item(x, y)]
