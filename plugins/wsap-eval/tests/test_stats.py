from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from scipy import special, stats

from wsap_core.errors import UsageError
from wsap_eval.stats import (
    Match,
    bounds,
    by_life,
    contiguous,
    estimate,
    holm,
    lives_needed,
    normalised,
    paired,
    paired_set_metric,
    power,
    ratings,
    ratio,
    reached,
    sequence,
    set_metric,
)
from wsap_eval.stats.paired import power_of, values_needed

SLEEP = (
    [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0],
    [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4],
)
"""Hours of sleep gained by ten patients with two drugs (Student, "The probable error of a mean", 1908)."""
DYESTUFF = [
    [1545, 1440, 1440, 1520, 1580],
    [1540, 1555, 1490, 1560, 1495],
    [1595, 1550, 1605, 1510, 1560],
    [1445, 1440, 1595, 1465, 1545],
    [1595, 1630, 1515, 1635, 1625],
    [1520, 1455, 1450, 1480, 1445],
]
"""Yields of five samples of each of six batches (Davies and Goldsmith, 1972)."""
BASEBALL = {
    "Milwaukee": [0, 7, 9, 7, 7, 9, 11],
    "Detroit": [6, 0, 7, 5, 11, 9, 9],
    "Toronto": [4, 6, 0, 7, 7, 8, 12],
    "New York": [6, 8, 6, 0, 6, 7, 10],
    "Boston": [6, 2, 6, 7, 0, 7, 12],
    "Cleveland": [4, 4, 5, 6, 6, 0, 6],
    "Baltimore": [2, 4, 1, 3, 1, 7, 0],
}
"""Wins over each other in the American League of 1987 (Agresti, "Categorical Data Analysis", table 10.10)."""


def test_repeats_of_a_seed_are_one_cluster_with_variances_between_and_inside() -> None:
    seen = estimate([float(y) for batch in DYESTUFF for y in batch], [i for i in range(6) for _ in range(5)])
    assert (seen.n, seen.clusters, seen.mean) == (30, 6, 1527.5)
    # The mixed model's estimates in the documentation of R's lme4.
    assert seen.between_sd == pytest.approx(42.0, abs=0.005)
    assert seen.within_sd == pytest.approx(49.51, abs=0.005)
    assert seen.standard_error == pytest.approx(19.38, abs=0.005)


def test_the_clustered_standard_error_is_millers_with_a_correction_for_few_seeds() -> None:
    values, mean = np.array(DYESTUFF, dtype=float), np.mean(DYESTUFF)
    crossed = sum(np.outer(batch - mean, batch - mean).sum() for batch in values)
    seen = estimate(list(values.ravel()), [i for i in range(6) for _ in range(5)])
    assert seen.standard_error == pytest.approx(math.sqrt(crossed) / 30 * math.sqrt(6 / 5))


def test_without_bounds_the_interval_is_at_least_students() -> None:
    values = list(np.random.default_rng(3).normal(5, 2, 30))
    seen, expected = estimate(values).interval, stats.ttest_1samp(values, 0).confidence_interval()
    assert seen is not None
    assert seen.low <= expected.low + 1e-12
    assert seen.high >= expected.high - 1e-12
    assert seen.half_width < 1.1 * (expected.high - expected.low) / 2


def test_the_studentised_bootstrap_takes_quantiles_of_resampled_t_statistics() -> None:
    values = np.random.default_rng(5).exponential(1, 25)
    counts = np.random.default_rng(0).multinomial(25, np.full(25, 1 / 25), size=1000)
    drawn = [np.repeat(values, count) for count in counts]
    t = sorted((sample.mean() - values.mean()) / (sample.std() / 5) for sample in drawn)
    low, high = bounds.bootstrap_t(values)
    assert (low, high) == pytest.approx((
        values.mean() - t[974] * values.std() / 5,
        values.mean() - t[25] * values.std() / 5,
    ))  # fmt: skip


