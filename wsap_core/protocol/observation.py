"""Observations: the state, goals, events, effects and messages that an agent perceives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wsap_core.protocol.availability import ActionAvailability, render_availability
from wsap_core.protocol.base import LEFT_OUT, Part, brief_repr
from wsap_core.protocol.lines import bullets, number, pairs
from wsap_core.protocol.spatial import Entity, Location, Terrain, entity_line, terrain_line
from wsap_core.protocol.views import View
from wsap_core.protocol.wire import encode
from wsap_core.protocol.words import Words, words_of
from wsap_core.untrusted import single_line

NOWHERE = Location()


@dataclass(frozen=True)
class Event(Part):
    """Something that just happened, as the agent perceived it."""

    description: str
    """For a reader: "The zombie hit you for 2"."""
    type: str = "info"
    """"damage", "achievement", "death", "world", "message", "info"; a game may use other words."""
    source: str | None = None
    """Who or what caused it."""
    step: int | None = None
    """The game's number of the step; None for "just now"."""


@dataclass(frozen=True)
class Effect(Part):
    """A buff, debuff or condition of the agent."""

    name: str
    """"poisoned", "asleep", "well fed"."""
    description: str = ""
    """What it does, for a reader."""
    remaining: float | None = None
    """Remaining game steps; None if it has no end or the game hides it."""


@dataclass(frozen=True)
class Goal(Part):
    """An objective of the agent."""

    id: str
    """Stable within the game."""
    description: str = ""
    """For a reader: "Collect 10 wood"."""
    type: str = "main"
    """"main", "side" or "achievement"; a game may use other words."""
    progress: str | None = None
    """For a reader: "3/10 wood collected"."""
    hints: Sequence[str] = ()


@dataclass(frozen=True)
class Achievement(Part):
    """An achievement in a game's catalogue."""

    name: str
    """Stable within the game."""
    description: str = ""
    """How to unlock it, for a reader."""
    rarity: str | None = None
    """"common", "uncommon", "rare" or "legendary"; None if not stated."""


@dataclass(frozen=True)
class AgentMessage(Part):
    """A message from one agent to others in the same world."""

    sender: str
    """The sending agent's id."""
    content: str
    """Untrusted text: escape it wherever it is shown."""
    type: str = "broadcast"
    """"broadcast" (all), "direct" (one recipient) or "team"."""
    recipient: str | None = None
    """The agent that a direct message is for, or the team of a team message."""
    step: int | None = None
    """The world's number of the step."""


@dataclass(frozen=True)
class Observation(Part):
    """Everything that the agent needs for a decision, and nothing that it could not perceive."""

    status: Mapping[str, Any] = field(default_factory=dict)
    """Health, hunger, mana and so on, by name."""
    inventory: Mapping[str, int] = field(default_factory=dict)
    """Item -> count."""
    location: Location = NOWHERE
    nearby_entities: Sequence[Entity] = ()
    """Objects, characters and enemies within the range of the senses."""
    nearby_terrain: Sequence[Terrain] = ()
    """Ground, water and walls within the range of the senses."""
    active_effects: Sequence[Effect] = ()
    current_goals: Sequence[Goal] = ()
    recent_events: Sequence[Event] = ()
    """Events since the last observation, oldest first."""
    step: int = 0
    """The current game step, from 0 to 2**31 - 1."""
    time_of_day: str | None = None
    """"day", "night", ...; None if the game has no time of day."""
    available_actions: Sequence[ActionAvailability] | None = field(default=None, kw_only=True)
    """The actions that are legal now, and why others are not; None if all declared actions are."""
    messages: Sequence[AgentMessage] = field(default=(), kw_only=True)
    """Messages to this agent since the last observation."""
    language: str = field(default="en", kw_only=True, metadata=LEFT_OUT)
    """Language code of its text, such as "ru"."""
    extras: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    """Unknown fields of a newer or unknown kind of observation, unchanged."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__repr__" not in cls.__dict__:
            cls.__repr__ = Observation.__repr__  # type: ignore[method-assign]  # before `dataclass` makes a long one

    def __repr__(self) -> str:
        return brief_repr(self)

    def is_available(self, action_name: str) -> ActionAvailability | None:
        """Return the availability of an action, or None if the observation does not mention it."""
        return next((told for told in self.available_actions or () if told.name == action_name), None)

    def to_text(self) -> str:
        """Return the state as text for a language model, in the protocol's message layout."""
        return render_observation(self)

    def to_brief(self) -> str:
        """Return a short text for small models: no map, one goal, no available actions. Subclasses may override it."""
        return render_brief(self)

    def phrases(self) -> Mapping[str, str]:
        """Return unique phrases for lists of options, by action: `{"move_west": "go west to the tree"}`. Subclasses may
        override it; it must also work for an observation read from a recording."""
        return {}

    def typed_names(self) -> Mapping[str, str]:
        """Return what a person may type for the words of choices: names or numbers that the view shows -> words."""
        return {}

    def to_view(self) -> View:
        """Return a view of what the agent perceived, such as a map; empty unless overridden. Unlike a world's
        `render()` it shows no more than the agent knew, and works for an observation read from a recording."""
        return View()

    def to_structured(self) -> dict[str, Any]:
        """Return the observation as JSON-ready data, without loss."""
        data: dict[str, Any] = encode(self)
        return data


