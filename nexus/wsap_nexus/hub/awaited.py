"""What somebody waits for until an agent gets there: its arrival in a world, or its return."""

from __future__ import annotations

import asyncio
from typing import Generic, TypeVar

T = TypeVar("T")


class Awaited(Generic[T]):
    """What is waited for, by agent; all who wait for the same get the same."""

    def __init__(self) -> None:
        self._waiting: dict[str, asyncio.Future[T]] = {}

    def expect(self, agent_id: str) -> asyncio.Future[T]:
        """Return where it will be."""
        waiting = self._waiting.get(agent_id)
        if waiting is None or waiting.done():
            # Whoever waited may have given it up.
            waiting = self._waiting[agent_id] = asyncio.get_running_loop().create_future()
        return waiting

    def tell(self, agent_id: str, outcome: T | Exception) -> None:
        """Give whoever waits for an agent what came of it, if anybody does."""
        future = self._waiting.pop(agent_id, None)
        if future is None or future.done():
            return
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
