"""Paired differences of results that stopped at a half-width, or were looked at again and again."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from wsap_eval.cli import main
from wsap_eval.reading import compared, played_of
from wsap_eval.stats import Paired, paired

LEVELS = Path(__file__).with_name("levels.py")
ZERO_ONE = {"low": 0.0, "high": 1.0}


def found(own: np.ndarray, other: np.ndarray, **given: object) -> Paired:
    return paired(
        {seed: [value] for seed, value in enumerate(own.tolist())},
        {seed: [value] for seed, value in enumerate(other.tolist())}, **given,  # type: ignore[arg-type]
    )  # fmt: skip


def ever_wrong(drawn: list[tuple[np.ndarray, np.ndarray]], looks: range, **given: object) -> int:
    return sum(
        any(found(own[:n], other[:n], **given).verdict in ("better", "worse") for n in looks) for own, other in drawn
    )


@pytest.mark.slow
def test_looking_at_a_difference_of_equals_again_and_again_misleads_hardly_ever() -> None:
    rng = np.random.default_rng(5)
    binary = [((rng.random(240) < 0.3) * 1.0, (rng.random(240) < 0.3) * 1.0) for _ in range(40)]
    looks = range(30, 241, 30)
    assert ever_wrong(binary, looks, **ZERO_ONE) > 2, "the test for a fixed number of seeds does"
    assert ever_wrong(binary, looks, **ZERO_ONE, any_look=True) <= 2
    skewed = [(rng.exponential(size=500), rng.exponential(size=500)) for _ in range(40)]
    looks = range(100, 501, 100)
    assert ever_wrong(skewed, looks, any_look=True) <= 2


def test_a_difference_is_found_at_any_look_and_its_interval_agrees_with_p() -> None:
    rng = np.random.default_rng(6)
    other = rng.normal(size=300)
    for effect in (0.0, 0.1, 0.2, 0.25, 0.3, 0.4, 0.6, 1.0):
        own = other + effect + rng.normal(scale=0.7, size=300)
        for bounds in ({}, {"low": -20.0, "high": 20.0}):
            got = found(own, other, any_look=True, **bounds)
            assert got.interval is not None
            assert got.p_value is not None
            assert "confidence sequence" in got.interval.method
            assert (got.interval.low > 0 or got.interval.high < 0) == (got.p_value <= 0.05) == (got.verdict != "tied")
            assert got.seeds_to_settle is None
            assert got.interval.level == 0.95
    assert got.verdict == "better"
    few = found(other[:50], other[:50] + 1.0 + rng.normal(size=50), any_look=True)
    assert (few.verdict, few.interval) == ("unknown", None)
    assert "too few" in few.why_no_interval


def run(*words: str) -> str:
    result = CliRunner().invoke(main, list(words))
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.slow
def test_differences_after_until_are_those_of_a_sequence_in_the_table_and_in_comparisons(tmp_path: Path) -> None:
    words = ["--game", f"{LEVELS}:Levels", "--jobs", "1", "--entrant", "always,action=a10,label=base"]
    out, plain = tmp_path / "out", tmp_path / "plain"
    told = run(
        *words,
        "--entrant",
        "always,action=a2,label=other",
        "--until",
        "half-width=0.4",
        "--seeds",
        "40",
        "--out",
        str(out),
    )
    assert "so intervals and p-values, also of differences, are those of confidence sequences" in told
    run(*words, "--seeds", "20", "--out", str(plain))
    (row,) = [row for row in played_of(out).rows() if row.difference is not None]
    assert row.difference is not None
    assert row.difference.interval is not None
    assert row.difference.interval.method == "confidence sequence, exact (betting), paired"
    with (out / "table.csv").open() as file:
        assert [line["difference_method"] for line in csv.DictReader(file)][1] == row.difference.interval.method
    told = run("compare", str(out))
    assert "also of differences, are those of confidence sequences" in told
    # The folder that was looked at may also be the other one.
    both = compared(plain, [str(out)], baseline="base")
    assert both.looked
    assert [r.difference.interval.method for r in both.rows if r.difference and r.difference.interval] == [
        "confidence sequence, exact (betting), paired"
    ]


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_equal_scores_stay_tied_at_any_look(value: float) -> None:
    same = np.full(30, value)
    assert found(same, same, **ZERO_ONE, any_look=True).verdict == "tied"
