"""Results in the format of Every Eval Ever 0.3: an aggregate and a file of episodes for each entrant.

The schema is that of the package `every-eval-ever` 0.3.0, `schemas/eval.schema.json` and
`schemas/instance_level_eval.schema.json`.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from datetime import datetime
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import Any

from wsap_core.textfile import written_to
from wsap_eval.export.inspect import file_name, model_name
from wsap_eval.planning.suite import Entrant
from wsap_eval.records import EpisodeRecord, value_of, worst_of
from wsap_eval.run import Played
from wsap_eval.stats import Interval
from wsap_eval.tables.apart import conditions_of
from wsap_eval.tables.rows import Row

VERSION = "0.3.0"
# Any, below: JSON.


def write_every(played: Played, out: Path) -> list[Path]:
    """Write `data/SUITE/DEVELOPER/MODEL/UUID.json` and `UUID_samples.jsonl` for each entrant, and return the files.

    Raises UsageError if they can't be written.
    """
    rows: dict[str, list[Row]] = {}
    for row in played.rows():
        if row.score is not None:
            rows.setdefault(row.entrant, []).append(row)
    paths = []
    for label, own in rows.items():
        valued = {row.game for row in own}
        records = [
            record
            for record in played.records
            if record.entrant == label and record.outcome != "failed" and record.game in valued
        ]
        model = model_name(played.entrant(label))
        developer, _, name = model.partition("/")
        parts = ("data", file_name(played.suite.name), file_name(developer), file_name(name))
        folder = out.joinpath(*parts)
        folder.mkdir(parents=True, exist_ok=True)
        digest = sha256(f"{played.suite.digest}{label}{[r.trajectory for r in records]}".encode()).digest()
        number = str(uuid.UUID(bytes=digest[:16], version=4))
        when = str(int(max(datetime.fromisoformat(record.started) for record in records).timestamp()))
        evaluation = f"{played.suite.name}/{model}/{when}"
        instances = [
            _instance(played, record, evaluation, model, own)
            for record in records
            if value_of(record, worst_of(metric := played.games[record.game].metric)) is not None or metric.of_set
        ]
        lines = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in instances)
        samples = "/".join((*parts, f"{number}_samples.jsonl"))
        whole = {
            **_about(played.entrant(label), played.suite.name, label, model, evaluation, when),
            "evaluation_results": [_result(played, row, records) for row in own if row.score is not None],
            "detailed_evaluation_results": {
                "format": "jsonl",
                "file_path": samples,
                "total_rows": len(instances),
                "hash_algorithm": "sha256",
                "checksum": sha256(lines.encode()).hexdigest(),
            },
        }
        for path, text in (
            (folder / f"{number}.json", json.dumps(whole, indent=2, ensure_ascii=False) + "\n"),
            (out / samples, lines),
        ):
            with written_to(path) as file:
                file.write(text)
            paths.append(path)
    return paths


def _about(entrant: Entrant, suite: str, label: str, model: str, evaluation: str, when: str) -> dict[str, Any]:
    return {
        "schema_version": VERSION,
        "evaluation_id": evaluation,
        "retrieved_timestamp": when,
        "source_metadata": {
            "source_name": f"wsap eval: {suite}",
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
        },
        "eval_library": {"name": "wsap-eval", "version": metadata.version("wsap-eval")},
        "model_info": {
            "name": label,
            "id": model,
            "inference_platform": model.partition("/")[0],
            "additional_details": {
                "deployment_type": "unknown",
                "model_availability": "unknown",
                **{f"option.{key}": str(value) for key, value in entrant.options.items() if "key" not in key},
            },
        },
    }


def _result(played: Played, row: Row, records: Sequence[EpisodeRecord]) -> dict[str, Any]:
    game = played.games[row.game]
    own, interval, metric = row.metric in row.sets, row.interval, game.reduced_metric
    seeds = list(dict.fromkeys(record.seed for record in records if record.game == row.game))
    conditions = conditions_of(record for record in records if record.game == row.game)
    return {
        "evaluation_result_id": f"{row.game}.{row.metric}",
        "evaluation_name": row.game,
        "source_data": {
            "dataset_name": row.game,
            "source_type": "other",
            "additional_details": {
                "suite": played.suite.name,
                "suite_digest": played.suite.digest,
                "steps": str(game.entry.steps),
                **({"tags": " ".join(row.tags)} if row.tags else {}),
                **{f"limit.episode.{kind}": f"{most:g}" for kind, most in played.suite.limit.episode.given().items()},
                "seeds_sha256": sha256(json.dumps(seeds).encode()).hexdigest(),
                **conditions,
            },
        },
        "metric_config": {
            "metric_id": f"{row.game}.{row.metric}",
            "metric_name": row.metric if row.reduce == "mean" else f"{row.metric}, {row.reduce}",
            "evaluation_description": game.metric.summary,
            "lower_is_better": metric.better == "lower",
            "score_type": "continuous",
            "min_score": "-Infinity" if metric.low is None else metric.low,
            "max_score": "Infinity" if metric.high is None else metric.high,
        },
        "score_details": {
            "score": row.score,
            "details": {f"episodes_{name}": str(count) for name, count in row.outcomes.items()},
            "uncertainty": {
                "num_samples": row.scored,
                **({"standard_error": {"value": error}} if not own and (error := row.figure.standard_error) else {}),
                **({"confidence_interval": _interval(interval)} if interval else {}),
            },
        },
        "generation_config": {"additional_details": {"legal_actions": game.entry.legal}},
    }


def _interval(interval: Interval) -> dict[str, Any]:
    return {
        "lower": interval.low,
        "upper": interval.high,
        "confidence_level": interval.level,
        "method": interval.method,
    }


def _instance(
    played: Played, record: EpisodeRecord, evaluation: str, model: str, rows: Sequence[Row]
) -> dict[str, Any]:
    metric = played.games[record.game].metric
    row = next(row for row in rows if row.game == record.game)
    value = value_of(record, row.worst)
    told, said = record.prompt_tokens, record.completion_tokens
    return {
        "schema_version": VERSION,
        "evaluation_id": evaluation,
        "model_id": model,
        "evaluation_name": row.game,
        "evaluation_result_id": f"{row.game}.{row.metric}",
        "sample_id": f"{record.seed}" + (f".{record.repeat}" if record.repeat else ""),
        "interaction_type": "agentic",
        "input": {"raw": f"{row.game}, seed {record.seed}", "reference": []},
        "output": None,
        "messages": [],
        "answer_attribution": [],
        "evaluation": {
            "score": record.reward if value is None else value,
            "is_correct": value is not None and value == metric.best,
            "num_turns": record.steps,
        },
        "token_usage": {"input_tokens": told, "output_tokens": said, "total_tokens": told + said},
        "performance": {"latency_ms": round(record.seconds * 1000, 1)},
        "error": record.reason or None,
        "metadata": dict(_details(record)),
    }


def _details(record: EpisodeRecord) -> Iterator[tuple[str, str]]:
    yield from (("outcome", record.outcome), ("trajectory", record.trajectory), ("run", record.run))
    yield from [("tags", " ".join(record.tags))] * bool(record.tags)
    yield from [("limit", record.limit)] * bool(record.limit)
    yield from ((f"metric.{name}", repr(value)) for name, value in record.metrics.items())
    if record.value is None and record.outcome != "forfeited":
        yield "score", "the reward, since the figure is one of a set of episodes"
