"""An evaluation from its first missing episode to its last."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from wsap_core.host import PluginHost
from wsap_core.seams.model import Price, SpendingLimit
from wsap_core.seams.services import Runner, runtime_services
from wsap_eval.plan import Game, Job, games_of, jobs_of
from wsap_eval.play import play_episode
from wsap_eval.records import EpisodeRecord
from wsap_eval.results import Results
from wsap_eval.suite import Entrant, Suite

__all__ = ["Evaluation", "Progress", "evaluate"]


@dataclass(frozen=True)
class Progress:
    """How far an evaluation is."""

    played: int
    """Episodes that are done, those of earlier times included."""
    of: int
    last: EpisodeRecord


@dataclass(frozen=True)
class Evaluation:
    """What is played, and how far."""

    suite: Suite
    entrants: tuple[Entrant, ...]
    database: str | None = None
    """Path or URL; a file in the results' folder when None."""
    budgets: Sequence[SpendingLimit] = ()
    prices: Mapping[str, Price] | None = None
    in_flight: int = 8
    """Episodes that are played at once in one process."""


def evaluate(
    evaluation: Evaluation, folder: Path, *, progress: Callable[[Progress], None] = lambda so_far: None
) -> list[EpisodeRecord]:
    """Play the episodes that are missing, failed ones included, and return all.

    Raises:
        UsageError: the folder holds something else, or something can't be played like this.
        WsapError: a limit was reached, or the results can't be written; what was played is kept.
    """
    host = PluginHost.discovered()
    games = games_of(evaluation.suite, host)
    jobs = list(jobs_of(evaluation.suite, games, evaluation.entrants))
    with Results(folder, evaluation.suite) as results:
        missing = [job for job in jobs if (r := results.episodes.get(job.key)) is None or r.outcome == "failed"]
        played = len(jobs) - len(missing)

        def keep(record: EpisodeRecord) -> None:
            nonlocal played
            played += 1
            results.add(record)
            progress(Progress(played, len(jobs), record))

        database = evaluation.database or results.database
        with runtime_services(database, budgets=evaluation.budgets, prices=evaluation.prices) as services:
            models = services.require("models")

            async def whole() -> None:
                try:
                    await play_side_by_side(
                        services.require("runner"), games, iter(missing), keep, evaluation.in_flight
                    )
                finally:
                    await models.aclose()

            asyncio.run(whole())
        return [results.episodes[job.key] for job in jobs if job.key in results.episodes]


async def play_side_by_side(
    runner: Runner, games: Mapping[str, Game], jobs: Iterator[Job], keep: Callable[[EpisodeRecord], None], most: int
) -> None:
    """Play episodes in one event loop, as many at once as are allowed; the first error ends all.

    Raises:
        WsapError: a limit was reached, or nothing can be recorded.
    """

    async def work() -> None:
        for job in jobs:
            keep(await play_episode(runner, games[job.key.game], job))

    tasks = [asyncio.create_task(work()) for _ in range(most)]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError, Exception):
                await task
