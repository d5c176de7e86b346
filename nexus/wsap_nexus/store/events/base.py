"""The base classes of the nexus' events, and parts of their sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, JsonValue
from typing_extensions import override

from wsap_core.untrusted import single_line

_KEY = re.compile(r"#key=[\w-]+")
LONGEST = 300
"""The maximum characters of a quoted text."""
_ENVELOPE = frozenset({"seq", "kind", "agent_id", "game", "session_id", "time"})


@dataclass(frozen=True)
class Names:
    """How sentences refer to agents: by name, or id if the name is unknown; one of them optionally as "you"."""

    known: Mapping[str, str] = field(default_factory=dict)
    """Agent id -> name."""
    reader: str | None = None
    """The agent called "you"."""

    def who(self, agent_id: str) -> str:
        """Return "Ada" or "You", as the subject of a sentence."""
        return self._one_of(agent_id, "You", "")

    def whose(self, agent_id: str) -> str:
        """Return "Ada's" or "Your"."""
        return self._one_of(agent_id, "Your", "'s")

    def them(self, agent_id: str) -> str:
        """Return "Ada" or "you", as an object."""
        return self._one_of(agent_id, "you", "")

    def their(self, agent_id: str) -> str:
        """Return "Ada's" or "your", within a sentence."""
        return self._one_of(agent_id, "your", "'s")

    def its(self, agent_id: str) -> str:
        """Return "its" or "your", for an agent already named in the sentence."""
        return "your" if agent_id == self.reader else "its"

    def was(self, agent_id: str) -> str:
        """Return "Ada was" or "You were"."""
        return self.who(agent_id) + (" were" if agent_id == self.reader else " was")

    def _one_of(self, agent_id: str, you: str, ending: str) -> str:
        if agent_id == self.reader:
            return you
        return single_line(self.known.get(agent_id) or agent_id)[:80] + ending


BY_ID = Names()
"""Calls every agent by its id."""


@dataclass(frozen=True)
class Gain:
    """A gain in a form that combines several of one kind into a sentence: `lead`, then the texts."""

    lead: str
    """The start of the sentence: "Ada improved at"."""
    key: str
    """Identifies what was gained; a later gain with the same key replaces an earlier one."""
    text: str
    """What was gained, in the sentence."""


class NexusEvent(BaseModel):
    """An event in the nexus.

    Fields other than those below are the event's body. Fields written by a newer version are kept.
    """

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)

    PUBLIC: ClassVar[frozenset[str] | None] = None
    """The public fields of the body; None if only `readers` and the admin may see the event."""

    TOLD: ClassVar[str] = ""
    """The template of the event's sentence. In braces are methods of `Names` for its agent, `place` for its game,
    `because` for its `error`, `why` or `reason`, and other fields: `{goal}` without underscores, or `{text:120}` cut to
    120 characters."""

    kind: str
    seq: int = 0
    """Its number in the log; 0 before it is written."""
    agent_id: str | None = None
    game: str | None = None
    session_id: str | None = None
    time: float = 0.0
    """Seconds since 1970."""

    @property
    def body(self) -> dict[str, Any]:
        """The fields that are not common to all events, JSON-ready."""
        return self.model_dump(exclude=set(_ENVELOPE), exclude_unset=True)

    @property
    def minor(self) -> bool:
        """Whether live views and summaries leave it out."""
        return False

    def sentence(self, names: Names = BY_ID) -> str:
        """Return the event as a sentence on one line, without control characters or a full stop."""
        if self.TOLD:
            return self.TOLD.format_map(_Parts(self, names))
        who = names.who(self.agent_id) if self.agent_id else "The nexus"
        return f"{who}: {plain(self.kind)}"

    def gained(self, names: Names) -> Gain | None:
        """Return the gain of an agent, if the event is one."""
        return None

    @property
    def readers(self) -> frozenset[str]:
        """The agents that may see the whole event."""
        return frozenset({self.agent_id} if self.agent_id else ())

    def public(self) -> Self | None:
        """Return the public part of the event; None if it has none."""
        if self.PUBLIC is None:
            return None
        shown = self.model_fields_set & (_ENVELOPE | self.PUBLIC)
        return self.model_construct(shown, **{name: getattr(self, name) for name in shown})

    def to_json(self) -> dict[str, JsonValue]:
        """Return the event as sent to clients: `seq`, `kind`, `agent_id`, `game`, `session_id`, `time`, `body`."""
        names = ("seq", "kind", "agent_id", "game", "session_id", "time", "body")
        return {name: getattr(self, name) for name in names}


class _Quoted(str):
    def __format__(self, longest: str) -> str:
        return short(self, int(longest)) if longest else plain(self)


class _Parts(dict[str, object]):
    """The placeholders of `NexusEvent.TOLD`."""

    def __init__(self, event: NexusEvent, names: Names) -> None:
        self._event, self._names = event, names

    def __missing__(self, name: str) -> object:
        event = self._event
        if name == "place":
            return place(event.game)
        if name == "because":
            return because(next(getattr(event, each) for each in ("error", "why", "reason") if hasattr(event, each)))
        if name in type(event).model_fields:
            value = getattr(event, name)
            return _Quoted(value) if isinstance(value, str) else value
        return getattr(self._names, name)(event.agent_id)


class AgentEvent(NexusEvent):
    """An event about an agent."""

    agent_id: str


class GameEvent(NexusEvent):
    """An event about a game."""

    game: str


class GainEvent(AgentEvent):
    """A gain of an agent."""

    @override
    def gained(self, names: Names) -> Gain:
        raise NotImplementedError

    @override
    def sentence(self, names: Names = BY_ID) -> str:
        told = self.gained(names)
        return f"{told.lead} {told.text}"


class OtherEvent(NexusEvent):
    """An event of an unknown kind, or with an unreadable body."""

    data: Mapping[str, JsonValue] = {}
    """The body."""

    @property
    @override
    def body(self) -> dict[str, Any]:
        return dict(self.data)


def sentences(events: Iterable[NexusEvent], names: Names) -> list[tuple[NexusEvent, str]]:
    """Return events, given oldest first, with their sentences, without minor events.

    Consecutive gains of one kind are one sentence, returned with the last of the events.
    """
    told: list[tuple[NexusEvent, str]] = []
    together: dict[str, str] = {}
    for event in events:
        if event.minor:
            continue
        gain = event.gained(names)
        if gain is None:
            together = {}
            told.append((event, event.sentence(names)))
            continue
        same = together and told and told[-1][0].kind == event.kind and told[-1][0].session_id == event.session_id
        if same and told[-1][0].agent_id == event.agent_id:
            told.pop()
        else:
            together = {}
        together[gain.key] = gain.text
        told.append((event, f"{gain.lead} {listed(together.values(), 6)}"))
    return told


# --- parts of sentences -------------------------------------------------------------------------


def short(text: object, limit: int = LONGEST) -> str:
    """Return external text on one line, cut to a length, without a key that unlocks the dashboard."""
    line = _KEY.sub("#", single_line(text))
    return line if len(line) <= limit else line[: limit - 3] + "..."


def plain(name: object) -> str:
    """Return an identifier as text, with spaces for underscores."""
    return short(str(name).replace("_", " "), 80)


def place(game: str | None) -> str:
    """Return the name of a game, or "the nexus"."""
    return "the nexus" if game in (None, "", "nexus") else short(game, 80)


def count(number: int, one: str, several: str = "") -> str:
    """Return "1 decision", "2 decisions"."""
    return f"{number} {one if number == 1 else several or one + 's'}"


def listed(texts: Iterable[str], most: int) -> str:
    """Return up to `most` texts separated by commas, and the number of the others."""
    known = list(texts)
    more = f" and {len(known) - most} more" if len(known) > most else ""
    return ", ".join(known[:most]) + more


def because(text: object) -> str:
    """Return ": TEXT"; empty for no text."""
    return f": {short(text)}" if text else ""
