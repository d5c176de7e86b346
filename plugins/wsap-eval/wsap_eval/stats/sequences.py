"""Confidence sequences: intervals that may be looked at after every seed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from wsap_eval.stats import bounds
from wsap_eval.stats.estimates import Interval, Values

__all__ = ["FIRST_LOOK", "contiguous", "sequence"]

FIRST_LOOK = 20
"""Seeds before the first look at an asymptotic sequence."""


def contiguous(values: Values, seeds: Iterable[int]) -> list[int]:
    """Return the seeds up to the first that has no value yet, so that nothing depends on which worker was quick.

    Args:
        values: seed -> its value or values.
        seeds: the plan's seeds, in its order.
    """
    found = []
    for seed in seeds:
        if seed not in values:
            break
        found.append(seed)
    return found


def sequence(
    values: Sequence[float], *, low: float | None = None, high: float | None = None, level: float = 0.95
) -> tuple[Interval | None, str]:
    """Return the interval after these values of a confidence sequence, or None and the reason in a sentence.

    With probability `level` the intervals after every number of values hold together: exactly for a metric with both
    bounds (betting), in the limit for any other (asymptotic, from 20 values).

    Args:
        values: one per seed, in the plan's order, without a gap (`contiguous`).
        low: the metric's declared lower bound.
        high: its upper bound.
        level: nominal coverage at all looks together.
    """
    rows = np.asarray(values, dtype=np.float64)
    if low is not None and high is not None and high > low:
        if len(rows) == 0:
            return None, "No seed was played yet."
        if rows.min() < low or rows.max() > high:
            return None, f"A value lies outside the metric's declared bounds {low:g} to {high:g}."
        a, b = bounds.betting_sequence((rows - low) / (high - low), level)
        method = "confidence sequence, exact (betting)"
        return Interval(low + float(a) * (high - low), low + float(b) * (high - low), level, method), ""
    if len(rows) < FIRST_LOOK:
        return None, f"An asymptotic confidence sequence is first looked at after {FIRST_LOOK} seeds."
    if rows.min() == rows.max():
        return None, f"All {len(rows)} seeds have the same value; nothing tells how far another would be."
    a, b = bounds.asymptotic_sequence(rows, level)
    return Interval(float(a), float(b), level, f"confidence sequence, asymptotic from {FIRST_LOOK} seeds"), ""
