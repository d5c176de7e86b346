"""Calls of an agent's methods."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

from wsap_core.errors import AgentError, WireError, WsapError
from wsap_core.protocol import Action
from wsap_core.protocol.wire import dumps
from wsap_core.untrusted import error_line, raised_at
from wsap_nexus.worlds.seats import SeatPort, default_action

T = TypeVar("T")

MOST = 30
"""Decisions after which a turn is over at the latest, however quick they are: each takes its share of the time."""


@runtime_checkable
class KeepsTime(Protocol):
    """An agent that has a deadline of its own for each turn."""

    def turn_over(self, *, late: bool) -> None:
        """Take notice that its last decision, or the default action if it was late, has brought the game on."""
        ...


@dataclass
class TurnTime:
    """The time of one seat for a turn: for all its decisions until one of them brings the game on.

    Others wait for that one, so an action that is refused, or that takes no step of the game, gives no new time.
    """

    deadline: float | None
    """Seconds for a turn; None for no limit."""
    spent: float = 0.0
    """Seconds of this turn that its decisions took."""

    @property
    def left(self) -> float | None:
        """The seconds left for the next decision."""
        if self.deadline is None:
            return None
        left = self.deadline - self.spent
        return left if left > self.deadline / MOST / 2 else 0.0  # sums of shares are not exact

    def took(self, seconds: float) -> None:
        """Count a decision."""
        self.spent += max(seconds, (self.deadline or 0.0) / MOST)

    def over(self) -> None:
        """Begin a new turn."""
        self.spent = 0.0


async def ask(question: Callable[[], T | Awaitable[T]], who: str, seat: str, *, deciding: bool = False) -> T:
    """Call an agent's method, synchronous or not, and return its result.

    Raises:
        AgentError: the agent raised or exited; the message names `who`.
        TimeoutError: it raised that while `deciding`, so that its decision is late.
    """
    try:
        answer: Any = question()  # Any: an agent's methods may be synchronous or not
        if inspect.isawaitable(answer):
            answer = await answer
    except WsapError:
        raise
    except TimeoutError as error:
        if deciding:
            raise
        raise _raised(seat, who, error) from error
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise _raised(seat, who, error) from error  # something of its own was cancelled, not this run
    except (Exception, SystemExit) as error:
        raise _raised(seat, who, error) from error
    value: T = answer
    return value


def _raised(seat: str, who: str, error: BaseException) -> AgentError:
    return AgentError.of(seat, f"{who} raised {error_line(error, kind=True)}{raised_at(error)}")


async def decide(
    seat: SeatPort, asked: Awaitable[object], deadline: float | None, turn: float | None = None
) -> tuple[Action, bool]:
    """Return an agent's decision, or after the deadline in seconds the seat's default action; and whether it was late.

    `turn` is the deadline of the turn, of which this decision has the rest.

    Raises:
        AgentError: the decision is not an action that can be recorded, or there is no default action.
    """
    try:
        async with asyncio.timeout(deadline):
            action = await asked
        if deadline == 0:  # one that awaits nothing is not interrupted
            raise TimeoutError
    except TimeoutError:
        default = await default_action(seat)
        if default is None:
            whole = deadline if turn is None else turn
            took = "too long" if whole is None else f"longer than {whole:g} s for its turn"
            raise AgentError.of(
                seat.agent_id,
                f"The agent of seat {seat.agent_id!r} took {took}, "
                f"and {seat.world.spec.name!r} declares no default action.",
            ) from None
        return default, True
    if not isinstance(action, Action):
        said = f"The agent of seat {seat.agent_id!r} decided on a {type(action).__name__}, not an Action."
        raise AgentError.of(seat.agent_id, said)
    if action.parameters:
        try:
            dumps(action.parameters)
        except (WireError, ValueError, TypeError, RecursionError) as error:
            why = "It is nested too deeply." if isinstance(error, RecursionError) else error_line(error)
            said = f"The agent of seat {seat.agent_id!r} decided on an action that can't be recorded: {why}"
            raise AgentError.of(seat.agent_id, said) from error
    return action, False
