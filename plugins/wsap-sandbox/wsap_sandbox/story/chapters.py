"""A story read from its run's log: events, positions, narration, and the drift of memories."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wsap_core.protocol.values import JsonValue
from wsap_sandbox.languages import words_of
from wsap_sandbox.model import Character, CharacterChange, Degraded, LedgerEvent, TickRecord, World, dump, load

KINDS = ("tick", "story")
"""The run's event kinds that contain the story."""

_LATE = 2
"""Number of ticks after which all stories of a tick have been told."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A place on a map."""

    name: str
    exits: tuple[str, ...] = ()
    """Ids of the places that can be reached from here."""


@dataclass(frozen=True, slots=True)
class Cast:
    """The names of the ids in a tick; recorded with each tick, because a world's characters may change."""

    title: str = ""
    language: str = "en"
    characters: Mapping[str, str] = field(default_factory=dict)
    """Id -> unique name."""
    places: Mapping[str, Spot] = field(default_factory=dict)
    """In the world's order."""

    def name(self, part: str) -> str:
        """Return the name of a character or place; its id if it has none."""
        return self.places[part].name if part in self.places else self.characters.get(part, part)


@dataclass(frozen=True, slots=True)
class Scene:
    """What happened in one place in one tick."""

    place: str
    people: tuple[str, ...]
    """Ids of those who were there at the start of the tick."""
    text: str
    """The narration; empty if none was recorded."""
    events: tuple[LedgerEvent, ...]

    @property
    def told(self) -> str:
        """The narration, otherwise the texts of the events."""
        return self.text or " ".join(event.text for event in self.events)


@dataclass(frozen=True, slots=True)
class Chapter:
    """One tick of a story."""

    record: TickRecord
    cast: Cast
    stories: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Place id -> the log note with its scene's narration."""

    @property
    def tick(self) -> int:
        """The tick's number."""
        return self.record.tick

    @property
    def places(self) -> tuple[str, ...]:
        """All place ids, in the world's order."""
        return tuple(self.cast.places) or tuple(change.id for change in self.record.places)

    @property
    def degraded(self) -> list[Degraded]:
        """Its degraded results, including those of its narration."""
        told = [(place, one) for place, note in self.stories.items() for one in note.get("degraded", ())]
        return [*self.record.degraded, *(Degraded("story", place, str(one["kind"])) for place, one in told)]

    def scenes(self) -> Iterator[Scene]:
        """Yield the scene of each place, in the world's order."""
        for place in self.places:
            people = tuple(one.id for one in self.record.characters if (one.came_from or one.place) == place)
            events = tuple(event for event in self.record.events if event.place == place)
            yield Scene(place, people, str(self.stories.get(place, {}).get("text", "")), events)

    def where(self) -> dict[str, list[str]]:
        """Return place id -> ids of the characters who are there at the end of the tick."""
        found: dict[str, list[str]] = {place: [] for place in self.places}
        for one in self.record.characters:
            found.setdefault(one.place, []).append(one.id)
        return found

    def inner(self, change: CharacterChange) -> dict[str, str]:
        """Return the inner texts of a character by their label keys."""
        told = (change.intention, change.cell.text, change.internal_state, change.external_intent)
        return dict(zip(("intention", "memory", "feels", "wants"), told, strict=True))

    def rests_on(self, scene: Scene) -> list[str]:
        """Return the sources of a scene's narration, one a line: ledger events, replacements, and keys of prompts."""
        words = words_of(self.cast.language).page
        lines = [self.line(event) for event in scene.events]
        lines += [
            f"{words['degraded']} {one.phase}, {self.cast.name(one.subject)}: {one.kind} {one.detail}".rstrip()
            for one in self.degraded
            if one.subject in (scene.place, *scene.people)
        ]
        asked = [f"intent/{one}" for one in scene.people] + [f"scene/{scene.place}", f"story/{scene.place}"]
        return [*lines, f"{words['prompts']} {', '.join(f'{self.tick}/{key}' for key in asked)}"]

    def line(self, event: LedgerEvent) -> str:
        """Return a ledger event as one line."""
        words, name = words_of(self.cast.language).page, self.cast.name
        about = [words[event.outcome]] if event.actor else []
        about += [f"{words['trigger']}: {trigger}" for trigger in event.triggers]
        if event.witnesses:
            about.append(f"{words['seen']} {', '.join(map(name, event.witnesses))}")
        return f"{event.id} {event.text}" + (f" ({'; '.join(about)})" if about else "")


