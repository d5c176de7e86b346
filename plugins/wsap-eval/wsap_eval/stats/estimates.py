"""Means over seeds with standard errors and valid intervals."""

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
"""Minimum seeds for an interval, or a confidence sequence, of a metric without declared bounds; skewness can't be
estimated from fewer."""
SKEW, SKEW_ANY_LOOK = 3, 25
"""The same for skewed values, as factors of the squared skewness."""


@dataclass(frozen=True)
class Interval:
    """A confidence interval."""

    low: float
    high: float
    level: float
    """Nominal coverage, such as 0.95."""
    method: str
    """Such as "exact (Clopper-Pearson)"."""

    @property
    def half_width(self) -> float:
        """Half the distance between the bounds."""
        return (self.high - self.low) / 2

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds; a seed with several repeats counts once, by their mean."""

    n: int
    clusters: int
    mean: float | None
    """None without values."""
    standard_error: float | None
    """Of the mean, clustered by seed; None with fewer than two seeds, or if all have the same value, since the spread
    of others is then unknown."""
    interval: Interval | None
    why_no_interval: str = ""
    """A sentence if there is none, else empty."""
    between_sd: float | None = None
    """Standard deviation between seeds, without the variance of repeats; None if no seed was repeated."""
    within_sd: float | None = None
    """Standard deviation between repeats of a seed; None if no seed was repeated."""
    distinct: int | None = None
    """Number of distinct trajectories, as given by the caller."""


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
    """Return the mean of values with its standard error, clustered by seed, and a valid interval if there is one.

    A metric with both bounds has an exact interval: Clopper and Pearson's if each seed's value is one of the bounds,
    else one by betting. Without bounds it is the wider of Student's t and the studentised bootstrap, from 20 seeds,
    and None if the values are too skewed for their number. The standard error is that of Miller, "Adding error bars to
    evals" (arXiv 2411.00640, section 2.2), times the square root of K / (K - 1) for K seeds.

    Args:
        values: one per episode.
        seeds: the seed of each value; by default all differ.
        low: the metric's lower bound; None if it has none.
        high: the metric's upper bound; None if it has none.
        level: nominal coverage of the interval.
        distinct: number of distinct trajectories among the episodes; None if unknown.
        any_look: sampling may stop at any number of values; the interval is that of `sequence`.

    Raises:
        UsageError: a value is not finite, or `seeds` and `values` differ in length.
    """
    labels = range(len(values)) if seeds is None else seeds
    if len(labels) != len(values):
        raise UsageError(f"There are {len(values)} values but {len(labels)} seeds; give one seed per value.")
    grouped: dict[int, list[float]] = {}
    for seed, value in zip(labels, values, strict=True):
        if not math.isfinite(value):
            raise UsageError(f"The value of seed {seed} is {value}; statistics need finite numbers.")
        grouped.setdefault(seed, []).append(float(value))
    means, k = np.array([np.mean(grouped[seed]) for seed in sorted(grouped)]), len(grouped)
    interval, why = _interval(means, low, high, level, any_look=any_look)
    if distinct == 1 and len(values) > 1:
        interval, why = None, f"All {len(values)} episodes have the same trajectory and count as one."
    between, within = variances(grouped)
    varied = k > 1 and float(np.ptp(means)) > 1e-12 * float(np.abs(means).max()) and distinct != 1
    return Estimate(
        n=len(values),
        clusters=k,
        mean=float(means.mean()) if k else None,
        standard_error=float(means.std(ddof=1)) / math.sqrt(k) if varied else None,
        interval=interval,
        why_no_interval=why,
        between_sd=None if between is None else math.sqrt(between),
        within_sd=None if within is None else math.sqrt(within),
        distinct=distinct,
    )


def sequence(
    values: Sequence[float], *, low: float | None = None, high: float | None = None, level: float = 0.95
) -> tuple[Interval | None, str]:
    """Return the interval of a confidence sequence after these values, or None and the reason as a sentence.

    Its intervals are simultaneously valid, so that sampling may stop at any time: exactly for a metric with both bounds
    (betting), otherwise asymptotically (from 100 seeds). Arguments are as for `estimate`, but with one value per seed
    in the plan's order without gaps (`contiguous`).
    """
    return _interval(np.asarray(values, dtype=np.float64), low, high, level, any_look=True)


def reached(
    values: Sequence[float],
    half_width: float,
    *,
    first: int = 2,
    low: float | None = None,
    high: float | None = None,
    level: float = 0.95,
) -> int | None:
    """Return the first number of values, from `first` on, whose `sequence` has at most this half-width; None if none.

    Arguments are otherwise as for `sequence`. Of numbers whose intervals are plainly wider, many are passed over at
    once, so that thousands of values take a second.
    """
    whole, start = np.asarray(values, dtype=np.float64), max(2, first)

    def after(count: int) -> Interval | None:
        return sequence(whole[:count].tolist(), low=low, high=high, level=level)[0]

    if low is None or high is None or low >= high:
        narrow = np.flatnonzero(_asymptotic_half_widths(whole, level) <= half_width * (1 + 1e-6)) + 1
        counts = (int(count) for count in narrow if count >= start)
        return next((n for n in counts if (found := after(n)) and found.half_width <= half_width), None)
    rows, half = (whole - low) / (high - low), half_width / (high - low)
    if ((rows < 0) | (rows > 1)).any():
        rows = rows[: int(((rows < 0) | (rows > 1)).argmax())]  # there is no interval from there on
    count, together, shift = start, 1, 0.0
    while count <= len(rows):
        last = min(count + together - 1, len(rows))
        middle = float(rows[: (count + last) // 2].mean()) + shift
        if bounds.inside_after_each(rows[:last], count, middle - half, middle + half, level):
            count, together = last + 1, together * 2
        elif together > 1:
            together //= 2
        else:
            found = after(count)
            if found is not None and found.half_width <= half_width:
                return count
            if found is not None:
                shift = ((found.low + found.high) / 2 - low) / (high - low) - float(rows[:count].mean())
            count += 1
    return None


def _asymptotic_half_widths(values: Array, level: float) -> Array:
    """Return the half-width of the asymptotic sequence after each value, from running sums; NaN after the first."""
    centred, n = values - (values.mean() if len(values) else 0.0), np.arange(1.0, len(values) + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.maximum((centred**2).cumsum() - centred.cumsum() ** 2 / n, 0.0) / (n - 1)
        found: Array = bounds.asymptotic_sequence(n, (1 + level) / 2) * np.sqrt(variance)
    return found


def contiguous(values: Values, seeds: Iterable[int]) -> list[int]:
    """Return the plan's seeds before the first one without a value, so that results don't depend on workers' speed."""
    return list(takewhile(values.__contains__, seeds))


