"""The statistics of transfer: the unit is the life, which has target seeds of its own, the same in all its arms."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wsap_core.errors import UsageError
from wsap_eval.stats.estimates import variances
from wsap_eval.stats.paired import Paired, paired, power_of, values_needed

__all__ = ["Lives", "by_life", "lives_needed", "power"]


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
    flat = dict(enumerate(value for seen in differences.values() for value in seen))
    between, within = variances(differences)
    return Lives(
        effect=paired(differences, dict.fromkeys(differences, 0.0), level=level),
        naive=paired(flat, dict.fromkeys(flat, 0.0), level=level),
        within_sd=None if within is None else math.sqrt(within),
        between_sd=None if between is None else math.sqrt(between),
    )


def power(effect: float, *, within_sd: float, between_sd: float, lives: int, seeds: int, level: float = 0.95) -> float:
    """Return the chance that the t test over life means finds a true mean difference.

    Args:
        effect: the true mean difference.
        within_sd: standard deviation of a paired difference on one seed, inside a life.
        between_sd: standard deviation of lives' true differences.
        lives: number of lives, at least 2.
        seeds: target seeds of each life.
        level: 1 minus the rate of false alarms.
    """
    return power_of(effect / math.sqrt(between_sd**2 + within_sd**2 / seeds), lives, level=level)


def lives_needed(
    effect: float, *, within_sd: float, between_sd: float, seeds: int, level: float = 0.95, power: float = 0.8
) -> int | None:
    """Return how many lives of so many target seeds find an effect with that power; None if more than a million."""
    return values_needed(effect, math.sqrt(between_sd**2 + within_sd**2 / seeds), level=level, power=power)
