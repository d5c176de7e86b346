"""Paired differences on common seeds or over lives, their ratios, power, and correction for multiple comparisons."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from wsap_core.errors import UsageError
from wsap_eval.stats.bounds import (
    SEQUENCE_BETS,
    Array,
    asymptotic_sequence,
    betting,
    default_bets,
    log_wealth,
    student,
    wider,
)
from wsap_eval.stats.estimates import FEWEST, Interval, Values, seeds_for_skewness, sequence, variances

T = TypeVar("T")
Verdict = Literal["better", "worse", "tied", "unknown"]


@dataclass(frozen=True)
class Paired:
    """A difference from a baseline on common seeds."""

    seeds: int
    difference: float
    """Mean over common seeds of the values minus the baseline's."""
    standard_error: float | None
    """None with one seed."""
    interval: Interval | None
    p_value: float | None
    """Two-sided, for no difference."""
    verdict: Verdict
    """"better" if p is below the error rate and the difference above 0, "tied" if the interval contains 0; "unknown" if
    nothing can be said."""
    seeds_to_settle: int | None
    """For a tie: seeds needed to detect a true difference of this size with power 0.8; None if over a million."""
    why_no_interval: str = ""


@dataclass(frozen=True)
class Ratio:
    """A ratio of two means over the same seeds or lives."""

    value: float | None
    """None if undefined."""
    interval: Interval | None
    why_undefined: str = ""


LIKE, NEARLY_CONSTANT = 1 / 2, 1 / 10
"""Ratios of the standard deviations of two entrants' scores: from the first, their shapes offset each other in the
difference; below the second, one of them is nearly constant beside the other."""
POWER = 0.8
"""Of the tests whose numbers of seeds are given."""
MOST_SIGNS = 400
"""Numbers of seeds that settle a difference of scores at their bounds are exact below this one."""
LARGE_SHIFT = 1000.0
"""Standard errors from which a mean is taken as known in the power of a test, which is then off by less than 1e-6."""
FEWEST_UNLIKE, MISSED_UNLIKE = 40, 0.6
"""Minimum seeds for a difference of scores that spread unlike, and the share of the error rate that is used for it."""
UNSEEN, LEAST_USED = 1 / 10, 1 / 10
"""An event in this share of seeds may be missing from the common ones, and decide the mean: the probability of that is
taken off the error rate, of which this share always remains."""


def paired(
    values: Values,
    baseline: Values,
    *,
    low: float | None = None,
    high: float | None = None,
    level: float = 0.95,
    any_look: bool = False,
) -> Paired:
    """Return the mean difference on common seeds with its interval and a verdict.

    If all values are one of two declared bounds, the p-value is that of the exact sign test. Otherwise the interval is
    that of `estimate` for a metric without bounds, from 20 seeds, at the error rate of `error_rate`; from 40, if one
    side's values spread more than twice as much as the other's, since nothing then offsets their skewness. Where that
    gives none, differences of a metric with two bounds have an exact interval by betting, which holds for all
    distributions.

    Args:
        values: seed -> value, or values of its repeats.
        baseline: the same of the baseline.
        low: the metric's lower bound; None if it has none.
        high: the metric's upper bound; None if it has none.
        level: nominal coverage of the interval.
        any_look: sampling may stop at any number of seeds; interval and p-value are those of a confidence sequence,
            exact for a metric with two bounds, otherwise asymptotic, from 100 seeds.

    Raises:
        UsageError: there are no common seeds.
    """
    seeds = common_seeds(values, baseline)
    own, other = _means(values, seeds), _means(baseline, seeds)
    rows, k = own - other, len(seeds)
    largest = float(np.abs(np.concatenate([own, other])).max())
    if k < 2:
        return _unjudged(rows, "An interval needs at least two common seeds.")
    if float(np.abs(rows).max()) <= 1e-12 * largest:
        return Paired(k, 0.0, 0.0, None, None, "tied", None, f"The values are equal on all {k} common seeds.")
    both = np.concatenate([own, other])
    width = None
    if low is not None and high is not None and low < high and low <= both.min() and both.max() <= high:
        width = high - low
        if any_look:
            return _bets(rows / width, width, level, any_look=True)
        if np.isin(both, (low, high)).all():
            return _signs(rows / width, width, level)
    if any_look:
        return _at_any_look(rows, own, other, level)
    found = _by_shape(rows, own, other, level)
    if width is not None and found.verdict == "unknown":
        return _bets(rows / width, width, level)
    return found


