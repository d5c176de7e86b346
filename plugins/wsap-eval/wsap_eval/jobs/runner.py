"""Plays what is due: in this process, in worker processes, or on a cluster; and stops in good order.

Evaluations, transfer measurements and tournaments of plugins are all played by it.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from wsap_core.seams.model_errors import BudgetReachedError
from wsap_core.seams.services import CommandModels
from wsap_eval.jobs.local import play_in_workers
from wsap_eval.jobs.together import first_error_ends
from wsap_eval.jobs.work import J, Jobs, R, Work
from wsap_eval.records import EpisodeKey

if TYPE_CHECKING:
    from wsap_llm.kit import Waited

T = TypeVar("T")


class Due(Protocol[J]):
    """The jobs that are due, in the order in which they are played."""

    @property
    def missing(self) -> list[J]:
        """Those that are known so far."""

    def those(self, wanted: Callable[[J], bool]) -> Jobs[J]:
        """Return only those that satisfy `wanted`, for one of several executors."""

    def close(self) -> None:
        """Offer no further job to anyone."""


class Ended(Protocol):
    """The record of what has just ended."""

    @property
    def key(self) -> EpisodeKey:
        """Tells it from others."""

    @property
    def value(self) -> float | None:
        """Its score; None without one."""

    @property
    def seconds(self) -> float:
        """How long it took here."""


E = TypeVar("E", bound=Ended, covariant=True)
E_in = TypeVar("E_in", bound=Ended, contravariant=True)


@dataclass(frozen=True)
class Progress(Generic[E]):
    """The progress of what is played."""

    played: int
    """How many are over, including earlier ones."""
    of: int
    last: E
    left: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Game and entrant -> the number of those that are not over, as far as it is known which will be played."""
    more: str = ""
    """What else a line of progress tells."""


@dataclass(frozen=True)
class Reports(Generic[E_in]):
    """Who is told what happens while jobs are played; by default nobody."""

    progress: Callable[[Progress[E_in]], None] = lambda so_far: None
    """Called after each job."""
    stopping: Callable[[int], None] = lambda calls: None
    """Called at the first Ctrl-C with the number of calls in flight."""
    waiting: Callable[[Waited], None] = lambda waited: None
    """Called before the first job with what models are waited for; not without models."""


NOBODY = Reports[Ended]()
"""Tells nobody."""


@dataclass(frozen=True)
class Way(Generic[J]):
    """How jobs are played."""

    apart: Callable[[J], bool]
    """Whether a job may be played in another process; the others are played in this one."""
    in_flight: int = 64
    """Maximum concurrent jobs in this process; most of them wait for models."""
    workers: int = 1
    """Worker processes."""
    on: str = ""
    """The cluster instead of worker processes: "ray" or `ray://HOST:PORT`. Default: this machine."""


class Runner(Generic[J]):
    """Plays jobs in an event loop of its own, until all are over or Ctrl-C.

    The first SIGINT starts no further job or call, calls `stopping` with the number of calls in flight, and awaits
    these; the second stops at once.

    Args:
        models: those of the jobs that are played in this process, if any; closed at the end.
        stopping: see above.
    """

    def __init__(
        self, models: CommandModels | None = None, stopping: Callable[[int], None] = lambda calls: None
    ) -> None:
        self._models, self._stopping = models, stopping
        self._due: Due[J] | None = None
        self._interrupted = False

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine that calls `play`, in a new event loop, and close the models at its end.

        Raises KeyboardInterrupt if it was stopped.
        """

        async def whole() -> T:
            loop, me = asyncio.get_running_loop(), asyncio.current_task()
            assert me is not None
            draining = list[asyncio.Task[None]]()

            async def drain() -> None:
                if self._models is not None:
                    await self._models.drained()
                me.cancel()

            def interrupted() -> None:
                if self._interrupted:
                    me.cancel()
                    return
                self._interrupted = True
                if self._due is not None:
                    self._due.close()
                self._stopping(0 if self._models is None else self._models.in_flight)
                draining.append(asyncio.ensure_future(drain()))

            with suppress(ValueError, RuntimeError, NotImplementedError):  # not the main thread; Windows
                loop.add_signal_handler(signal.SIGINT, interrupted)
            try:
                return await work
            finally:
                for task in draining:
                    task.cancel()
                if self._models is not None:
                    await self._models.aclose()

        try:
            done = asyncio.run(whole())
            if self._interrupted:
                raise KeyboardInterrupt
            return done
        except (asyncio.CancelledError, BudgetReachedError):
            if not self._interrupted:
                raise
            raise KeyboardInterrupt from None

    async def play(
        self,
        due: Due[J],
        here: Callable[[J], Coroutine[Any, Any, R]],
        there: Work[J, R],
        way: Way[J],
        keep: Callable[[R], None],
    ) -> None:
        """Play jobs and pass their records to `keep`; the first error ends the others.

        Args:
            due: the jobs.
            here: plays a job in this process.
            there: plays those that are played apart.
            way: which are played where.
            keep: gets the record of each, in the order in which they end.

        Raises:
            WsapError: a limit was reached, once calls in flight have been answered; or jobs can't be played or
                recorded.
        """
        self._due = due
        if self._interrupted:
            due.close()
        number = sum(map(way.apart, due.missing))
        own, others = due.those(lambda job: not way.apart(job)), due.those(way.apart)
        if way.on:
            from wsap_eval.jobs.cluster import play_on_ray  # deferred for weight, and an extra

            far = play_on_ray(others, there, keep, where=way.on)
        else:
            far = play_in_workers(others, there, keep, workers=min(way.workers, number))

        async def work() -> None:
            async for job in own:
                try:
                    keep(await here(job))
                except BudgetReachedError:
                    own.close()
                    if self._models is not None:
                        await self._models.drained()
                    raise

        await first_error_ends([first_error_ends(work() for _ in range(way.in_flight)), far])
