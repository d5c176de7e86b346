"""Lets coroutines wait for a commit of another thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress


class CommitWaiters:
    """The waiting coroutines of all event loops; guard it with a lock."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, goal: int) -> asyncio.Future[None]:
        """Return a future of the running loop that resolves when `goal` entries are committed."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.append((goal, future))
        return future

    def reached(self, done: int) -> None:
        """Wake the coroutines that wait for up to `done` entries."""
        found = [future for goal, future in self._waiting if goal <= done]
        self._waiting = [each for each in self._waiting if each[0] > done]
        _settle(found, lambda future: future.set_result(None))

    def failed(self, error: Exception) -> None:
        """Raise an error in all waiting coroutines."""
        found, self._waiting = [future for _, future in self._waiting], []
        _settle(found, lambda future: future.set_exception(error))


def _settle(futures: list[asyncio.Future[None]], settle: Callable[[asyncio.Future[None]], None]) -> None:
    def on_loop(mine: list[asyncio.Future[None]]) -> None:
        for future in mine:
            if not future.done():  # it may be cancelled
                settle(future)

    for loop in {future.get_loop() for future in futures}:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(on_loop, [future for future in futures if future.get_loop() is loop])
