"""A stop that loses no reply: requests in flight are awaited, and no further one is sent."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from wsap_core.seams.model import OnText, Reply, Request
from wsap_core.seams.model_errors import BudgetReachedError
from wsap_llm.middleware import Ask


class Drain:
    """Counts requests in flight, and once `drained` was called sends no more.

    A request that comes later waits until none is in flight, and then fails: if it failed at once, it would end its
    run, and with it the requests of other seats.
    """

    def __init__(self) -> None:
        self.in_flight = 0
        """Number of requests that were sent and have no complete reply yet."""
        self._draining = False
        self._idle, self._over = asyncio.Event(), asyncio.Event()

    async def drained(self) -> None:
        """Send no further request, and return when none is in flight."""
        self._draining = True
        self._settle()
        await self._idle.wait()
        self._over.set()
        await asyncio.sleep(0)  # those that waited fail before the caller ends them

    async def __call__(self, request: Request, on_text: OnText | None, ask: Ask) -> Reply:
        """Return the reply; raise BudgetReachedError, without sending the request, if it came too late."""
        if self._draining:
            with suppress(asyncio.CancelledError):  # however it ends, it was not sent, which the caller records
                await self._over.wait()
            raise BudgetReachedError("The models were stopped before the next request; to continue, resume the run.")
        self.in_flight += 1
        try:
            return await ask(request, on_text)
        finally:
            self.in_flight -= 1
            self._settle()

    def _settle(self) -> None:
        if self._draining and not self.in_flight:
            self._idle.set()
