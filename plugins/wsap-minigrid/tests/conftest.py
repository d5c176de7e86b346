"""A world that tests arrange, and a walk through it."""

from __future__ import annotations

import os
from typing import Any

import pytest

os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")

from minigrid.core.world_object import Door, Key, Wall

from wsap_core import Action, ActionResult, AvatarSpec, Context
from wsap_minigrid.adapter import MiniGridAdapter


class Scene:
    """A world with an agent in it, alone in an empty room until a test puts something there."""

    def __init__(self, level: int = 1, seed: int = 0, **options: str) -> None:
        self.world = MiniGridAdapter(Context(seed=seed, config={"level": level, **options}))
        self.world.create_avatar("ann", AvatarSpec())
        self.world.jack_in("ann", "avatar-1")

    @property
    def env(self) -> Any:
        return self.world._env

    def before_a_locked_door(self, colour: str, *, key: str | None = None) -> Scene:
        """Stand in a corridor, facing a locked door, with a key of some colour in hand."""
        cells = [Wall() for _ in self.env.grid.grid]
        self.env.grid.grid[:] = cells
        for x in (1, 3):
            self.env.grid.set(x, 1, None)
        self.env.grid.set(2, 1, Door(colour, is_locked=True))
        self.env.agent_pos, self.env.agent_dir = (1, 1), 0
        self.env.carrying = Key(key) if key else None
        return self

    def do(self, *names: str) -> ActionResult:
        """Do one action after the other, and return what came of the last."""
        for name in names:
            result = self.world.act(Action(name))
        return result


@pytest.fixture
def scene() -> type[Scene]:
    return Scene
