"""Calls of an agent's methods."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from wsap_core.errors import AgentError, WsapError
from wsap_core.protocol import Action
from wsap_core.untrusted import error_line
from wsap_nexus.worlds.seats import SeatPort, default_action

T = TypeVar("T")


async def ask(question: Callable[[], T | Awaitable[T]], who: str, seat: str) -> T:
    """Call an agent's method, synchronous or not, and return its result; AgentError, naming `who`, if it raises."""
    try:
        answer: Any = question()  # Any: an agent's methods may be synchronous or not
        if inspect.isawaitable(answer):
            answer = await answer
    except (WsapError, TimeoutError, asyncio.CancelledError):
        raise
    except Exception as error:
        raise AgentError.of(seat, f"{who} raised {error_line(error, kind=True)}") from error
    value: T = answer
    return value


async def decide(seat: SeatPort, asked: Awaitable[object], deadline: float | None) -> tuple[Action, bool]:
    """Return an agent's decision, or after the deadline in seconds the seat's default action; and whether it was late.

    Raises:
        AgentError: the decision is not an action, or there is no default action.
    """
    try:
        async with asyncio.timeout(deadline):
            action = await asked
    except TimeoutError:
        default = await default_action(seat)
        if default is None:
            took = "too long" if deadline is None else f"longer than {deadline:g} s"
            raise AgentError.of(
                seat.agent_id,
                f"The agent of seat {seat.agent_id!r} took {took}, "
                f"and {seat.world.spec.name!r} declares no default action.",
            ) from None
        return default, True
    if not isinstance(action, Action):
        said = f"The agent of seat {seat.agent_id!r} decided on a {type(action).__name__}, not an Action."
        raise AgentError.of(seat.agent_id, said)
    return action, False