def test_skewness_is_that_of_scipy() -> None:
    rows = np.random.default_rng(5).exponential(1, (3, 12))
    assert bounds.skewness(rows) == pytest.approx(stats.skew(rows, axis=-1, bias=False))


@pytest.mark.parametrize(
    ("hits", "n", "low", "high"),
    # The example of R's binom.test, Mendel's peas; then closed formulas for none and all.
    [(682, 925, 0.7076683, 0.7654066), (0, 10, 0.0, 1 - 0.025**0.1), (7, 7, 0.025 ** (1 / 7), 1.0)],
)
def test_hits_and_misses_have_clopper_and_pearsons_interval(hits: int, n: int, low: float, high: float) -> None:
    seen = estimate([1.0] * hits + [0.0] * (n - hits), low=0, high=1).interval
    assert seen is not None
    assert (seen.low, seen.high) == pytest.approx((low, high), abs=5e-8)
    assert "Clopper" in seen.method


@pytest.mark.parametrize("mean", [0.03, 0.2, 0.5, 0.9])
def test_a_gambler_expects_nothing_where_the_supposed_mean_is_right(mean: float) -> None:
    rows = np.array(list(itertools.product([0.0, 1.0], repeat=8)))
    chances = np.prod(np.where(rows == 1, mean, 1 - mean), axis=-1)
    wealth = np.exp(bounds.log_wealth(rows, np.full(len(rows), mean), np.array([0.3, 1.0, 4.0])))
    assert chances @ wealth == pytest.approx(1.0)


def test_a_gamblers_wealth_falls_as_the_supposed_mean_rises_and_forgets_the_order() -> None:
    values = np.random.default_rng(1).random(20)
    bets = np.array([0.5, 2.0])
    wealth = [float(bounds.log_wealth(values, np.array(mean), bets)) for mean in np.linspace(0.01, 0.99, 50)]
    assert all(later < earlier for earlier, later in itertools.pairwise(wealth))
    assert bounds.log_wealth(values[::-1], np.array(0.3), bets) == pytest.approx(
        bounds.log_wealth(values, np.array(0.3), bets, over_time=True)[-1]
    )


@pytest.mark.parametrize("bets", [None, bounds.SEQUENCE_BETS])
def test_bets_hold_for_three_values_by_exact_enumeration(
    bets: bounds.Array | None,
) -> None:
    outcomes = np.array(list(itertools.product([0.0, 0.25, 1.0], repeat=6)))
    low, high = bounds.betting(outcomes, bets=bets)
    for odds in itertools.product([0.02, 0.1, 0.3, 0.6], repeat=2):
        if sum(odds) <= 1:
            each = np.array([1 - sum(odds), *odds])
            chances = np.prod(each[np.searchsorted([0.0, 0.25, 1.0], outcomes)], axis=-1)
            mean = each @ [0.0, 0.25, 1.0]
            assert chances[(low > mean) | (mean > high)].sum() <= 0.05


def test_a_bounded_metric_has_an_exact_interval_in_its_own_unit() -> None:
    share = estimate([0.2, 0.5, 0.4, 0.9], low=0, high=1).interval
    percent = estimate([20, 50, 40, 90], low=0, high=100).interval
    assert share is not None
    assert percent is not None
    assert (percent.low, percent.high) == pytest.approx((100 * share.low, 100 * share.high))
    assert 0 <= share.low < 0.5 < share.high <= 1


def test_the_asymptotic_sequence_is_robbins_normal_mixture() -> None:
    rho2 = (2 * math.log(20) + math.log(2 * math.log(20)) + 1) / 50
    for n in (10, 100, 1000):
        robbins = math.sqrt((n + 1 / rho2) * math.log((n * rho2 + 1) / 0.05**2)) / n
        assert bounds.asymptotic_sequence(n) == pytest.approx(robbins)


