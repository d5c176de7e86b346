"""Limits of an episode, at which it ends with what it has."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from wsap_core.errors import UsageError
from wsap_core.seams.agent import Usage
from wsap_core.seams.clock import Clock, SystemClock
from wsap_core.seams.services import InPlay
from wsap_eval.planning.suite import EpisodeLimits


class Limiter:
    """Ends a run at the limits of an episode; a context manager around its play, in the same event loop.

    Tokens, calls and cost are those of the whole episode and are looked at before each decision, so that the last one
    may pass a limit. Seconds end it at once, even during a decision. What was taken before the run was resumed counts.
    """

    def __init__(self, limits: EpisodeLimits, clock: Clock | None = None) -> None:
        self._limits, self._clock = limits, clock or SystemClock()
        self._timer: asyncio.Task[None] | None = None
        self._ends: float | None = None
        self.reached = ""
        """The kind of the limit that ended the run; empty if none did."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()

    @property
    def limit(self) -> str:
        """The limit that ended the run, in words; empty if none did."""
        return self._limits.told(self.reached) if self.reached else ""

    def look(self, run: InPlay) -> None:
        """Stop a run that has reached a limit. Raises UsageError if its cost is limited and unknown."""
        if self.reached:
            return
        if self._limits.seconds is not None:
            if self._ends is None:
                self._ends = self._clock.now() + self._limits.seconds - run.seconds
                self._timer = asyncio.ensure_future(self._end_in_time(run, self._ends - self._clock.now()))
            if self._clock.now() >= self._ends:
                self._stop(run, "seconds")
                return
        if kind := self._used_up(run.usage):
            self._stop(run, kind)

    def _used_up(self, usage: Usage) -> str:
        limits = self._limits
        if limits.cost is not None and usage.cost is None:
            raise UsageError(
                f"A limit of ${limits.cost:g} per episode can't be enforced: a model's price is unknown; set a limit "
                "in tokens or calls, or state the price."
            )
        taken = {
            "tokens": usage.prompt_tokens + usage.completion_tokens,
            "calls": usage.calls,
            "cost": usage.cost or 0.0,
        }
        return next((kind for kind, most in limits.given().items() if kind in taken and taken[kind] >= most), "")

    async def _end_in_time(self, run: InPlay, left: float) -> None:
        await self._clock.sleep(max(0.0, left))
        if not self.reached:
            self._stop(run, "seconds")

    def _stop(self, run: InPlay, kind: str) -> None:
        self.reached = kind
        run.stop()
