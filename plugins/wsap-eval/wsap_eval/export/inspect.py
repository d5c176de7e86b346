"""Logs of Inspect, one for each game and entrant, written by inspect-ai.

A sample is an episode: its id is the seed, its epoch the repeat. A forfeited one has its score from the table, a
failed one an error and no score.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wsap_core.errors import MissingServiceError
from wsap_core.installing import install_line
from wsap_core.seams.services import RunReader
from wsap_eval.export.transcript import Turn, transcript
from wsap_eval.planning.suite import Entrant
from wsap_eval.records import EpisodeRecord, usage_of
from wsap_eval.run import Played
from wsap_eval.tables.apart import conditions_of, is_file, packages_of
from wsap_eval.tables.rows import Row

if TYPE_CHECKING:
    from inspect_ai.event import ModelEvent
    from inspect_ai.log import EvalConfig, EvalLog, EvalSample, EvalSampleLimit, EvalScore


def write_inspect(played: Played, runs: RunReader | None, out: Path) -> list[Path]:
    """Write a log for each row of the table and return the files.

    `runs` has the prompts and replies; None leaves them out. Raises MissingServiceError if inspect-ai is not installed.
    """
    try:
        from inspect_ai.log import write_eval_log
    except ModuleNotFoundError:
        raise MissingServiceError(
            "Inspect logs need inspect-ai, which is not installed; "
            f"install it with: {install_line('wsap-eval[inspect]')}"
        ) from None
    paths = []
    for row in played.rows():
        path = out / f"{file_name(row.game)}_{file_name(row.entrant)}.eval"
        write_eval_log(_log(played, row, runs), path, format="eval")
        paths.append(path)
    return paths


def _log(played: Played, row: Row, runs: RunReader | None) -> EvalLog:
    from inspect_ai import log as api

    records = [record for record in played.records if (record.game, record.entrant) == (row.game, row.entrant)]
    entrant = played.entrant(row.entrant)
    model, entry = model_name(entrant), played.games[row.game].entry
    scored, seeds = row.scored, list(dict.fromkeys(record.seed for record in records))
    started, ended = min(record.started for record in records), max(map(_end, records))
    name = f"{played.suite.name}/{row.game}/{row.entrant}"
    spec = api.EvalSpec(
        created=started,
        eval_id=_id(name, started),
        run_id=_id(played.suite.name, played.suite.digest),
        task_id=_id(name, ""),
        task=row.game,
        task_version=played.suite.version,
        task_args={"options": dict(entry.options), "steps": entry.steps, "legal": entry.legal},
        dataset=api.EvalDataset(name=played.suite.name, samples=len(seeds), sample_ids=seeds),
        model=model,
        model_args=dict(entrant.options),
        config=_config(played, records),
        packages=_packages(records),
        tags=list(row.tags) or None,
        metadata={
            "entrant": row.entrant, "suite": played.suite.name, "suite_digest": played.suite.digest,
            "better": row.better, "outcomes": dict(row.outcomes), "trajectories": row.trajectories,
            "conditions": conditions_of(records),
        },
    )  # fmt: skip
    samples = [_sample(played, record, row, model, runs) for record in records]
    return api.EvalLog(
        status="success" if scored else "error",
        eval=spec,
        results=api.EvalResults(total_samples=len(records), completed_samples=scored, scores=_scores(row)),
        stats=api.EvalStats(started_at=started, completed_at=ended, model_usage=_usage(model, records)),
        samples=samples,
    )


def _config(played: Played, records: Sequence[EpisodeRecord]) -> EvalConfig:
    from inspect_ai.log import EvalConfig

    limits = played.suite.limit.episode
    return EvalConfig(
        epochs=max(record.repeat for record in records) + 1,
        time_limit=None if limits.seconds is None else math.ceil(limits.seconds),
        token_limit=limits.tokens,
    )


def _scores(row: Row) -> list[EvalScore]:
    from inspect_ai.log import EvalMetric, EvalScore

    figure = row.figure
    found: dict[str, tuple[int, Mapping[str, float | None]]] = {}
    if row.metric not in row.sets:
        low, high = (figure.interval.low, figure.interval.high) if figure.interval else (None, None)
        told = {"mean": figure.mean, "stderr": figure.standard_error, "interval_low": low, "interval_high": high}
        found[row.metric] = (figure.n, told)
    for name, own in row.sets.items():
        interval = own.estimate.interval
        low, high = (interval.low, interval.high) if interval else (None, None)
        found[name] = (row.scored, {"value": own.estimate.value, "interval_low": low, "interval_high": high})
    return [
        EvalScore(
            name=name, scorer=name, scored_samples=count, reducer=row.reduce if name == row.metric else None,
            metrics={key: EvalMetric(name=key, value=value) for key, value in told.items() if value is not None},
        )
        for name, (count, told) in found.items()
    ]  # fmt: skip


def _sample(played: Played, record: EpisodeRecord, row: Row, model: str, runs: RunReader | None) -> EvalSample:
    from inspect_ai.log import EvalError, EvalSample
    from inspect_ai.model import ModelOutput
    from inspect_ai.scorer import Score

    seats = {seat.seat for seat in record.own}
    turns = list(transcript(runs, record.run, seats)) if runs is not None and record.calls else []
    values = dict(record.metrics)
    if record.outcome == "forfeited":
        values.pop(row.metric, None)
        if row.worst is not None:
            values[row.metric] = row.worst
    why = record.reason or record.outcome.replace("_", " ")
    scores = {name: Score(value=value, explanation=why) for name, value in values.items()}
    failed = record.outcome == "failed"
    messages = [_message(turn) for turn in turns]
    events = list(_events(turns, messages))
    return EvalSample(
        id=record.seed,
        epoch=record.repeat + 1,
        input=f"{record.game}, seed {record.seed}",
        target="",
        messages=messages,
        events=events,
        output=events[-1].output if events else ModelOutput(model=model),
        scores=None if failed else scores,
        limit=_limit(played, record),
        error=EvalError(message=record.reason, traceback="", traceback_ansi="") if failed else None,
        metadata={
            "outcome": record.outcome,
            "reason": record.reason,
            "steps": record.steps,
            "reward": record.reward,
            "achievements": list(record.achievements),
            "trajectory": record.trajectory,
            "run": record.run,
            "conditions": dict(record.conditions),
            "tags": list(record.tags),
            "cost": record.cost,
        },
        model_usage=_usage(model, [record]),
        started_at=record.started or None,
        completed_at=_end(record) or None,
        total_time=record.seconds,
    )


def _limit(played: Played, record: EpisodeRecord) -> EvalSampleLimit | None:
    """Return the limit at which an episode was cut off; None if none was."""
    from inspect_ai.log import EvalSampleLimit

    if record.limit:
        kinds = {"seconds": "time", "tokens": "token", "cost": "cost"}
        most = played.suite.limit.episode.given()[record.limit]
        return EvalSampleLimit.model_validate({"type": kinds.get(record.limit, "custom"), "limit": most})
    steps = played.games[record.game].entry.steps
    if record.outcome == "step_limit" and steps is not None:
        return EvalSampleLimit(type="custom", limit=steps)
    return None


def _events(turns: Sequence[Turn], messages: Sequence[Any]) -> Iterator[ModelEvent]:
    """Yield an event for each call, with its new messages."""
    from inspect_ai.event import ModelEvent
    from inspect_ai.model import ChatCompletionChoice, GenerateConfig, ModelOutput

    first = 0
    for number, turn in enumerate(turns):
        if turn.model:
            output = ModelOutput(model=turn.model, choices=[ChatCompletionChoice(message=messages[number])])
            yield ModelEvent(
                model=turn.model, input=list(messages[first:number]), output=output, tools=[], tool_choice="none",
                config=GenerateConfig(), timestamp=datetime.fromtimestamp(turn.time, UTC),
            )  # fmt: skip
            first = number + 1


def _message(turn: Turn) -> Any:  # Any: the union of Inspect's messages
    from inspect_ai import model as api

    if turn.role != "assistant":
        kind = api.ChatMessageSystem if turn.role == "system" else api.ChatMessageUser
        return kind(content=turn.text)
    parts = [api.ContentReasoning(reasoning=turn.thinking), api.ContentText(text=turn.text)]
    return api.ChatMessageAssistant(content=parts if turn.thinking else turn.text, model=turn.model or None)


def _usage(model: str, records: Sequence[EpisodeRecord]) -> dict[str, Any]:
    from inspect_ai.model import ModelUsage

    if not any(record.calls for record in records):
        return {}
    usage = usage_of(records)
    told, said = usage.prompt_tokens, usage.completion_tokens
    return {model: ModelUsage(input_tokens=told, output_tokens=said, total_tokens=told + said, total_cost=usage.cost)}


def _packages(records: Sequence[EpisodeRecord]) -> dict[str, str]:
    return {
        name: version
        for record in records
        for name, version in packages_of(record.conditions).items()
        if not is_file(version)
    }


def _end(record: EpisodeRecord) -> str:
    if not record.started:
        return ""
    return (datetime.fromisoformat(record.started) + timedelta(seconds=record.seconds)).isoformat()


def model_name(entrant: Entrant) -> str:
    """Return an entrant's model as `provider/model`; for an agent without one the provider is `wsap`."""
    address = str(entrant.options.get("model") or entrant.agent)
    return address if "/" in address and not address.startswith(".") else f"wsap/{address}"


def file_name(label: str) -> str:
    """Return a label as part of a file name, with a hash if characters were removed, so that names stay distinct."""
    plain = re.sub(r"[^A-Za-z0-9.-]+", "-", label).strip("-.")[:60]
    return plain if plain == label else f"{plain}-{sha256(label.encode()).hexdigest()[:6]}".lstrip("-")


def _id(*parts: str) -> str:
    return sha256("\0".join(parts).encode()).hexdigest()[:22]
