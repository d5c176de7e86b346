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

    _loop: asyncio.AbstractEventLoop | None = None
    _first: asyncio.Lock
    """Held by the request that is the next to be sent."""
    _freed: asyncio.Event
    _taken: int

    @asynccontextmanager
    async def one(self, most: Callable[[], int | None], on_wait: Callable[[int | None], None]) -> AsyncIterator[bool]:
        """Wait until fewer than `most()` requests are in flight, None for any number, and be one of them meanwhile.

        Gives whether it had to wait; if so, `on_wait` is called first, with the limit.
        """
        self._begin()
        limit = most()
        waits = self._first.locked() or (limit is not None and self._taken >= limit)
        if waits:
            on_wait(limit)
        async with self._first:
            while (limit := most()) is not None and self._taken >= limit:
                self._freed.clear()
                await self._freed.wait()
            self._taken += 1
        try:
            yield waits
        finally:
            self._taken -= 1
            self._freed.set()

    def _begin(self) -> None:
        """Begin anew in another event loop, as a lock belongs to one."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._first, self._freed, self._taken = loop, asyncio.Lock(), asyncio.Event(), 0


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

        def wait(most: int | None) -> None:
            if on_text is not None:
                on_text(Draft(waiting="waiting for its turn"))
            if most is not None and self.tell is not None:
                self.tell(most)

        async with self.slots.one(self.most, wait) as waited:
            if waited and on_text is not None:
                on_text(Draft())
            return await ask(request, on_text)
