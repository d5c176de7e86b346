"""Metrics of which lower values are better, and what a forfeited episode is worth."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from wsap_core.host import PluginHost
from wsap_core.references import load_adapter_spec
from wsap_core.specs import AdapterSpec, ScoreMetric
from wsap_eval.cli import main
from wsap_eval.commands.writing import write
from wsap_eval.planning.plan import Game
from wsap_eval.planning.suite import Entrant, GameEntry, Seeds, Suite
from wsap_eval.reading import compared, played_of
from wsap_eval.records import EpisodeRecord, Outcome, SeatRecord
from wsap_eval.results import Results, read_results
from wsap_eval.stats import by_life, directed
from wsap_eval.tables.rows import rows_of, standings_of
from wsap_eval.tables.shown import notes

LEVELS = Path(__file__).with_name("levels.py")
ERRORS = ScoreMetric("errors", "", lambda episodes: 0.0, "", 0.0, 20.0, better="lower")
SOLVED = ScoreMetric("solved", "", lambda episodes: 0.0, "", 0.0, 1.0)
FREE = ScoreMetric("points", "", lambda episodes: 0.0)


def game(metric: ScoreMetric, **about: Any) -> Game:
    return Game(GameEntry(game="dig"), AdapterSpec("dig", "A dig.", "x:y", score_metrics=(metric,)), metric, **about)


def played(entrant: str, seed: int, value: float | None, outcome: Outcome = "finished") -> EpisodeRecord:
    seats = (SeatRecord("seat-1", entrant, 1, 0.0, (), True, 0, 0, {}, own=True),)
    return EpisodeRecord("dig", entrant, seed, 0, outcome, "", value, {}, 1, 0.0, (), seats, f"{entrant}{seed}")


@pytest.mark.slow
def test_fewer_errors_are_better_from_the_command_to_the_exports(tmp_path: Path) -> None:
    out = tmp_path / "out"
    entrants = [word for n in (9, 2, 16) for word in ("--entrant", f"always,action=a{n},label=a{n}")]
    words = ["--game", f"{LEVELS}:Errors", *entrants, "--seeds", "20", "--jobs", "1", "--out", str(out)]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    found = {row.entrant: row for row in played_of(out).rows()}
    verdicts = {name: row.difference.verdict for name, row in found.items() if row.difference}
    assert verdicts == {"a2": "better", "a16": "worse"}
    assert found["a2"].difference is not None
    assert found["a2"].difference.difference == -7
    assert "errors (lower is better)" in result.output
    for form in ("csv", "html", "every-eval-ever"):
        write(out, form, out=tmp_path / form if form != "html" else tmp_path / "r.html", database=None)
    with (tmp_path / "csv" / "table.csv").open() as file:
        assert [line["better"] for line in csv.DictReader(file)] == ["lower"] * 3
    assert "errors (lower is better)" in (tmp_path / "r.html").read_text()
    for path in (tmp_path / "every-eval-ever").rglob("*.json"):
        (told,) = json.loads(path.read_text())["evaluation_results"]
        assert told["metric_config"]["lower_is_better"] is True


@pytest.mark.parametrize(("metric", "worst", "mean"), [(ERRORS, 20.0, 8.0), (SOLVED, 0.0, 2 / 3), (FREE, None, 1.0)])
def test_a_forfeit_is_worth_the_worst_of_the_metric_or_nothing(
    metric: ScoreMetric, worst: float | None, mean: float
) -> None:
    values = [(2.0, 2.0) if metric is ERRORS else (1.0, 1.0)][0]
    records = [played("a", 0, values[0]), played("a", 1, values[1]), played("a", 2, None, "forfeited")]
    (row,) = rows_of(records, {"dig": game(metric)})
    assert row.worst == worst
    assert row.figure.mean == pytest.approx(mean)
    told = " ".join(notes(row))
    assert ("Forfeited episodes count as" in told) == (worst is not None)
    assert ("1 forfeited episode without a value: the metric declares no worst one." in told) == (worst is None)


def test_nobody_is_judged_by_what_is_left_of_forfeited_seeds() -> None:
    records = [played("a", seed, seed * 1.0) for seed in range(30)]
    records += [played("b", seed, seed + 3 + seed % 3) for seed in range(30)]
    both = {"dig": game(FREE)}
    assert rows_of(records, both)[1].difference.verdict == "better"  # type: ignore[union-attr]
    records[35] = played("b", 5, None, "forfeited")
    row = rows_of(records, both)[1]
    assert row.difference is not None
    assert (row.difference.verdict, row.difference.interval, row.p_adjusted) == ("unknown", None, None)
    assert "1 forfeited episode of both without a value" in row.difference.why_no_interval


@pytest.mark.slow
def test_a_forfeit_is_worth_the_same_whoever_else_is_compared(tmp_path: Path) -> None:
    suite = Suite(
        name="m", games=(GameEntry(game="matrix", against="tit-for-tat"),),
        entrants=tuple(Entrant(agent=name) for name in ("random", "grudger", "always")), seeds=Seeds(count=20),
    )  # fmt: skip
    with Results(tmp_path, suite) as results:
        for name, value in (("random", 2.0), ("grudger", 3.0), ("always", 0.5)):
            for seed in range(20):
                lost = name == "grudger" and seed < 5
                seat = SeatRecord("row", name, 10, value, (), True, 0, 0, {"mean_payoff": value, "reward": value}, True)
                results.add(
                    EpisodeRecord(
                        "matrix", name, seed, 0, "forfeited" if lost else "finished", "", None if lost else value,
                        {"mean_payoff": value}, 10, value, (), (seat,), f"{name}{seed}",
                    )
                )  # fmt: skip
    rows = [compared(tmp_path, others, baseline="random").rows for others in ([], ["grudger"])]
    differences = {
        row.difference.difference for found in rows for row in found if row.entrant == "grudger" and row.difference
    }
    assert differences == {0.25}
    assert [row.worst for row in played_of(tmp_path).rows()] == [None, 0.0, None]
    assert len(read_results(tmp_path)[1]) == 60


@pytest.mark.parametrize(
    ("name", "low", "high"), [("prisoners-dilemma", 0, 5), ("matching-pennies", -1, 1), ("rock-paper-scissors", -1, 1)]
)
def test_the_matrix_game_declares_its_payoffs_as_bounds(name: str, low: float, high: float) -> None:
    spec = load_adapter_spec("matrix", PluginHost.discovered())
    (metric,) = spec.with_options({"game": name}).score_metrics
    assert (metric.low, metric.high, metric.worst) == (low, high, low)
    if name == "prisoners-dilemma":
        assert spec.with_options({}).score_metrics == (metric,)


def test_of_two_in_a_round_robin_the_one_with_fewer_errors_is_first() -> None:
    def match(seed: int, entrant: str, other: str) -> EpisodeRecord:
        errors = {"a": 3.0, "b": 8.0}
        seats = tuple(
            SeatRecord(name, who, 1, errors[who], (), True, 0, 0, {"errors": errors[who]}, who == entrant)
            for name, who in (("x", entrant), ("y", other))
        )
        return EpisodeRecord(
            f"dig against {other}", entrant, seed, 0, "finished", "", errors[entrant], {}, 1, 0.0, (), seats, "t"
        )

    games = {f"dig against {name}": game(ERRORS, opponent=Entrant(agent=name)) for name in "ab"}
    records = [match(seed, *pair) for seed in range(4) for pair in (("a", "b"), ("b", "a"))]
    first, last = standings_of(records, games)
    assert (first.rating.entrant, first.mean, last.mean) == ("a", 3.0, 8.0)
    assert first.rating.elo > 0 > last.rating.elo


def test_a_lesson_that_lowers_errors_helps() -> None:
    found = by_life({life: [-1.0 - life / 10] for life in range(8)}).effect
    assert (found.verdict, directed(found, "lower").verdict, directed(found, "higher").verdict) == (
        "worse",
        "better",
        "worse",
    )