REASONS = {
    "No episode has a value.": ([], {}),
    "An interval needs at least two seeds.": ([3.0], {}),
    "10 seeds are too few for a metric without declared bounds; it takes 20.": (list(range(10)), {}),
    "All 20 seeds have the same value, so the spread of others is unknown.": ([3.0] * 20, {}),
    "All 4 episodes have the same trajectory and count as one.": (
        [1.0] * 4,
        {"low": 0, "high": 1, "distinct": 1},
    ),
    "The value 25 lies outside the metric's declared bounds 0 to 22.": ([3.0, 25.0], {"low": 0, "high": 22}),
    "20 seeds are too few for scores this skewed; it takes about 60.": ([*([0.0] * 10), *([0.1] * 9), 50.0], {}),
    "Too few of the 40 seeds differ in value from the rest.": ([0.0] * 37 + [1.0] * 3, {}),
}


@pytest.mark.parametrize("why", list(REASONS))
def test_no_interval_without_a_reason(why: str) -> None:
    values, options = REASONS[why]
    seen = estimate([float(v) for v in values], **options)  # type: ignore[arg-type]
    assert (seen.interval, seen.why_no_interval) == (None, why)


def test_one_seed_played_often_is_still_one_seed() -> None:
    seen = estimate([0.0, 1.0, 1.0], [7, 7, 7], low=0, high=1)
    assert (seen.clusters, seen.standard_error, seen.between_sd, seen.interval) == (1, None, None, None)
    assert seen.within_sd == pytest.approx(math.sqrt(1 / 3))


def test_numbers_that_are_none_are_refused() -> None:
    with pytest.raises(UsageError, match="seed 4 is nan"):
        estimate([1.0, math.nan], [3, 4])
    with pytest.raises(UsageError, match="2 values but 1 seeds"):
        estimate([1.0, 2.0], [3])


def test_the_difference_of_lives_is_students() -> None:
    first, second = map(np.array, SLEEP)
    seen = by_life({life: [hours] for life, hours in enumerate(first - second)}).effect
    # R: t.test(extra ~ group, sleep, paired = TRUE)
    assert seen.interval is not None
    assert (seen.interval.low, seen.interval.high) == pytest.approx((-2.4598858, -0.7001142))
    assert seen.p_value == pytest.approx(0.002833, abs=5e-7)
    assert (seen.seeds, seen.verdict, seen.seeds_to_settle) == (10, "worse", None)


def test_a_tie_says_how_many_seeds_would_settle_it() -> None:
    four = {1: 0.0, 2: 0.5, 3: 0.25, 4: 0.75}, {1: 0.0, 2: 0.0, 3: 0.5, 4: 0.5}
    seen = paired({**four[0], 9: 1.0}, four[1], low=0, high=1)
    assert (seen.seeds, seen.verdict) == (4, "tied")
    least = values_needed(0.125, float(np.std([0, 0.5, -0.25, 0.25], ddof=1)))
    assert seen.seeds_to_settle is not None
    assert least is not None
    assert seen.seeds_to_settle > least, "bets take more seeds than a t test"
    assert paired({1: 1.0, 2: 0.0}, {1: 0.0, 2: 1.0}, low=0, high=1).seeds_to_settle is None


# R: pwr.t.test(d, power = 0.8, type = "one.sample") gives 33.37, 198.15, 14.30.
@pytest.mark.parametrize(("effect", "needed"), [(0.5, 34), (0.2, 199), (0.8, 15)])
def test_seeds_needed_are_those_of_the_noncentral_t(effect: float, needed: int) -> None:
    assert values_needed(effect, 1.0) == needed