def _unjudged(rows: Array, why: str) -> Paired:
    k = len(rows)
    error = float(rows.std(ddof=1)) / math.sqrt(k) if k > 1 else None
    return Paired(k, float(rows.mean()), error, None, None, "unknown", None, why)


def _by_shape(rows: Array, own: Array, other: Array, level: float) -> Paired:
    """Return the difference by the rules for a metric without bounds, "unknown" where they allow no interval."""
    k = len(rows)
    narrow, wide = sorted((float(own.std(ddof=1)), float(other.std(ddof=1))))
    if k < FEWEST:
        return _unjudged(rows, f"{k} common seeds are too few for a metric without declared bounds; it takes {FEWEST}.")
    if narrow <= NEARLY_CONSTANT * wide:
        why = (
            f"One side has nearly the same score on all {k} common seeds, so the spread of others is unknown; it takes "
            "a metric with declared bounds."
        )
        return _unjudged(rows, why)
    if _constant(rows):
        return _all_alike(rows, level, f"The values differ by the same amount on all {k} common seeds")
    unlike = narrow < LIKE * wide
    if unlike and k < FEWEST_UNLIKE:
        why = f"{k} common seeds are too few for scores that spread so unlike; it takes {FEWEST_UNLIKE}."
        return _unjudged(rows, why)
    if k < (needed := seeds_for_skewness(rows)):
        return _unjudged(rows, f"{k} common seeds are too few for differences this skewed; it takes about {needed}.")
    low, high = (float(end) for end in wider(rows, 1 - error_rate(k, level, unlike=unlike)))
    if not math.isfinite(high - low):
        return _unjudged(rows, f"Too few of the {k} differences differ from the rest.")
    interval = Interval(low, high, level, f"t and bootstrap-t, the wider{', for unlike scores' * unlike}, paired")
    found = _judged(rows, interval, _t_scaled(rows, low if rows.mean() > 0 else high, level))
    if found.seeds_to_settle is None:
        return found
    return replace(found, seeds_to_settle=_seeds_to_settle(found.difference, float(rows.std(ddof=1)), level, unlike))


def _seeds_to_settle(difference: float, deviation: float, level: float, unlike: bool) -> int | None:
    """Return how many seeds detect a mean difference, each number at its own error rate; None if over a million."""
    highest = error_rate(10**6, level, unlike=unlike)
    needed = values_needed(difference, deviation, level=1 - highest)
    if needed is None:
        return None
    effect = abs(difference) / deviation
    while (used := error_rate(needed, level, unlike=unlike)) < highest and (
        power_of(effect, needed, level=1 - used) < POWER
    ):
        needed += 1
    return needed


def error_rate(k: int, level: float = 0.95, *, unlike: bool = False) -> float:
    """Return the error rate at which the difference of scores on k seeds is judged by their shape.

    It is 1 - level, less the probability that k seeds lack an event that occurs in a tenth of all: a sample without
    that event looks like any other, so that no rule for its values can tell, and only the two probabilities together
    bound false alarms. That leaves nothing below 29 seeds; a tenth of the error rate is always used.

    Args:
        k: number of common seeds.
        level: nominal coverage.
        unlike: one side's scores spread more than twice as much as the other's; the rate is then 0.6 of 1 - level at
            most.
    """
    allowed = 1 - level
    used = max(allowed * LEAST_USED, allowed - (1 - UNSEEN) ** k)
    return min(used, allowed * MISSED_UNLIKE) if unlike else used


