"""The limit of requests in flight to one server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from wsap_core.seams.model import Draft, OnText, Reply, Request
from wsap_llm.middleware import Ask


class Slots:
    """The requests in flight to one server, which all its models share; the others wait in order of arrival."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._begin()

    def _begin(self) -> None:
        self._first = asyncio.Lock()
        """Held by the request that is the next to be sent."""
        self._freed = asyncio.Event()
        self._taken = 0

    def full(self, most: int | None) -> bool:
        """Return whether a new request would have to wait."""
        return self._first.locked() or (most is not None and self._taken >= most)

    @asynccontextmanager
    async def one(self, most: Callable[[], int | None]) -> AsyncIterator[None]:
        """Wait until fewer than `most()` requests are in flight, None for any number, and be one of them meanwhile."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop = loop
            self._begin()
        async with self._first:
            while (limit := most()) is not None and self._taken >= limit:
                self._freed.clear()
                await self._freed.wait()
            self._taken += 1
        try:
            yield
        finally:
            self._taken -= 1
            self._freed.set()


@dataclass
class InTurn:
    """Sends a model's requests when the server has a slot.

    A request that waits has not been sent, so that its time-out does not count the wait: a server with one slot that
    takes 6 s a reply would otherwise lose every request but the first twenty.
    """

    slots: Slots
    most: Callable[[], int | None]
    """Returns the maximum number of requests in flight; None for no limit."""
    tell: Callable[[int], None] | None = None
    """Receives the limit when a request has to wait."""

    async def __call__(self, request: Request, on_text: OnText | None, ask: Ask) -> Reply:
        """Return the reply once there was a slot."""
        most = self.most()
        waits = self.slots.full(most)
        if waits and on_text is not None:
            on_text(Draft(waiting="waiting for its turn"))
        if waits and most is not None and self.tell is not None:
            self.tell(most)
        async with self.slots.one(self.most):
            if waits and on_text is not None:
                on_text(Draft())
            return await ask(request, on_text)