def test_differences_that_do_not_vary_have_no_interval() -> None:
    same = paired({1: 1.0, 2: 2.0}, {1: [1.0, 1.0], 2: 2.0})
    assert (same.verdict, same.interval, same.p_value) == ("tied", None, None)
    shifted = {seed: 0.1 + seed for seed in range(20)}
    assert paired(shifted, {seed: float(seed) for seed in range(20)}).p_value == pytest.approx(
        stats.binomtest(20, 20).pvalue
    )
    assert paired({1: 1.0}, {1: 0.0}).why_no_interval == "An interval needs at least two common seeds."
    with pytest.raises(UsageError, match="no common seeds"):
        paired({1: 1.0}, {2: 1.0})


def test_several_comparisons_are_corrected_by_holm() -> None:
    # R: p.adjust(c(0.03, 0.01, 0.05, 0.02, 0.04), "holm")
    assert holm([0.03, 0.01, 0.05, 0.02, 0.04]) == pytest.approx([0.09, 0.05, 0.09, 0.08, 0.09])
    assert holm([]) == []


def test_fiellers_bounds_are_the_ratios_that_a_t_test_just_refuses() -> None:
    above, below = np.array(SLEEP)
    seen = ratio(list(above), list(below))
    assert seen.value == pytest.approx(0.75 / 2.33)
    assert seen.interval is not None
    for end in (seen.interval.low, seen.interval.high):
        assert stats.ttest_1samp(above - end * below, 0).pvalue == pytest.approx(0.05)


def test_a_ratio_to_what_may_be_nothing_is_undefined() -> None:
    assert ratio([1.0, 2.0, 3.0], [1.0, -1.0, 0.5]).why_undefined == "undefined: the denominator may be 0"
    assert ratio([1.0], [1.0]).value is None
    with pytest.raises(UsageError, match="pairs"):
        ratio([1.0], [1.0, 2.0])


def test_anchors_are_0_and_1_on_the_normalised_scale() -> None:
    rng = np.random.default_rng(2)
    random, scripted = ({seed: float(rng.normal(mean, 1)) for seed in range(12)} for mean in (0, 6))
    assert normalised(random, random, scripted).value == 0
    own = normalised(scripted, random, scripted)
    assert own.value == 1
    assert own.interval is not None
    assert (own.interval.low, own.interval.high) == pytest.approx((1, 1))
    assert normalised({99: 1.0}, random, scripted).why_undefined == "undefined: the three have no common seeds"


def mean(episodes: Sequence[float]) -> float:
    return float(np.mean(episodes))


def test_the_jackknife_of_a_mean_is_students_and_unbiases_a_variance() -> None:
    values = list(np.random.default_rng(4).normal(0, 1, 40))
    episodes = {seed: [value] for seed, value in enumerate(values)}
    seen, expected = set_metric(episodes, mean).interval, stats.ttest_1samp(values, 0).confidence_interval()
    assert seen is not None
    assert (seen.low, seen.high) == pytest.approx((expected.low, expected.high))
    variance = set_metric(episodes, lambda e: float(np.var(e))).interval
    assert variance is not None
    assert (variance.low + variance.high) / 2 == pytest.approx(np.var(values, ddof=1))


def test_a_difference_of_sets_draws_the_same_seeds_for_both() -> None:
    rng = np.random.default_rng(4)
    one = {seed: list(rng.normal(seed, 1, 2)) for seed in range(25)}
    two = {seed: [value - 3 for value in values] for seed, values in one.items()}
    seen = paired_set_metric(one, two, mean, resamples=50).interval
    assert seen is not None
    assert (seen.low, seen.high) == pytest.approx((3, 3))
    assert "no promise" in seen.method
    few = {seed: one[seed] for seed in range(5)}
    assert "too few" in set_metric(few, mean).why_no_interval
    assert "too few" in paired_set_metric(few, two, mean).why_no_interval
    assert set_metric({}, mean).value is None


