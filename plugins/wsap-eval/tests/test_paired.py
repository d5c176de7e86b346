"""Verdicts on differences: exact where bounds are declared, none where shapes are too unlike to tell."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray
from scipy import stats

from wsap_eval.cli import main
from wsap_eval.stats import Paired, bounds, by_life, paired
from wsap_eval.stats.paired import bets_on_differences, error_rate, power_of, power_of_signs

Array = NDArray[np.float64]
LEVELS = Path(__file__).with_name("levels.py")


def of(own: Array | list[float], other: Array | list[float], **metric: float) -> Paired:
    return paired(dict(enumerate(map(float, own))), dict(enumerate(map(float, other))), **metric)


def hits(more: int, less: int, both: int, neither: int) -> Paired:
    own = [1.0] * more + [0.0] * less + [1.0] * both + [0.0] * neither
    other = [0.0] * more + [1.0] * less + [1.0] * both + [0.0] * neither
    return of(own, other, low=0, high=1)


@pytest.mark.slow
def test_solved_or_not_is_judged_by_the_exact_sign_test() -> None:
    for more, less in itertools.product(range(21), repeat=2):
        if 0 < more + less <= 20:
            found = hits(more, less, (20 - more - less) // 2, 20 - more - less - (20 - more - less) // 2)
            p_value = stats.binomtest(more, more + less).pvalue
            assert found.p_value == pytest.approx(p_value)
            assert found.interval is not None
            expected = "tied" if p_value > 0.05 else "better" if more > less else "worse"
            assert found.verdict == expected
            assert (0 in found.interval) == (found.verdict == "tied") or 0.045 < p_value <= 0.05
            assert found.interval.low <= found.difference <= found.interval.high


@pytest.mark.parametrize(("solved", "p_value"), [(12, 2 / 2**8), (4, 2 / 2**16), (3, 2 / 2**17), (0, 2 / 2**20)])
def test_always_against_seldom_is_better_with_the_p_value_of_coins(solved: int, p_value: float) -> None:
    found = of([1.0] * 20, [1.0] * solved + [0.0] * (20 - solved), low=0, high=1)
    assert found.verdict == "better"
    assert found.p_value == pytest.approx(p_value)
    assert found.interval is not None
    assert 0 < found.interval.low <= 1 - solved / 20 <= found.interval.high


def test_more_evidence_never_has_a_larger_p_value() -> None:
    for metric in ({"low": 0.0, "high": 1.0}, {}):
        p_values = []
        for scale in np.linspace(0.0, 0.5, 26):
            noise = np.tile([0.02, -0.03, 0.05, -0.04, 0.0], 5)
            other = np.tile([0.1, 0.2, 0.3, 0.15, 0.25], 5)
            p_values.append(of(other + scale + noise, other, **metric).p_value or 0.0)
        assert all(later <= earlier + 1e-12 for earlier, later in itertools.pairwise(p_values))
    seen = [of([1.0] * n, [1.0] * (n // 10) + [0.0] * (n - n // 10), low=0, high=1).p_value for n in (10, 20, 30, 50)]
    assert seen == sorted((p or 0.0 for p in seen), reverse=True)


@pytest.mark.slow
def test_the_intervals_of_hits_cover_by_exact_enumeration() -> None:
    n = 12
    found = {
        (more, less): hits(more, less, 0, n - more - less).interval
        for more in range(n + 1) for less in range(n + 1 - more) if more + less
    }  # fmt: skip
    for wins, losses in ((0.5, 0.1), (0.8, 0.0), (0.3, 0.3), (0.05, 0.0), (0.2, 0.05), (0.9, 0.1), (0.45, 0.55)):
        missed = 0.0
        for (more, less), interval in found.items():
            chance = stats.multinomial.pmf(
                [more, less, n - more - less], n, [wins, losses, max(0.0, 1 - wins - losses)]
            )
            if interval is not None and not interval.low - 1e-12 <= wins - losses <= interval.high + 1e-12:
                missed += float(chance)
        assert missed <= 0.05, (wins, losses)


@pytest.mark.slow
def test_bets_on_differences_raise_false_alarms_no_more_often_than_stated_by_exact_enumeration() -> None:
    # Fair differences of -1, -0.25, 0 or 0.5: all counts of them over 7 seeds.
    values, n = np.array([-1.0, -0.25, 0.0, 0.5]), 7
    for odds in ([0.1, 0.1, 0.55, 0.25], [0.2, 0.2, 0.1, 0.5], [0.02, 0.1, 0.79, 0.09]):
        assert np.dot(values, odds) == pytest.approx(0)
        alarm = 0.0
        for counts in itertools.product(range(n + 1), repeat=3):
            if sum(counts) <= n:
                whole = [*counts, n - sum(counts)]
                _, p_value = bets_on_differences(np.repeat(values, whole))
                alarm += float(stats.multinomial.pmf(whole, n, odds)) * (p_value <= 0.05)
        assert alarm <= 0.05


def test_without_bounds_the_interval_is_at_least_students_and_p_agrees_with_it() -> None:
    rng = np.random.default_rng(8)
    for effect in (0.0, 0.3, 0.5, 0.8, 2.0):
        seeds, other = rng.normal(5, 2, 30), rng.normal(0, 1, 30)
        own = seeds + rng.normal(effect, 1, 30)
        found = of(own, seeds + other)
        expected = stats.ttest_rel(own, seeds + other)
        interval = expected.confidence_interval()
        assert found.interval is not None
        assert found.p_value is not None
        assert found.interval.low <= interval.low + 1e-12
        assert found.interval.high >= interval.high - 1e-12
        assert found.p_value >= expected.pvalue * (1 - 1e-9)
        assert (found.p_value < 0.05) == (0 not in found.interval)
        assert found.standard_error == pytest.approx(float(stats.sem(own - seeds - other)))


def test_a_constant_side_proves_nothing_without_bounds_whether_or_not_it_wobbles() -> None:
    rng = np.random.default_rng(2)
    for wobble in (0.0, 1e-9, 1e-3):
        found = of(1 + wobble * rng.normal(0, 1, 60), rng.exponential(1, 60))
        assert (found.verdict, found.interval, found.p_value) == ("unknown", None, None)
        assert "nearly the same score on all 60 common seeds" in found.why_no_interval
    assert of([3.0] * 20, [1.0] * 20).verdict == "unknown"
    assert of([3.0] * 20, [3.0] * 20).verdict == "tied"


def test_few_or_skewed_differences_have_no_verdict_without_bounds() -> None:
    rng = np.random.default_rng(1)
    few = of(rng.normal(0, 1, 19), rng.normal(9, 1, 19))
    assert (few.verdict, few.interval) == ("unknown", None)
    assert few.why_no_interval.startswith("19 common seeds are too few for a metric without declared bounds")
    unlike = of(rng.normal(0, 1, 39), rng.normal(9, 3, 39))
    assert "39 common seeds are too few for scores that spread so unlike; it takes 40" in unlike.why_no_interval
    assert of(rng.normal(0, 1, 40), rng.normal(9, 3, 40)).verdict == "worse"
    skewed = of(np.append(rng.normal(0, 1, 29), 60.0), np.append(rng.normal(0, 1, 29), 40.0))
    assert skewed.why_no_interval.startswith("30 common seeds are too few for differences this skewed; it takes about")


@pytest.mark.parametrize(
    ("k", "unlike", "used"),
    [(20, False, 0.005), (29, False, 0.005), (30, False, 0.05 - 0.9**30), (40, False, 0.05 - 0.9**40),
     (40, True, 0.03), (100, False, 0.05 - 0.9**100), (1000, False, 0.05), (1000, True, 0.03)],
)  # fmt: skip
def test_the_error_rate_leaves_room_for_an_event_that_no_seed_has_shown(k: int, unlike: bool, used: float) -> None:
    assert error_rate(k, unlike=unlike) == pytest.approx(used)


@pytest.mark.parametrize("k", [20, 22, 25, 28, 30, 40, 100])
def test_the_interval_of_a_difference_is_at_least_students_at_that_error_rate(k: int) -> None:
    rng = np.random.default_rng(k)
    own, other = rng.normal(0.4, 1, k), rng.normal(0, 1, k)
    found = of(own, other)
    expected = stats.ttest_rel(own, other).confidence_interval(1 - error_rate(k))
    assert found.interval is not None
    assert found.interval.level == 0.95
    assert found.interval.low <= expected.low + 1e-9
    assert found.interval.high >= expected.high - 1e-9


@pytest.mark.parametrize("k", [20, 21, 22, 24, 28])
def test_a_sample_without_its_jackpots_is_taken_for_a_difference_in_few_evaluations(k: int) -> None:
    # 10 more in a tenth of the seeds, against normal scores of the same mean. Without a jackpot, differences are
    # normal with mean -1 and variance 2.
    unseen, rng = 0.9**k, np.random.default_rng(k)
    low, high = bounds.wider(rng.normal(0, 1, (1500, k)) - rng.normal(1, 1, (1500, k)), 1 - error_rate(k))
    assert unseen * float(((low > 0) | (high < 0)).mean()) <= 0.058
    assert unseen * power_of(1 / math.sqrt(2), k) > 0.045  # at the whole error rate, all of it would be spent


def test_a_difference_of_one_standard_deviation_is_found_with_twenty_seeds() -> None:
    rng = np.random.default_rng(20)
    low, _ = bounds.wider(rng.normal(1, 1, (1500, 20)), 1 - error_rate(20))
    assert float((low > 0).mean()) > 0.78


def test_a_tie_of_few_seeds_says_how_many_settle_it_at_the_error_rate_of_that_many() -> None:
    rng = np.random.default_rng(24)
    other, noise = rng.normal(0, 1, 24), rng.normal(0, 1, 24)
    found = of(other + 0.5 + (noise - noise.mean()) / noise.std(ddof=1), other)
    assert found.verdict == "tied"
    needed, effect = found.seeds_to_settle, found.difference / ((found.standard_error or 0.0) * math.sqrt(24))
    assert needed is not None
    assert power_of(effect, needed, level=1 - error_rate(needed)) >= 0.8
    assert power_of(effect, needed - 1, level=1 - error_rate(needed - 1)) < 0.8


@pytest.mark.parametrize(("more", "less"), [(4, 0), (5, 1), (9, 4)])
def test_a_tie_of_won_and_lost_seeds_says_how_many_settle_it_by_the_sign_test(more: int, less: int) -> None:
    k = more + less + 1
    found = of([1.0] * more + [0.0] * (less + 1), [0.0] * more + [1.0] * less + [0.0], low=0, high=1)
    assert found.verdict == "tied"
    needed = found.seeds_to_settle
    assert needed is not None
    assert needed > k
    assert power_of_signs(more / k, less / k, needed) >= 0.8
    assert needed == k + 1 or power_of_signs(more / k, less / k, needed - 1) < 0.8
    rng = np.random.default_rng(more)
    won, lost, _ = rng.multinomial(needed, [more / k, less / k, 1 / k], 4000).T
    exact = np.minimum(1, 2 * stats.binom.cdf(np.minimum(won, lost), won + lost, 0.5))
    assert float((exact <= 0.05).mean()) == pytest.approx(power_of_signs(more / k, less / k, needed), abs=0.03)


@pytest.mark.parametrize("k", [5, 12])
def test_a_tie_of_bounded_scores_says_how_many_settle_it_by_bets(k: int) -> None:
    rng = np.random.default_rng(k)
    own, other = np.clip(rng.beta(2, 2, k) + 0.2, 0, 1), rng.beta(2, 2, k)
    found = of(own.tolist(), other.tolist(), low=0, high=1)
    assert found.verdict == "tied"
    needed = found.seeds_to_settle
    assert needed is not None
    assert needed > k
    settled = [bets_on_differences(rng.choice(own - other, needed))[1] <= 0.05 for _ in range(200)]
    assert 0.7 < sum(settled) / len(settled) < 0.95


def test_with_bounds_the_same_differences_are_judged_by_bets() -> None:
    found = of([0.9] * 12, [0.1] * 12, low=0, high=1)
    # All twelve differences are 0.8, so a gambler with all at stake has 1.8 to the 12th.
    assert found.p_value is not None
    assert found.p_value >= 2 / 1.8**12
    assert found.verdict == "better"
    assert found.interval is not None
    assert found.interval.low > 0
    assert of([0.9] * 3, [0.1] * 3, low=0, high=1).verdict == "tied"
    outside = of([1.5] * 20, [0.1] * 20, low=0, high=1)
    assert outside.verdict == "unknown"  # the bounds don't hold


def test_lives_that_all_gain_the_same_are_judged_by_their_signs() -> None:
    found = by_life({life: [0.5, 0.5] for life in range(6)}).effect
    assert (found.verdict, found.p_value) == ("better", pytest.approx(stats.binomtest(6, 6).pvalue))
    assert by_life({life: [-0.5] for life in range(20)}).effect.verdict == "worse"
    assert by_life({life: [0.5] for life in range(5)}).effect.verdict == "unknown"
    assert by_life({life: [0.0] for life in range(5)}).effect.verdict == "tied"


Draw = Callable[[np.random.Generator, int], Array]
MEAN = math.exp(0.5)


def lognormal(rng: np.random.Generator, n: int) -> Array:
    return rng.lognormal(0, 1, n)


UNLIKE: dict[str, tuple[Draw, Draw]] = {
    "exponential against 1 ± 0.001": (lambda rng, n: rng.exponential(1, n), lambda rng, n: rng.normal(1, 0.001, n)),
    "lognormal against 19 of 20 equal": (
        lognormal,
        lambda rng, n: MEAN + (rng.random(n) < 0.05) * rng.uniform(-1, 1, n),
    ),
    "lognormal against normal, SD 0.3": (lognormal, lambda rng, n: rng.normal(MEAN, 0.3, n)),
    "a jackpot in a tenth against its mean ± 0.001": (
        lambda rng, n: 10.0 * (rng.random(n) < 0.1) + rng.normal(0, 1, n),
        lambda rng, n: rng.normal(1, 0.001, n),
    ),
    "0/1 of 0.05 against 0.05 ± 0.001": (
        lambda rng, n: (rng.random(n) < 0.05).astype(np.float64),
        lambda rng, n: rng.normal(0.05, 0.001, n),
    ),
    "lognormal against normal, SD 1": (lognormal, lambda rng, n: rng.normal(MEAN, 1, n)),
    "a jackpot in a tenth against its mean ± 1": (
        lambda rng, n: 10.0 * (rng.random(n) < 0.1) + rng.normal(0, 1, n),
        lambda rng, n: rng.normal(1, 1, n),
    ),
}
"""Scores of equal means whose differences Student's t took for real in 7 to 36 % of evaluations."""


