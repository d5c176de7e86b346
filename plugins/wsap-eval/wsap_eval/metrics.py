"""Values of a game's metrics, which are foreign code."""

from __future__ import annotations

import math
from collections.abc import Sequence

from wsap_core.errors import PluginError
from wsap_core.specs import EpisodeSummary, ScoreMetric
from wsap_core.untrusted import error_line


class MetricError(PluginError):
    """A metric raised, or its value is no finite number."""


def value_of_metric(metric: ScoreMetric, episodes: Sequence[EpisodeSummary], game: str) -> float:
    """Return the value of a game's metric for these episodes. Raises MetricError, naming both."""
    who = f"The metric {metric.name!r} of {game!r}"
    try:
        value = metric.of(episodes)
    except Exception as error:
        raise MetricError(f"{who} raised {error_line(error, kind=True)}") from error
    if not math.isfinite(value):
        raise MetricError(f"{who} returned {value}, which is no finite number.")
    return value
