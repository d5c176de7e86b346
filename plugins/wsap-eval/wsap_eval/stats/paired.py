"""Paired differences on common seeds or over lives, their ratios, power, and correction for multiple comparisons."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np

from wsap_core.errors import UsageError
from wsap_eval.stats.bounds import Array, student
from wsap_eval.stats.estimates import Interval, Values, estimate, variances

T = TypeVar("T")


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
    verdict: Literal["better", "worse", "tied", "unknown"]
    """"better" if the interval is above 0, "tied" if it contains 0; "unknown" without an interval."""
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


def paired(values: Values, baseline: Values, *, level: float = 0.95) -> Paired:
    """Return the mean difference on common seeds with its interval and a verdict.

    The interval is Student's t over the differences. If one side is constant, nothing offsets the skewness of the
    other, and the interval is that of `estimate` for a metric without bounds. Raises UsageError without common seeds.
    """
    seeds = common_seeds(values, baseline)
    own, other = _means(values, seeds), _means(baseline, seeds)
    constant = len(seeds) > 1 and (np.ptp(own) == 0) != (np.ptp(other) == 0)
    return (_against_constant if constant else _tested)(own - other, level)


def _tested(rows: Array, level: float) -> Paired:
    k, mean = len(rows), float(rows.mean())
    if k < 2:
        return Paired(k, mean, None, None, None, "unknown", None, "An interval needs at least two common seeds.")
    deviation = float(rows.std(ddof=1))
    if deviation <= 1e-12 * float(np.abs(rows).max()):
        why = f"The values differ by the same amount on all {k} common seeds."
        return Paired(k, mean, 0.0, None, None, "unknown" if mean else "tied", None, why)
    from scipy import stats  # deferred for weight

    error, (low, high) = deviation / math.sqrt(k), student(rows, level)
    interval = Interval(float(low), float(high), level, "t, paired")
    return _judged(rows, interval, float(2 * stats.t.sf(abs(mean) / error, k - 1)))


def _against_constant(rows: Array, level: float) -> Paired:
    found = estimate(list(rows), level=level)
    if found.interval is None:
        why = f"One side has the same score on all common seeds. {found.why_no_interval}"
        return Paired(len(rows), float(rows.mean()), found.standard_error, None, None, "unknown", None, why)
    # The p-value is the smallest one whose interval excludes 0, to within 1 %.
    low, high = 1e-12, 1.0
    while high > 1.01 * low:
        middle = math.sqrt(low * high)
        bounds = estimate(list(rows), level=1 - middle).interval
        low, high = (middle, high) if bounds is None or 0 in bounds else (low, middle)
    return _judged(rows, found.interval, high)


def _judged(rows: Array, interval: Interval, p_value: float) -> Paired:
    k, mean, deviation = len(rows), float(rows.mean()), float(rows.std(ddof=1))
    error = deviation / math.sqrt(k)
    if 0 in interval:
        return Paired(k, mean, error, interval, p_value, "tied", values_needed(mean, deviation, level=interval.level))
    return Paired(k, mean, error, interval, p_value, "better" if mean > 0 else "worse", None)


def common_seeds(values: Mapping[int, T], baseline: Mapping[int, T]) -> list[int]:
    """Return the common seeds in ascending order. Raises UsageError if there are none."""
    common = sorted(values.keys() & baseline.keys())
    if not common:
        raise UsageError("There are no common seeds; play the baseline on the same seeds.")
    return common


def _means(values: Values, seeds: Sequence[int]) -> Array:
    return np.array([float(np.mean(values[seed])) for seed in seeds])


def power_of(effect: float, n: int, *, level: float = 0.95) -> float:
    """Return the power of a two-sided t test of n values for a mean of `effect` standard deviations."""
    from scipy import stats  # deferred for weight

    critical, shift = stats.t.ppf((1 + level) / 2, n - 1), abs(effect) * math.sqrt(n)
    return float(stats.nct.sf(critical, n - 1, shift) + stats.nct.cdf(-critical, n - 1, shift))


def values_needed(difference: float, deviation: float, *, level: float = 0.95, power: float = 0.8) -> int | None:
    """Return how many values a two-sided t test needs to detect a mean difference; None if over a million."""
    from scipy import stats  # deferred for weight

    effect = abs(difference) / deviation
    normal = float(stats.norm.ppf((1 + level) / 2) + stats.norm.ppf(power))
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
    from scipy import stats  # deferred for weight

    above, below = float(np.mean(numerators)), float(np.mean(denominators))
    spread = np.cov(numerators, denominators) * float(stats.t.ppf((1 + level) / 2, k - 1)) ** 2 / k
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
    effect: float, *, within_sd: float, between_sd: float, seeds: int, level: float = 0.95, power: float = 0.8
) -> int | None:
    """Return how many lives of `seeds` target seeds are needed to detect an effect; None if over a million."""
    return values_needed(effect, math.sqrt(between_sd**2 + within_sd**2 / seeds), level=level, power=power)
