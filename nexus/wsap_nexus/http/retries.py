"""How clients try a request again: the policy of seed 001, section 7.3, and what may be sent twice."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import httpx2


@dataclass(frozen=True)
class Retries:
    """How a request is tried again: the policy of seed 001, section 7.3."""

    most: int = 5
    """Tries after the first."""
    first: float = 0.1
    """Seconds before the second try; each later one waits twice as long."""
    longest: float = 5.0
    """Seconds between two tries at most, unless the server says that it takes longer."""
    jitter: float = 0.05
    """Seconds that a wait is made longer or shorter by, at random, so that clients don't come in step."""

    def pause(self, tries: int, chance: float, after: float = 0.0) -> float:
        """Return how many seconds to wait. `chance`: from 0 to 1; `after`: what the server said in `Retry-After`."""
        wait = min(self.longest, self.first * 2.0 ** min(tries - 1, 60)) + self.jitter * (2 * chance - 1)
        return max(0.0, wait, min(after, 60.0))


UNTIL_IT_WORKS = Retries(first=1.0, longest=300.0, jitter=0.0)
"""How what must not be given up is tried again: after one second first, and after five minutes at most."""


class Tries:
    """The tries of one request.

    Args:
        repeatable: whether it does no harm to send it twice.
        chance: gives numbers from 0 to 1.
    """

    def __init__(self, retries: Retries, *, repeatable: bool, chance: Callable[[], float] = random.random) -> None:
        self._retries = retries
        self._repeatable = repeatable
        self._chance = chance
        self._count = 0

    def unanswered(self, error: httpx2.TransportError) -> float | None:
        """Return the seconds to wait after no answer came; None if it must not be sent again."""
        self._count += 1
        if self._count > self._retries.most or not (self._repeatable or never_sent(error)):
            return None
        return self._retries.pause(self._count, self._chance())

    def refused(self, *, retryable: bool, after: str = "") -> float | None:
        """Return the seconds to wait after the server refused; None if it must not be sent again.

        Args:
            retryable: whether the same request can succeed later.
            after: the header `Retry-After`.
        """
        self._count += 1
        if self._count > self._retries.most or not retryable:
            return None
        return self._retries.pause(self._count, self._chance(), float(after) if after.isdigit() else 0.0)


def never_sent(error: httpx2.TransportError) -> bool:
    """Return whether a request certainly did not reach the server."""
    return isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)
