"""One value for the repeats of a seed: pass@K and others."""

from __future__ import annotations

import csv
import itertools
import json
import math
from fractions import Fraction
from pathlib import Path

import pytest
from click.testing import CliRunner
from scipy import stats

from wsap_core.errors import UsageError, WsapError
from wsap_eval.cli import main
from wsap_eval.reading import played_of
from wsap_eval.stats import reduced

LEVELS = Path(__file__).with_name("levels.py")


@pytest.mark.parametrize(("n", "k"), [(1, 1), (4, 2), (5, 3), (6, 6)])
def test_pass_at_k_is_the_share_of_all_choices_of_k_repeats(n: int, k: int) -> None:
    for c in range(n + 1):
        values = [1.0] * c + [0.0] * (n - c)
        choices = list(itertools.combinations(values, k))
        some, all_ = sum(map(any, choices)), sum(map(all, choices))
        assert reduced(values, f"pass@{k}", best=1.0) == float(Fraction(some, len(choices)))
        assert reduced(values, f"pass^{k}", best=1.0) == float(Fraction(all_, len(choices)))


def test_pass_at_k_agrees_with_published_figures_and_is_unbiased() -> None:
    # Chen et al. (2021), figure 3, as a numerically stable product: 1 - prod(1 - k / arange(n - c + 1, n + 1)).
    n, c, k = 200, 13, 100
    product = math.prod(1 - k / m for m in range(n - c + 1, n + 1))
    assert reduced([1.0] * c + [0.0] * (n - c), "pass@100", best=1.0) == pytest.approx(1 - product, rel=1e-12)
    # Over all numbers of successes of 7 repeats with p = 0.3, its mean is 1 - (1 - p)**3, that of pass^3 is p**3.
    for reducer, truth in (("pass@3", 1 - 0.7**3), ("pass^3", 0.3**3)):
        mean = sum(
            stats.binom.pmf(c, 7, 0.3) * (reduced([1.0] * c + [0.0] * (7 - c), reducer, best=1.0) or 0.0)
            for c in range(8)
        )
        assert mean == pytest.approx(truth, rel=1e-12)


def test_other_reducers_and_too_few_repeats() -> None:
    values = [3.0, 1.0, 2.0, 8.0]
    found = {name: reduced(values, name) for name in ("mean", "max", "min", "median")}
    assert found == {"mean": 3.5, "max": 8.0, "min": 1.0, "median": 2.5}
    assert reduced([1.0, 1.0], "pass@3", best=1.0) is None
    assert reduced([], "max") is None
    assert reduced([0.0, 5.0], "pass@1", best=0.0) == 0.5  # fewer is better
    with pytest.raises(UsageError, match="There is no reducer 'mode'"):
        reduced([1.0], "mode")


def wsap_eval(*words: str) -> str:
    result = CliRunner().invoke(main, [str(word) for word in words])
    if isinstance(result.exception, WsapError):
        raise result.exception
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


SUCCESSES = {"a": (0, 1, 2, 3, 1, 0), "b": (3, 3, 2, 3, 3, 1)}
"""Entrant -> number of successes of three repeats on each seed."""


@pytest.fixture
def repeated(tmp_path: Path) -> Path:
    """A folder of six seeds, each played three times with these successes."""
    out = tmp_path / "out"
    entrants = [word for name in SUCCESSES for word in ("--entrant", f"always,action=a1,label={name}")]
    game = f"{LEVELS}:Levels"
    wsap_eval("run", "--game", game, *entrants, "--seeds", "6", "--repeats", "3", "--jobs", "1", "--out", str(out))
    path = out / "episodes.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        value = float(line["repeat"] < SUCCESSES[line["entrant"]][line["seed"]])
        line |= {"value": value, "metrics": {"solved": value}, "trajectory": f"{line['seed']} {line['repeat']}"}
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return out


