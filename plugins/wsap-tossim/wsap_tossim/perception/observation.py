"""A player's observation at its turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from typing_extensions import override

from wsap_core.protocol import ChatBlock, Observation, View
from wsap_tossim.engine.data.model import Option, Verb
from wsap_tossim.knowledge import Seen
from wsap_tossim.perception.brief import PHRASES, brief_turn
from wsap_tossim.perception.pictures import lines_of

__all__ = ["TownObservation"]


@dataclass(frozen=True)
class TownObservation(Observation):
    """A player's observation, as text for models and as data for others."""

    context: str = field(default="", kw_only=True)
    """The turn in the layout of seed 002: state, roster, events, chat, today's tool results."""
    player: int = field(default=0, kw_only=True)
    """The player's number, from 0."""
    names: Sequence[str] = field(default=(), kw_only=True)
    """All players' names, by number."""
    first_news: int = field(default=0, kw_only=True)
    """Number of events that this player knew before `news`."""
    news: Sequence[Mapping[str, Any]] = field(default=(), kw_only=True)
    """New events since the player's last turn: day, phase, kind, data; see `wsap_tossim.knowledge`."""
    options: Sequence[Mapping[str, Any]] = field(default=(), kw_only=True)
    """Legal options: verb, slots (numbers of players), text (whether it takes a text)."""

    def to_text(self) -> str:
        """Return the turn as a model is shown it."""
        return self.context

    @override
    def to_brief(self) -> str:
        return brief_turn(self.context, self.names)

    @override
    def phrases(self) -> Mapping[str, str]:
        return {option.verb.value: PHRASES[option.verb] for option in self.possible() if option.verb in PHRASES}

    def seen(self) -> list[Seen]:
        """Return the news as events."""
        return [Seen(int(n["day"]), str(n["phase"]), str(n["kind"]), n["data"]) for n in self.news]

    def possible(self) -> tuple[Option, ...]:
        """Return the options as engine objects."""
        return tuple(
            Option(Verb(o["verb"]), tuple(tuple(map(int, slot)) for slot in o["slots"]), bool(o["text"]))
            for o in self.options
        )

    def to_view(self) -> View:
        """Return the new events since the player's last turn, private ones included."""
        return View((ChatBlock(lines_of(self.seen(), self.names, self.player), "New since the last turn"),), "Town")


def news_of(events: Sequence[Seen]) -> tuple[Mapping[str, Any], ...]:
    """Return events as observation data."""
    return tuple({"day": e.day, "phase": e.phase, "kind": e.kind, "data": e.data} for e in events)


def options_of(options: Sequence[Option]) -> tuple[Mapping[str, Any], ...]:
    """Return options as observation data."""
    return tuple({"verb": o.verb.value, "slots": [list(s) for s in o.slots], "text": o.text} for o in options)
