"""Episodes as work for other processes."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from wsap_core.errors import StorageLockedError, UsageError
from wsap_core.host import PluginHost
from wsap_core.seams.agent import Usage
from wsap_core.seams.services import runtime_services
from wsap_eval.planning.conditions import Conditions
from wsap_eval.planning.plan import Job, games_of
from wsap_eval.planning.suite import Suite
from wsap_eval.play import failed, play_episode
from wsap_eval.records import EpisodeRecord
from wsap_eval.tables.apart import BEFORE, differences
from wsap_eval.tables.metrics import warned_once

LOCKED = 10.0
"""Seconds to wait for a run locked by a worker of an earlier command that is about to end."""


@dataclass(frozen=True)
class Episodes:
    """The episodes of a suite; see `wsap_eval.jobs.work.Work`."""

    suite: Suite
    database: str
    """Path or URL; empty for one of each process, which is deleted at its end."""
    limited: bool
    """Whether only the driver may call models, because there are spending limits."""

    @contextmanager
    def opened(self) -> Iterator[Callable[[Job], Coroutine[Any, Any, EpisodeRecord]]]:
        """Yield what plays an episode here; it waits up to `LOCKED` seconds if another process still locks its run.

        It raises UsageError also if the episode would be played under other conditions here than in the driver.

        Raises WsapError if a game is unknown or the database can't be used.
        """
        host = PluginHost.discovered()
        games = games_of(self.suite, host)
        conditions = Conditions(games, host)
        with ExitStack() as stack:
            database = self.database or str(Path(stack.enter_context(tempfile.TemporaryDirectory())) / "runs.db")
            budgets = (NoSpending(),) * self.limited
            services = stack.enter_context(runtime_services(database, budgets=budgets))
            stack.enter_context(warned_once())

            async def play(job: Job) -> EpisodeRecord:
                deadline = time.monotonic() + LOCKED
                _refuse_others(job, conditions.here(job))
                while True:
                    try:
                        return await play_episode(services, games[job.key.game], job)
                    except StorageLockedError:
                        if time.monotonic() > deadline:
                            raise
                    await asyncio.sleep(0.05)

            yield play

    def lost(self, job: Job, reason: str, taken: Usage) -> EpisodeRecord:
        """Return the record of an episode with which several processes died."""
        return failed(job, reason, taken=taken)

    def elsewhere(self) -> Episodes:
        """Return the work for other machines: each process records in a database of its own unless it is a URL."""
        return self if "://" in self.database else replace(self, database="")


class NoSpending:
    """A budget that forbids model calls, since a spending limit can't be shared between processes."""

    def reserve(self, worst: Usage) -> None:
        """Raise UsageError."""
        raise UsageError(
            "An agent or game calls a language model without declaring it, so spending can't be limited across "
            "processes; add an option `model` to its spec, or use --jobs 1."
        )

    def settle(self, worst: Usage, actual: Usage) -> None:
        """Do nothing."""

    def belongs_to(self, run_id: str) -> None:
        """Do nothing."""


def _refuse_others(job: Job, here: Mapping[str, str]) -> None:
    """Raise UsageError if this process would play an episode under other conditions than those it has, if any."""
    if job.conditions and here != job.conditions:
        told = ", ".join(differences(job.conditions, here, BEFORE))
        raise UsageError(
            f"{job.key.game!r} is no longer what the command began with, or another version on this machine: {told}. "
            "Don't edit files while they are played, and install the same versions on all machines; then run the "
            "command again."
        )
