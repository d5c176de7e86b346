"""The world as data: places, characters with their memories, objects, and the record of a tick.

A world and a tick's record have one JSON form each (`dump`, `load`), which gives the same bytes after a round trip.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, TypeVar

from wsap_core.errors import SnapshotError
from wsap_core.protocol.values import JsonValue

VERSION = 1
"""The version of the JSON form."""

LANGUAGES = ("en", "ru")
"""The languages that worlds can be written in."""

RESERVED = frozenset({"", "stay", "here", "none", "happening"})
"""What can't be an id, because it says something else where ids are listed."""

T = TypeVar("T", "World", "TickRecord")

Outcome = Literal["success", "partial", "failure"]
EventKind = Literal["act", "move", "happening", "influence"]
"""A resolved intention, one that led to another place, something without an actor, an influence from outside."""
DecidedBy = Literal["model", "seat", "outside", "fallback"]
"""A model, whoever sits in the character, an influence, or nobody who could be understood."""
Phase = Literal["intent", "scene", "story", "memory"]
"""What a model is asked for."""
InfluenceKind = Literal["whisper", "event", "object", "edit", "move", "take_over"]


@dataclass(frozen=True, slots=True)
class WorldObject:
    """Something that lies in a place or is carried; who has it, `Place.objects` and `Character.inventory` say."""

    kind: ClassVar = "object"
    id: str
    name: str
    description: str = ""
    """What it is; stays as it is."""
    condition: str = ""
    """What has become of it, as the last scene left it."""


@dataclass(frozen=True, slots=True)
class Place:
    """A place of the world."""

    kind: ClassVar = "place"
    id: str
    name: str
    description: str
    """What it is; changed only by an event with a cause."""
    moment: str = ""
    """What is passing there now: weather, light, smells; every scene writes it anew."""
    exits: tuple[str, ...] = ()
    """Ids of the places that one can go to from here."""
    objects: tuple[str, ...] = ()
    """Ids of the objects that lie here."""
    past: tuple[str, ...] = ()
    """What happened here in the last scene, as the ledger has it; for the game master."""


@dataclass(frozen=True, slots=True)
class Cell:
    """What a character remembers of one tick, in its own words."""

    tick: int
    tried: str
    came_of_it: str
    interpretation: str
    events: tuple[str, ...] = ()
    """Ids of the events of the ledger that it witnessed."""

    @property
    def text(self) -> str:
        """The three parts, one after another."""
        return " ".join(part for part in (self.tried, self.came_of_it, self.interpretation) if part)


@dataclass(frozen=True, slots=True)
class Memory:
    """What a character remembers; subjective, and private."""

    cells: tuple[Cell, ...] = ()
    """The newest first, `World.cells` at most."""
    summary: str = ""
    """All that was before, in the character's own words."""
    overflow: tuple[Cell, ...] = ()
    """Cells that have fallen out and are in no summary yet, because one failed; the oldest first."""


@dataclass(frozen=True, slots=True)
class Character:
    """Somebody who lives in the world."""

    kind: ClassVar = "character"
    id: str
    name: str
    appearance: str
    """What everybody sees of it."""
    description: str
    """Its nature; the game master and itself alone know it."""
    place: str
    """The id of the place where it is."""
    triggers: tuple[str, ...] = ()
    """What it always reacts to, and how; the game master and itself alone know them."""
    secret: str = ""
    """What nobody but itself knows, not even the game master."""
    internal_state: str = ""
    external_intent: str = ""
    inventory: tuple[str, ...] = ()
    """Ids of the objects that it carries."""
    memory: Memory = field(default_factory=Memory)
    came_from: str = ""
    """The id of the place that it left in the last tick; empty if it stayed."""


@dataclass(frozen=True, slots=True)
class Influence:
    """What somebody outside did and the next tick takes up."""

    kind: InfluenceKind
    text: str
    """What happened, in the world's language; of a whisper what is whispered, of `take_over` the intention."""
    place: str = ""
    """Where it can be noticed; empty where nobody can."""
    character: str = ""
    """Whom it concerns: who hears the whisper, whose intention it is."""


