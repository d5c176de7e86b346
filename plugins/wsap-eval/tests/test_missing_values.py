"""Values that are not there: in exports, in standard errors, and from metrics that fail."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from wsap_core.errors import CutOffError
from wsap_core.specs import AdapterSpec, ScoreMetric
from wsap_eval.cli import main
from wsap_eval.export.every import write_every
from wsap_eval.export.flat import flat_row
from wsap_eval.planning.plan import Game
from wsap_eval.planning.suite import Entrant, GameEntry, Seeds, Suite
from wsap_eval.reading import played_of
from wsap_eval.records import EpisodeRecord, SeatRecord
from wsap_eval.results import read_results
from wsap_eval.run import Evaluation, Played, evaluate
from wsap_eval.stats import estimate

LEVELS = Path(__file__).with_name("levels.py")
POINTS = ScoreMetric("points", "Points", lambda episodes: 0.0)


def test_a_score_that_is_not_there_is_left_out_of_every_eval_ever(tmp_path: Path) -> None:
    suite = Suite(name="s", games=(GameEntry(game="dig"), GameEntry(game="dig", label="hole")), seeds=Seeds(count=2),
                  entrants=(Entrant(agent="a"), Entrant(agent="b")))  # fmt: skip
    games = {g.name: Game(g, AdapterSpec("dig", "", "x:y", score_metrics=(POINTS,)), POINTS) for g in suite.games}

    def record(game: str, entrant: str, seed: int, value: float | None) -> EpisodeRecord:
        seat = SeatRecord("seat-1", entrant, 1, 7.0, (), True, 1, 0, {"points": 7.0}, own=True)
        outcome = "forfeited" if value is None else "finished"
        return EpisodeRecord(game, entrant, seed, 0, outcome, "", value, {"points": 7.0}, 1, 7.0, (), (seat,),
                             f"{entrant}{seed}", started="2026-11-20T10:00:00+00:00")  # type: ignore[arg-type]  # fmt: skip

    records = [record("dig", "a", 0, None), record("dig", "a", 1, None), record("hole", "a", 0, 0.0)]
    records += [record("hole", "a", 1, None), record("dig", "b", 0, None)]
    paths = write_every(Played(suite, games, tuple(records), 0, {}, {}), tmp_path)
    assert len(paths) == 2, "b has no score at all"
    whole = json.loads(paths[0].read_text())
    assert [(r["evaluation_name"], r["score_details"]["score"]) for r in whole["evaluation_results"]] == [("hole", 0.0)]
    lines = [json.loads(line) for line in paths[1].read_text().splitlines()]
    assert [(line["sample_id"], line["evaluation"]["score"]) for line in lines] == [("0", 0.0)]
    assert whole["detailed_evaluation_results"]["total_rows"] == 1


def test_equal_values_have_no_standard_error_in_any_export(tmp_path: Path) -> None:
    assert estimate([3.0] * 20).standard_error is None
    assert estimate([1.0] * 20, low=0, high=1).standard_error is None
    assert estimate([0.5, 0.5, 0.6]).standard_error == pytest.approx(0.1 / 3)
    assert estimate([1.0, 2.0], distinct=1).standard_error is None
    suite = Suite(name="s", games=(GameEntry(game=f"{LEVELS}:Levels"),), seeds=Seeds(count=3),
                  entrants=(Entrant(agent="always", options={"action": "a20"}),))  # fmt: skip
    played = evaluate(Evaluation(suite, suite.entrants), tmp_path)
    assert flat_row(played.rows()[0])["standard_error"] is None
    (path, _) = write_every(played, tmp_path / "every")
    assert "standard_error" not in json.loads(path.read_text())["evaluation_results"][0]["score_details"]["uncertainty"]


def careless(tmp_path: Path, metric: str, action: str = "a2") -> Result:
    suite = tmp_path / "s.toml"
    suite.write_text(f'[[games]]\ngame = "{LEVELS}:Careless"\nmetric = "{metric}"\n[seeds]\ncount = 4\n')
    words = [str(suite), "--entrant", f"always,action={action}", "--jobs", "1", "--out", str(tmp_path / "out")]
    return CliRunner().invoke(main, words)


@pytest.mark.parametrize(
    ("metric", "why"),
    [
        (
            "average",
            "A metric of '{game}' failed: The score 'average' can't be computed: ZeroDivisionError: float division",
        ),
        ("share", "A metric of '{game}' failed: The score 'share' is nan, not a number within 1e+15 of zero."),
    ],
)
@pytest.mark.slow
def test_a_metric_that_fails_is_named_and_the_other_episodes_are_scored(tmp_path: Path, metric: str, why: str) -> None:
    result = careless(tmp_path, metric)
    assert isinstance(result.exception, CutOffError), result.output
    assert f"2 failed in a metric and not scored: {why.format(game=f'{LEVELS}:Careless')}" in result.output
    (row,) = played_of(tmp_path / "out").rows()
    assert (row.score, row.outcomes) == (1.0, {"finished": 2, "failed": 2})
    assert {r.fault for r in read_results(tmp_path / "out")[1].values() if r.outcome == "failed"} == {"metric"}


def test_an_episode_whose_metric_fails_is_scored_by_another_one_without_being_played_again(tmp_path: Path) -> None:
    out = tmp_path / "out"
    careless(tmp_path, "average")
    before = {key: record.trajectory for key, record in read_results(out)[1].items()}
    result = CliRunner().invoke(main, ["score", str(out), "--metric", "solved"])
    assert result.exit_code == 0, result.output
    assert "failed" not in result.output
    (row,) = played_of(out).rows()
    assert (row.score, row.outcomes) == (0.5, {"finished": 4})
    kept = read_results(out)[1]
    assert all(before.values())
    assert {key: record.trajectory for key, record in kept.items()} == before
    assert {(record.outcome, record.fault, record.reason) for record in kept.values()} == {("finished", "", "")}
    CliRunner().invoke(main, ["score", str(out), "--metric", "rate"])
    assert [row.outcomes for row in played_of(out).rows()] == [{"finished": 4}]


@pytest.mark.slow
def test_another_metric_that_fails_leaves_the_score_alone(tmp_path: Path) -> None:
    result = careless(tmp_path, "solved", action="a0")
    assert result.exit_code == 0, result.output
    (row,) = played_of(tmp_path / "out").rows()
    assert (row.score, row.outcomes) == (0.0, {"finished": 4})
    assert row.sets["rate"].estimate.value is None
    assert "The score 'rate' can't be computed" in row.sets["rate"].estimate.why_no_interval
    assert "average" not in next(iter(read_results(tmp_path / "out")[1].values())).metrics


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_score_that_fails_is_told_once_in_each_process(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, jobs: str
) -> None:
    words = [f"{LEVELS}:Careless", "--entrant", "always,action=a0", "--seeds", "12", "--jobs", jobs]
    CliRunner().invoke(main, ["--game", *words, "--out", str(tmp_path / "out")])
    told = capfd.readouterr().err + caplog.text
    assert 1 <= told.count("The score 'average' can't be computed") <= int(jobs)


@pytest.mark.slow
def test_a_round_robin_with_an_odd_number_of_seeds_favours_no_seat(tmp_path: Path) -> None:
    # All choose the first coin: the row wins and the column loses each round, so that everybody's mean is 0.
    entrants = tuple(Entrant(agent=name) for name in ("grudger", "tit-for-tat", "always"))
    entry = GameEntry(game="matrix", options={"game": "matching-pennies", "rounds": 2}, pairs="round-robin")
    suite = Suite(name="rr", games=(entry,), entrants=entrants, seeds=Seeds(count=3))
    played = evaluate(Evaluation(suite, entrants), tmp_path)
    assert {s.rating.entrant: s.mean for s in played.standings()} == {e.name: 0.0 for e in entrants}
    out = str(tmp_path / "csv")
    assert CliRunner().invoke(main, ["export", str(tmp_path), "--format", "csv", "--out", out]).exit_code == 0
    with (tmp_path / "csv" / "standings.csv").open() as file:
        assert {float(line["mean_score"]) for line in csv.DictReader(file)} == {0.0}
