"""Seeds until a half-width is known: reached, not reached, and remembered."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from scipy import stats

from wsap_core.errors import CutOffError
from wsap_eval.cli import main
from wsap_eval.reading import played_of
from wsap_eval.results import read_results
from wsap_eval.stats import bounds, sequence

LEVELS = Path(__file__).with_name("levels.py")


def run(out: Path, *more: str, game: str = "Levels", action: str = "a10") -> Result:
    words = ("--game", f"{LEVELS}:{game}", "--entrant", f"always,action={action},label=a", "--jobs", "1")
    return CliRunner().invoke(main, [*words, "--out", str(out), *more])


@pytest.mark.slow
def test_until_plays_as_many_seeds_as_it_takes_and_no_more(tmp_path: Path) -> None:
    result = run(tmp_path, "--until", "half-width=0.15")
    assert result.exit_code == 0, result.output
    (row,) = played_of(tmp_path).rows()
    values = [float(seed % 20 < 10) for seed in range(row.figure.n)]
    width, _ = sequence(values, low=0, high=1)
    before, _ = sequence(values[:-1], low=0, high=1)
    assert width is not None
    assert before is not None
    assert width.half_width <= 0.15 < before.half_width
    assert 10 < row.figure.n < 200
    assert f"stopped, {row.figure.n} seeds give the requested half-width" in result.output
    assert "not reached" not in result.output
    assert "biased towards values with little spread" in result.output
    assert played_of(tmp_path).missing == 0


@pytest.mark.slow
def test_a_half_width_that_was_not_reached_is_told(tmp_path: Path) -> None:
    result = run(tmp_path, "--until", "half-width=0.01", "--seeds", "30")
    assert "a in " in result.output
    assert "the half-width 0.01 is not reached; after 30 seeds it is 0." in result.output
    assert "Continue with a larger --seeds." in result.output
    shown = CliRunner().invoke(main, ["show", str(tmp_path)]).output
    assert "the half-width 0.01 is not reached; after 30 seeds" in shown
    assert len(json.loads(CliRunner().invoke(main, ["show", str(tmp_path), "--json"]).stdout)["unreached"]) == 1


@pytest.mark.slow
def test_looks_are_remembered_by_later_commands_without_them(tmp_path: Path) -> None:
    run(tmp_path, "--until", "half-width=0.3")
    stopped = len(read_results(tmp_path)[1])
    later = run(tmp_path, "--seeds", str(stopped + 10))
    assert later.exit_code == 0, later.output
    for printed in (later.output, CliRunner().invoke(main, ["show", str(tmp_path)]).output):
        assert "are those of confidence sequences" in " ".join(printed.split())
    (row,) = played_of(tmp_path).rows()
    assert row.figure.n == stopped + 10
    assert row.interval == sequence([float(seed % 20 < 10) for seed in range(stopped + 10)], low=0, high=1)[0]


@pytest.mark.slow
def test_a_seed_that_fails_ends_the_search_instead_of_playing_all_seeds(tmp_path: Path) -> None:
    for _ in range(2):
        result = run(tmp_path, "--until", "half-width=0.05", game="Faulty")
        assert isinstance(result.exception, CutOffError)
        assert "stopped, seed 3 failed, and a half-width is known up to the first missing seed" in result.output
        assert len(read_results(tmp_path)[1]) < 200


@pytest.mark.slow
def test_the_bias_of_a_stopped_score_is_the_documented_one() -> None:
    # docs/explanation/intervals.md: 0/1 scores of mean 0.1, until a half-width of 0.12.
    rows = (np.random.default_rng(6).random((400, 200)) < 0.1).astype(np.float64)
    stopped = np.zeros(400, dtype=int)
    for n in range(2, 200):
        going = np.flatnonzero(stopped == 0)
        low, high = bounds.betting(rows[going, :n], bets=bounds.SEQUENCE_BETS)
        stopped[going[(high - low) / 2 <= 0.12]] = n
    assert stopped.all()
    means = [row[:n].mean() for row, n in zip(rows, stopped, strict=True)]
    assert np.mean(means) == pytest.approx(0.078, abs=0.01)  # four standard errors of 400 evaluations
    assert stats.ttest_1samp(means, 0.1).pvalue < 1e-6