def test_a_sequence_is_looked_at_on_seeds_without_a_gap() -> None:
    assert contiguous({1: 0.5, 2: [0.1, 0.2], 4: 1.0}, range(1, 6)) == [1, 2]
    exact, why = sequence([0.2, 0.9, 0.4], low=0, high=1)
    assert exact is not None
    assert (exact.method, why) == ("confidence sequence, exact (betting)", "")
    values = list(np.random.default_rng(1).normal(0, 1, 100))
    asymptotic, _ = sequence(values)
    assert asymptotic is not None
    assert "from 100 seeds" in asymptotic.method
    assert sequence(values[:99])[1] == "99 seeds are too few for a metric without declared bounds; it takes 100."
    assert sequence([])[0] is None
    assert estimate(values, any_look=True).interval == asymptotic
    assert estimate([0.0, 1.0, 0.0], low=0, high=1, any_look=True).interval == sequence([0, 1, 0], low=0, high=1)[0]


def test_bradley_and_terrys_strengths_are_the_published_ones() -> None:
    names = list(BASEBALL)
    matches = [
        Match(number, (winner, loser), (1, 0))
        for winner, row in BASEBALL.items()
        for loser, wins in zip(names, row, strict=True)
        for number in range(wins)
    ]
    logits = {rating.entrant: rating.elo * math.log(10) / 400 for rating in ratings(matches)}
    published = {"Milwaukee": 1.581, "Detroit": 1.436, "Toronto": 1.294, "New York": 1.248, "Boston": 1.108,
                 "Cleveland": 0.684, "Baltimore": 0.0}  # fmt: skip
    assert list(logits) == list(published)
    assert {name: logits[name] - logits["Baltimore"] for name in names} == pytest.approx(published, abs=0.02)


def test_ratings_know_who_compares_with_whom_and_stay_finite() -> None:
    matches = [Match(seed, ("a", "b", "b"), (3, 2, 1)) for seed in range(30)]
    matches += [Match(seed, ("x", "y"), (1, 1)) for seed in range(30)]
    found = {rating.entrant: rating for rating in ratings(matches)}
    assert [found[name].group for name in "abxy"] == [0, 0, 1, 1]
    assert found["a"].elo == -found["b"].elo > 200
    assert found["x"].elo == pytest.approx(0)
    assert found["a"].games == 30
    assert found["a"].interval is None, "a won every game, and all seeds say the same"
    upset = ratings([*matches, Match(3, ("b", "a"), (2, 1))])
    assert next(rating for rating in upset if rating.entrant == "a").interval is not None
    assert ratings([Match(1, ("a", "b"), (1, 0))])[0].interval is None
    assert ratings([]) == []


def test_the_unit_of_transfer_is_the_life() -> None:
    differences = {life: [x / 10 + life for x in (-1, 0, 1, 2)] for life in range(4)}
    seen = by_life(differences)
    expected = stats.ttest_1samp([life + 0.05 for life in range(4)], 0)
    assert seen.effect.p_value == pytest.approx(expected.pvalue)
    assert (seen.effect.seeds, seen.naive.seeds) == (4, 16)
    assert seen.within_sd == pytest.approx(np.std([-0.1, 0, 0.1, 0.2], ddof=1))
    assert seen.between_sd == pytest.approx(math.sqrt(np.var(range(4), ddof=1) - np.var([0, 1, 2, 3], ddof=1) / 400))
    with pytest.raises(UsageError, match="at least one target seed"):
        by_life({1: [0.1], 2: []})


