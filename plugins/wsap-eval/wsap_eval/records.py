"""Records of episodes, the lines of `episodes.jsonl`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Literal, Protocol, get_args

from pydantic import TypeAdapter, ValidationError

from wsap_core.errors import WireError
from wsap_core.seams.agent import NO_USAGE, Usage
from wsap_core.specs import ScoreMetric
from wsap_core.untrusted import single_line

Outcome = Literal["finished", "step_limit", "limit", "forfeited", "failed"]
"""How an episode ended: regularly; at the step limit; at a limit of seconds, tokens, calls or cost; forfeited, because
too many replies were unusable or the entrant's agent raised; or by an error of the provider or game, so that it has no
score and is repeated."""
Fault = Literal["", "game", "provider", "opponent", "metric"]
"""Where an episode failed; empty if it did not, or elsewhere, such as with its process."""
FORCED = "decisions were forced"
"""Part of the reason of an episode that is forfeited without an error."""
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


@dataclass(frozen=True, order=True)
class EpisodeKey:
    """Identifies an episode."""

    game: str
    """The game's label in the suite."""
    entrant: str
    seed: int
    repeat: int = 0


@dataclass(frozen=True)
class SeatRecord:
    """A seat's result in an episode."""

    seat: str
    entrant: str
    """The label of the entrant or opponent in it."""
    steps: int
    reward: float
    achievements: tuple[str, ...]
    done: bool
    forced: int
    """Decisions made for it because the replies were unusable."""
    repaired: int
    metrics: Mapping[str, float] = field(default_factory=dict)
    own: bool | None = None
    """Whether the episode's entrant is measured in it; False for an opponent's, even of the same agent and label. If
    None, the label tells."""
    truncated: bool = False
    """Whether the game itself ended the episode at a limit of steps or time."""
    usage: tuple[int, int, int, float | None] | None = None
    """Calls, tokens of prompts and replies, and US dollars of its model, in games of several entrants; else None."""


@dataclass(frozen=True)
class EpisodeRecord:
    """An episode's result. For deterministic entrants the fields up to `trajectory` are reproducible."""

    game: str
    entrant: str
    seed: int
    repeat: int
    outcome: Outcome
    reason: str
    value: float | None
    """The score, as the mean over the entrant's seats; None if it failed or the metric needs a set of episodes."""
    metrics: Mapping[str, float]
    """The game's metrics of this episode, as means over the entrant's seats."""
    steps: int
    reward: float
    """Mean over the entrant's seats."""
    achievements: tuple[str, ...]
    seats: tuple[SeatRecord, ...]
    trajectory: str
    """The trajectory hash; empty if it failed before its end."""
    run: str = ""
    started: str = ""
    seconds: float = 0.0
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    """US dollars; None if unknown."""
    asked_again: int = 0
    """Calls that were pending at an interruption and were repeated."""
    fault: Fault = ""
    """Where it failed."""
    failed_before: int = 0
    """How often in succession it had already failed in the same way."""
    tags: tuple[str, ...] = ()
    """In a folder's file those of the command that played it; in results also those of its suite, game and entrant."""
    limit: str = ""
    """The limit of an episode that ended at one: "seconds", "tokens", "calls" or "cost"."""
    unanswered: int = 0
    """Calls that were pending at that limit, whose reply was not awaited."""
    conditions: Mapping[str, str] = field(default_factory=dict)
    """What the score depends on besides the suite: versions, the model that replied, prompts."""

    @property
    def key(self) -> EpisodeKey:
        """Its key."""
        return EpisodeKey(self.game, self.entrant, self.seed, self.repeat)

    @property
    def own(self) -> tuple[SeatRecord, ...]:
        """The seats in which the entrant was measured."""
        return tuple(s for s in self.seats if (s.entrant == self.entrant if s.own is None else s.own))

    @property
    def path(self) -> tuple[str, tuple[str, ...]] | None:
        """The trajectory with the seats in which the entrant was measured: episodes of one path are one and the same.

        None if it failed, or ended before its first decision.
        """
        known = self.trajectory and self.outcome != "failed"
        return (self.trajectory, tuple(seat.seat for seat in self.own)) if known else None

    @property
    def scored(self) -> bool:
        """Whether it has a score of its own."""
        return self.outcome in ("finished", "step_limit", "limit")

    def to_json(self) -> str:
        """Return the record as one line, without a newline."""
        # `asdict` would copy every value, for ten times as long.
        seats = [vars(seat) for seat in self.seats]
        if self.seats and self.seats[0].usage is None:
            seats = [{name: value for name, value in seat.items() if name != "usage"} for seat in seats]
        return json.dumps({**vars(self), "seats": seats}, ensure_ascii=False)

    @classmethod
    def from_json(cls, line: str | bytes) -> EpisodeRecord:
        """Return the record of a line. Raises WireError if it is invalid."""
        try:
            return _RECORD.validate_json(line, strict=True)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise WireError(f"{where + ': ' if where else ''}{single_line(first['msg'])[:200]}.") from error


_RECORD = TypeAdapter(EpisodeRecord)


class Over(Protocol):
    """What is asked of the record of a game that is over while others are played; an `EpisodeRecord` is one."""

    @property
    def key(self) -> EpisodeKey:
        """Tells games apart."""

    @property
    def outcome(self) -> Outcome:
        """How it ended."""

    @property
    def value(self) -> float | None:
        """The score; None without one."""

    @property
    def path(self) -> tuple[str, tuple[str, ...]] | None:
        """What is equal for episodes that are one and the same; None if it is unknown."""

    @property
    def calls(self) -> int:
        """Calls of models."""

    @property
    def prompt_tokens(self) -> int:
        """Tokens of their prompts."""

    @property
    def completion_tokens(self) -> int:
        """Tokens of their replies."""

    @property
    def cost(self) -> float | None:
        """US dollars; None if it is unknown."""


def usage_of(records: Iterable[Over]) -> Usage:
    """Return the total model usage of episodes; the cost is None if that of any is unknown."""
    return sum((Usage(r.calls, r.prompt_tokens, r.completion_tokens, r.cost) for r in records), NO_USAGE)


def worst_of(metric: ScoreMetric) -> float | None:
    """Return the value of a forfeited episode: the metric's worst declared bound.

    None if it has none, or for a metric of a set of episodes. It depends on the metric alone, never on other episodes.
    """
    return None if metric.of_set else metric.worst


def value_of(record: Over, worst: float | None) -> float | None:
    """Return an episode's value, `worst` if it was forfeited; None if it has no value."""
    return worst if record.outcome == "forfeited" else record.value


_NAMES = [f.name for f in fields(EpisodeRecord)]
SCORE_COLUMNS = tuple(_NAMES[: _NAMES.index("trajectory") + 1])
"""The fields that are reproducible for deterministic entrants."""
