"""Plays one episode through the runtime."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from wsap_core.errors import AgentError, StorageError, UnknownNameError, UsageError, WorldError, WsapError
from wsap_core.loading import names_model
from wsap_core.seams.agent import NO_USAGE, Usage
from wsap_core.seams.clock import Clock
from wsap_core.seams.model_errors import BackendError, BudgetReachedError
from wsap_core.seams.services import Player, RunReader, Services
from wsap_core.specs import EpisodeSummary
from wsap_core.untrusted import error_line
from wsap_eval.memories.kept import preparing
from wsap_eval.planning.limiting import Limiter
from wsap_eval.planning.plan import Game, Job
from wsap_eval.planning.suite import Entrant, GameEntry
from wsap_eval.records import FORCED, EpisodeRecord, Fault, Outcome, SeatRecord
from wsap_eval.tables.metrics import MetricError, value_of_metric


async def play_episode(services: Services, game: Game, job: Job, *, clock: Clock | None = None) -> EpisodeRecord:
    """Play or resume an episode, and return its record; `clock` is that of its limit of seconds.

    An error of the entrant's own agent makes it `forfeited`; one of the game, a provider or an opponent `failed`.

    Raises:
        BudgetReachedError: a limit was reached; the episode can be resumed.
        UsageError: the entrant or game is invalid.
        StorageError: it can't be recorded.
    """
    started, begun = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic()
    players = {name: Player(e.agent, _options(job.entry, e)) for name, e in job.seats.items()}
    limiter = Limiter(job.limits, clock)
    try:
        with limiter:
            summary = await services.require("runner").play(
                job.entry.game, players, seed=job.key.seed, options=dict(job.entry.options), run=job.run,
                steps=job.entry.steps, prepare=None if job.brought is None else preparing(job.brought),
                before=limiter.look if job.limits.given() else None,
            )  # fmt: skip
    except (BudgetReachedError, UsageError, StorageError):
        raise
    except WsapError as error:
        told, runs = (error_line(error), started, time.monotonic() - begun), services.require("runs")
        if isinstance(error, AgentError) and error.seat in job.own:
            return broken_off(runs, game, job, *told)
        return failed(job, *told, taken=_taken(runs, job.run), fault=fault_of(error))
    runs = services.require("runs")
    record = record_of(game, job, summary, started, time.monotonic() - begun)
    if limiter.reached and record.outcome != "finished":
        record = _limited(runs, record, limiter)
    if not record.calls and all(seat["model"] is None for seat in summary["seats"]):
        return replace(record, conditions=_conditions(None, job))
    again = asked_again(runs, job.run) + summary.get("world", {}).get("asked_again", 0)
    return replace(record, asked_again=again, conditions=_conditions(runs, job))


def _options(entry: GameEntry, entrant: Entrant) -> dict[str, Any]:
    """Return an agent's options, for a model including those on how it is told about the game."""
    told = {"legal": entry.legal if entry.legal != "bound" else "", "skin": entry.skin}
    if not (names_model(entrant.agent) or entrant.agent == "llm"):
        told = {}
    return dict(entrant.options) | {name: value for name, value in told.items() if value}


def record_of(game: Game, job: Job, summary: Mapping[str, Any], started: str, seconds: float) -> EpisodeRecord:
    """Return the record of a run's summary; it failed if the metric that is the score has no finite value."""
    without: dict[str, str] = {}
    seats = tuple(_seat(game, job, seat, without) for seat in summary["seats"])
    own = [seat for seat in seats if seat.own]
    named = [name for name in own[0].metrics if all(name in seat.metrics for seat in own)]
    metrics = {name: _mean([seat.metrics[name] for seat in own]) for name in named}
    decided, forced = sum(s.steps for s in own), sum(s.forced for s in own)
    outcome: Outcome = "finished" if summary["done"] else "step_limit"
    reason = ""
    fault: Fault = ""
    if forced > job.forfeit * decided:
        outcome, reason = "forfeited", f"{forced} of {decided} {FORCED}"
    elif not game.metric.of_set and game.metric.name not in metrics:
        outcome, reason, fault = "failed", without[game.metric.name], "metric"
    usage = summary["usage"]
    return EpisodeRecord(
        *(job.key.game, job.key.entrant, job.key.seed, job.key.repeat, outcome, reason),
        value=None if game.metric.of_set or outcome in ("forfeited", "failed") else metrics[game.metric.name],
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
        cost=None if usage["cost"] is None else float(usage["cost"]),  # may be an int, like a reward
        fault=fault,
    )


def _seat(game: Game, job: Job, told: Mapping[str, Any], without: dict[str, str]) -> SeatRecord:
    """Return the record of a seat, without the metrics that have no value there; `without` gets them and the reason."""
    name, names = told["seat"], tuple(sorted(told["achievements"]))
    reward = float(told["reward"])  # may be an int in a summary that was read from the log
    decisions, truncated = told["decisions"], told.get("truncated", False)
    played = EpisodeSummary(
        *(job.key.seed, told["steps"], reward, names, told["done"], name),
        forced=decisions["forced"], repaired=decisions["repaired"], truncated=truncated,
    )  # fmt: skip
    metrics = {}
    for metric in game.metrics:
        if not metric.of_set:
            try:
                metrics[metric.name] = value_of_metric(metric, [played], game.entry.game)
            except MetricError as error:
                without[metric.name] = str(error)
    return SeatRecord(
        *(name, job.seats[name].name, told["steps"], reward, names, told["done"]),
        *(decisions["forced"], decisions["repaired"], metrics, name in job.own, truncated),
        usage=_of_seat(told["usage"]) if game.entrants else None,
    )


