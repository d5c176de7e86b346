"""One value for the repeats of a seed."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from math import comb

from wsap_core.errors import UsageError

_PASS = re.compile(r"pass([@^])([0-9]+)")


def passes(reducer: str) -> int | None:
    """Return K of `pass@K` or `pass^K`; None for a reducer that doesn't count successes."""
    found = _PASS.fullmatch(reducer)
    return None if found is None else int(found[2])


def reduced(values: Sequence[float], reducer: str = "mean", *, best: float | None = None) -> float | None:
    """Return the value of a seed from those of its repeats; None for too few.

    `pass@K` is the probability that at least one of K repeats succeeds, `pass^K` that all do. Both are estimated
    without bias from the n repeats, of which c succeeded: 1 - C(n-c, K) / C(n, K), as by Chen et al., "Evaluating large
    language models trained on code" (arXiv 2107.03374), and C(c, K) / C(n, K). A repeat succeeds if its value is
    `best`.

    Raises UsageError if there is no such reducer.
    """
    if not values:
        return None
    k = passes(reducer)
    if k is not None:
        n, c = len(values), sum(value == best for value in values)
        if n < k:
            return None
        # Integers of any size: their quotient is correctly rounded.
        return (comb(n, k) - comb(n - c, k)) / comb(n, k) if "@" in reducer else comb(c, k) / comb(n, k)
    known: Mapping[str, Callable[[Sequence[float]], float]] = {
        "mean": statistics.fmean,
        "max": max,
        "min": min,
        "median": statistics.median,
    }
    if reducer not in known:
        raise UsageError(f"There is no reducer {reducer!r}; there are: mean, max, min, median, pass@K and pass^K.")
    return float(known[reducer](values))
