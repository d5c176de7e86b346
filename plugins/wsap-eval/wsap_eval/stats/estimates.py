"""A mean over seeds with its standard error and, where one holds, its interval."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from wsap_core.errors import UsageError
from wsap_eval.stats import bounds
from wsap_eval.stats.bounds import Array

Values = Mapping[int, float | Sequence[float]]
"""Seed -> its value, or the values of its repeats."""

FEWEST, FIRST_LOOK = 20, 100
"""Seeds from which a metric without declared bounds gets an interval, or a confidence sequence: skewness can't be seen
in fewer."""
SKEW, SKEW_ANY_LOOK = 3, 25
"""These times the squared skewness: the same, for skewed values."""


@dataclass(frozen=True)
class Interval:
    """Bounds between which the true value lies, at a level of confidence."""

    low: float
    high: float
    level: float
    """Nominal coverage, such as 0.95."""
    method: str
    """In words, such as "exact (Clopper-Pearson)"."""

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
    """None without values."""
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
    any_look: bool = False,
) -> Estimate:
    """Return the mean of values with its standard error, clustered by seed, and an interval where one holds.

    A metric with both bounds has an exact interval: Clopper and Pearson's where each seed's value is one bound or the
    other, else one by betting. Without bounds it is the wider of Student's t and the studentised bootstrap, from 20
    seeds, and none where the values are too skewed for their number. The standard error is that of Miller, "Adding
    error bars to evals" (arXiv 2411.00640, section 2.2), times the square root of K / (K - 1) for K seeds.

    Args:
        values: one per episode.
        seeds: the seed of each value; each value has a seed of its own when None.
        low: the least value that the metric can have; None if it has no lower bound.
        high: the greatest value that it can have.
        level: nominal coverage of the interval.
        distinct: number of distinct trajectories among the episodes; None if it is not known.
        any_look: the values were looked at before, to see whether they are enough; the interval is that of `sequence`.

    Raises:
        UsageError: a value is not finite, or `seeds` is not as long as `values`.
    """
    labels = range(len(values)) if seeds is None else seeds
    if len(labels) != len(values):
        raise UsageError(f"There are {len(values)} values and {len(labels)} seeds; give one seed per value.")
    grouped: dict[int, list[float]] = {}
    for seed, value in zip(labels, values, strict=True):
        if not math.isfinite(value):
            raise UsageError(f"The value of seed {seed} is {value}; statistics need finite numbers.")
        grouped.setdefault(seed, []).append(float(value))
    means, k = np.array([np.mean(grouped[seed]) for seed in sorted(grouped)]), len(grouped)
    interval, why = _interval(means, low, high, level, any_look=any_look)
    if distinct == 1 and len(values) > 1:
        interval, why = None, f"All {len(values)} episodes are the same trajectory and say no more than one."
    between, within = variances(grouped)
    return Estimate(
        n=len(values),
        clusters=k,
        mean=float(means.mean()) if k else None,
        standard_error=float(means.std(ddof=1)) / math.sqrt(k) if k > 1 else None,
        interval=interval,
        why_no_interval=why,
        between_sd=None if between is None else math.sqrt(between),
        within_sd=None if within is None else math.sqrt(within),
        distinct=distinct,
    )


def sequence(
    values: Sequence[float], *, low: float | None = None, high: float | None = None, level: float = 0.95
) -> tuple[Interval | None, str]:
    """Return the interval after these values of a confidence sequence, or None and the reason in a sentence.

    The intervals after every number of values hold together, so that play may stop at any look: exactly for a metric
    with both bounds (betting), in the limit for any other (asymptotic, from 100 seeds). The arguments are those of
    `estimate`, but for one value per seed, in the plan's order without a gap (`contiguous`).
    """
    return _interval(np.asarray(values, dtype=np.float64), low, high, level, any_look=True)


def contiguous(values: Values, seeds: Iterable[int]) -> list[int]:
    """Return the plan's seeds up to the first that has no value yet: nothing then depends on which worker was quick."""
    return list(takewhile(values.__contains__, seeds))


def variances(groups: Mapping[int, Sequence[float]]) -> tuple[float | None, float | None]:
    """Return the variance between groups, without the scatter inside them, and that inside them.

    By the analysis of variance with one random effect; both None if no group has two values, the first None if there
    is one group only.
    """
    sizes = np.array([len(group) for group in groups.values()], dtype=int)
    k, n = len(sizes), int(sizes.sum())
    if n == k:
        return None, None
    flat = np.concatenate([np.asarray(group, dtype=np.float64) for group in groups.values()])
    means = np.array([np.mean(group) for group in groups.values()])
    inside = float(((flat - np.repeat(means, sizes)) ** 2).sum() / (n - k))
    if k == 1:
        return None, inside
    among = float((sizes * (means - flat.mean()) ** 2).sum() / (k - 1))
    return max(0.0, (among - inside) * (k - 1) / (n - float((sizes**2).sum()) / n)), inside


def _interval(
    means: Array, low: float | None, high: float | None, level: float, *, any_look: bool
) -> tuple[Interval | None, str]:
    """Return the interval of a mean from one value per seed, or None and the reason in a sentence."""
    k, fewest = len(means), FIRST_LOOK if any_look else FEWEST
    if k < 2:
        return None, "One seed says nothing about others; play at least two." if k else "No episode has a value."
    least, most = float(means.min()), float(means.max())
    if low is not None and high is not None and low < high:
        if least < low or most > high:
            outside = least if least < low else most
            return None, f"The value {outside:g} lies outside the metric's declared bounds {low:g} to {high:g}."
        return _exact((means - low) / (high - low), low, high - low, level, any_look=any_look), ""
    if k < fewest:
        return None, f"{k} seeds are too few for a metric without declared bounds; from {fewest}."
    if least == most:
        return None, f"All {k} seeds have the same value, which does not say how far another would be."
    needed = math.ceil((SKEW_ANY_LOOK if any_look else SKEW) * float(bounds.skewness(means)) ** 2)
    if k < needed:
        return None, f"{k} seeds are too few for such skewed scores; from about {needed}."
    if any_look:
        # Half the rate of errors: with it the whole rate holds for skewed scores, too, at 100 seeds and more.
        half = float(bounds.asymptotic_sequence(k, (1 + level) / 2)) * float(means.std(ddof=1))
        a, b, method = means.mean() - half, means.mean() + half, f"confidence sequence, asymptotic from {fewest} seeds"
    else:
        (a, b), method = bounds.wider(means, level), "t and bootstrap-t, the wider"
    if not np.isfinite(b - a):
        return None, f"Too few of the {k} seeds have another value than the rest."
    return Interval(float(a), float(b), level, method), ""


def _exact(rows: Array, low: float, width: float, level: float, *, any_look: bool) -> Interval:
    if any_look:
        (a, b), method = bounds.betting(rows, level, bets=bounds.SEQUENCE_BETS), "confidence sequence, exact (betting)"
    elif set(np.unique(rows)) <= {0.0, 1.0}:
        (a, b), method = bounds.clopper_pearson(rows.sum(), len(rows), level), "exact (Clopper-Pearson)"
    else:
        (a, b), method = bounds.betting(rows, level), "exact (betting)"
    return Interval(low + float(a) * width, low + float(b) * width, level, method)