@pytest.mark.slow
def test_a_folder_is_reduced_again_with_intervals_over_seeds(repeated: Path) -> None:
    assert [row.score for row in played_of(repeated).rows()] == [pytest.approx(7 / 18), pytest.approx(15 / 18)]
    told = wsap_eval("score", str(repeated), "--reduce", "pass@3")
    assert "solved, pass@3" in told
    a, b = played_of(repeated).rows()
    assert (a.score, b.score) == (4 / 6, 1.0)
    for row, passed in ((a, 4), (b, 6)):
        exact = stats.binomtest(passed, 6).proportion_ci(0.95, "exact")  # of six seeds, not of 18 episodes
        assert row.interval is not None
        assert (row.interval.low, row.interval.high) == (pytest.approx(exact.low), pytest.approx(exact.high))
    assert b.difference is not None
    assert (b.difference.seeds, b.difference.difference) == (6, pytest.approx(2 / 6))
    wsap_eval("score", str(repeated), "--reduce", "pass^2")
    a, b = played_of(repeated).rows()
    # Of three repeats with 0, 1, 2 or 3 successes 0, 0, 1/3 or all pairs succeed.
    assert (a.score, b.score) == (pytest.approx((1 / 3 + 1) / 6), pytest.approx((4 + 1 / 3) / 6))
    wsap_eval("score", str(repeated), "--reduce", "median")
    assert [row.score for row in played_of(repeated).rows()] == [pytest.approx(2 / 6), pytest.approx(5 / 6)]
    with (repeated / "table.csv").open() as file:
        assert {line["reduce"] for line in csv.DictReader(file)} == {"median"}
    for kind in ("html", "every-eval-ever"):
        wsap_eval("export", str(repeated), "--format", kind, "--out", str(repeated / kind.replace("html", "r.html")))
    assert "solved, median" in (repeated / "r.html").read_text()


@pytest.mark.slow
def test_what_can_not_be_reduced_is_refused_before_anything_is_played(tmp_path: Path, repeated: Path) -> None:
    out = str(tmp_path / "new")
    given = ("--game", f"{LEVELS}:Levels", "--entrant", "always,action=a1", "--seeds", "2", "--jobs", "1", "--out", out)
    with pytest.raises(UsageError, match="pass@3 takes at least 3 episodes of each seed; give --repeats 3 or more"):
        wsap_eval("run", *given, "--reduce", "pass@3", "--repeats", "2")
    with pytest.raises(UsageError, match="invalid at reduce: expected mean, max, min, median, pass@K or pass\\^K"):
        wsap_eval("run", *given, "--reduce", "mode")
    with pytest.raises(UsageError, match="counts episodes with the best value, which 'reward'"):
        wsap_eval("score", str(repeated), "--metric", "reward", "--reduce", "pass@2")
    with pytest.raises(UsageError, match="Name what to score by"):
        wsap_eval("score", str(repeated))
    with pytest.raises(UsageError, match="pass@4 takes at least 4 episodes of a seed"):
        wsap_eval("score", str(repeated), "--reduce", "pass@4")
    assert not Path(out).exists()
    assert played_of(repeated).suite.reduce == "mean"


def test_seeds_with_too_few_repeats_are_told_as_such(repeated: Path) -> None:
    path = repeated / "episodes.jsonl"
    kept = [line for line in path.read_text().splitlines() if '"entrant": "a"' not in line or '"repeat": 0' in line]
    path.write_text("\n".join(kept) + "\n")
    told = wsap_eval("score", str(repeated), "--reduce", "pass@2")
    assert "No seed has the 2 episodes with a value that pass@2 takes." in told
    assert [row.score is None for row in played_of(repeated).rows()] == [True, False]


def test_a_suite_names_its_reducer(tmp_path: Path) -> None:
    suite, out = tmp_path / "s.toml", tmp_path / "out"
    suite.write_text(
        f'reduce = "pass@2"\n[[games]]\ngame = "{LEVELS}:Errors"\n[seeds]\ncount = 4\nrepeats = 2\n'
        '[[entrants]]\nagent = "always"\noptions = { action = "a0" }\n'
    )
    wsap_eval("run", str(suite), "--jobs", "1", "--out", str(out))
    (row,) = played_of(out).rows()
    # No errors are the best; there is one on odd seeds.
    assert (row.score, row.measured) == (0.5, "errors, pass@2")
