"""Metrics that are defined for a set of episodes only, such as Crafter's score: bootstrap over seeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from wsap_eval.stats.estimates import Interval
from wsap_eval.stats.paired import common_seeds

__all__ = ["SetEstimate", "paired_set_metric", "set_metric"]

T = TypeVar("T")
FEWEST = 10
"""Seeds below which no interval is given."""


@dataclass(frozen=True)
class SetEstimate:
    """A metric over a set of episodes, or the difference of two such metrics on the same seeds."""

    seeds: int
    value: float | None
    """None without episodes."""
    interval: Interval | None
    """By a percentile bootstrap over seeds, without a promise of coverage."""
    why_no_interval: str = ""


def set_metric(
    episodes: Mapping[int, Sequence[T]],
    metric: Callable[[Sequence[T]], float],
    *,
    level: float = 0.95,
    resamples: int = 1000,
) -> SetEstimate:
    """Return a metric over all episodes, with a bootstrap interval over seeds.

    Args:
        episodes: seed -> its episodes.
        metric: the metric over episodes, as `ScoreMetric.of`.
        level: nominal coverage, which is not promised.
        resamples: number of bootstrap resamples, each a call of the metric.
    """
    return _bootstrap(sorted(episodes), lambda seeds: metric([e for s in seeds for e in episodes[s]]), level, resamples)


def paired_set_metric(
    episodes: Mapping[int, Sequence[T]],
    baseline: Mapping[int, Sequence[T]],
    metric: Callable[[Sequence[T]], float],
    *,
    level: float = 0.95,
    resamples: int = 1000,
) -> SetEstimate:
    """Return the difference of a metric on common seeds; each resample draws the same seeds for both.

    Raises:
        UsageError: no seed was played by both.
    """

    def difference(seeds: Sequence[int]) -> float:
        return metric([e for s in seeds for e in episodes[s]]) - metric([e for s in seeds for e in baseline[s]])

    return _bootstrap(common_seeds(episodes, baseline), difference, level, resamples)


def _bootstrap(
    seeds: Sequence[int], statistic: Callable[[Sequence[int]], float], level: float, resamples: int
) -> SetEstimate:
    k = len(seeds)
    if not k:
        return SetEstimate(0, None, None, "No episode has a value.")
    if k < FEWEST:
        return SetEstimate(k, statistic(seeds), None, f"{k} seeds are too few for a bootstrap; from {FEWEST}.")
    drawn = np.random.default_rng(0).integers(k, size=(resamples, k))
    low, high = np.quantile([statistic([seeds[i] for i in row]) for row in drawn], [(1 - level) / 2, (1 + level) / 2])
    interval = Interval(float(low), float(high), level, "bootstrap over seeds, no promise of coverage")
    return SetEstimate(k, statistic(seeds), interval)
