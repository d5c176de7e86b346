"""Differences on the same seeds or over lives, corrected for several comparisons, and ratios of such differences."""

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
    """A difference to a baseline on the seeds that both played."""

    seeds: int
    """Number of common seeds."""
    difference: float
    """Mean over common seeds of the values minus the baseline's."""
    standard_error: float | None
    """None with one seed."""
    interval: Interval | None
    p_value: float | None
    """Two-sided, of no difference."""
    verdict: Literal["better", "worse", "tied", "unknown"]
    """"better" where the interval is above 0, "tied" where it holds 0; "unknown" where there is none."""
    seeds_to_settle: int | None
    """Of a tie: number of seeds with which a true difference of this size is found four times out of five; None if
    more than a million."""
    why_no_interval: str = ""


@dataclass(frozen=True)
class Ratio:
    """A ratio of two means over the same seeds or lives."""

    value: float | None
    """None where it is undefined."""
    interval: Interval | None
    why_undefined: str = ""


def paired(values: Values, baseline: Values, *, level: float = 0.95) -> Paired:
    """Return the mean difference on common seeds with its interval and a verdict.

    The interval is Student's t over the differences. Where one of the two has the same value on every seed, nothing
    evens out the skewness of the other's values, and the interval is that of `estimate` for a metric without bounds.

    Raises:
        UsageError: no seed was played by both.
    """
    seeds = common_seeds(values, baseline)
    own, other = _means(values, seeds), _means(baseline, seeds)
    constant = len(seeds) > 1 and (np.ptp(own) == 0) != (np.ptp(other) == 0)
    return (_against_constant if constant else _tested)(own - other, level)


def _tested(rows: Array, level: float) -> Paired:
    k, mean = len(rows), float(rows.mean())
    if k < 2:
        return Paired(k, mean, None, None, None, "unknown", None, "One common seed says nothing about others.")
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
        why = f"One of the two has the same score on all common seeds. {found.why_no_interval}"
        return Paired(len(rows), float(rows.mean()), found.standard_error, None, None, "unknown", None, why)
    # The p-value is the least one whose interval leaves 0 out, to a hundredth of itself.
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
    """Return the seeds that both have, in ascending order.

    Raises:
        UsageError: there is none.
    """
    common = sorted(values.keys() & baseline.keys())
    if not common:
        raise UsageError("The two have no seed in common; play the baseline on the same seeds.")
    return common


def _means(values: Values, seeds: Sequence[int]) -> Array:
    return np.array([float(np.mean(values[seed])) for seed in seeds])


def power_of(effect: float, n: int, *, level: float = 0.95) -> float:
    """Return the chance that a two-sided t test of n values finds a mean of so many standard deviations."""
    from scipy import stats  # deferred for weight

    critical, shift = stats.t.ppf((1 + level) / 2, n - 1), abs(effect) * math.sqrt(n)
    return float(stats.nct.sf(critical, n - 1, shift) + stats.nct.cdf(-critical, n - 1, shift))


def values_needed(difference: float, deviation: float, *, level: float = 0.95, power: float = 0.8) -> int | None:
    """Return how many values of a standard deviation a two-sided t test needs to find a mean difference with that
    power; None if more than a million."""
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
    """Return p-values adjusted for their number, in their order (Holm, Scandinavian Journal of Statistics 6, 1979)."""
    adjusted, highest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = highest
    return adjusted


def ratio(numerators: Sequence[float], denominators: Sequence[float], *, level: float = 0.95) -> Ratio:
    """Return the ratio of two means over the same seeds or lives, with Fieller's interval.

    It is undefined where the t interval of the denominators' mean holds 0 (Fieller, "Some problems in interval
    estimation", Journal of the Royal Statistical Society B 16, 1954).

    Raises:
        UsageError: the two are not of the same length.
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
        return Ratio(None, None, "undefined: the denominator can't be told from 0")
    middle = above * below - float(spread[0, 1])
    root = math.sqrt(max(0.0, middle**2 - square * (above**2 - float(spread[0, 0]))))
    return Ratio(above / below, Interval((middle - root) / square, (middle + root) / square, level, "Fieller"))


def normalised(values: Values, random: Values, scripted: Values, *, level: float = 0.95) -> Ratio:
    """Return (values - random) / (scripted - random) over common seeds: 0 plays like random, 1 like the script."""
    common = sorted(values.keys() & random.keys() & scripted.keys())
    if not common:
        return Ratio(None, None, "undefined: no seed was played by all three")
    above, below = (list(_means(kind, common) - _means(random, common)) for kind in (values, scripted))
    return ratio(above, below, level=level)


@dataclass(frozen=True)
class Lives:
    """A difference between two arms."""

    effect: Paired
    """Over life means; its `seeds` and `seeds_to_settle` are lives."""
    naive: Paired
    """Over episodes, as if lives did not matter: for comparison only, its interval is too narrow."""
    within_sd: float | None
    """Standard deviation of a difference on one seed, inside a life; None if no life has two seeds."""
    between_sd: float | None
    """Standard deviation of lives' true differences; None if no life has two seeds."""


def by_life(differences: Mapping[int, Sequence[float]], *, level: float = 0.95) -> Lives:
    """Return the mean difference over lives with a t interval over life means.

    Args:
        differences: life -> the differences of two arms on that life's own target seeds, one per seed.
        level: nominal coverage.

    Raises:
        UsageError: there is no life, or one without a seed.
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
    """Return the chance that the t test over life means finds a true mean difference.

    The deviations are those of `Lives`; there are at least two lives, each with so many target seeds.
    """
    return power_of(effect / math.sqrt(between_sd**2 + within_sd**2 / seeds), lives, level=level)


def lives_needed(
    effect: float, *, within_sd: float, between_sd: float, seeds: int, level: float = 0.95, power: float = 0.8
) -> int | None:
    """Return how many lives of so many target seeds find an effect with that power; None if more than a million."""
    return values_needed(effect, math.sqrt(between_sd**2 + within_sd**2 / seeds), level=level, power=power)
