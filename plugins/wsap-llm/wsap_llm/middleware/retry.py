"""Retries after failures, and the limit of requests a minute."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from wsap_core.seams.clock import Clock, SystemClock
from wsap_core.seams.model import Draft, OnText, Reply, Request
from wsap_core.seams.model_errors import BackendTimeoutError, RateLimitError, TransientError
from wsap_core.untrusted import single_line
from wsap_llm.middleware import Ask
from wsap_llm.middleware.measure import Meter
from wsap_llm.starting import StartingError, until_started

LONG = 2.0
"""Pauses longer than this, in seconds, are reported to the user."""


@dataclass(frozen=True)
class Retry:
    """Retries after transient errors; what was shown of a reply that broke off is withdrawn.

    The pause is the one stated by a rate limit; otherwise it doubles from `first` to `longest` seconds, each drawn from
    the upper half of its range to spread out concurrent callers.
    """

    attempts: int = 5
    """Maximum number of calls, including the first."""
    first: float = 0.5
    """Pause before the second attempt in seconds."""
    longest: float = 60.0
    """Maximum pause in seconds; if a server asks for more, the error is raised."""
    clock: Clock = field(default_factory=SystemClock)
    """Used for pauses."""
    generator: random.Random = field(default_factory=random.Random)
    """Source of the jitter."""
    tell: Callable[[str], None] | None = None
    """Receives a message about each time-out, and each pause above `LONG` seconds."""
    meter: Meter | None = None
    """Counts these pauses."""

    async def __call__(self, request: Request, on_text: OnText | None, ask: Ask) -> Reply:
        """Return the reply of the first successful attempt. Raises the BackendError of the last attempt, or one that is
        not transient."""
        attempt = 1
        while True:
            try:
                return await until_started(partial(ask, request, on_text), self.clock, self.tell, on_text)
            except TransientError as error:
                pause = self._pause(attempt, error)
                if pause is None:
                    raise
                attempt += 1
                # A time-out is told, too, whatever the pause: it took long enough.
                long = pause > LONG or isinstance(error, BackendTimeoutError)
                if long and self.meter is not None:
                    self.meter.retries += 1
                why = single_line(error)
                if long and self.tell is not None:
                    said = why if why.endswith((".", "?", "!")) else f"{why}."
                    self.tell(f"{said} Waiting {pause:.0f} s before attempt {attempt} of {self.attempts}.")
            if on_text is not None:
                when = f"in {pause:.0f} s" if pause > LONG else "follows"
                on_text(Draft(waiting=f"{why.rstrip('.')}; attempt {attempt} of {self.attempts} {when}"))
            await self.clock.sleep(pause)
            if on_text is not None:
                on_text(Draft())

    def _pause(self, attempt: int, error: TransientError) -> float | None:
        if attempt >= self.attempts or isinstance(error, StartingError):  # it has been waited for
            return None
        if isinstance(error, RateLimitError) and error.retry_after is not None:
            return error.retry_after if error.retry_after <= self.longest else None
        full: float = min(self.longest, self.first * 2 ** (attempt - 1))
        return full * (0.5 + self.generator.random() / 2)


class RateLimit:
    """Limits the requests started in any minute; the others wait in order."""

    def __init__(self, per_minute: int, *, clock: Clock | None = None) -> None:
        self._per_minute = per_minute
        self._starts: deque[float] = deque()
        self._gate = asyncio.Lock()
        self._clock = clock or SystemClock()

    async def __call__(self, request: Request, on_text: OnText | None, ask: Ask) -> Reply:
        """Return the reply once the limit allowed the request."""
        # The lock keeps waiting requests in order.
        async with self._gate:
            while True:
                now = self._clock.now()
                while self._starts and now - self._starts[0] >= 60:
                    self._starts.popleft()
                if len(self._starts) < self._per_minute:
                    self._starts.append(now)
                    break
                await self._clock.sleep(60 - (now - self._starts[0]))
        return await ask(request, on_text)