def _of_seat(usage: Mapping[str, Any]) -> tuple[int, int, int, float | None]:
    cost = None if usage["cost"] is None else float(usage["cost"])
    return usage["calls"], usage["prompt_tokens"], usage["completion_tokens"], cost


def asked_again(runs: RunReader, run: str) -> int:
    """Return how many calls of a run's seats were pending at an interruption and were repeated."""
    sent = [key for event in runs.events(run, "asked") if event["seat"] is not None for key in event["body"]["keys"]]
    if len(sent) == len(set(sent)):
        return 0
    open_, again = set[tuple[str, str]](), 0
    for event in runs.events(run, "asked", "call"):
        seat, body = event["seat"], event["body"]
        if event["kind"] == "asked" and seat is not None:
            again += sum((seat, key) in open_ for key in body["keys"])
            open_ |= {(seat, key) for key in body["keys"]}
        open_.discard((seat, body.get("key") or body.get("failed")))
    return again


def _limited(runs: RunReader, record: EpisodeRecord, limiter: Limiter) -> EpisodeRecord:
    """Return the record of an episode that ended at a limit, with what models took in a decision that was dropped."""
    told = f"ended at the limit of {limiter.limit}"
    kept = record.outcome in ("forfeited", "failed")
    taken = sum((Usage(**e["body"]["reply"]["finish"]["usage"]) for e in runs.events(record.run, "call")
                 if "reply" in e["body"]), NO_USAGE)  # fmt: skip
    return replace(
        record,
        outcome=record.outcome if kept else "limit",
        reason=f"{record.reason}; {told}" if kept else told,
        limit=limiter.reached,
        calls=taken.calls,
        prompt_tokens=taken.prompt_tokens,
        completion_tokens=taken.completion_tokens,
        cost=taken.cost,
        unanswered=unanswered(runs, record.run),
    )


def unanswered(runs: RunReader, run: str) -> int:
    """Return how many calls of a run were sent and have no recorded reply."""
    open_ = set[tuple[str | None, str]]()
    for event in runs.events(run, "asked", "call"):
        seat, body = event["seat"], event["body"]
        if event["kind"] == "asked":
            open_ |= {(seat, key) for key in body["keys"]}
        open_.discard((seat, body.get("key") or body.get("failed")))
    return len(open_)


def _conditions(runs: RunReader | None, job: Job) -> dict[str, str]:
    """Return the conditions of an episode: those known before, and of models from its run; None if it asked none."""
    asked = [] if runs is None else [event["body"] for event in runs.events(job.run, "model")]
    told = _options(job.entry, job.entrant)
    found = {
        "legal": str(told.get("legal", job.entry.legal)),
        "skin": str(told.get("skin", "")),
        "models": ", ".join(dict.fromkeys(str(body["model"]) for body in asked)),
        "prompts": ", ".join(dict.fromkeys(str(body["prompts"]) for body in asked)),
        "abilities": ", ".join(dict.fromkeys(json.dumps(body["abilities"], sort_keys=True) for body in asked)),
        **(_first_call(runs, job) if runs is not None and asked else {}),
        **job.conditions,
    }
    return {name: value for name, value in found.items() if value}


def _first_call(runs: RunReader, job: Job) -> Mapping[str, str]:
    """Return the first decision's sampling, without its derived seed, and the model name reported by the server."""
    calls = (event["body"] for event in runs.events(job.run, "call"))
    call = next((call for call in calls if call["purpose"] == "decide"), None)
    if call is None:
        return {}
    given = (call["sampling"] or {}).items()
    sampling = ", ".join(f"{name} {value}" for name, value in given if value is not None and name != "seed")
    return {"sampling": sampling, "served": call["reply"]["finish"].get("served", "")}


def failed(
    job: Job,
    reason: str,
    started: str = "",
    seconds: float = 0.0,
    taken: Usage = NO_USAGE,
    fault: Fault = "",
) -> EpisodeRecord:
    """Return the record of an episode that failed in the game or provider, with its model usage."""
    key = job.key
    return EpisodeRecord(
        key.game, key.entrant, key.seed, key.repeat, "failed", reason, None, {}, 0, 0.0, (), (), "",
        job.run, started, round(seconds, 3), taken.calls, taken.prompt_tokens, taken.completion_tokens, taken.cost,
        fault=fault, conditions=dict(job.conditions),
    )  # fmt: skip


def fault_of(error: WsapError) -> Fault:
    """Return where an episode failed that ended with an error, other than one of the entrant's own agent."""
    if isinstance(error, BackendError):
        return "provider"
    if isinstance(error, AgentError):
        return "opponent"
    return "game" if isinstance(error, WorldError) else ""


def broken_off(runs: RunReader, game: Game, job: Job, reason: str, started: str, seconds: float) -> EpisodeRecord:
    """Return the record of an episode that ended with an error of the entrant's own agent."""
    summary: Mapping[str, Any] | None = None
    found = None
    with suppress(UnknownNameError):
        summary = runs.about(job.run)["summary"]
    if summary and summary.get("seats"):
        found = record_of(game, job, summary, started, seconds)
    if found is None:
        seats = tuple(
            SeatRecord(name, who.name, 0, 0.0, (), False, 0, 0, {}, name in job.own) for name, who in job.seats.items()
        )
        return replace(failed(job, reason, started, seconds), outcome="forfeited", seats=seats)
    found = replace(found, outcome="forfeited", reason=reason, fault="", value=None)
    return replace(found, conditions=_conditions(runs, job))


def _taken(runs: RunReader, run: str) -> Usage:
    """Return what models took in a run that was broken off; nothing if it failed before it was recorded."""
    with suppress(UnknownNameError):
        if usage := (runs.about(run)["summary"] or {}).get("usage"):
            return Usage(usage["calls"], usage["prompt_tokens"], usage["completion_tokens"], usage["cost"])
    return NO_USAGE


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
