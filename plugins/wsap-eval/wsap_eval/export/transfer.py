"""A measurement of transfer as flat columns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from wsap_core.textfile import written_to
from wsap_eval.export.flat import Flat, to_csv, to_jsonl
from wsap_eval.transfer.run import Measured


def write_verdicts(measured: Measured, out: Path, kind: Literal["csv", "jsonl"]) -> Path:
    """Write `transfer.csv` or `transfer.jsonl`, a line for each difference, and return its path."""
    rows, path = list(flat_verdicts(measured)), out / f"transfer.{kind}"
    with written_to(path) as file:
        file.write(to_csv(rows) if kind == "csv" else to_jsonl(rows))
    return path


def flat_verdicts(measured: Measured) -> Iterator[Flat]:
    """Yield a row of columns for each difference of each target."""
    plan = measured.plan
    for verdict in measured.verdicts:
        for index, compared in enumerate(verdict.comparisons):
            effect, naive = compared.lives.effect.interval, compared.lives.naive.interval
            yield {
                "source": plan.source,
                "target": verdict.target,
                "metric": verdict.metric,
                "arm": compared.arm,
                "other": compared.other,
                "difference": compared.lives.effect.difference,
                "low": effect.low if effect else None,
                "high": effect.high if effect else None,
                "low_over_episodes": naive.low if naive else None,
                "high_over_episodes": naive.high if naive else None,
                "p": compared.lives.effect.p_value,
                "p_adjusted": verdict.p_adjusted if index == 0 else None,
                "verdict": verdict.words if index == 0 else None,
                "mean_of_arm": verdict.means[compared.arm],
                "mean_of_other": verdict.means[compared.other],
                "forfeited_in_arm": verdict.forfeited[compared.arm],
                "forfeited_in_other": verdict.forfeited[compared.other],
                "share_of_practice": verdict.share.value if index == 0 else None,
                "lives": plan.lives,
                "seeds": plan.seeds,
            }
