"""When a request is sent: again after a failure, and not too many at once or in a minute."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field

from wsap_core.seams.clock import Clock, SystemClock
from wsap_core.seams.model import Chunk, Request
from wsap_core.seams.model_errors import RateLimitError, TransientError
from wsap_core.untrusted import single_line
from wsap_llm.middleware import Ask
from wsap_llm.middleware.measure import Meter

LONG = 2.0
"""Seconds of a pause above which a waiting person wants to know why."""


@dataclass(frozen=True)
class Retry:
    """Tries again after errors that may be over in a moment; everything else fails at once.

    A rate limit with a stated wait is waited for; otherwise the pause doubles from `first` to
    `longest` seconds, each drawn from the upper half of its range, so that many callers don't
    come back together.
    """

    attempts: int = 5
    """Calls in all, the first included."""
    first: float = 0.5
    """Seconds before the second attempt."""
    longest: float = 60.0
    """Most seconds of any pause; a server that asks for more ends the attempts."""
    hold: bool = True
    """Keep chunks back until the stream has ended, so that one that breaks off can be tried again; without it, what was
    passed on can't be taken back and the error is raised."""
    clock: Clock = field(default_factory=SystemClock)
    """What waits."""
    generator: random.Random = field(default_factory=random.Random)
    """Where the jitter comes from."""
    tell: Callable[[str], None] | None = None
    """Told of each pause above `LONG` seconds."""
    meter: Meter | None = None
    """Where these pauses are counted."""

    async def stream(self, request: Request, ask: Ask) -> AsyncGenerator[Chunk, None]:
        """Give the reply of the first attempt that succeeds. Raises BackendError if the last attempt's error, or one
        that trying again can't help."""
        for attempt in range(1, self.attempts + 1):
            held: list[Chunk] = []
            passed = False
            try:
                async with aclosing(ask(request)) as chunks:
                    async for chunk in chunks:
                        if self.hold:
                            held.append(chunk)
                        else:
                            passed = True
                            yield chunk
            except TransientError as error:
                pause = self._pause(attempt, error)
                if passed or pause is None:
                    raise
                if pause > LONG and self.meter is not None:
                    self.meter.retries += 1
                if pause > LONG and self.tell is not None:
                    why = single_line(error)
                    why = why if why.endswith((".", "?", "!")) else f"{why}."
                    self.tell(f"{why} Waiting {pause:.0f} s before attempt {attempt + 1} of {self.attempts}.")
                await self.clock.sleep(pause)
                continue
            for chunk in held:
                yield chunk
            return

    def _pause(self, attempt: int, error: TransientError) -> float | None:
        if attempt >= self.attempts:
            return None
        if isinstance(error, RateLimitError) and error.retry_after is not None:
            return error.retry_after if error.retry_after <= self.longest else None
        full: float = min(self.longest, self.first * 2 ** (attempt - 1))
        return full * (0.5 + self.generator.random() / 2)


class RateLimit:
    """Lets so many requests run at once, and so many start in any minute; the others wait in order."""

    def __init__(
        self, *, concurrency: int | None = None, per_minute: int | None = None, clock: Clock | None = None
    ) -> None:
        self._slots = asyncio.Semaphore(concurrency) if concurrency is not None else None
        self._per_minute = per_minute
        self._starts: deque[float] = deque()
        self._gate = asyncio.Lock()
        self._clock = clock or SystemClock()

    async def stream(self, request: Request, ask: Ask) -> AsyncGenerator[Chunk, None]:
        """Give the reply once there is room for the request."""
        if self._slots is not None:
            await self._slots.acquire()
        try:
            await self._await_rate()
            async with aclosing(ask(request)) as chunks:
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
