"""Calls of an agent's methods."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from wsap_core.errors import PluginError, WsapError
from wsap_core.protocol import Action
from wsap_core.untrusted import error_line
from wsap_nexus.worlds.seats import SeatPort, default_action

T = TypeVar("T")


async def ask(question: Callable[[], T | Awaitable[T]], who: str) -> T:
    """Return what an agent's method returns, or what it is awaited to return.

    Raises:
        PluginError: the method raised; the message begins with `who`.
    """
    try:
        answer: Any = question()  # Any: an agent's methods may be synchronous or not
        if inspect.isawaitable(answer):
            answer = await answer
    except (WsapError, TimeoutError, asyncio.CancelledError):
        raise
    except Exception as error:
        raise PluginError(f"{who} raised {error_line(error, kind=True)}") from error
    value: T = answer
    return value


async def decide(seat: SeatPort, asked: Awaitable[object], deadline: float | None) -> tuple[Action, bool]:
    """Return what the agent of a seat decides on, or the seat's default action where that takes longer than the
    deadline in seconds; and whether it did.

    Raises:
        PluginError: it decides on something else than an action, or there is no default.
    """
    try:
        async with asyncio.timeout(deadline):
            action = await asked
    except TimeoutError:
        default = await default_action(seat)
        if default is None:
            took = "too long" if deadline is None else f"longer than {deadline:g} s"
            raise PluginError(
                f"The agent of seat {seat.agent_id!r} took {took}, "
                f"and {seat.world.spec.name!r} declares no default action."
            ) from None
        return default, True
    if not isinstance(action, Action):
        raise PluginError(f"The agent of seat {seat.agent_id!r} decided on a {type(action).__name__}, not an Action.")
    return action, False
