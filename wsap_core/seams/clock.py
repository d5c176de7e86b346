"""Where time comes from; handed in, so that tests and replays have a clock of their own."""

from __future__ import annotations

import time
from collections.abc import Awaitable
from typing import Protocol, TypeVar

T = TypeVar("T")


class Clock(Protocol):
    """Where time comes from. Worlds keep logical time; this is for deadlines and pacing."""

    def now(self) -> float:
        """Return seconds on a clock that never goes back."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""


class SystemClock:
    """The machine's own clock."""

    def now(self) -> float:
        """Return seconds on the monotonic clock."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait that long."""
        import asyncio  # deferred for weight: listing plugins needs no event loop

        await asyncio.sleep(seconds)


async def within(clock: Clock, seconds: float, work: Awaitable[T]) -> T:
    """Return what the work gives, or cancel it after so many seconds on a clock.

    Raises:
        TimeoutError: it took longer.
    """
    import asyncio  # deferred for weight, as above

    task = asyncio.ensure_future(work)
    late = asyncio.ensure_future(clock.sleep(seconds))
    try:
        await asyncio.wait({task, late}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise TimeoutError(f"no answer within {seconds:g} s")
    finally:
        for each in (task, late):
            each.cancel()