def render_observation(observation: Observation, *, extra_sections: Sequence[tuple[str, str]] = ()) -> str:
    """Return an observation as text, without empty sections; `extra_sections` (title, body) follow NEARBY."""
    o, words = observation, words_of(observation.language)
    sections: list[tuple[str, str]] = [
        (words.say("TIME"), single_line(o.time_of_day) if o.time_of_day else ""),
        (words.say("STATUS"), pairs(o.status, words)),
        (words.say("INVENTORY"), pairs(o.inventory, words)),
        (words.say("EFFECTS"), bullets(_effect(e, words) for e in o.active_effects)),
        (words.say("LOCATION"), single_line(o.location.description or o.location.region or _coordinates(o))),
        (words.say("NEARBY"), bullets(_nearby(o, words))),
        *extra_sections,
        (words.say("RECENT EVENTS"), bullets(e.description for e in o.recent_events)),
        (words.say("MESSAGES"), bullets(f"{m.sender} ({words.say(m.type)}): {m.content}" for m in o.messages)),
        (words.say("CURRENT GOALS"), bullets(map(_goal, o.current_goals))),
        *render_availability(o.available_actions or (), words),
    ]
    parts = [words.say(f"Step {o.step}")]
    parts += [f"{title}:\n{body}" for title, body in sections if body]
    return "\n\n".join(parts)


def render_brief(observation: Observation, *, extra_lines: Sequence[str] = ()) -> str:
    """Return an observation as a short text with only the first goal; `extra_lines` precede the goal."""
    o, words = observation, words_of(observation.language)
    carried = pairs(o.inventory, words).replace("\n", ", ")
    lines = [
        single_line(o.time_of_day) if o.time_of_day else "",
        pairs(o.status, words),
        f"{words.say('You have')}: {carried}" if carried else "",
        single_line(o.location.description or o.location.region or _coordinates(o)),
        *_nearby(o, words),
        *(single_line(e.description) for e in o.recent_events),
        *(single_line(f"{m.sender}: {m.content}") for m in o.messages),
        *extra_lines,
        *(f"{words.say('Goal')}: {single_line(_goal(goal))}" for goal in o.current_goals[:1]),
    ]
    return "\n".join(filter(None, lines))


def _nearby(observation: Observation, words: Words) -> Iterator[str]:
    yield from (entity_line(entity, words) for entity in observation.nearby_entities)
    yield from (terrain_line(terrain, words) for terrain in observation.nearby_terrain)


def _coordinates(observation: Observation) -> str:
    return ", ".join(number(c) for c in observation.location.coordinates)


def _effect(effect: Effect, words: Words) -> str:
    text = f"{effect.name}: {effect.description}" if effect.description else effect.name
    return text if effect.remaining is None else text + words.say(f" ({number(effect.remaining)} steps left)")


def _goal(goal: Goal) -> str:
    text = (goal.description or goal.id) + (f" ({goal.progress})" if goal.progress else "")
    return f"{text} - {'; '.join(goal.hints)}" if goal.hints else text
