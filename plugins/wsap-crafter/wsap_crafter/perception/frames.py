"""Crafter's own pictures.

The game draws night noise with its random generator, so that rendering would change the trajectory. Here noise has a
separate generator, seeded by the step: rendering changes nothing, and equal states give equal pictures.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from wsap_crafter.simulation.engine import CrafterEngine
from wsap_crafter.simulation.game import ItemView, LocalView, Textures, constants
from wsap_crafter.simulation.world import OrderedWorld

_GRID = (9, 9)
_ITEM_ROWS = 2


class FramePainter:
    """Draws frames of `size` by `size` pixels, at least 9, with the game's textures, which are loaded once."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._unit = np.array((size // _GRID[0], size // _GRID[1]))
        self._textures = Textures(constants.root / "assets")
        self._items = ItemView(self._textures, (_GRID[0], _ITEM_ROWS))

    def paint(self, engine: CrafterEngine) -> npt.NDArray[np.uint8]:
        """Return the frame as an array of shape (size, size, 3), rows from the top."""
        shown = _Shown(engine.world, engine.steps)
        view = LocalView(shown, self._textures, (_GRID[0], _GRID[1] - _ITEM_ROWS))
        picture = np.concatenate([view(engine.player, self._unit), self._items(engine.player.inventory, self._unit)], 1)
        canvas = np.zeros((self.size, self.size, 3), np.uint8)
        left, top = (self.size - picture.shape[0]) // 2, (self.size - picture.shape[1]) // 2
        canvas[left : left + picture.shape[0], top : top + picture.shape[1]] = picture
        upright: npt.NDArray[np.uint8] = canvas.transpose((1, 0, 2))
        return upright

    def png(self, engine: CrafterEngine) -> bytes:
        """Return the frame as a PNG file."""
        out = io.BytesIO()
        Image.fromarray(np.ascontiguousarray(self.paint(engine))).save(out, "PNG")
        return out.getvalue()


class _Shown:
    """The world for the game's view, with a separate random generator."""

    def __init__(self, world: OrderedWorld, step: int) -> None:
        self._world = world
        self.area = world.area
        self.daylight = world.daylight
        self.random = np.random.RandomState(step % 2**32)

    def __getitem__(self, pos: Any) -> Any:
        return self._world[pos]

    @property
    def objects(self) -> Iterator[Any]:
        return (obj for obj in self._world.slots if obj is not None)