@dataclass(frozen=True, slots=True)
class World:
    """Everything that what happens next depends on."""

    title: str
    language: str
    """The code of its language, such as `en`."""
    places: tuple[Place, ...]
    characters: tuple[Character, ...] = ()
    objects: tuple[WorldObject, ...] = ()
    premise: str = ""
    """What everybody in the world knows of it, and what is at stake."""
    cells: int = 5
    """How many cells a memory has, 1 to 10."""
    tick: int = 0
    """The number of the last tick."""
    seed: int = 0
    era: int = 0
    """How often the world was set back to an earlier tick."""
    influences: tuple[Influence, ...] = ()
    """What the next tick takes up."""

    def place(self, place_id: str) -> Place:
        """Return a place by its id; KeyError if there is none."""
        return _found(self.places, place_id)

    def character(self, character_id: str) -> Character:
        """Return a character by its id; KeyError if there is none."""
        return _found(self.characters, character_id)

    def object(self, object_id: str) -> WorldObject:
        """Return an object by its id; KeyError if there is none."""
        return _found(self.objects, object_id)

    @property
    def parts(self) -> tuple[Place | Character | WorldObject, ...]:
        """Every place, character and object; no two have the same id."""
        return (*self.places, *self.characters, *self.objects)

    def free_id(self, name: str, otherwise: str) -> str:
        """Return an id after a name that no part has; after `otherwise` if the name has no Latin letter or digit."""
        used = RESERVED.union(part.id for part in self.parts)
        stem = "-".join(re.findall(r"[a-z0-9]+", name.casefold())) or otherwise
        numbered = (f"{stem}-{number}" for number in range(2, len(used) + 3))
        return next(one for one in (stem, *numbered) if one not in used)

    def present(self, place_id: str) -> tuple[Character, ...]:
        """Return the characters who are in a place, in the world's order."""
        return tuple(one for one in self.characters if one.place == place_id)


@dataclass(frozen=True, slots=True)
class LedgerEvent:
    """One thing that happened, as it was."""

    id: str
    """`TICK.PLACE.ORDER`."""
    tick: int
    order: int
    """When in its scene, from 1."""
    place: str
    kind: EventKind
    text: str
    actor: str = ""
    """The id of the character who did it, or, of a whisper and the like, whom it concerns; empty if nobody did."""
    outcome: Outcome = "success"
    triggers: tuple[str, ...] = ()
    """The actor's triggers that fired."""
    witnesses: tuple[str, ...] = ()
    """Ids of the characters who noticed it."""

    @property
    def public(self) -> bool:
        """Whether it can be told; what somebody outside did to one character alone is not."""
        return not (self.kind == "influence" and self.actor)


@dataclass(frozen=True, slots=True)
class CharacterChange:
    """What a tick made of a character; all of its changeable part."""

    id: str
    place: str
    came_from: str
    internal_state: str
    external_intent: str
    inventory: tuple[str, ...]
    intention: str
    """What it meant to do."""
    decided_by: DecidedBy
    cell: Cell
    """The new cell of its memory."""
    summary: str | None = None
    """The new summary; None if it stays."""
    summed_up: int = 0
    """How many cells, from the oldest, went into the new summary."""


@dataclass(frozen=True, slots=True)
class PlaceChange:
    """What a tick made of a place."""

    id: str
    moment: str
    objects: tuple[str, ...]
    description: str | None = None
    """The new description; None if it stays."""
    cause: str = ""
    """The id of the event that changed the description."""


@dataclass(frozen=True, slots=True)
class Degraded:
    """A part of a model's result that could not be used, and was replaced by what changes least."""

    phase: Phase
    subject: str
    """The id of the character or place that it concerns."""
    kind: str
    """One of `DEGRADATIONS`."""
    detail: str = ""


DEGRADATIONS = (
    "unreadable", "missing", "doubled", "unknown_id", "impossible_place", "uncaused", "withheld", "language", "empty"
)  # fmt: skip
"""Kinds of degraded results; the problems of each language say what each means."""


@dataclass(frozen=True, slots=True)
class TickRecord:
    """Everything that happened and changed in one tick; `after` makes the next world of it."""

    tick: int
    events: tuple[LedgerEvent, ...]
    """The ledger, place by place, in order."""
    characters: tuple[CharacterChange, ...]
    places: tuple[PlaceChange, ...]
    conditions: tuple[tuple[str, str], ...] = ()
    """Ids of objects whose condition changed, and what it is now."""
    degraded: tuple[Degraded, ...] = ()
    calls: int = 0
    """Calls to models, those for stories among them, without those asked again."""
    reasked: int = 0
    """Calls asked again because the first reply could not be used, without those for stories."""

    def acts(self, character: str = "") -> list[LedgerEvent]:
        """Return what came of intentions, in order: of everybody's, or of one character's."""
        return [one for one in self.events if one.kind in ("act", "move") and character in ("", one.actor)]

    def change(self, character: str) -> CharacterChange:
        """Return what the tick made of a character; KeyError if it was not there."""
        return _found(self.characters, character)


