"""Trying again."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from wsap_core.seams.clock import Clock, SystemClock
from wsap_core.seams.model import Backend, Chunk, Request
from wsap_core.seams.model_errors import RateLimitError, TransientError
from wsap_llm.wrappers.base import Wrapper


class Retrying(Wrapper):
    """Tries again after errors that may be over in a moment; everything else fails at once.

    A rate limit with a stated wait is waited for; otherwise the pause doubles from `first` to
    `longest` seconds, each drawn from the upper half of its range, so that many callers don't
    come back together.

    Args:
        inner: the backend.
        attempts: calls in all, the first included.
        first: seconds before the second attempt.
        longest: most seconds of any pause; a server that asks for more ends the attempts.
        hold: keep chunks back until the stream has ended, so that one that breaks off can be
            tried again; without it, what was passed on can't be taken back and the error is raised.
        clock: what waits.
        generator: where the jitter comes from.
        on_retry: told the attempt that failed, from 1, and why.
    """

    def __init__(
        self,
        inner: Backend,
        *,
        attempts: int = 5,
        first: float = 0.5,
        longest: float = 60.0,
        hold: bool = True,
        clock: Clock | None = None,
        generator: random.Random | None = None,
        on_retry: Callable[[int, TransientError], None] | None = None,
    ) -> None:
        super().__init__(inner)
        self._attempts = attempts
        self._first = first
        self._longest = longest
        self._hold = hold
        self._clock = clock or SystemClock()
        self._random = generator or random.Random()
        self._on_retry = on_retry

    async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        """Give the reply of the first attempt that comes through.

        Raises:
            BackendError: the last attempt's error, or one that trying again can't help.
        """
        for attempt in range(1, self._attempts + 1):
            held: list[Chunk] = []
            passed = False
            try:
                async with aclosing(self.inner.stream(request)) as chunks:
                    async for chunk in chunks:
                        if self._hold:
                            held.append(chunk)
                        else:
                            passed = True
                            yield chunk
            except TransientError as error:
                pause = self._pause(attempt, error)
                if passed or pause is None:
                    raise
                if self._on_retry is not None:
                    self._on_retry(attempt, error)
                await self._clock.sleep(pause)
                continue
            for chunk in held:
                yield chunk
            return

    def _pause(self, attempt: int, error: TransientError) -> float | None:
        """Return how long to wait, or None if it is time to give up."""
        if attempt >= self._attempts:
            return None
        if isinstance(error, RateLimitError) and error.retry_after is not None:
            return error.retry_after if error.retry_after <= self._longest else None
        full: float = min(self._longest, self._first * 2 ** (attempt - 1))
        return full * (0.5 + self._random.random() / 2)