def alarms(name: str, n: int, evaluations: int, **metric: float) -> float:
    """Return the share of evaluations in which a difference was seen."""
    own, other = UNLIKE[name]
    rng = np.random.default_rng(n)
    seen = [of(own(rng, n), other(rng, n), **metric).verdict for _ in range(evaluations)]
    return sum(verdict in ("better", "worse") for verdict in seen) / evaluations


@pytest.mark.slow
@pytest.mark.parametrize("name", list(UNLIKE))
def test_unlike_shapes_raise_few_false_alarms_in_a_few_evaluations(name: str) -> None:
    # More than 24 of 200 at a rate of 5.7 % have a probability below 0.001.
    assert stats.binom.sf(23, 200, 0.057) < 1e-3
    for n in (5, 20, 40):
        assert alarms(name, n, 200) <= 0.12
    assert alarms("0/1 of 0.05 against 0.05 ± 0.001", 20, 200, low=0, high=1) <= 0.05


@pytest.mark.slow
@pytest.mark.parametrize("n", [5, 10, 20, 40, 80])
@pytest.mark.parametrize("name", list(UNLIKE))
def test_unlike_shapes_raise_few_false_alarms_in_two_thousand_evaluations(name: str, n: int) -> None:
    assert alarms(name, n, 2000) <= 0.057


