"""Confidence bounds of means over the last axis of an array, which has one value per seed.

`estimate` passes one row; simulations of coverage pass thousands.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Bounds = tuple[Array, Array]

SEQUENCE_BETS: Array = np.exp2(np.arange(-3.0, 4.0))
"""Bets of a confidence sequence by `betting`, independent of the number of values."""
_DEVIATIONS: Array = np.array([0.5, 0.35, 0.25, 0.15, 0.08, 0.04])
"""Standard deviations of values from 0 to 1 for which the bets of `betting` are optimal."""
_RESAMPLES = 1000
_LARGE = 640
"""Number of values from which Student's t alone is valid for any skewness that `estimate` accepts."""


def student(rows: Array, level: float = 0.95) -> Bounds:
    """Return Student's t interval of each row's mean; rows need at least two values."""
    from scipy import special  # deferred for weight; scipy.stats has ten times as much

    n, mean = rows.shape[-1], rows.mean(axis=-1)
    half = special.stdtrit(n - 1, (1 + level) / 2) * rows.std(axis=-1, ddof=1) / math.sqrt(n)
    return mean - half, mean + half


def bootstrap_t(rows: Array, level: float = 0.95) -> Bounds:
    """Return the studentised bootstrap interval of each row's mean; infinite if too many resamples are constant.

    Efron and Tibshirani, "An Introduction to the Bootstrap" (1993), section 12.5. All rows are resampled alike, so
    that a row's interval does not depend on the others.
    """
    n, mean = rows.shape[-1], rows.mean(axis=-1)
    centred = rows - mean[..., None]
    weights = _resampled(n)
    shift = centred @ weights
    variance = np.maximum(centred**2 @ weights - shift**2, 0.0)
    constant = variance <= 1e-12 * (centred**2).mean(axis=-1, keepdims=True)
    t = np.where(constant, np.copysign(np.inf, shift), shift / np.sqrt(np.where(constant, 1.0, variance)))
    tail, deviation = math.floor((1 - level) / 2 * _RESAMPLES), centred.std(axis=-1)
    t.partition((tail, _RESAMPLES - 1 - tail), axis=-1)
    return mean - t[..., _RESAMPLES - 1 - tail] * deviation, mean - t[..., tail] * deviation


@lru_cache(8)
def _resampled(n: int) -> Array:
    weights: Array = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=_RESAMPLES).T / n
    return weights


def wider(rows: Array, level: float = 0.95) -> Bounds:
    """Return the wider of Student's t (for heavy tails) and the studentised bootstrap (for skewness) at each end."""
    low, high = student(rows, level)
    if rows.shape[-1] >= _LARGE:
        return low, high
    boot_low, boot_high = bootstrap_t(rows, level)
    return np.minimum(low, boot_low), np.maximum(high, boot_high)


def clopper_pearson(hits: Array, n: int, level: float = 0.95) -> Bounds:
    """Return the exact interval of a proportion from `hits` of n (Clopper and Pearson, Biometrika 26, 1934)."""
    from scipy import special  # deferred for weight

    tail = (1 - level) / 2
    low = np.where(hits > 0, special.betaincinv(np.maximum(hits, 1), n - hits + 1, tail), 0.0)
    return low, np.where(hits < n, special.betaincinv(hits + 1, np.maximum(n - hits, 1), 1 - tail), 1.0)


def log_wealth(rows: Array, mean: Array, bets: Array, *, over_time: bool = False) -> Array:
    """Return the log wealth of a gambler who bets that each row's mean is above a supposed mean.

    The gambler divides one unit among constant bets b and multiplies each part by 1 + min(b, 1 / mean) (x - mean) at
    every value x. If the supposed mean is right, the expected wealth stays 1, so that it ever reaches 1 / a with
    probability a at most (Ville's inequality). It falls as the supposed mean rises, and does not depend on the order
    of the values. Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting", Journal of the
    Royal Statistical Society B 86 (2024), arXiv 2010.09686; a mixture over a grid of bets is among their strategies.

    Args:
        rows: values from 0 to 1, shape (..., n).
        mean: supposed means, shape (...).
        bets: above 0.
        over_time: return the wealth after each value, shape (..., n), instead of only after the last.
    """
    supposed = np.maximum(mean, 1e-300)[..., None]
    total: Array = np.full(rows.shape if over_time else rows.shape[:-1], -np.inf)
    with np.errstate(divide="ignore", over="ignore"):
        for bet in bets:
            share = np.minimum(bet * supposed, 1.0)
            gains = np.log(1 - share + share * (rows / supposed))
            total = np.logaddexp(total, gains.cumsum(axis=-1) if over_time else gains.sum(axis=-1))
    return total - math.log(len(bets))


def betting(rows: Array, level: float = 0.95, *, bets: Array | None = None) -> Bounds:
    """Return an interval of the mean of values from 0 to 1 that is valid for every distribution and every n.

    With bets independent of n, such as `SEQUENCE_BETS`, the intervals for all n are valid simultaneously; the default
    bets are optimal for n values with one of six standard deviations.
    """
    threshold = math.log(2 / (1 - level))
    chosen = default_bets(rows.shape[-1], level) if bets is None else bets

    def lower(values: Array) -> Array:
        """Return the highest mean that the wealth refutes, by bisection; 0 if there is none."""
        low, high = np.zeros(values.shape[:-1]), values.mean(axis=-1)
        for _ in range(40):
            middle = (low + high) / 2
            refuted = log_wealth(values, middle, chosen) >= threshold
            low, high = np.where(refuted, middle, low), np.where(refuted, high, middle)
        return low

    return lower(rows), 1 - lower(1 - rows)


def inside_after_each(rows: Array, first: int, low: float, high: float, level: float = 0.95) -> bool:
    """Return whether a row's confidence sequence by `betting` contains `low` and `high` after each value from `first`.

    It takes one evaluation of the wealth at each end for all those intervals, where an interval itself takes eighty.
    """
    if not 0 < low <= high < 1:
        return False
    threshold = math.log(2 / (1 - level))
    return all(
        bool((log_wealth(values, np.asarray(mean), SEQUENCE_BETS, over_time=True)[first - 1 :] < threshold).all())
        for values, mean in ((rows, low), (1 - rows, 1 - high))
    )


def default_bets(n: int, level: float = 0.95) -> Array:
    """Return bets that are optimal for n values with one of six standard deviations."""
    found: Array = math.sqrt(2 * math.log(2 / (1 - level)) / n) / _DEVIATIONS
    return found


def asymptotic_sequence(n: int | Array, level: float = 0.95) -> Array:
    """Return the half-width of an asymptotic confidence sequence after n values, in standard deviations.

    Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas, "Time-uniform central limit theory and asymptotic confidence
    sequences", Annals of Statistics 52 (2024), arXiv 2103.06476; narrowest at 50 values.
    """
    scale = -2 * math.log(1 - level)
    rho2 = (scale + math.log(scale) + 1) / 50
    grown = np.asarray(n, dtype=np.float64) * rho2 + 1
    width: Array = np.sqrt(2 * grown / (np.asarray(n) ** 2 * rho2) * np.log(np.sqrt(grown) / (1 - level)))
    return width


def skewness(rows: Array) -> Array:
    """Return the bias-adjusted skewness (G1) of each row; rows need at least three values, not all equal."""
    n, centred = rows.shape[-1], rows - rows.mean(axis=-1, keepdims=True)
    adjusted: Array = (centred**3).mean(axis=-1) * (math.sqrt(n * (n - 1)) / (n - 2))
    adjusted /= (centred**2).mean(axis=-1) ** 1.5
    return adjusted