def after(world: World, record: TickRecord) -> World:
    """Return the world as a tick leaves it."""
    changed = {change.id: change for change in record.characters}
    conditions = dict(record.conditions)
    changes = zip(world.places, record.places, strict=True)
    return replace(
        world,
        tick=record.tick,
        influences=(),
        places=tuple(place_after(place, change, record.events) for place, change in changes),
        characters=tuple(_character_after(one, changed[one.id], world.cells) for one in world.characters),
        objects=tuple(replace(one, condition=conditions.get(one.id, one.condition)) for one in world.objects),
    )


def place_after(place: Place, change: PlaceChange, events: Iterable[LedgerEvent]) -> Place:
    """Return a place as a tick leaves it."""
    description = place.description if change.description is None else change.description
    past = tuple(event.text for event in events if event.place == place.id and event.public)
    return replace(place, description=description, moment=change.moment, objects=change.objects, past=past)


def _character_after(one: Character, change: CharacterChange, size: int) -> Character:
    cells = (change.cell, *one.memory.cells[: size - 1])
    summary = one.memory.summary if change.summary is None else change.summary
    names = ("place", "came_from", "internal_state", "external_intent", "inventory")
    changed = {name: getattr(change, name) for name in names}
    return replace(one, memory=Memory(cells, summary, falling(size, one)[change.summed_up :]), **changed)


def falling(size: int, one: Character) -> tuple[Cell, ...]:
    """Return what a summary has to take up in the next tick of a world of so many cells, the oldest first."""
    return (*one.memory.overflow, *reversed(one.memory.cells[size - 1 :]))


# --- JSON ----------------------------------------------------------------------------------------


def dump(value: World | TickRecord) -> dict[str, JsonValue]:
    """Return a world or a tick's record as JSON-ready data."""
    return {"version": VERSION, **adapter_of(type(value)).dump_python(value, mode="json")}


def load(data: Mapping[str, JsonValue], kind: type[T]) -> T:
    """Return the world or the record that `dump` gave the data of.

    Raises SnapshotError if the data is of another version, is damaged, or describes a world that can't be.
    """
    from pydantic import ValidationError  # deferred for weight

    if (version := data.get("version")) != VERSION:
        raise SnapshotError(f"This is version {version!r} of the sandbox's data, and only {VERSION} can be read.")
    try:
        value: T = adapter_of(kind).validate_python({key: data[key] for key in data if key != "version"})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise SnapshotError(f"The sandbox's data is damaged at {where}: {first['msg']}.") from error
    found: object = value
    if isinstance(found, World) and (wrong := next(faults(found), None)):
        raise SnapshotError(f"This world can't be: {wrong}")
    return value


def faults(world: World) -> Iterator[str]:
    """Give each reason why a world can't be, as a sentence; none for a sound one."""
    used = [part.id for part in world.parts]
    yield from (f"{one!r} is the id of two." for one in _doubled(used))
    yield from (f"the id {one!r} has a meaning in replies; choose another." for one in used if one in RESERVED)
    places = {place.id for place in world.places}
    nowhere = [(place.id, to) for place in world.places for to in place.exits if to not in places]
    yield from (f"an exit of {one} leads to {to!r}, which is no place." for one, to in nowhere)
    lost = [one for one in world.characters if one.place not in places]
    yield from (f"{one.id} is in {one.place!r}, which is no place." for one in lost)
    held = [thing for holder in world.places for thing in holder.objects]
    held += [thing for one in world.characters for thing in one.inventory]
    known = {thing.id for thing in world.objects}
    yield from (f"the object {thing!r} is in two places." for thing in _doubled(held))
    yield from (f"the object {thing!r} is nowhere." for thing in sorted(known - set(held)))
    yield from (f"there is no object {thing!r}." for thing in sorted(set(held) - known))
    if not 1 <= world.cells <= 10:
        yield f"cells = {world.cells} is not possible; a memory has 1 to 10 cells."
    if world.language not in LANGUAGES:
        yield f"the language {world.language!r} is not known; choose {' or '.join(LANGUAGES)}."


def adapter_of(kind: type) -> Any:  # a TypeAdapter of whichever class
    """Return what writes and reads a dataclass as JSON-ready data; made once for each."""
    from pydantic import TypeAdapter  # deferred for weight: the command line loads this module

    return _ADAPTERS.get(kind) or _ADAPTERS.setdefault(kind, TypeAdapter(kind))


_ADAPTERS: dict[type, Any] = {}


P = TypeVar("P", Place, Character, WorldObject, CharacterChange)


def _found(parts: tuple[P, ...], wanted: str) -> P:
    for part in parts:
        if part.id == wanted:
            return part
    raise KeyError(wanted)


def _doubled(ids: list[str]) -> list[str]:
    return sorted({one for one in ids if ids.count(one) > 1})
