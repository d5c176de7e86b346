"""What an agent perceives at one step: the state, goals, events, effects and messages."""

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
    """Something that just happened, as far as the agent perceived it."""

    description: str
    """For a reader: "The zombie hit you for 2"."""
    type: str = "info"
    """What kind: "damage", "achievement", "death", "world", "message", "info"; open."""
    source: str | None = None
    """Who or what caused it."""
    step: int | None = None
    """When, as the game counts steps; None for "just now"."""


@dataclass(frozen=True)
class Effect(Part):
    """A buff, debuff or condition that acts on the agent now."""

    name: str
    """"poisoned", "asleep", "well fed"."""
    description: str = ""
    """What it does, for a reader."""
    remaining: float | None = None
    """How much longer it lasts, in game steps; None where it has no end or the game hides it."""


@dataclass(frozen=True)
class Goal(Part):
    """An objective for the agent."""

    id: str
    """Stable within the game."""
    description: str = ""
    """For a reader: "Collect 10 wood"."""
    type: str = "main"
    """"main", "side" or "achievement"; a game may use other words."""
    progress: str | None = None
    """For a reader: "3/10 wood collected"."""
    hints: Sequence[str] = ()
    """Optional guidance."""


@dataclass(frozen=True)
class Achievement(Part):
    """Something an agent can accomplish, as listed in a game's catalogue."""

    name: str
    """Stable within the game; what `ActionResult.achievements` names."""
    description: str = ""
    """What it takes, for a reader."""
    rarity: str | None = None
    """"common", "uncommon", "rare" or "legendary"; None where the game does not say."""


@dataclass(frozen=True)
class AgentMessage(Part):
    """A message from one agent to others in the same place."""

    sender: str
    """The speaking agent's id."""
    content: str
    """What was said. It is data, never instructions: escape it wherever it is shown."""
    type: str = "broadcast"
    """"broadcast" (all), "direct" (one recipient) or "team"."""
    recipient: str | None = None
    """The agent addressed in a direct message, or the team in a team message."""
    step: int | None = None
    """When it was said, as the world counts steps."""


@dataclass(frozen=True)
class Observation(Part):
    """Everything the agent needs to make a decision, and nothing it could not perceive."""

    status: Mapping[str, Any] = field(default_factory=dict)
    """Health, hunger, mana and the like, by name."""
    inventory: Mapping[str, int] = field(default_factory=dict)
    """What the agent possesses, with counts."""
    location: Location = NOWHERE
    """Where the agent is."""
    nearby_entities: Sequence[Entity] = ()
    """Objects, characters and enemies within the senses' range."""
    nearby_terrain: Sequence[Terrain] = ()
    """Ground, water, walls within the senses' range."""
    active_effects: Sequence[Effect] = ()
    """Buffs, debuffs and conditions."""
    current_goals: Sequence[Goal] = ()
    """Active objectives."""
    recent_events: Sequence[Event] = ()
    """What happened since the last observation, oldest first."""
    step: int = 0
    """The current game step, from 0."""
    time_of_day: str | None = None
    """"day", "night", ...; None where the game has no such thing."""
    available_actions: Sequence[ActionAvailability] | None = field(default=None, kw_only=True)
    """What is legal now, with reasons for what is not; None when all declared actions are."""
    messages: Sequence[AgentMessage] = field(default=(), kw_only=True)
    """What others in the same world said to this agent since the last observation."""
    language: str = field(default="en", kw_only=True, metadata=LEFT_OUT)
    """Code of the language of its text, such as "ru"; that of its game."""
    extras: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    """What a newer or unknown kind of observation carried beyond these fields, kept as it came."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__repr__" not in cls.__dict__:
            cls.__repr__ = Observation.__repr__  # type: ignore[method-assign]  # before `dataclass` makes a long one

    def __repr__(self) -> str:
        return brief_repr(self)

    def is_available(self, action_name: str) -> ActionAvailability | None:
        """Return what this observation says about an action, or None when it says nothing."""
        return next((told for told in self.available_actions or () if told.name == action_name), None)

    def to_text(self) -> str:
        """Return the state as text for a language model, in the protocol's message layout."""
        return render_observation(self)

    def to_brief(self) -> str:
        """Return in few words what matters now, for small models: no map, one goal, and nothing of what is possible,
        which is listed beside it. A subclass that can say it better overrides it."""
        return render_brief(self)

    def phrases(self) -> Mapping[str, str]:
        """Return what actions do now, by name: `{"move_west": "go west to the tree"}`; empty where names say enough.

        They stand for the actions in lists of options, for models and for people. Different actions have different
        phrases. A subclass that knows overrides it; it works for an observation read from a recording.
        """
        return {}

    def to_view(self) -> View:
        """Return what a viewer can draw of what was perceived, such as a map; empty where there is nothing to draw.

        A subclass with a map of its own overrides it. Unlike a world's `render()` it knows no more
        than the agent did, and works for an observation read from a recording.
        """
        return View()

    def to_structured(self) -> dict[str, Any]:
        """Return the state as JSON-ready dicts, lists, strings and numbers, without loss."""
        data: dict[str, Any] = encode(self)
        return data


def render_observation(observation: Observation, *, extra_sections: Sequence[tuple[str, str]] = ()) -> str:
    """Return an observation as text without empty sections, what is possible now last; `extra_sections` (title, body)
    come after NEARBY."""
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
    """Return an observation in few lines: status, inventory, place, what is nearby, what happened, the first goal;
    `extra_lines` come before the goal."""
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
