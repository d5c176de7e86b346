"""Clocks, which are passed in so that tests and replays can replace them."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """A clock for deadlines and pacing; worlds keep logical time."""

    def now(self) -> float:
        """Return monotonic seconds."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""


class SystemClock:
    """The clock of the system."""

    def now(self) -> float:
        """Return monotonic seconds."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        import asyncio  # deferred for weight: listing plugins needs no event loop

        await asyncio.sleep(seconds)