def _at_any_look(rows: Array, own: Array, other: Array, level: float) -> Paired:
    """Return the difference by an asymptotic confidence sequence, "unknown" where the rules allow none."""
    narrow, wide = sorted((float(own.std(ddof=1)), float(other.std(ddof=1))))
    if narrow <= NEARLY_CONSTANT * wide:
        why = "One side has nearly the same score on all common seeds, so the spread of others is unknown."
        return _unjudged(rows, why)
    used = 1 - (1 - level) * (MISSED_UNLIKE if narrow < LIKE * wide else 1)
    found, why = sequence(rows.tolist(), level=used)
    if found is None:
        return _unjudged(rows, why)
    share = abs(float(rows.mean())) / float(rows.std(ddof=1))
    low, high = math.log(1e-12), 0.0  # of the highest error rate whose interval contains 0
    for _ in range(50):
        middle = (low + high) / 2
        inside = float(asymptotic_sequence(len(rows), 1 - math.exp(middle) / 2)) >= share
        low, high = (middle, high) if inside else (low, middle)
    p_value = min(1.0, math.exp(high) * (1 - level) / (1 - used))
    return _judged_at_any_look(rows, replace(found, level=level, method=f"{found.method}, paired"), p_value)


def _judged_at_any_look(rows: Array, interval: Interval, p_value: float) -> Paired:
    """Return a judged difference without the seeds that a test of a fixed number of seeds would need."""
    return replace(_judged(rows, interval, p_value), seeds_to_settle=None)


def _t_scaled(rows: Array, end: float, level: float) -> float:
    """Return the p-value of a t test whose statistic is scaled so that it agrees with an interval's end near 0.

    It is below 1 - level if and only if the interval excludes 0, and falls as the difference grows.
    """
    from scipy import special  # deferred for weight

    k, mean = len(rows), float(rows.mean())
    critical = float(special.stdtrit(k - 1, (1 + level) / 2))
    return float(2 * special.stdtr(k - 1, -critical * abs(mean) / abs(mean - end)))


def _constant(rows: Array) -> bool:
    return float(rows.std()) <= 1e-9 * float(np.abs(rows).max())


def _all_alike(rows: Array, level: float, what: str) -> Paired:
    """Return a difference that is always the same, other than 0: its sign is tested, its size has no interval."""
    k, mean, p_value = len(rows), float(rows.mean()), 2.0 ** (1 - len(rows))
    verdict: Verdict = "unknown" if p_value > 1 - level else "better" if mean > 0 else "worse"
    return Paired(k, mean, 0.0, None, p_value, verdict, None, f"{what}; p is that of the sign test.")


def _signs(rows: Array, width: float, level: float) -> Paired:
    """Return the difference of scores that are one of two bounds, by the exact sign test (McNemar's).

    `rows` are -1, 0 or 1. The interval is that by betting, and excludes 0 if and only if the test rejects it.
    """
    from scipy import special  # deferred for weight

    k, more, less = len(rows), int((rows > 0).sum()), int((rows < 0).sum())
    p_value = min(1.0, 2 * float(special.bdtr(min(more, less), more + less, 0.5)))
    (low, high), _ = bets_on_differences(rows, level)
    if p_value > 1 - level:
        low, high = min(low, 0.0), max(high, 0.0)
    elif more > less and low <= 0:
        low = _sure_excess(more, less, k, level)
    elif less > more and high >= 0:
        high = -_sure_excess(less, more, k, level)
    interval = Interval(low * width, high * width, level, "exact (betting), p by the sign test, paired")
    found = _judged(rows * width, interval, p_value)
    if found.seeds_to_settle is None or found.seeds_to_settle > MOST_SIGNS:  # there it is nearly that of a t test
        return found
    needed = next(
        (n for n in range(k + 1, MOST_SIGNS) if power_of_signs(more / k, less / k, n, level=level) >= POWER), None
    )
    return replace(found, seeds_to_settle=needed or found.seeds_to_settle)


