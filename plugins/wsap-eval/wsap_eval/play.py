"""One episode, played through the runtime."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from wsap_core.errors import UsageError, WsapError
from wsap_core.seams.model_errors import BudgetReachedError
from wsap_core.seams.services import Player, Runner
from wsap_core.specs import EpisodeSummary
from wsap_core.untrusted import single_line
from wsap_eval.plan import Game, Job
from wsap_eval.records import EpisodeRecord, Outcome, SeatRecord

__all__ = ["play_episode"]


async def play_episode(runner: Runner, game: Game, job: Job) -> EpisodeRecord:
    """Play an episode, or go on with it where it was begun before, and return what it came to.

    A game or provider that fails makes it `failed`; so does nothing else.

    Raises:
        BudgetReachedError: a limit of calls, tokens or cost; it can be gone on with.
        UsageError: an entrant or game can't be played like this at all.
        StorageError: it can't be recorded.
    """
    started, begun = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic()
    players = {name: Player(e.agent, dict(e.options)) for name, e in job.seats.items()}
    try:
        summary = await runner.play(
            job.entry.game, players, seed=job.key.seed, options=dict(job.entry.options), run=job.run,
            steps=job.entry.steps,
        )  # fmt: skip
    except (BudgetReachedError, UsageError):
        raise
    except WsapError as error:
        if error.exit_code == 6:
            raise
        return _failed(job, single_line(error)[:300], started, time.monotonic() - begun)
    return record_of(game, job, summary, started, time.monotonic() - begun)


def record_of(game: Game, job: Job, summary: Mapping[str, Any], started: str, seconds: float) -> EpisodeRecord:
    """Return the record of a run's summary."""
    told = summary.get("seats") or [{**summary, "seat": next(iter(job.seats))}]
    seats = tuple(_seat(game, job, seat) for seat in told)
    own = [seat for seat in seats if job.seats[seat.seat] == job.entrant]
    metrics = {name: _mean([seat.metrics[name] for seat in own]) for name in own[0].metrics}
    decided, forced = sum(s.steps for s in own), sum(s.forced for s in own)
    outcome: Outcome = "finished" if summary["done"] else "step_limit"
    reason = ""
    if forced > job.forfeit * decided:
        outcome, reason = "forfeited", f"{forced} of {decided} decisions had to be forced"
    usage = summary["usage"]
    return EpisodeRecord(
        *(job.key.game, job.key.entrant, job.key.seed, job.key.repeat, outcome, reason),
        value=None if game.metric.of_set or outcome == "forfeited" else metrics[game.metric.name],
        metrics=metrics,
        steps=decided,
        reward=_mean([seat.reward for seat in own]),
        achievements=tuple(sorted({name for seat in own for name in seat.achievements})),
        seats=seats,
        trajectory=summary["trajectory_hash"],
        run=job.run,
        started=started,
        seconds=round(seconds, 3),
        calls=usage["calls"],
        prompt_tokens=usage["prompt_tokens"],
        completion_tokens=usage["completion_tokens"],
        cost=usage["cost"],
    )


def _seat(game: Game, job: Job, told: Mapping[str, Any]) -> SeatRecord:
    name, names = told["seat"], tuple(sorted(told["achievements"]))
    played = EpisodeSummary(job.key.seed, told["steps"], told["reward"], names, told["done"], name)
    metrics = {metric.name: metric.of([played]) for metric in game.metrics if not metric.of_set}
    decisions = told["decisions"]
    return SeatRecord(
        *(name, job.seats[name].name, told["steps"], told["reward"], names, told["done"]),
        *(decisions["forced"], decisions["repaired"], metrics),
    )


def _failed(job: Job, reason: str, started: str, seconds: float) -> EpisodeRecord:
    key = job.key
    return EpisodeRecord(
        key.game, key.entrant, key.seed, key.repeat, "failed", reason, None, {}, 0, 0.0, (), (), "",
        job.run, started, round(seconds, 3),
    )  # fmt: skip


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