def variances(groups: Mapping[int, Sequence[float]]) -> tuple[float | None, float | None]:
    """Return the variance between groups and that within groups, by a one-way random-effects analysis of variance.

    Both are None if no group has two values, the first also if there is only one group.
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


def seeds_for_skewness(values: Array, factor: float = SKEW) -> int:
    """Return how many seeds values of this skewness take: a factor times its square."""
    return math.ceil(factor * float(bounds.skewness(values)) ** 2)


def _interval(
    means: Array, low: float | None, high: float | None, level: float, *, any_look: bool
) -> tuple[Interval | None, str]:
    """Return the interval of a mean from one value per seed, or None and the reason as a sentence."""
    k, fewest = len(means), FIRST_LOOK if any_look else FEWEST
    if k < 2:
        return None, "An interval needs at least two seeds." if k else "No episode has a value."
    least, most = float(means.min()), float(means.max())
    if low is not None and high is not None and low < high:
        if least < low or most > high:
            outside = least if least < low else most
            return None, f"The value {outside:g} lies outside the metric's declared bounds {low:g} to {high:g}."
        return _exact((means - low) / (high - low), low, high - low, level, any_look=any_look), ""
    if k < fewest:
        return None, f"{k} seeds are too few for a metric without declared bounds; it takes {fewest}."
    if least == most:
        return None, f"All {k} seeds have the same value, so the spread of others is unknown."
    needed = seeds_for_skewness(means, SKEW_ANY_LOOK if any_look else SKEW)
    if k < needed:
        return None, f"{k} seeds are too few for scores this skewed; it takes about {needed}."
    if any_look:
        # With half the error rate, skewed scores keep the full rate from 100 seeds.
        half = float(bounds.asymptotic_sequence(k, (1 + level) / 2)) * float(means.std(ddof=1))
        a, b, method = means.mean() - half, means.mean() + half, f"confidence sequence, asymptotic from {fewest} seeds"
    else:
        (a, b), method = bounds.wider(means, level), "t and bootstrap-t, the wider"
    if not np.isfinite(b - a):
        return None, f"Too few of the {k} seeds differ in value from the rest."
    return Interval(float(a), float(b), level, method), ""


def _exact(rows: Array, low: float, width: float, level: float, *, any_look: bool) -> Interval:
    if any_look:
        (a, b), method = bounds.betting(rows, level, bets=bounds.SEQUENCE_BETS), "confidence sequence, exact (betting)"
    elif set(np.unique(rows)) <= {0.0, 1.0}:
        (a, b), method = bounds.clopper_pearson(rows.sum(), len(rows), level), "exact (Clopper-Pearson)"
    else:
        (a, b), method = bounds.betting(rows, level), "exact (betting)"
    return Interval(low + float(a) * width, low + float(b) * width, level, method)