def power_of_signs(more: float, less: float, n: int, *, level: float = 0.95) -> float:
    """Return the power of the sign test on n seeds, fewer than `MOST_SIGNS`, of which these shares are won and lost."""
    from scipy import special  # deferred for weight

    count = np.arange(n + 1)
    differ = np.diff(special.bdtr(count, n, min(1.0, more + less)), prepend=0.0)
    most, share = _most_lost(level)[: n + 1], more / (more + less)
    known = np.maximum(most, 0)
    rejected = special.bdtr(known, count, share) + special.bdtr(known, count, 1 - share)
    return float((differ * np.where(most < 0, 0.0, rejected)).sum())


@cache
def _most_lost(level: float) -> NDArray[np.int_]:
    """Return, for each number of seeds that differ, the most of one sign with which a sign test rejects; -1 if none."""
    from scipy import special  # deferred for weight

    differ, lost = np.arange(MOST_SIGNS)[:, None], np.arange(MOST_SIGNS)[None, :]
    tails = np.where(lost <= differ, special.bdtr(np.minimum(lost, differ), differ, 0.5), 1.0)
    found: NDArray[np.int_] = (2 * tails <= 1 - level).sum(axis=1) - 1
    return found


def _sure_excess(more: int, less: int, k: int, level: float) -> float:
    """Return a lower bound of a rate of wins minus that of losses, at least 0, where the sign test rejects 0.

    Given the share of seeds that differ, at least that of an exact interval with a thousandth of the error rate, the
    number of wins among them is binomial (Berger and Boos, Journal of the American Statistical Association 89, 1994).
    """
    from scipy import special  # deferred for weight

    spent = (1 - level) / 1000
    differ = float(special.betaincinv(more + less, k - more - less + 1, spent))
    share = float(special.betaincinv(more, less + 1, (1 - level) / 2 - spent))
    return max(0.0, differ * (2 * share - 1))


def _bets(rows: Array, width: float, level: float, *, any_look: bool = False) -> Paired:
    """Return the difference of a metric with declared bounds, by betting; `rows` are from -1 to 1."""
    if any_look:
        (low, high), p_value = bets_on_differences(rows, level, SEQUENCE_BETS)
        method = "confidence sequence, exact (betting), paired"
        return _judged_at_any_look(rows * width, Interval(low * width, high * width, level, method), p_value)
    (low, high), p_value = bets_on_differences(rows, level)
    found = _judged(rows * width, Interval(low * width, high * width, level, "exact (betting), paired"), p_value)
    return found if found.seeds_to_settle is None else replace(found, seeds_to_settle=_seeds_for_bets(rows, level))


def _seeds_for_bets(rows: Array, level: float) -> int | None:
    """Return about how many seeds with such differences refute 0 by betting; None if over a million.

    That is the number at which the gambler's wealth suffices if each bet gains as much as it does in four of five cases
    by the normal distribution.
    """
    from scipy import special  # deferred for weight

    shares, unlucky = (rows * math.copysign(1, float(rows.mean())) + 1) / 2, float(special.ndtri(POWER))
    n = len(rows) + 1
    while n <= 10**6:
        part = np.minimum(default_bets(n, level) / 2, 1.0)[:, None]
        gains = np.log1p(part * (2 * shares - 1))
        wealth = n * gains.mean(axis=1) - unlucky * math.sqrt(n) * gains.std(axis=1, ddof=1)
        if float(np.logaddexp.reduce(wealth)) - math.log(len(wealth)) >= math.log(2 / (1 - level)):
            return n
        n = math.ceil(n * 1.02)
    return None


