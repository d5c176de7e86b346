"""The original game as a reference, and helpers to set scenes."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import crafter
import numpy as np
import pytest
from crafter import constants, engine, objects

from wsap_core import Context
from wsap_crafter.adapter import CrafterAdapter
from wsap_crafter.simulation.engine import CrafterEngine


class InsertionOrdered(dict):
    """The set methods that the game calls, in order of insertion."""

    def add(self, item):
        self[item] = None

    def remove(self, item):
        del self[item]


class OriginalWorld(engine.World):
    """The original world, except for the sets that are ordered by memory address."""

    def reset(self, seed=None):
        super().reset(seed)
        self._chunks = collections.defaultdict(InsertionOrdered)


class Original(crafter.Env):
    """The original game without images, with numpy's random numbers."""

    def __init__(self, seed, length=10_000):
        super().__init__(seed=seed, length=length)
        self._world = OriginalWorld(self._area, constants.materials, (12, 12))
        self._local_view._world = self._world
        self._sem_view = lambda: None

    def render(self, size=None):
        return None

    world = property(lambda self: self._world)
    player = property(lambda self: self._player)

    def act(self, action: str) -> float:
        return self.step(constants.actions.index(action))[1]


def describe(obj: Any) -> str:
    """Return all fields of an object as comparable values."""
    ignored = ("world", "random", "player")
    items = {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in vars(obj).items()
        if name not in ignored
    }
    if "facing" in items:
        items["facing"] = tuple(items["facing"])
    return f"{type(obj).__name__} {sorted(items.items())}"


def state_of(game: Any) -> dict[str, Any]:
    """Return the complete state except the random generator."""
    world = game.world
    chunks = [(tuple(map(int, chunk)), [describe(obj) for obj in members]) for chunk, members in world._chunks.items()]
    return {
        "ground": world._mat_map.tolist(),
        "objects": [describe(obj) for obj in world._objects if obj],
        "chunks": chunks,
        "daylight": float(world.daylight),
    }


@pytest.fixture(scope="session")
def original() -> Callable[..., Original]:
    return Original


@pytest.fixture(scope="session")
def game_state() -> Callable[[Any], dict[str, Any]]:
    return state_of


class Scene:
    """An adapter whose world a test arranges; call `look()` after arranging."""

    def __init__(self, seed: int = 0, **config: Any) -> None:
        self.adapter = CrafterAdapter(Context(seed=seed, config=config))

    @property
    def game(self) -> CrafterEngine:
        return self.adapter._engine

    @property
    def player(self) -> Any:
        return self.game.player

    @property
    def world(self) -> Any:
        return self.game.world

    def empty(self, ground: str = "grass") -> Scene:
        """Remove everything except the player from even ground."""
        for obj in list(self.world.objects):
            if obj is not self.player:
                self.world.remove(obj)
        self.world._mat_map[:] = self.world._mat_ids[ground]
        return self

    def put(self, kind: str, x: int, y: int, **attributes: Any) -> Any:
        """Put a material, or a creature by its class name, at a position."""
        if kind in constants.materials:
            self.world[x, y] = kind
            return None
        if kind == "Arrow":
            obj = objects.Arrow(self.world, (x, y), np.array(attributes.pop("facing")))
        elif kind == "Plant":
            obj = objects.Plant(self.world, (x, y))
        else:
            obj = self.game._creature(kind, (x, y))
        for name, value in attributes.items():
            setattr(obj, name, value)
        self.world.add(obj)
        return obj

    def stand(self, x: int, y: int, facing: tuple[int, int] = (0, 1)) -> Scene:
        """Move the player there."""
        if (x, y) != tuple(self.player.pos.tolist()):
            self.world.move(self.player, (x, y))
        self.player.facing = facing
        return self

    def carry(self, **items: int) -> Scene:
        """Set counts in the inventory."""
        self.player.inventory.update(items)
        return self

    def look(self) -> Any:
        """Make the adapter perceive the arranged world, and return the observation."""
        self.adapter.changed()
        return self.adapter.observe()


@pytest.fixture
def scene() -> Callable[..., Scene]:
    return Scene


@pytest.fixture(scope="session")
def scene_class() -> type[Scene]:
    return Scene
