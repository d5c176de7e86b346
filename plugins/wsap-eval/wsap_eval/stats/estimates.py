"""A mean over seeds with its standard error and, where one holds, its interval."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from wsap_core.errors import UsageError
from wsap_eval.stats import bounds
from wsap_eval.stats.bounds import Array

__all__ = ["Estimate", "Interval", "Values", "by_seed", "choose_interval", "estimate", "means_of", "variances"]

Values = Mapping[int, float | Sequence[float]]
"""Seed -> its value, or the values of its repeats."""


@dataclass(frozen=True)
class Interval:
    """Where the true value lies, at a level of confidence."""

    low: float
    high: float
    level: float
    """Nominal coverage, such as 0.95."""
    method: str
    """In words, such as "t" or "exact (Clopper-Pearson)"."""

    @property
    def half_width(self) -> float:
        """Half the distance between the bounds."""
        return (self.high - self.low) / 2

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds. A seed that was played several times counts once, by the mean of its repeats."""

    n: int
    """Number of values."""
    clusters: int
    """Number of seeds."""
    mean: float | None
    """Mean over seeds; None without values."""
    standard_error: float | None
    """Of the mean, clustered by seed; None with fewer than two seeds."""
    interval: Interval | None
    why_no_interval: str = ""
    """The reason in a sentence where there is none; else empty."""
    between_sd: float | None = None
    """Standard deviation between seeds, without the scatter of repeats; None where no seed was repeated."""
    within_sd: float | None = None
    """Standard deviation between repeats of one seed; None where no seed was repeated."""
    distinct: int | None = None
    """Number of distinct trajectories, as the caller counted them."""


def estimate(
    values: Sequence[float],
    seeds: Sequence[int] | None = None,
    *,
    low: float | None = None,
    high: float | None = None,
    level: float = 0.95,
    distinct: int | None = None,
) -> Estimate:
    """Return the mean of values with its standard error, clustered by seed, and an interval where one holds.

    The interval is exact for a metric with both bounds: Clopper and Pearson's for values that are all one bound or
    the other, else by betting. Without bounds it is Student's t, for skewed values the BCa bootstrap, and none
    where neither would hold (`choose_interval`). The standard error is that of Miller, "Adding error bars to evals"
    (arXiv 2411.00640, section 2.2), with the factor K / (K - 1) of K seeds.

    Args:
        values: one per episode.
        seeds: the seed of each value, of the same length; each value is a seed of its own when None.
        low: the least value that the metric can have; None if it has no lower bound.
        high: the greatest value that it can have.
        level: nominal coverage of the interval.
        distinct: number of distinct trajectories among the episodes; None if it is not known.

    Raises:
        UsageError: a value is not finite, or `seeds` is not as long as `values`.
    """
    grouped = by_seed(values, seeds)
    if not grouped:
        return Estimate(0, 0, None, None, None, "No episode has a value.", distinct=distinct)
    means = means_of(grouped)
    between, within = variances(grouped)
    if distinct == 1 and len(values) > 1:
        interval, why = None, f"All {len(values)} episodes are the same trajectory, so they say no more than one."
    else:
        interval, why = choose_interval(means, low=low, high=high, level=level)
    k = len(means)
    return Estimate(
        n=len(values),
        clusters=k,
        mean=float(means.mean()),
        standard_error=float(means.std(ddof=1)) / math.sqrt(k) if k > 1 else None,
        interval=interval,
        why_no_interval=why,
        between_sd=None if between is None else math.sqrt(between),
        within_sd=None if within is None else math.sqrt(within),
        distinct=distinct,
    )


def by_seed(values: Sequence[float], seeds: Sequence[int] | None = None) -> dict[int, list[float]]:
    """Return seed -> its values, in ascending order of seeds.

    Raises:
        UsageError: a value is not finite, or `seeds` is not as long as `values`.
    """
    chosen = range(len(values)) if seeds is None else seeds
    if len(chosen) != len(values):
        raise UsageError(f"There are {len(values)} values and {len(chosen)} seeds; give one seed per value.")
    grouped: dict[int, list[float]] = {}
    for seed, value in zip(chosen, values, strict=True):
        if not math.isfinite(value):
            raise UsageError(f"The value of seed {seed} is {value}; a statistic needs finite numbers.")
        grouped.setdefault(seed, []).append(float(value))
    return dict(sorted(grouped.items()))


def means_of(values: Values) -> Array:
    """Return the mean of each seed, in ascending order of seeds."""
    return np.array([np.mean(values[seed]) for seed in sorted(values)], dtype=np.float64)


def variances(grouped: Mapping[int, Sequence[float]]) -> tuple[float | None, float | None]:
    """Return the variance between groups, without the scatter inside them, and that inside them.

    By the analysis of variance of one random effect; both None if no group has two values, the first None if there
    is one group only.
    """
    sizes = np.array([len(group) for group in grouped.values()], dtype=np.float64)
    if sizes.sum() == len(sizes):
        return None, None
    flat = np.concatenate([np.asarray(group, dtype=np.float64) for group in grouped.values()])
    means = np.array([np.mean(group) for group in grouped.values()])
    inside = float(((flat - np.repeat(means, sizes.astype(int))) ** 2).sum() / (sizes.sum() - len(sizes)))
    if len(sizes) == 1:
        return None, inside
    among = float((sizes * (means - flat.mean()) ** 2).sum() / (len(sizes) - 1))
    size = (sizes.sum() - (sizes**2).sum() / sizes.sum()) / (len(sizes) - 1)
    return max(0.0, (among - inside) / float(size)), inside


def choose_interval(
    means: Array, *, low: float | None = None, high: float | None = None, level: float = 0.95
) -> tuple[Interval | None, str]:
    """Return the interval of a mean from one value per seed, or None and the reason in a sentence."""
    k = len(means)
    if k < 2:
        return None, "One seed says nothing about others; play at least two."
    if low is not None and high is not None and high > low:
        if means.min() < low or means.max() > high:
            worst = means.min() if means.min() < low else means.max()
            return None, f"The value {worst:g} lies outside the metric's declared bounds {low:g} to {high:g}."
        rows = (means - low) / (high - low)
        if set(np.unique(rows)) <= {0.0, 1.0}:
            (a, b), method = bounds.clopper_pearson(rows.sum(), k, level), "exact (Clopper-Pearson)"
        else:
            (a, b), method = bounds.betting(rows, level), "exact (betting)"
        return Interval(low + float(a) * (high - low), low + float(b) * (high - low), level, method), ""
    if means.min() == means.max():
        return None, f"All {k} seeds have the same value; nothing tells how far another would be."
    a, b = bounds.student(means, level)
    return Interval(float(a), float(b), level, "t"), ""