@pytest.mark.slow
def test_the_command_tells_always_from_seldom(tmp_path: Path) -> None:
    game, out = f"{LEVELS}:Levels", str(tmp_path / "out")
    entrants = [word for n in (20, 12, 4, 0) for word in ("--entrant", f"always,action=a{n},label=a{n}")]
    result = CliRunner().invoke(main, ["--game", game, *entrants, "--seeds", "20", "--jobs", "1", "--out", out])
    assert result.exit_code == 0, result.output
    rows = json.loads(CliRunner().invoke(main, ["show", out, "--json"]).stdout)["rows"]
    found = {row["entrant"]: (row["difference"]["verdict"], row["difference"]["p_value"]) for row in rows[1:]}
    signs = {"a12": 2 / 2**8, "a4": 2 / 2**16, "a0": 2 / 2**20}
    assert found == {name: ("worse", pytest.approx(p_value)) for name, p_value in signs.items()}
    assert "-0.80 (-0.98 to -0.44), p < 0.0001, worse" in result.output
    alone = CliRunner().invoke(main, ["compare", out, "a4", "a0", "--baseline", "a20"]).output
    assert alone.count("p < 0.0001, worse") == 2


def test_pareto_tails_without_bounds_are_a_stated_gap() -> None:
    # docs/explanation/intervals.md gives 87 % at 20 seeds for a tail of exponent 2.5: this interval covers less often.
    rng = np.random.default_rng(4)
    rows = rng.pareto(2.5, (2000, 20))
    low, high = bounds.wider(rows)
    shown = np.ceil(3 * bounds.skewness(rows) ** 2) <= 20
    held = ((low <= 1 / 1.5) & (high >= 1 / 1.5))[shown].mean()
    assert 0.80 < held < 0.94
