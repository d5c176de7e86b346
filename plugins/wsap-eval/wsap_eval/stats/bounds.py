"""Confidence bounds of means, over the last axis of an array: one row of values per seed for each evaluation.

`estimate` and `paired` call these with one row; the simulation of their coverage calls the same functions with
thousands of rows at once.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Array",
    "asymptotic_sequence",
    "bca",
    "betting",
    "betting_sequence",
    "clopper_pearson",
    "log_wealth",
    "skewness",
    "student",
]

Array = NDArray[np.float64]
Bounds = tuple[Array, Array]

_DEVIATIONS = np.array([0.5, 0.35, 0.25, 0.15, 0.08, 0.04])
"""Standard deviations of values in 0..1 for which a bet of `betting` is the best."""
_SEQUENCE_BETS: Array = np.exp2(np.arange(-4.0, 5.0))
"""Bets of `betting_sequence`: they do not depend on how many values come."""
_BISECTIONS = 40


def student(rows: Array, level: float = 0.95) -> Bounds:
    """Return Student's t interval of each row's mean; rows of at least two values."""
    from scipy import stats  # deferred for weight

    n = rows.shape[-1]
    mean = rows.mean(axis=-1)
    half = stats.t.ppf((1 + level) / 2, n - 1) * rows.std(axis=-1, ddof=1) / math.sqrt(n)
    return mean - half, mean + half


def clopper_pearson(hits: Array, n: int, level: float = 0.95) -> Bounds:
    """Return the exact interval of a share (Clopper and Pearson, Biometrika 26, 1934).

    Args:
        hits: numbers of hits, from 0 to `n`.
        n: number of values.
        level: the coverage, at least.
    """
    from scipy import stats  # deferred for weight

    tail = (1 - level) / 2
    low = np.where(hits > 0, stats.beta.ppf(tail, np.maximum(hits, 1), n - hits + 1), 0.0)
    high = np.where(hits < n, stats.beta.ppf(1 - tail, hits + 1, np.maximum(n - hits, 1)), 1.0)
    return low, high


def log_wealth(rows: Array, mean: Array, bets: Array, *, over_time: bool = False) -> Array:
    """Return the logarithm of what a gambler owns who bets that each row's mean is above a supposed one.

    The gambler divides one unit among constant bets b and multiplies each part by 1 + min(b, 1/mean) (x - mean) at
    every value x. If the supposed mean is right, the expected wealth stays 1, so that by Ville's inequality it ever
    reaches 1/a with probability a at most. It falls as the supposed mean rises, and does not depend on the order of
    the values (Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting", Journal of the
    Royal Statistical Society B 86, 2024, arXiv 2010.09686; the grid of bets is their section on grid Kelly).

    Args:
        rows: values from 0 to 1, shape (..., n).
        mean: supposed means, shape (...).
        bets: bets, at least 0.
        over_time: return the wealth after each value, shape (..., n), in place of that after the last.
    """
    supposed = np.maximum(mean, 1e-300)[..., None]
    parts = []
    with np.errstate(divide="ignore", over="ignore"):
        for bet in bets:
            share = np.minimum(bet * supposed, 1.0)
            gains = np.log(1 - share + share * (rows / supposed))
            parts.append(gains.cumsum(axis=-1) if over_time else gains.sum(axis=-1))
        total: Array = np.logaddexp.reduce(np.array(parts), axis=0) - math.log(len(bets))
    return total


def betting(rows: Array, level: float = 0.95, *, bets: Array | None = None) -> Bounds:
    """Return an interval of the mean of values from 0 to 1 that holds for every distribution and every n.

    Args:
        rows: values from 0 to 1, shape (..., n).
        level: the coverage, at least.
        bets: the gambler's bets (see `log_wealth`); by default the best ones for n values of six standard deviations.
    """
    threshold = math.log(2 / (1 - level))
    chosen = np.sqrt(2 * threshold / rows.shape[-1]) / _DEVIATIONS if bets is None else bets
    return _lower(rows, chosen, threshold), 1 - _lower(1 - rows, chosen, threshold)


def betting_sequence(rows: Array, level: float = 0.95) -> Bounds:
    """Return the bounds after the last value of a confidence sequence for the mean of values from 0 to 1.

    With probability `level` at least, the bounds after every number of values hold together.
    """
    return betting(rows, level, bets=_SEQUENCE_BETS)


def _lower(rows: Array, bets: Array, threshold: float) -> Array:
    """Return the highest mean that the gambler's wealth refutes, by bisection; 0 where it refutes none."""
    low, high = np.zeros(rows.shape[:-1]), rows.mean(axis=-1)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        refuted = log_wealth(rows, middle, bets) >= threshold
        low, high = np.where(refuted, middle, low), np.where(refuted, high, middle)
    return low


def asymptotic_sequence(rows: Array, level: float = 0.95, *, tuned_for: int = 50) -> Bounds:
    """Return the bounds after the last value of an asymptotic confidence sequence for the mean.

    Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas, "Time-uniform central limit theory and asymptotic confidence
    sequences", Annals of Statistics 52 (2024), arXiv 2103.06476, theorem 2.2, with rho as in their appendix.

    Args:
        rows: values, shape (..., n) with n at least 2.
        level: the coverage at all numbers of values together, in the limit.
        tuned_for: number of values at which the bounds are narrowest.
    """
    n = rows.shape[-1]
    scale = -2 * math.log(1 - level)
    rho2 = (scale + math.log(scale) + 1) / tuned_for
    grown = n * rho2 + 1
    factor = math.sqrt(2 * grown / (n**2 * rho2) * math.log(math.sqrt(grown) / (1 - level)))
    mean, deviation = rows.mean(axis=-1), rows.std(axis=-1, ddof=1)
    return mean - factor * deviation, mean + factor * deviation


def skewness(rows: Array) -> Array:
    """Return the skewness of each row, adjusted for bias (G1); 0 where all values are equal or fewer than three."""
    n = rows.shape[-1]
    centred = rows - rows.mean(axis=-1, keepdims=True)
    second = (centred**2).mean(axis=-1)
    flat = second <= 1e-24 * np.maximum((rows**2).mean(axis=-1), 1e-300)
    ratio = np.where(flat, 0.0, (centred**3).mean(axis=-1) / np.where(flat, 1.0, second) ** 1.5)
    return ratio * (math.sqrt(n * (n - 1)) / (n - 2) if n > 2 else 0.0)


def bca(rows: Array, level: float = 0.95, *, resamples: int = 2000, seed: int = 0) -> Bounds:
    """Return the bias-corrected and accelerated bootstrap interval of each row's mean (Efron, JASA 82, 1987)."""
    from scipy import stats  # deferred for weight

    rng: Any = np.random.default_rng(seed)
    found = stats.bootstrap(
        (rows,), np.mean, axis=-1, confidence_level=level, n_resamples=resamples, batch=100, method="BCa", rng=rng
    )
    return found.confidence_interval.low, found.confidence_interval.high
