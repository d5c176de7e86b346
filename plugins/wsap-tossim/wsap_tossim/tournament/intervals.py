"""Intervals around shares and means."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

__all__ = ["Z95", "quantile", "wilson"]

Z95 = 1.959963984540054
"""The 97.5 % quantile of the normal distribution."""


def wilson(hits: float, count: float, z: float = Z95) -> tuple[float, float]:
    """Return Wilson's score interval of a share, from 0 to 1; all of it without any count.

    E. B. Wilson, "Probable inference, the law of succession, and statistical inference", Journal of the
    American Statistical Association 22 (1927), 209 to 212.
    """
    if count <= 0:
        return 0.0, 1.0
    share, square = hits / count, z * z
    middle = (share + square / (2 * count)) / (1 + square / count)
    half = z * sqrt(share * (1 - share) / count + square / (4 * count * count)) / (1 + square / count)
    return max(0.0, middle - half), min(1.0, middle + half)


def quantile(values: Sequence[float], share: float) -> float:
    """Return a quantile of sorted values, linear between neighbours (definition 7 of Hyndman and Fan, 1996)."""
    place = (len(values) - 1) * share
    low = int(place)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (place - low)
