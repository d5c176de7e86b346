"""Waiting for the event log to commit, without holding up the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class SharedCommits:
    """Lets those who wait at the same time share a commit."""

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []
        self._task: asyncio.Task[None] | None = None

    async def reached(self, flush: Callable[[], None]) -> None:
        """Return when everything that was appended before the call is committed.

        Args:
            flush: commits what is appended; called on a thread of its own.

        Raises:
            StorageError: it can't be committed.
        """
        committed = asyncio.get_running_loop().create_future()
        self._waiting.append(committed)
        if self._task is None:
            self._task = asyncio.create_task(self._commit(flush))
        await committed

    async def _commit(self, flush: Callable[[], None]) -> None:
        while self._waiting:
            waiting, self._waiting = self._waiting, []
            error: Exception | None = None
            try:
                await asyncio.to_thread(flush)
            except Exception as failed:
                error = failed
            for each in waiting:
                if not each.done():
                    each.set_result(None) if error is None else each.set_exception(error)
        self._task = None