def bets_on_differences(
    rows: Array, level: float = 0.95, bets: Array | None = None
) -> tuple[tuple[float, float], float]:
    """Return an interval of the mean of values from -1 to 1 by betting, and the p-value of 0: the inverse wealth.

    With bets that are independent of the number of values both are valid for all numbers at once.
    """
    shares = (rows + 1) / 2
    bets = default_bets(len(rows), level) if bets is None else bets
    low, high = (float(end) for end in betting(shares, level, bets=bets))
    half = np.array(0.5)
    wealth = max(float(log_wealth(shares, half, bets)), float(log_wealth(1 - shares, half, bets)))
    return (2 * low - 1, 2 * high - 1), min(1.0, 2 * math.exp(-wealth))


def _tested(rows: Array, level: float) -> Paired:
    """Return the mean of values, such as those of lives, by Student's t."""
    k, mean = len(rows), float(rows.mean())
    if k < 2:
        return _unjudged(rows, "An interval needs at least two common seeds.")
    if not rows.any():
        return Paired(k, 0.0, 0.0, None, None, "tied", None, f"All {k} differences are 0.")
    if _constant(rows):
        return _all_alike(rows, level, f"All {k} differences are the same")
    from scipy import special  # deferred for weight

    error, (low, high) = float(rows.std(ddof=1)) / math.sqrt(k), student(rows, level)
    interval = Interval(float(low), float(high), level, "t, paired")
    return _judged(rows, interval, float(2 * special.stdtr(k - 1, -abs(mean) / error)))


def _judged(rows: Array, interval: Interval, p_value: float) -> Paired:
    k, mean, deviation = len(rows), float(rows.mean()), float(rows.std(ddof=1))
    error = deviation / math.sqrt(k)
    if p_value > 1 - interval.level:
        needed = values_needed(mean, deviation, level=interval.level) if deviation else None
        return Paired(k, mean, error, interval, p_value, "tied", needed)
    return Paired(k, mean, error, interval, p_value, "better" if mean > 0 else "worse", None)


def directed(found: Paired, better: Literal["higher", "lower"]) -> Paired:
    """Return a difference with the verdict for a metric of which lower values are better, if they are."""
    turned: dict[Verdict, Verdict] = {"better": "worse", "worse": "better"}
    return found if better == "higher" else replace(found, verdict=turned.get(found.verdict, found.verdict))


def common_seeds(values: Mapping[int, T], baseline: Mapping[int, T]) -> list[int]:
    """Return the common seeds in ascending order. Raises UsageError if there are none."""
    common = sorted(values.keys() & baseline.keys())
    if not common:
        raise UsageError("There are no common seeds; play the baseline on the same seeds.")
    return common


def _means(values: Values, seeds: Sequence[int]) -> Array:
    found = [values[seed] for seed in seeds]
    return np.array([float(each if isinstance(each, int | float) else np.mean(each)) for each in found])


def power_of(effect: float, n: int, *, level: float = 0.95) -> float:
    """Return the power of a two-sided t test of n values for a mean of `effect` standard deviations."""
    from scipy import special  # deferred for weight

    critical, shift = float(special.stdtrit(n - 1, (1 + level) / 2)), abs(effect) * math.sqrt(n)
    # The square of a noncentral t is a noncentral F, which scipy computes where its noncentral t is not a number.
    missed = float(special.ncfdtr(1, n - 1, shift * shift, critical * critical)) if shift < LARGE_SHIFT else math.nan
    if not math.isnan(missed):
        return 1 - missed
    # Next to a shift this large the deviation of the mean is negligible.
    share = shift / critical
    return float(special.chdtr(n - 1, (n - 1) * share * share))


def values_needed(difference: float, deviation: float, *, level: float = 0.95, power: float = POWER) -> int | None:
    """Return how many values a two-sided t test needs to detect a mean difference; None if over a million."""
    from scipy import special  # deferred for weight

    effect = abs(difference) / deviation
    normal = float(special.ndtri((1 + level) / 2) + special.ndtri(power))
    if effect * 1000 < normal:
        return None
    needed = max(2, math.floor((normal / effect) ** 2))
    while power_of(effect, needed, level=level) < power:
        needed += 1
    return needed


