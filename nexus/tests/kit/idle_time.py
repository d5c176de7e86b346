"""An event loop whose clock goes on only when nobody in it has anything to do: no machine is too slow for a deadline.

For code that waits for nothing outside: no sockets, threads or processes.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Passing(selectors.DefaultSelector):
    """Has the time that is to be waited pass at once."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return what is ready, and have time pass if that is nothing."""
        ready = super().select(None if timeout is None else 0)
        if not ready:
            self.now += timeout or 0.0
        return ready


class IdleTimeLoop(asyncio.SelectorEventLoop):
    """A loop on that clock; it begins at 0."""

    def __init__(self) -> None:
        self._passing = _Passing()
        super().__init__(self._passing)

    def time(self) -> float:
        """Return how many seconds have passed."""
        return self._passing.now


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run something to its end, as `asyncio.run` does, in a time of its own."""
    with asyncio.Runner(loop_factory=IdleTimeLoop) as runner:
        return runner.run(main)
