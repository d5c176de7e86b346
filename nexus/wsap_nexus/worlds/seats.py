"""A seat as a run deals with it, wherever the world is: in this process, or behind a pipe."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable
from typing import Protocol

from wsap_core.protocol import Action, ActionSpace, JackOutResult, Observation, View
from wsap_core.specs import AdapterSpec
from wsap_core.worlds import Outcome


class HasSpec(Protocol):
    """Something that says which game it is of."""

    @property
    def spec(self) -> AdapterSpec:
        """The game."""
        ...


class SeatPort(Protocol):
    """The face of a world for one agent. `wsap_core.worlds.Seat` is one."""

    @property
    def agent_id(self) -> str:
        """Who sits there."""
        ...

    @property
    def world(self) -> HasSpec:
        """The world."""
        ...

    @property
    def done(self) -> bool:
        """Whether the episode of this seat is over."""
        ...

    @property
    def left(self) -> JackOutResult | None:
        """Set once the agent has left the world."""
        ...

    @property
    def game_description(self) -> str:
        """The game, its goals and mechanics."""
        ...

    @property
    def action_space(self) -> ActionSpace:
        """All actions there are."""
        ...

    def default_action(self) -> Action | Awaitable[Action | None] | None:
        """Return what is done when the agent misses its deadline, or None if the world declares nothing."""
        ...

    async def observe(self) -> Observation:
        """Return this seat's state at its next decision point."""
        ...

    async def look(self) -> View | None:
        """Return what this seat sees now, drawn by the game; None where it draws nothing."""
        ...

    async def step(self, action: Action) -> Outcome:
        """Carry out an action and return what came of it, and how."""
        ...

    def leave(self, mode: str = "dormant") -> JackOutResult | Awaitable[JackOutResult]:
        """Take the agent out of the world by force."""
        ...


async def leave(seat: SeatPort, mode: str = "dormant") -> JackOutResult:
    """Take an agent out of its world by force, wherever the world is."""
    left = seat.leave(mode)
    return await left if inspect.isawaitable(left) else left


async def default_action(seat: SeatPort) -> Action | None:
    """Return what a world does when an agent misses its deadline, wherever the world is."""
    action = seat.default_action()
    return await action if inspect.isawaitable(action) else action
