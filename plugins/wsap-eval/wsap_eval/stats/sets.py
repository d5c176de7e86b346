"""Metrics defined only for a set of episodes, such as Crafter's score.

Coverage of their intervals is not guaranteed: a rate of 0 in the sample may be any small number, and the metrics are
biased in small samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from wsap_eval.stats.estimates import Interval
from wsap_eval.stats.paired import common_seeds

T = TypeVar("T")
FEWEST, FEWEST_PAIRED = 40, 20
"""Minimum seeds for an interval of a metric, or of a difference."""


@dataclass(frozen=True)
class SetEstimate:
    """A metric of a set of episodes, or the difference of two on common seeds."""

    seeds: int
    value: float | None
    """None without episodes."""
    interval: Interval | None
    why_no_interval: str = ""


def set_metric(
    episodes: Mapping[int, Sequence[T]], metric: Callable[[Sequence[T]], float], *, level: float = 0.95
) -> SetEstimate:
    """Return a metric of all episodes with a bias-corrected t interval by the jackknife over seeds.

    The metric is called once more than there are seeds. Uses Tukey's variance of the leave-one-out values (Efron and
    Tibshirani, "An Introduction to the Bootstrap" (1993), chapter 11). Bootstrap percentiles have much lower coverage,
    since they contain the bias twice.
    """
    k = len(episodes)
    if not k:
        return SetEstimate(0, None, None, "No episode has a value.")
    value = metric([episode for seed in sorted(episodes) for episode in episodes[seed]])
    if k < FEWEST:
        return SetEstimate(k, value, None, f"{k} seeds are too few for a metric of episode sets; it takes {FEWEST}.")
    left = [metric([e for seed in sorted(episodes) if seed != out for e in episodes[seed]]) for out in sorted(episodes)]
    from scipy import special  # deferred for weight

    centre = k * value - (k - 1) * float(np.mean(left))
    half = float(special.stdtrit(k - 1, (1 + level) / 2)) * float(np.std(left)) * math.sqrt(k - 1)
    return SetEstimate(k, value, Interval(centre - half, centre + half, level, "jackknife, no promise of coverage"))


def paired_set_metric(
    episodes: Mapping[int, Sequence[T]],
    baseline: Mapping[int, Sequence[T]],
    metric: Callable[[Sequence[T]], float],
    *,
    level: float = 0.95,
    resamples: int = 1000,
) -> SetEstimate:
    """Return the difference of a metric on common seeds with a paired bootstrap interval. Raises UsageError if none."""
    seeds = common_seeds(episodes, baseline)

    def difference(chosen: Sequence[int]) -> float:
        return metric([e for s in chosen for e in episodes[s]]) - metric([e for s in chosen for e in baseline[s]])

    k, value = len(seeds), difference(seeds)
    if k < FEWEST_PAIRED:
        return SetEstimate(k, value, None, f"{k} seeds are too few for a bootstrap; it takes {FEWEST_PAIRED}.")
    drawn = np.random.default_rng(0).integers(k, size=(resamples, k))
    low, high = np.quantile([difference([seeds[i] for i in row]) for row in drawn], [(1 - level) / 2, (1 + level) / 2])
    return SetEstimate(k, value, Interval(float(low), float(high), level, "bootstrap, no promise of coverage"))