def tick_body(world: World, record: TickRecord) -> dict[str, JsonValue]:
    """Return the body of a tick for the run's log: its record, and the names in the world after it."""
    people = _distinct({one.id: one.name for one in world.characters})
    places = _distinct({one.id: one.name for one in world.places})
    cast: dict[str, JsonValue] = {
        "title": world.title,
        "language": world.language,
        "characters": [[one, name] for one, name in people.items()],
        "places": [[one.id, places[one.id], list(one.exits)] for one in world.places],
    }
    return {**dump(record), "cast": cast}


def read_chapters(events: Iterable[Mapping[str, Any]]) -> Iterator[Chapter]:
    """Yield the chapters of a story from its run's events of the kinds `KINDS`, oldest first.

    Narration is recorded shortly before or after its tick. Raises SnapshotError if a tick is damaged or has another
    version.
    """
    waiting: dict[int, Chapter] = {}
    stories: dict[int, dict[str, Mapping[str, Any]]] = {}
    for event in events:
        body = event["body"]
        if event["kind"] == "story":
            stories.setdefault(body["tick"], {})[body["place"]] = body
            continue
        record = load(body["body"], TickRecord)
        waiting[record.tick] = Chapter(record, cast_of(body["body"]), stories.setdefault(record.tick, {}))
        for tick in [tick for tick in waiting if tick <= record.tick - _LATE]:
            yield waiting.pop(tick)
            del stories[tick]
    yield from waiting.values()


def cast_of(body: Mapping[str, Any]) -> Cast:
    """Return the names of the ids in a tick's body."""
    data = body.get("cast", {})
    return Cast(
        str(data.get("title", "")),
        str(data.get("language", "en")),
        dict(data.get("characters", ())),
        {place: Spot(name, tuple(exits)) for place, name, exits in data.get("places", ())},
    )


def _distinct(names: Mapping[str, str]) -> dict[str, str]:
    times = Counter(names.values())
    return {part: name if times[name] == 1 else f"{name} ({part})" for part, name in names.items()}


_STEM = 5
"""Leading letters of a word that are compared; the rest counts as its ending."""
_WORD = re.compile(r"[^\W\d_]{4,}")


@dataclass(frozen=True, slots=True)
class Distortion:
    """The distance of a memory from its events, 0 to 1."""

    invented: float
    """The share of the memory's words that occur in no event; 0 for an empty memory."""
    forgotten: float
    """The share of events that share no word with the memory; 0 without events."""


def drift(one: Character, ledger: Iterable[LedgerEvent]) -> tuple[tuple[int, Distortion], ...]:
    """Return tick and distortion of each of a character's memories relative to the complete ledger, newest first.

    The summary, if there is one, is last, as tick 0; it is compared with everything that the character witnessed
    before its oldest cell.
    """
    witnessed = [event for event in ledger if one.id in event.witnesses]
    cells = (*one.memory.cells, *reversed(one.memory.overflow))
    found = [(cell.tick, distortion(cell.text, [e for e in witnessed if e.id in cell.events])) for cell in cells]
    if summary := one.memory.summary:
        oldest = min((cell.tick for cell in cells), default=None)
        before = [event for event in witnessed if oldest is None or event.tick < oldest]
        found.append((0, distortion(summary, before)))
    return tuple(found)


def distortion(memory: str, events: Sequence[LedgerEvent]) -> Distortion:
    """Return the distortion of a text relative to events, comparing stems of words of at least four letters."""
    said = _stems(memory)
    happened = [stems for stems in (_stems(event.text) for event in events) if stems]
    known: set[str] = set().union(*happened)
    invented = len(said - known) / len(said) if said else 0.0
    forgotten = sum(said.isdisjoint(stems) for stems in happened) / len(happened) if happened else 0.0
    return Distortion(invented, forgotten)


def _stems(text: str) -> set[str]:
    return {word[:_STEM] for word in _WORD.findall(text.casefold())}