@pytest.mark.parametrize(
    ("lives", "seeds", "effect", "chance"), [(10, 20, 0.1, 0.48), (20, 20, 0.1, 0.81), (40, 10, 0.1, 0.92)]
)
def test_power_is_that_by_which_the_default_was_chosen(lives: int, seeds: int, effect: float, chance: float) -> None:
    assert power(effect, within_sd=0.5, between_sd=0.1, lives=lives, seeds=seeds) == pytest.approx(chance, abs=0.015)


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("effect", [0, 0.1, 1, 10, 20, 50, 1000, 1e100, math.inf])
def test_the_power_of_two_values_is_owens(effect: float, level: float) -> None:
    # |Z + shift| > c |Y| of two normal values is an angle of a plane, so its probability is closed in Owen's T.
    c = math.tan(level * math.pi / 2)
    known = 1 - 4 * float(special.owens_t(effect * math.sqrt(2) / math.sqrt(1 + c * c), c))
    assert power_of(effect, 2, level=level) == pytest.approx(known, abs=1e-6)
    assert power_of(-effect, 2, level=level) == power_of(effect, 2, level=level)


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999, 1 - 1e-9])
def test_power_is_a_number_and_grows_with_the_effect(level: float) -> None:
    for n in (2, 3, 5, 20, 100, 1000, 10**6):
        found = [power_of(effect, n, level=level) for effect in [0, *np.geomspace(1e-3, 1e9, 60), 1e200, math.inf]]
        assert found[0] == pytest.approx(1 - level, abs=1e-8)
        assert found[-1] == 1
        assert all(b >= a - 1e-3 * (n == 2) - 1e-12 for a, b in itertools.pairwise(found))


def test_a_pilots_deviations_say_how_many_lives_are_needed() -> None:
    needed = lives_needed(0.1, within_sd=0.5, between_sd=0.1, seeds=20)
    assert needed == 20
    assert power(0.1, within_sd=0.5, between_sd=0.1, lives=needed, seeds=20) >= 0.8
    assert power(0.1, within_sd=0.5, between_sd=0.1, lives=needed - 1, seeds=20) < 0.8
    assert lives_needed(0.0, within_sd=0.5, between_sd=0.1, seeds=20) is None


SCORES: dict[str, Callable[[np.random.Generator], bounds.Array]] = {
    "often": lambda rng: (rng.random(80) < 0.3).astype(float),
    "seldom": lambda rng: (rng.random(80) < 0.02).astype(float),
    "never": lambda rng: np.zeros(80),
    "always": lambda rng: np.ones(80),
    "skewed": lambda rng: rng.beta(0.2, 3, 80),
    "rising": lambda rng: np.sort(rng.random(80)),
    "outside": lambda rng: np.append(rng.random(40), [1.5] * 40),
}


@pytest.mark.parametrize("kind", SCORES)
def test_the_number_at_which_a_half_width_is_reached_is_that_of_looking_after_each(kind: str) -> None:
    scores = (SCORES[kind](np.random.default_rng(3)) * 10 - 3).tolist()
    looks = [sequence(scores[:count], low=-3, high=7)[0] for count in range(81)]
    for wanted in (3.0, 1.5, 0.9, 0.5, 0.01):
        for first in (2, 30):
            known = [n for n, look in enumerate(looks) if n >= first and look is not None and look.half_width <= wanted]
            assert reached(scores, wanted, first=first, low=-3, high=7) == (known[0] if known else None)


@pytest.mark.parametrize("wanted", [2.0, 0.3, 0.25, 0.01])
def test_the_same_without_bounds(wanted: float) -> None:
    rng = np.random.default_rng(4)
    for scores in (rng.normal(100, 1, 400), rng.exponential(1, 400), np.ones(150), np.zeros(1), np.zeros(0)):
        values = scores.tolist()
        looks = [sequence(values[:count])[0] for count in range(len(values) + 1)]
        known = [n for n, look in enumerate(looks) if look is not None and look.half_width <= wanted]
        assert reached(values, wanted) == (known[0] if known else None)


def test_thousands_of_seeds_take_few_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    taken, whole = list[int](), bounds.betting

    def counted(rows: bounds.Array, *given: object, **more: object) -> bounds.Bounds:
        taken.append(rows.shape[-1])
        return whole(rows, *given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(bounds, "betting", counted)
    for scores in (np.random.default_rng(5).random(10_000) < 0.3, np.zeros(10_000)):
        assert reached(scores.astype(float).tolist(), 1e-5, low=0, high=1) is None
    assert 0 < len(taken) < 400
