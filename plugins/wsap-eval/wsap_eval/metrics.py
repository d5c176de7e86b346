"""Values of a game's metrics, which are foreign code."""

from __future__ import annotations

from collections.abc import Sequence

from wsap_core.errors import PluginError, WsapError
from wsap_core.specs import EpisodeSummary, ScoreMetric


class MetricError(PluginError):
    """A metric raised, or its value is no finite number."""


def value_of_metric(metric: ScoreMetric, episodes: Sequence[EpisodeSummary], game: str) -> float:
    """Return the value of a game's metric for these episodes. Raises MetricError, naming both."""
    try:
        return metric.of(episodes)
    except WsapError as error:
        raise MetricError(f"A metric of {game!r} failed: {error}") from error