def holm(p_values: Sequence[float]) -> list[float]:
    """Return adjusted p-values in the same order (Holm, Scandinavian Journal of Statistics 6, 1979)."""
    adjusted, highest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = highest
    return adjusted


def ratio(numerators: Sequence[float], denominators: Sequence[float], *, level: float = 0.95) -> Ratio:
    """Return the ratio of two means over the same seeds or lives, with Fieller's interval.

    It is undefined if the t interval of the denominators' mean contains 0 (Fieller, "Some problems in interval
    estimation", Journal of the Royal Statistical Society B 16, 1954). Raises UsageError if the lengths differ.
    """
    k = len(numerators)
    if k != len(denominators):
        raise UsageError(f"A ratio needs pairs; there are {k} numerators and {len(denominators)} denominators.")
    if k < 2:
        return Ratio(None, None, "undefined: fewer than two pairs")
    from scipy import special  # deferred for weight

    above, below = float(np.mean(numerators)), float(np.mean(denominators))
    spread = np.cov(numerators, denominators) * float(special.stdtrit(k - 1, (1 + level) / 2)) ** 2 / k
    square = below**2 - float(spread[1, 1])
    if square <= 1e-12 * below**2:
        return Ratio(None, None, "undefined: the denominator may be 0")
    middle = above * below - float(spread[0, 1])
    root = math.sqrt(max(0.0, middle**2 - square * (above**2 - float(spread[0, 0]))))
    return Ratio(above / below, Interval((middle - root) / square, (middle + root) / square, level, "Fieller"))


def normalised(values: Values, random: Values, scripted: Values, *, level: float = 0.95) -> Ratio:
    """Return (values - random) / (scripted - random) over common seeds."""
    common = sorted(values.keys() & random.keys() & scripted.keys())
    if not common:
        return Ratio(None, None, "undefined: the three have no common seeds")
    above, below = (list(_means(kind, common) - _means(random, common)) for kind in (values, scripted))
    return ratio(above, below, level=level)


@dataclass(frozen=True)
class Lives:
    """A difference between two arms."""

    effect: Paired
    """Over the means of lives; its `seeds` and `seeds_to_settle` count lives."""
    naive: Paired
    """Over episodes, ignoring lives; only for comparison, since its interval is too narrow."""
    within_sd: float | None
    """Standard deviation of differences within a life; None if no life has two seeds."""
    between_sd: float | None
    """Standard deviation of true differences between lives; None if no life has two seeds."""


def by_life(differences: Mapping[int, Sequence[float]], *, level: float = 0.95) -> Lives:
    """Return the mean difference over lives with a t interval over the means of lives.

    `differences` maps a life to the differences of two arms on its target seeds. Raises UsageError if there are no
    lives, or one has no seeds.
    """
    if not differences or not all(map(len, differences.values())):
        raise UsageError("Each life needs at least one target seed that both arms finished.")
    means = np.array([float(np.mean(seen)) for seen in differences.values()])
    flat = np.array([value for seen in differences.values() for value in seen], dtype=np.float64)
    between, within = variances(differences)
    return Lives(
        effect=_tested(means, level),
        naive=_tested(flat, level),
        within_sd=None if within is None else math.sqrt(within),
        between_sd=None if between is None else math.sqrt(between),
    )


def power(effect: float, *, within_sd: float, between_sd: float, lives: int, seeds: int, level: float = 0.95) -> float:
    """Return the power of the t test over the means of lives for a true difference.

    The standard deviations are those of `Lives`; there are at least two lives with `seeds` target seeds each.
    """
    return power_of(effect / math.sqrt(between_sd**2 + within_sd**2 / seeds), lives, level=level)


def lives_needed(
    effect: float, *, within_sd: float, between_sd: float, seeds: int, level: float = 0.95, power: float = POWER
) -> int | None:
    """Return how many lives of `seeds` target seeds are needed to detect an effect; None if over a million."""
    return values_needed(effect, math.sqrt(between_sd**2 + within_sd**2 / seeds), level=level, power=power)
