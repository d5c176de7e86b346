"""What one episode came to: a line of `episodes.jsonl`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Literal, get_args

from pydantic import TypeAdapter, ValidationError

from wsap_core.errors import WireError
from wsap_core.seams.agent import NO_USAGE, Usage
from wsap_core.specs import ScoreMetric
from wsap_core.untrusted import single_line

Outcome = Literal["finished", "step_limit", "forfeited", "failed"]
"""How an episode ended: by itself; cut off by the step limit; given up, because too few replies could be used; or by an
error of the provider or game, so that it has no score and is played again."""
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


@dataclass(frozen=True, order=True)
class EpisodeKey:
    """Which episode it is."""

    game: str
    """The game's label in the suite."""
    entrant: str
    seed: int
    repeat: int = 0


@dataclass(frozen=True)
class SeatRecord:
    """What one seat came to in an episode."""

    seat: str
    entrant: str
    """Who sat there: the entrant's label, or whom it played against."""
    steps: int
    reward: float
    achievements: tuple[str, ...]
    done: bool
    forced: int
    """Decisions that were made for it, because no reply could be used."""
    repaired: int
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class EpisodeRecord:
    """What an episode came to. The fields down to `trajectory` are the same whenever a deterministic entrant plays it
    again; those below are of this time alone."""

    game: str
    entrant: str
    seed: int
    repeat: int
    outcome: Outcome
    reason: str
    """Why it was forfeited or failed, in words."""
    value: float | None
    """The figure, over the entrant's seats; None where it failed, or where the metric is one of a set of episodes."""
    metrics: Mapping[str, float]
    """The game's metrics of this episode, over the entrant's seats."""
    steps: int
    """Decisions of the entrant."""
    reward: float
    """Mean over the entrant's seats."""
    achievements: tuple[str, ...]
    seats: tuple[SeatRecord, ...]
    trajectory: str
    """The trajectory's hash; empty where it failed."""
    run: str = ""
    """The recorded run."""
    started: str = ""
    seconds: float = 0.0
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    """US dollars; None where unknown."""
    asked_again: int = 0
    """Calls that were on their way when it was interrupted."""
    conditions: Mapping[str, str] = field(default_factory=dict)
    """What the figure depends on besides the suite: versions, the model that answered, prompts."""

    @property
    def key(self) -> EpisodeKey:
        """Which episode it is."""
        return EpisodeKey(self.game, self.entrant, self.seed, self.repeat)

    @property
    def scored(self) -> bool:
        """Whether it has a score of its own."""
        return self.outcome in ("finished", "step_limit")

    def to_json(self) -> str:
        """Return the line, without its end."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, line: str | bytes) -> EpisodeRecord:
        """Return the record of a line.

        Raises:
            WireError: it is none.
        """
        try:
            return _RECORD.validate_json(line, strict=True)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise WireError(f"{where + ': ' if where else ''}{single_line(first['msg'])[:200]}.") from error


_RECORD = TypeAdapter(EpisodeRecord)


def usage_of(records: Iterable[EpisodeRecord]) -> Usage:
    """Return what models took for episodes together; the cost is None where that of one is not known."""
    return sum((Usage(r.calls, r.prompt_tokens, r.completion_tokens, r.cost) for r in records), NO_USAGE)


def worst_of(metric: ScoreMetric, records: Iterable[EpisodeRecord]) -> float | None:
    """Return what a forfeited episode counts as: the metric's lowest value, or the lowest that was reached where it
    declares none; None where nothing was reached, or the metric is one of a set of episodes."""
    if metric.of_set:
        return None
    if metric.low is not None:
        return metric.low
    return min((record.value for record in records if record.value is not None), default=None)


def value_of(record: EpisodeRecord, worst: float | None) -> float | None:
    """Return what an episode counts as, where a forfeited one counts as `worst`; None for one without a score."""
    return worst if record.outcome == "forfeited" else record.value


_NAMES = [f.name for f in fields(EpisodeRecord)]
SCORE_COLUMNS = tuple(_NAMES[: _NAMES.index("trajectory") + 1])
"""The fields that are the same whenever a deterministic entrant plays the episode again."""
