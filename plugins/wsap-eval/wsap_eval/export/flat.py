"""Table rows and episodes as flat columns, for CSV, JSON Lines and data frames."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from wsap_core.textfile import written_to
from wsap_eval.records import OUTCOMES, EpisodeRecord
from wsap_eval.stats import Interval
from wsap_eval.tables.rows import Row, Standing

Flat = Mapping[str, str | int | float | None]
"""Column -> value."""
_RISKY = ("=", "+", "-", "@", "\t", "\r")


def flat_row(row: Row) -> Flat:
    """Return a row of the table as columns."""
    figure, paired, share = row.figure, row.difference, row.normalised
    own = row.sets.get(row.metric)
    interval = row.interval
    difference: dict[str, str | int | float | None] = {
        "difference": paired.difference if paired else None,
        **_bounds("difference", paired.interval if paired else None),
        "difference_method": paired.interval.method if paired and paired.interval else None,
        "p": paired.p_value if paired else None,
        "p_adjusted": row.p_adjusted,
        "verdict": paired.verdict if paired else None,
        "common_seeds": paired.seeds if paired else None,
        "seeds_to_settle": paired.seeds_to_settle if paired else None,
        "not_compared": row.apart or None,
    }
    if own and own.difference:
        interval_ = own.difference.interval
        difference |= {"difference": own.difference.value, **_bounds("difference", interval_)}
        difference["difference_method"] = interval_.method if interval_ else None
        difference["common_seeds"] = own.difference.seeds
    return {
        "game": row.game,
        "entrant": row.entrant,
        "metric": row.metric,
        "reduce": row.reduce,
        "better": row.better,
        "score": row.score,
        **_bounds("score", interval),
        "level": interval.level if interval else None,
        "method": interval.method if interval else None,
        "why_no_interval": row.why_no_interval or None,
        "standard_error": None if own else figure.standard_error,
        "seeds": own.estimate.seeds if own else figure.clusters,
        "values": figure.n,
        "episodes": row.episodes,
        **{name: row.outcomes.get(name, 0) for name in OUTCOMES},
        "forfeits_count_as": row.worst,
        "score_without_forfeits": row.played,
        "trajectories": row.trajectories,
        "between_sd": figure.between_sd,
        "within_sd": figure.within_sd,
        **difference,
        "normalised": share.value if share else None,
        **_bounds("normalised", share.interval if share else None),
        "calls": row.calls,
        "tokens": row.tokens,
        "cost": row.cost,
        "score_per_dollar": row.score_per_dollar,
        "seconds": row.seconds,
        "asked_again": row.asked_again,
        "unanswered": row.unanswered,
        "tags": " ".join(row.tags) or None,
        **{
            key: bound
            for name, found in row.sets.items()
            for key, bound in {
                f"set.{name}": found.estimate.value,
                **_bounds(f"set.{name}", found.estimate.interval),
            }.items()
        },
    }


def flat_episode(record: EpisodeRecord) -> Flat:
    """Return an episode as columns; its metrics are `metric.NAME`, its conditions `condition.NAME`."""
    return {
        "game": record.game,
        "entrant": record.entrant,
        "seed": record.seed,
        "repeat": record.repeat,
        "outcome": record.outcome,
        "reason": record.reason or None,
        "limit": record.limit or None,
        "value": record.value,
        **{f"metric.{name}": value for name, value in record.metrics.items()},
        "steps": record.steps,
        "reward": record.reward,
        "achievements": " ".join(record.achievements),
        "forced": sum(s.forced for s in record.own),
        "repaired": sum(s.repaired for s in record.own),
        "truncated": any(s.truncated for s in record.own),
        "trajectory": record.trajectory or None,
        "run": record.run,
        "started": record.started,
        "seconds": record.seconds,
        "calls": record.calls,
        "prompt_tokens": record.prompt_tokens,
        "completion_tokens": record.completion_tokens,
        "cost": record.cost,
        "asked_again": record.asked_again,
        "unanswered": record.unanswered,
        "tags": " ".join(record.tags) or None,
        **{f"condition.{name}": value for name, value in record.conditions.items()},
    }


def flat_standing(standing: Standing) -> Flat:
    """Return a standing as columns."""
    rating = standing.rating
    mu, sigma = rating.openskill or (None, None)
    return {
        "game": standing.game,
        "entrant": rating.entrant,
        "games": rating.games,
        "mean_score": standing.mean,
        "elo": rating.elo,
        **_bounds("elo", rating.interval),
        "openskill_mu": mu,
        "openskill_sigma": sigma,
    }


def to_csv(rows: Sequence[Flat], head: Sequence[str] = ()) -> str:
    """Return CSV with a header; text that a spreadsheet would interpret as a formula gets an apostrophe in front.

    The columns are `head`, or all those of the rows.
    """
    out = io.StringIO()
    names = head or list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _cell(row.get(name)) for name in names} for row in rows)
    return out.getvalue()


def to_jsonl(rows: Iterable[Flat]) -> str:
    """Return JSON Lines."""
    return "".join(json.dumps(dict(row), ensure_ascii=False) + "\n" for row in rows)


def write_flat(
    rows: Sequence[Row],
    records: Sequence[EpisodeRecord],
    standings: Sequence[Standing],
    out: Path,
    kind: Literal["csv", "jsonl"],
) -> list[Path]:
    """Write the table, the episodes, and the standings of round robins if there are any.

    Episodes in JSON Lines are whole records, which a results folder already has. Raises UsageError if a file can't be
    written.
    """
    form = to_csv if kind == "csv" else to_jsonl
    texts = {f"table.{kind}": form([flat_row(row) for row in rows])}
    if standings:
        texts[f"standings.{kind}"] = form([flat_standing(standing) for standing in standings])
    if kind == "csv":
        texts["episodes.csv"] = to_csv([flat_episode(record) for record in records])
    elif not (out / "suite.json").exists():
        texts["episodes.jsonl"] = "".join(record.to_json() + "\n" for record in records)
    for name, text in texts.items():
        _write(out / name, text)
    return [out / name for name in texts]


def write_table(rows: Sequence[Row], folder: Path) -> None:
    """Write `table.csv` to a results folder. Raises UsageError if it can't be written."""
    _write(folder / "table.csv", to_csv([flat_row(row) for row in rows]))


def _write(path: Path, text: str) -> None:
    with written_to(path) as file:
        file.write(text)


def _bounds(name: str, interval: Interval | None) -> dict[str, float | None]:
    return {f"{name}_low": interval.low if interval else None, f"{name}_high": interval.high if interval else None}


def _cell(value: str | int | float | None) -> str | int | float | None:
    return f"'{value}" if isinstance(value, str) and value.startswith(_RISKY) else value
