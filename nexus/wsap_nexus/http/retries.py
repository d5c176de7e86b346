"""Retries of clients' requests, and which requests can be sent twice."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import httpx2


@dataclass(frozen=True)
class Retries:
    """The retry policy of seed 001, section 7.3."""

    most: int = 5
    """The maximum number of retries."""
    first: float = 0.1
    """Seconds before the first retry; doubled for each later one."""
    longest: float = 5.0
    """The maximum seconds between tries, unless the server requests more."""
    jitter: float = 0.05
    """Maximum random seconds added to or subtracted from a pause, so that clients do not synchronize."""

    def pause(self, tries: int, chance: float, after: float = 0.0) -> float:
        """Return the seconds to wait; `chance` is from 0 to 1, `after` the server's `Retry-After`."""
        wait = min(self.longest, self.first * 2.0 ** min(tries - 1, 60)) + self.jitter * (2 * chance - 1)
        return max(0.0, wait, min(after, 60.0))


UNTIL_IT_WORKS = Retries(first=1.0, longest=300.0, jitter=0.0)
"""Pauses for requests that are retried until they succeed: one second at first, up to five minutes."""


class Tries:
    """The tries of one request; a `repeatable` one can be sent twice without harm. `chance` returns numbers in 0..1."""

    def __init__(self, retries: Retries, *, repeatable: bool, chance: Callable[[], float] = random.random) -> None:
        self._retries = retries
        self._repeatable = repeatable
        self._chance = chance
        self._count = 0

    def unanswered(self, error: httpx2.TransportError) -> float | None:
        """Return the seconds to wait after a request without a response; None if it must not be sent again."""
        self._count += 1
        if self._count > self._retries.most or not (self._repeatable or never_sent(error)):
            return None
        return self._retries.pause(self._count, self._chance())

    def refused(self, *, retryable: bool, after: str = "") -> float | None:
        """Return the seconds to wait after a refusal with `Retry-After: after`; None if it must not be sent again."""
        self._count += 1
        if self._count > self._retries.most or not retryable:
            return None
        return self._retries.pause(self._count, self._chance(), float(after) if after.isdecimal() else 0.0)


def never_sent(error: httpx2.TransportError) -> bool:
    """Return whether a request certainly did not reach the server."""
    return isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)
