"""The interface of seats in any world."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable
from typing import Protocol

from wsap_core.protocol import Action, ActionSpace, JackOutResult, Observation, View
from wsap_core.seams.game import ChoiceKey
from wsap_core.specs import AdapterSpec
from wsap_core.worlds import Outcome


class HasSpec(Protocol):
    """A world, seen from its seats."""

    @property
    def spec(self) -> AdapterSpec:
        """The game."""
        ...


class SeatPort(Protocol):
    """The interface of a world for one agent, implemented by `wsap_core.worlds.Seat`."""

    @property
    def agent_id(self) -> str:
        """The agent."""
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
    def ended(self) -> bool:
        """Whether the game ended without an action of this seat, as of the last `observe`; see `Seat.ended`."""
        ...

    @property
    def left(self) -> JackOutResult | None:
        """Set when the agent has left the world."""
        ...

    @property
    def game_description(self) -> str:
        """The game, its goals and mechanics."""
        ...

    @property
    def action_space(self) -> ActionSpace:
        """All actions."""
        ...

    def default_action(self) -> Action | Awaitable[Action | None] | None:
        """Return the action for a missed deadline; None if the world declares none."""
        ...

    async def observe(self) -> Observation:
        """Return this seat's state at its next decision point."""
        ...

    async def look(self) -> View | None:
        """Return this seat's view; None if the game has none."""
        ...

    async def step(self, action: Action, key: ChoiceKey | None = None) -> Outcome:
        """Carry out an action and return its outcome; only a `live` world takes a key."""
        ...

    def leave(self, mode: str = "dormant") -> JackOutResult | Awaitable[JackOutResult]:
        """Remove the agent from the world by force."""
        ...


async def leave(seat: SeatPort, mode: str = "dormant") -> JackOutResult:
    """Remove an agent from its world by force."""
    left = seat.leave(mode)
    return await left if inspect.isawaitable(left) else left


async def default_action(seat: SeatPort) -> Action | None:
    """Return the action for a missed deadline; None if the world declares none."""
    action = seat.default_action()
    return await action if inspect.isawaitable(action) else action
