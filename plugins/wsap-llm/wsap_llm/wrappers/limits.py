"""Not too many at once, and not too many a minute."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import aclosing

from wsap_core.seams.clock import Clock, SystemClock
from wsap_core.seams.model import Backend, Chunk, Request
from wsap_llm.wrappers.base import Wrapper


class Limited(Wrapper):
    """Lets so many requests run at once, and so many start in any minute; the others wait in order.

    Args:
        inner: the backend.
        concurrency: requests at once; None for any number.
        per_minute: requests in any sixty seconds; None for any number.
        clock: what tells the time and waits.
    """

    def __init__(
        self,
        inner: Backend,
        *,
        concurrency: int | None = None,
        per_minute: int | None = None,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(inner)
        self._slots = asyncio.Semaphore(concurrency) if concurrency is not None else None
        self._per_minute = per_minute
        self._starts: deque[float] = deque()
        self._gate = asyncio.Lock()
        self._clock = clock or SystemClock()

    async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        """Give the reply once there is room for the request."""
        if self._slots is not None:
            await self._slots.acquire()
        try:
            await self._await_rate()
            async with aclosing(self.inner.stream(request)) as chunks:
                async for chunk in chunks:
                    yield chunk
        finally:
            if self._slots is not None:
                self._slots.release()

    async def _await_rate(self) -> None:
        if self._per_minute is None:
            return
        # The lock keeps those who wait in order.
        async with self._gate:
            while True:
                now = self._clock.now()
                while self._starts and now - self._starts[0] >= 60:
                    self._starts.popleft()
                if len(self._starts) < self._per_minute:
                    self._starts.append(now)
                    return
                await self._clock.sleep(60 - (now - self._starts[0]))
