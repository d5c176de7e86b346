"""The interface of seats in any world."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeGuard

from wsap_core.protocol import Action, ActionSpace, JackOutResult, Observation, View
from wsap_core.seams.game import ChoiceKey
from wsap_core.specs import AdapterSpec
from wsap_core.worlds import Outcome

Told = Callable[[], object]
"""Called when something reaches a world."""


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
        """Carry out an action and return its outcome; only an `irreversible` world takes a key."""
        ...

    def leave(self, mode: str = "dormant") -> JackOutResult | Awaitable[JackOutResult]:
        """Remove the agent from the world by force."""
        ...


class TellingSeat(SeatPort, Protocol):
    """A seat in a world that goes on in another process while it is asked, so that only the world itself knows the
    order in which it is told of actions and removals."""

    tells: bool
    """Whether it is one; a seat without this attribute is not."""

    async def step(self, action: Action, key: ChoiceKey | None = None, told: Told | None = None) -> Outcome:
        """Carry out an action; `told` is called when the action reaches the world."""
        ...

    async def let_go(self, told: Told) -> None:
        """Remove the agent by force, unless its episode is over by then; `told` is called if it was removed."""
        ...


def tells(seat: SeatPort) -> TypeGuard[TellingSeat]:
    """Return whether a seat is a `TellingSeat`."""
    return getattr(seat, "tells", False) is True


async def take_step(seat: SeatPort, action: Action, key: ChoiceKey | None, told: Told | None) -> Outcome:
    """Carry out an action; `told`, if given, is called when the action reaches the world."""
    if tells(seat):
        return await seat.step(action, key, told)
    if told is not None:
        told()
    return await seat.step(action, key)


async def let_go(seat: SeatPort, told: Told) -> None:
    """Remove an agent that plays from its world by force; `told` is called when that reaches the world.

    In another process its episode may be over by then. In that case nothing is done, and `told` is not called.
    """
    if tells(seat):
        await seat.let_go(told)
        return
    told()
    await leave(seat)


async def leave(seat: SeatPort, mode: str = "dormant") -> JackOutResult:
    """Remove an agent from its world by force."""
    left = seat.leave(mode)
    return await left if inspect.isawaitable(left) else left


async def default_action(seat: SeatPort) -> Action | None:
    """Return the action for a missed deadline; None if the world declares none."""
    action = seat.default_action()
    return await action if inspect.isawaitable(action) else action
