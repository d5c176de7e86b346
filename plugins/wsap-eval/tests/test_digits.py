"""Numbers as they are printed: no interval becomes narrower by being rounded."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from wsap_eval.cli import main
from wsap_eval.planning.suite import Entrant, GameEntry, Seeds, Suite
from wsap_eval.records import EpisodeRecord, SeatRecord
from wsap_eval.results import Results
from wsap_eval.stats import Interval, bounds, estimate
from wsap_eval.tables.digits import estimate_of, interval_of, number, p_of


def of(low: float, high: float) -> Interval:
    return Interval(low, high, 0.95, "")


def read(text: str) -> tuple[float, float]:
    low, high = text.split(" to ")
    return float(low), float(high)


@pytest.mark.parametrize(
    ("value", "low", "high", "told"),
    [
        (12.34, 12.27, 12.42, "12.34 (12.27 to 12.42)"),
        (10.2, 9.81, 10.49, "10.20 (9.81 to 10.49)"),
        (100.4, 99.87, 100.93, "100.4 (99.8 to 101.0)"),
        (999.7, 998.41, 1000.99, "999.7 (998.4 to 1001.0)"),
        (0.5, 0.2720, 0.7280, "0.50 (0.27 to 0.73)"),
        (8.0, 6.654, 8.0, "8.0 (6.6 to 8.0)"),
        (1234567.0, 1204567.2, 1264566.8, "1234567 (1204567 to 1264567)"),
        (-0.0123, -0.01391, -0.01071, "-0.0123 (-0.0140 to -0.0107)"),
        (0.3, 0.004, 0.6, "0.300 (0.004 to 0.600)"),
        (1.0, 1.0, 1.0, "1.00 (1.00 to 1.00)"),
        (0.0, 0.0, 0.0, "0.00 (0.00 to 0.00)"),
        (0.1 + 0.2, 0.1 + 0.2 - 0.1, 0.1 + 0.2 + 0.1, "0.30 (0.20 to 0.40)"),
        (3e300, 2e300, 4e300, "3e+300 (2e+300 to 4e+300)"),
        (3e-9, 2e-9, 4e-9, "3e-9 (2e-9 to 4e-9)"),
    ],
)
def test_an_uncertain_number_has_the_digits_of_its_interval(value: float, low: float, high: float, told: str) -> None:
    assert estimate_of(value, of(low, high)) == told


@pytest.mark.parametrize(
    ("value", "told"),
    [(999.7, "1000"), (0.9, "0.9"), (8.0, "8"), (12.345, "12.3"), (123456.7, "123457"), (0.0, "0"), (-0.0, "0"),
     (-2.5, "-2.5"), (99.96, "100"), (1e-9, "1e-9")],
)  # fmt: skip
def test_a_number_without_an_interval_has_three_digits(value: float, told: str) -> None:
    assert number(value) == told


@pytest.mark.parametrize(
    ("p_value", "told"),
    [(0.0, "p < 0.0001"), (1e-12, "p < 0.0001"), (0.000101, "p 0.00011"), (0.0131, "p 0.014"), (0.05, "p 0.05"),
     (0.0501, "p 0.051"), (1.0, "p 1")],
)  # fmt: skip
def test_a_p_value_is_rounded_up_and_none_is_smaller_than_its_method_knows(p_value: float, told: str) -> None:
    assert p_of(p_value) == told


finite = st.floats(-1e12, 1e12)


@given(finite, finite, finite)
def test_the_printed_interval_holds_the_computed_one_and_its_number_and_is_hardly_wider(
    a: float, b: float, c: float
) -> None:
    low, value, high = sorted((a, b, c))
    shown_low, shown_high = read(interval_of(of(low, high)))
    slack = 2e-7 * (high - low) + 1e-15 * max(abs(low), abs(high))
    assert shown_low <= low + slack
    assert shown_high >= high - slack
    assert shown_low <= float(number(value, of(low, high))) <= shown_high
    if high - low > 1e-9 * max(abs(low), abs(high), 1e-6):
        assert shown_high - shown_low <= 1.2 * (high - low) + 2e-9
    assert (shown_low > 0) == (low > 0)
    assert (shown_high < 0) == (high < 0)


def covered(mean: float, deviation: float, n: int, evaluations: int) -> float:
    """Return the share of evaluations whose printed interval holds the true mean."""
    rng = np.random.default_rng(n)
    held = 0
    for _ in range(0, evaluations, 500):
        rows = rng.normal(mean, deviation, (500, n))
        lows, highs = bounds.wider(rows)
        alone = estimate(list(rows[0])).interval
        assert alone is not None
        assert (alone.low, alone.high) == pytest.approx((lows[0], highs[0]), rel=1e-12)
        for ends in zip(lows.tolist(), highs.tolist(), strict=True):
            low, high = read(interval_of(of(*ends)))
            held += low <= mean <= high
    return held / evaluations


SCALES = [(12.34, 1.0, 400), (12.34, 1.0, 100), (98.7, 0.5, 20), (0.123, 0.01, 50)]
"""Means, standard deviations and seeds of which intervals rounded to two digits held 11 to 80 % of the time."""


@pytest.mark.parametrize(("mean", "deviation", "n"), SCALES)
def test_printed_intervals_cover_in_a_few_evaluations(mean: float, deviation: float, n: int) -> None:
    # Of 500 evaluations of an interval that covers 94 %, less than 90 % hold with a probability below 0.001.
    assert stats.binom.cdf(449, 500, 0.94) < 1e-3
    assert covered(mean, deviation, n, 500) >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize(("mean", "deviation", "n"), SCALES)
def test_printed_intervals_cover_in_ten_thousand_evaluations(mean: float, deviation: float, n: int) -> None:
    assert covered(mean, deviation, n, 10_000) >= 0.94


@pytest.mark.parametrize("rate", [0.02, 0.1, 0.5, 0.95])
@pytest.mark.parametrize("n", [5, 20, 50, 100])
def test_printed_exact_intervals_hold_by_the_binomial_distribution_itself(rate: float, n: int) -> None:
    held = 0.0
    for hits in range(n + 1):
        found = estimate([1.0] * hits + [0.0] * (n - hits), low=0, high=1).interval
        low, high = read(interval_of(found))
        held += float(stats.binom.pmf(hits, n, rate)) * (low <= rate <= high)
    assert held >= 0.95


def _results(folder: Path) -> Path:
    """Make results whose scores are far from 0 beside their spread: 40 seeds of two entrants."""
    suite = Suite(
        name="far", games=(GameEntry(game="minigrid", metric="reward"),),
        entrants=(Entrant(agent="random"), Entrant(agent="minigrid-finder")), seeds=Seeds(count=40),
    )  # fmt: skip
    rng = np.random.default_rng(3)
    with Results(folder, suite) as results:
        for number_, entrant in enumerate(("random", "minigrid-finder")):
            for seed in range(40):
                value = 1000.0 + number_ + float(rng.normal(0, 1))
                seat = SeatRecord("seat-1", entrant, 4, value, (), True, 0, 0, {"reward": value})
                results.add(
                    EpisodeRecord(
                        "minigrid", entrant, seed, 0, "finished", "", value, {"reward": value}, 4, value, (), (seat,),
                        f"{entrant}{seed}", started="2026-11-20T10:00:00+00:00",
                    )
                )  # fmt: skip
    return folder


@pytest.mark.slow
def test_terminal_comparison_and_page_print_the_same_intervals_and_none_is_narrower(tmp_path: Path) -> None:
    folder = str(_results(tmp_path / "r"))

    def run(*words: str) -> str:
        result = CliRunner().invoke(main, words)
        assert result.exit_code == 0, result.output
        return result.output

    rows = json.loads(run("show", folder, "--json"))["rows"]
    shown = re.findall(r"(-?[\d.]+) {2,}(-?[\d.]+) to (-?[\d.]+)", run("show", folder))
    assert len(shown) == 2
    for row, (score, low, high) in zip(rows, shown, strict=True):
        interval = row["figure"]["interval"]
        assert float(low) <= interval["low"] <= float(score) <= interval["high"] <= float(high)
        assert float(high) - float(low) < 1.2 * (interval["high"] - interval["low"])
    run("export", folder, "--format", "html", "--out", str(tmp_path / "r.html"))
    page = (tmp_path / "r.html").read_text()
    data = json.loads(page[page.index('type="application/json">') + 24 :].partition("</script>")[0])
    for plotted, (score, low, high) in zip(data["rows"], shown, strict=True):
        assert plotted["told"] == f"{score} ({low} to {high})"
        assert f">{low} to {high}<" in page
    compared = re.search(r"\+[\d.]+ \(\S+ to \S+\), p .*?(?= {2,}|$)", run("compare", folder), re.MULTILINE)
    assert compared is not None
    assert compared[0] in run("show", folder)
    assert compared[0] in page.replace("&lt;", "<")
