"""Values of a game's metrics, which are foreign code."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from wsap_core.errors import PluginError, WsapError
from wsap_core.specs import EpisodeSummary, ScoreMetric
from wsap_eval.planning.plan import Game
from wsap_eval.records import EpisodeRecord, Outcome, SeatRecord


class MetricError(PluginError):
    """A metric raised, or its value is no finite number."""


@contextmanager
def warned_once() -> Iterator[None]:
    """Let what the runtime warns of after each episode, such as a score that can't be computed, be told once in this
    process."""
    told = set[str]()

    def is_new(record: logging.LogRecord) -> bool:
        before = len(told)
        told.add(record.getMessage())
        return len(told) > before

    logger = logging.getLogger("wsap.runs")
    logger.addFilter(is_new)
    try:
        yield
    finally:
        logger.removeFilter(is_new)


def value_of_metric(metric: ScoreMetric, episodes: Sequence[EpisodeSummary], game: str) -> float:
    """Return the value of a game's metric for these episodes. Raises MetricError, naming both."""
    try:
        return metric.of(episodes)
    except WsapError as error:
        raise MetricError(f"A metric of {game!r} failed: {error}") from error


def scored_by(record: EpisodeRecord, game: Game) -> EpisodeRecord:
    """Return an episode with its score by the game's metric, computed from what is recorded if it has not been.

    An episode for which the metric has no value has failed, until it is scored by another one.
    """
    metric = game.metric
    if record.fault == "metric" and record.seats:
        over = all(seat.done for seat in record.seats)
        ended: Outcome = "limit" if record.limit else "finished" if over else "step_limit"
        told = record.reason.rpartition("; ")[2] if record.limit else ""
        record = replace(record, outcome=ended, reason=told, fault="", failed_before=0)
    if not record.scored:
        return record
    if metric.of_set:
        return record if record.value is None else replace(record, value=None)
    if metric.name not in record.metrics:
        try:
            seats = tuple(_with_metric(record, seat, metric, game.entry.game) for seat in record.seats)
        except MetricError as error:
            return replace(record, outcome="failed", reason=str(error), fault="metric", value=None)
        record = replace(record, seats=seats)
        values = [seat.metrics[metric.name] for seat in record.own]
        record = replace(record, metrics={**record.metrics, metric.name: sum(values) / len(values)})
    value = record.metrics[metric.name]
    return record if record.value == value else replace(record, value=value)


def _with_metric(record: EpisodeRecord, seat: SeatRecord, metric: ScoreMetric, game: str) -> SeatRecord:
    played = EpisodeSummary(
        record.seed, seat.steps, seat.reward, seat.achievements, seat.done, seat.seat,
        forced=seat.forced, repaired=seat.repaired, truncated=seat.truncated,
    )  # fmt: skip
    return replace(seat, metrics={**seat.metrics, metric.name: value_of_metric(metric, [played], game)})
