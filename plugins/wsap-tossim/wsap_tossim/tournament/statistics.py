"""The 95 % intervals of a tournament, from `scipy.stats`."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

from wsap_core.errors import UsageError

__all__ = ["percentile_interval", "scipy_stats", "wilson"]


def scipy_stats() -> ModuleType:
    """Return the module `scipy.stats`.

    Raises:
        UsageError: scipy is not installed.
    """
    try:
        from scipy import stats  # deferred for weight, and an extra
    except ImportError as error:
        raise UsageError("Tournaments need scipy; install it with: pip install 'wsap-tossim[tournament]'") from error
    module: ModuleType = stats
    return module


def wilson(hits: int, count: int) -> tuple[float, float]:
    """Return Wilson's score interval of a share, from 0 to 1; (0, 1) if the count is 0."""
    if count == 0:
        return 0.0, 1.0
    interval = scipy_stats().binomtest(hits, count).proportion_ci(0.95, method="wilson")
    return float(interval.low), float(interval.high)


def percentile_interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the 2.5 % and the 97.5 % quantile of values, linear between neighbours."""
    low, high = scipy_stats().quantile(list(values), [0.025, 0.975])
    return float(low), float(high)
