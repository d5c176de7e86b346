"""Crafter's objects with geometry on plain integers; their behavior is the game's code.

Numpy takes microseconds to subtract two pairs of numbers, and creatures do it several times a step. These classes
replace only distances, directions and the test for a free cell, with equal results.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wsap_crafter.simulation import game
from wsap_crafter.simulation.game import constants
from wsap_crafter.simulation.world import OrderedWorld

_WALKABLE = frozenset(constants.walkable)


class Located(game.Object):
    """Geometry of an object on the map, put before the game's class."""

    world: OrderedWorld
    pos: Any

    def distance(self, target: Any) -> int:
        """Return the Manhattan distance to an object or a position."""
        x, y = self.pos.tolist()
        there = getattr(target, "pos", target)
        steps: int = abs(int(there[0]) - x) + abs(int(there[1]) - y)
        return steps

    def toward(self, target: Any, long_axis: bool = True) -> Any:
        """Return the unit step towards ``target`` along the longer, or else the shorter axis."""
        x, y = self.pos.tolist()
        there = getattr(target, "pos", target)
        dx, dy = int(there[0]) - x, int(there[1]) - y
        along_x = abs(dx) > abs(dy) if long_axis else abs(dx) <= abs(dy)
        return np.array((_sign(dx), 0) if along_x else (0, _sign(dy)))

    def move(self, direction: Any) -> bool:
        """Step if the cell is free, and return whether it was."""
        x, y = self.pos.tolist()
        target = (x + int(direction[0]), y + int(direction[1]))
        free = self.is_free(target)
        if free:
            self.world.move(self, target)
        return free

    def is_free(self, target: Any, materials: Any = None) -> bool:
        """Return whether nobody is on ``target`` and its ground is one of ``materials``, or walkable."""
        material, occupant = self.world[target]
        return occupant is None and material in (self._ground if materials is None else materials)

    _ground: frozenset[str] = _WALKABLE


def _sign(value: int) -> int:
    return (value > 0) - (value < 0)


class Player(Located, game.Player):
    """The player, who may step into lava and dies there."""

    _ground = _WALKABLE | {"lava"}


class Cow(Located, game.Cow):
    """A cow; three hit points."""


class Zombie(Located, game.Zombie):
    """A zombie; five hit points."""


class Skeleton(Located, game.Skeleton):
    """A skeleton; three hit points, shoots arrows."""


def make_creature(kind: str, world: OrderedWorld, pos: Any, player: game.Player) -> game.Object:
    """Return a new "Cow", "Zombie" or "Skeleton" for a position, not yet in the world; ValueError for other kinds."""
    if kind == "Cow":
        return Cow(world, pos)
    if kind == "Zombie":
        return Zombie(world, pos, player)
    if kind == "Skeleton":
        return Skeleton(world, pos, player)
    raise ValueError(f"{kind!r} is not a creature of Crafter")
