"""Where time comes from; handed in, so that tests and replays have a clock of their own."""

from __future__ import annotations

import time
from typing import Protocol


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
