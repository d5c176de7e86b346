"""Metrics that are defined for a set of episodes only, such as Crafter's score: bootstrap over seeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from wsap_core.errors import UsageError
from wsap_eval.stats.bounds import Array
from wsap_eval.stats.estimates import Interval

__all__ = ["SetEstimate", "paired_set_metric", "set_metric"]

T = TypeVar("T")
Episodes = Mapping[int, Sequence[T]]
"""Seed -> its episodes."""
METHOD = "bootstrap over seeds, no promise of coverage"
FEWEST = 10
"""Seeds below which no interval is given."""


@dataclass(frozen=True)
class SetEstimate:
    """A metric over a set of episodes, or the difference of two such metrics on the same seeds."""

    seeds: int
    value: float | None
    interval: Interval | None
    why_no_interval: str = ""


def set_metric(
    episodes: Episodes[T],
    metric: Callable[[Sequence[T]], float],
    *,
    level: float = 0.95,
    resamples: int = 1000,
) -> SetEstimate:
    """Return a metric over all episodes with a percentile bootstrap interval over seeds.

    Args:
        episodes: seed -> its episodes.
        metric: the metric over episodes, as `ScoreMetric.of`.
        level: nominal coverage, which is not promised.
        resamples: number of bootstrap resamples.
    """
    return _bootstrap(sorted(episodes), lambda seeds: metric([e for s in seeds for e in episodes[s]]), level, resamples)


def paired_set_metric(
    episodes: Episodes[T],
    baseline: Episodes[T],
    metric: Callable[[Sequence[T]], float],
    *,
    level: float = 0.95,
    resamples: int = 1000,
) -> SetEstimate:
    """Return the difference of a metric on common seeds; each resample draws the same seeds for both.

    Raises:
        UsageError: no seed was played by both.
    """
    common = sorted(episodes.keys() & baseline.keys())
    if not common:
        raise UsageError("The two have no seed in common; play the baseline on the same seeds.")

    def difference(seeds: Sequence[int]) -> float:
        return metric([e for s in seeds for e in episodes[s]]) - metric([e for s in seeds for e in baseline[s]])

    return _bootstrap(common, difference, level, resamples)


def _bootstrap(
    seeds: Sequence[int], statistic: Callable[[Sequence[int]], float], level: float, resamples: int
) -> SetEstimate:
    if not seeds:
        return SetEstimate(0, None, None, "No episode was scored.")
    value = statistic(seeds)
    if len(seeds) < FEWEST:
        why = f"{len(seeds)} seeds are too few for a bootstrap; play at least {FEWEST}."
        return SetEstimate(len(seeds), value, None, why)
    rng = np.random.default_rng(0)
    drawn: Array = np.array([
        statistic([seeds[i] for i in rng.integers(len(seeds), size=len(seeds))]) for _ in range(resamples)
    ])  # fmt: skip
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return SetEstimate(len(seeds), value, Interval(float(low), float(high), level, METHOD))
