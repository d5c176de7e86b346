"""Differences on the same seeds, corrected for several comparisons, and ratios of such differences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from wsap_core.errors import UsageError
from wsap_eval.stats.bounds import Array
from wsap_eval.stats.estimates import Interval, Values

__all__ = ["Paired", "Ratio", "holm", "normalised", "paired", "ratio", "values_needed"]

Verdict = Literal["better", "worse", "tied", "unknown"]


@dataclass(frozen=True)
class Paired:
    """A difference to a baseline on the seeds that both played."""

    seeds: int
    """Number of common seeds."""
    difference: float
    """Mean over common seeds, of the values minus the baseline's."""
    standard_error: float | None
    interval: Interval | None
    p_value: float | None
    """Two-sided, of no difference."""
    verdict: Verdict
    """"tied" where the interval holds 0; "unknown" where there is none."""
    seeds_to_settle: int | None
    """Number of seeds with which a true difference as large as this one is found four times out of five; None where
    the verdict is not "tied" or no number of seeds would do."""
    why_no_interval: str = ""


@dataclass(frozen=True)
class Ratio:
    """A ratio of two means over the same seeds or lives."""

    value: float | None
    """None where it is undefined."""
    interval: Interval | None
    why_undefined: str = ""


def paired(values: Values, baseline: Values, *, level: float = 0.95) -> Paired:
    """Return the mean difference on common seeds, with a t interval and a verdict.

    Args:
        values: seed -> value, or values of its repeats.
        baseline: the same of the baseline.
        level: nominal coverage.

    Raises:
        UsageError: no seed was played by both.
    """
    differences = _differences(values, baseline)
    k, mean = len(differences), float(differences.mean())
    if k < 2:
        return Paired(k, mean, None, None, None, "unknown", None, "One common seed says nothing about others.")
    deviation = float(differences.std(ddof=1))
    if deviation <= 1e-12 * max(1.0, float(np.abs(differences).max())):
        if mean == 0:
            return Paired(k, mean, 0.0, None, None, "tied", None, f"The values are equal on all {k} common seeds.")
        return Paired(k, mean, 0.0, None, None, "unknown", None, f"All {k} common seeds differ by the same amount.")
    from scipy import stats  # deferred for weight

    error = deviation / math.sqrt(k)
    half = float(stats.t.ppf((1 + level) / 2, k - 1)) * error
    interval = Interval(mean - half, mean + half, level, "t, paired")
    verdict: Verdict = "tied" if 0 in interval else "better" if mean > 0 else "worse"
    needed = values_needed(mean, deviation, level=level) if verdict == "tied" else None
    p_value = float(2 * stats.t.sf(abs(mean) / error, k - 1))
    return Paired(k, mean, error, interval, p_value, verdict, needed)


def values_needed(difference: float, deviation: float, *, level: float = 0.95, power: float = 0.8) -> int | None:
    """Return how many values a two-sided t test needs to find a difference; None if more than a million.

    Args:
        difference: the true mean difference.
        deviation: standard deviation of one value.
        level: 1 minus the rate of false alarms.
        power: the chance to find it.
    """
    from scipy import stats  # deferred for weight

    def found(k: int) -> float:
        critical, shift = stats.t.ppf((1 + level) / 2, k - 1), abs(difference) / deviation * math.sqrt(k)
        return float(stats.nct.sf(critical, k - 1, shift) + stats.nct.cdf(-critical, k - 1, shift))

    if difference == 0 or (abs(difference) / deviation) ** 2 < 7e-6:
        return None
    normal = float(stats.norm.ppf((1 + level) / 2) + stats.norm.ppf(power))
    k = max(2, math.floor((normal * deviation / difference) ** 2))
    while found(k) < power:
        k += 1
    return k


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for their number (Holm, Scandinavian Journal of Statistics 6, 1979), in their order."""
    order = np.argsort(p_values, kind="stable")
    adjusted, highest = [0.0] * len(order), 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, (len(order) - rank) * p_values[index]))
        adjusted[int(index)] = highest
    return adjusted


def ratio(numerators: Sequence[float], denominators: Sequence[float], *, level: float = 0.95) -> Ratio:
    """Return the ratio of two means over the same seeds or lives, with Fieller's interval.

    Fieller, "Some problems in interval estimation", Journal of the Royal Statistical Society B 16 (1954). It is
    undefined where the interval of the denominator's mean holds 0.

    Raises:
        UsageError: the two are not of the same length.
    """
    if len(numerators) != len(denominators):
        raise UsageError(f"A ratio needs pairs; there are {len(numerators)} and {len(denominators)} values.")
    k = len(numerators)
    if k < 2:
        return Ratio(None, None, "undefined: fewer than two pairs")
    from scipy import stats  # deferred for weight

    a, b = np.asarray(numerators, dtype=np.float64), np.asarray(denominators, dtype=np.float64)
    t2 = float(stats.t.ppf((1 + level) / 2, k - 1)) ** 2
    (va, vab), (_, vb) = np.cov(a, b) / k
    ma, mb = float(a.mean()), float(b.mean())
    leading = mb**2 - t2 * vb
    if leading <= 1e-12 * max(mb**2, 1e-300):
        return Ratio(None, None, "undefined: the denominator can't be told from 0")
    half = ma * mb - t2 * vab
    root = math.sqrt(max(0.0, half**2 - leading * (ma**2 - t2 * va)))
    return Ratio(ma / mb, Interval(float((half - root) / leading), float((half + root) / leading), level, "Fieller"))


def normalised(values: Values, random: Values, scripted: Values, *, level: float = 0.95) -> Ratio:
    """Return (values - random) / (scripted - random) over common seeds: 0 plays like random, 1 like the script."""
    common = sorted(values.keys() & random.keys() & scripted.keys())
    if not common:
        return Ratio(None, None, "undefined: no seed was played by all three")
    floor = [_mean(random[seed]) for seed in common]
    return ratio(
        [_mean(values[seed]) - base for seed, base in zip(common, floor, strict=True)],
        [_mean(scripted[seed]) - base for seed, base in zip(common, floor, strict=True)],
        level=level,
    )


def _differences(values: Values, baseline: Values) -> Array:
    common = sorted(values.keys() & baseline.keys())
    if not common:
        raise UsageError("The two have no seed in common; play the baseline on the same seeds.")
    return np.array([_mean(values[seed]) - _mean(baseline[seed]) for seed in common], dtype=np.float64)


def _mean(values: float | Sequence[float]) -> float:
    return float(np.mean(values))
