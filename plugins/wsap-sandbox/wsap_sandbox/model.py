"""The world as data: places, characters with their memories, objects, and tick records; JSON by `dump` and `load`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, TypeVar

from wsap_core.errors import SnapshotError
from wsap_core.protocol.values import JsonValue

VERSION = 1

LANGUAGES = ("en", "ru")

RESERVED = frozenset({"", "stay", "here", "none", "happening"})
"""Words that can't be ids because they have a meaning in models' replies."""

T = TypeVar("T", "World", "TickRecord")

Outcome = Literal["success", "partial", "failure"]
EventKind = Literal["act", "move", "happening", "influence"]
"""A resolved intention, one that led to another place, an event without an actor, an influence from outside."""
DecidedBy = Literal["model", "seat", "outside", "fallback"]
"""A model, the agent in the character's seat, an influence, or nobody: the reply was unusable."""
Phase = Literal["intent", "scene", "story", "memory"]
InfluenceKind = Literal["whisper", "event", "object", "edit", "move", "take_over"]


@dataclass(frozen=True, slots=True)
class WorldObject:
    """An object; `Place.objects` or `Character.inventory` lists it."""

    kind: ClassVar = "object"
    id: str
    name: str
    description: str = ""
    """What it is; never changes."""
    condition: str = ""
    """Its state after the last scene."""


@dataclass(frozen=True, slots=True)
class Place:
    """A place of the world."""

    kind: ClassVar = "place"
    id: str
    name: str
    description: str
    """What it is; changed only by an event with a cause."""
    moment: str = ""
    """What passes there now: weather, light, smells; rewritten by every scene."""
    exits: tuple[str, ...] = ()
    """Ids of the adjacent places that can be reached from here."""
    objects: tuple[str, ...] = ()
    """Ids of the objects that lie here."""
    past: tuple[str, ...] = ()
    """The ledger's text of the last scene here, for the game master."""


@dataclass(frozen=True, slots=True)
class Cell:
    """What a character remembers of one tick, in its own words."""

    tick: int
    tried: str
    came_of_it: str
    interpretation: str
    events: tuple[str, ...] = ()
    """Ids of the ledger events that it witnessed."""

    @property
    def text(self) -> str:
        """The three parts as one text."""
        return " ".join(part for part in (self.tried, self.came_of_it, self.interpretation) if part)


@dataclass(frozen=True, slots=True)
class Memory:
    """A character's subjective, private memory."""

    cells: tuple[Cell, ...] = ()
    """Newest first, at most `World.cells`."""
    summary: str = ""
    """Everything before the cells, in the character's own words."""
    overflow: tuple[Cell, ...] = ()
    """Cells that were dropped but not summarized yet because a summary failed; oldest first."""


@dataclass(frozen=True, slots=True)
class Character:
    """An inhabitant of the world."""

    kind: ClassVar = "character"
    id: str
    name: str
    appearance: str
    """What everybody sees."""
    description: str
    """Its nature, known only to itself and the game master."""
    place: str
    triggers: tuple[str, ...] = ()
    """What it always reacts to, and how; known only to itself and the game master."""
    secret: str = ""
    """Known only to itself, not even to the game master."""
    internal_state: str = ""
    external_intent: str = ""
    inventory: tuple[str, ...] = ()
    """Ids of the objects that it carries."""
    memory: Memory = field(default_factory=Memory)
    came_from: str = ""
    """The id of the place that it left in the last tick; empty if it stayed."""


@dataclass(frozen=True, slots=True)
class Influence:
    """A change from outside that the next tick takes up."""

    kind: InfluenceKind
    text: str
    """What happened, in the world's language; the words of a whisper, the intention of `take_over`."""
    place: str = ""
    """The id of the place where it is noticed; empty if nobody notices it."""
    character: str = ""
    """The id of the character concerned: who hears the whisper or has the intention."""


@dataclass(frozen=True, slots=True)
class World:
    """The complete state of a world between two ticks."""

    title: str
    language: str
    """The language's code, such as `en`."""
    places: tuple[Place, ...]
    characters: tuple[Character, ...] = ()
    objects: tuple[WorldObject, ...] = ()
    premise: str = ""
    """What everybody in the world knows about it, and what is at stake."""
    cells: int = 5
    """Cells of each memory, 1 to 10."""
    tick: int = 0
    """The number of the last tick."""
    seed: int = 0
    era: int = 0
    """How often the world was rewound to an earlier tick."""
    influences: tuple[Influence, ...] = ()
    fixed: tuple[str, ...] = ()
    """Ids of the objects that can't be carried."""

    def place(self, place_id: str) -> Place:
        """Return a place by its id. Raises KeyError."""
        return _found(self.places, place_id)

    def character(self, character_id: str) -> Character:
        """Return a character by its id. Raises KeyError."""
        return _found(self.characters, character_id)

    def object(self, object_id: str) -> WorldObject:
        """Return an object by its id. Raises KeyError."""
        return _found(self.objects, object_id)

    @property
    def parts(self) -> tuple[Place | Character | WorldObject, ...]:
        """All places, characters and objects; their ids are unique."""
        return (*self.places, *self.characters, *self.objects)

    def free_id(self, name: str, otherwise: str) -> str:
        """Return an unused id derived from a name, or from `otherwise` if the name has no Latin letter or digit."""
        used = RESERVED.union(part.id for part in self.parts)
        stem = "-".join(re.findall(r"[a-z0-9]+", name.casefold())) or otherwise
        numbered = (f"{stem}-{number}" for number in range(2, len(used) + 3))
        return next(one for one in (stem, *numbered) if one not in used)

    def present(self, place_id: str) -> tuple[Character, ...]:
        """Return the characters in a place, in the world's order."""
        return tuple(one for one in self.characters if one.place == place_id)


@dataclass(frozen=True, slots=True)
class LedgerEvent:
    """One event as it really happened."""

    id: str
    """`TICK.PLACE.ORDER`."""
    tick: int
    order: int
    """Its position in the scene, from 1."""
    place: str
    kind: EventKind
    text: str
    actor: str = ""
    """The id of the character who acted or whom an influence concerns; empty if there is none."""
    outcome: Outcome = "success"
    triggers: tuple[str, ...] = ()
    witnesses: tuple[str, ...] = ()
    """Ids of the characters who noticed it."""

    @property
    def public(self) -> bool:
        """Whether it may be told; an influence on a single character may not."""
        return not (self.kind == "influence" and self.actor)


@dataclass(frozen=True, slots=True)
class CharacterChange:
    """A character's changeable fields after a tick."""

    id: str
    place: str
    came_from: str
    internal_state: str
    external_intent: str
    inventory: tuple[str, ...]
    intention: str
    decided_by: DecidedBy
    cell: Cell
    summary: str | None = None
    """None if unchanged."""
    summed_up: int = 0
    """How many of the oldest cells the new summary covers."""


@dataclass(frozen=True, slots=True)
class PlaceChange:
    """A place's changeable fields after a tick."""

    id: str
    moment: str
    objects: tuple[str, ...]
    description: str | None = None
    """The new description; None if unchanged."""
    cause: str = ""
    """The id of the event that changed the description."""


@dataclass(frozen=True, slots=True)
class Degraded:
    """A part of a model's reply that was unusable and was replaced by the smallest possible change."""

    phase: Phase
    subject: str
    """The id of the character or place concerned."""
    kind: str
    """One of `DEGRADATIONS`."""
    detail: str = ""


DEGRADATIONS = (
    "unreadable", "missing", "doubled", "unknown_id", "impossible_place", "outcome", "value", "uncaused", "withheld",
    "language", "empty",
)  # fmt: skip
"""Kinds of degraded results; `Words.problems` explains them."""


@dataclass(frozen=True, slots=True)
class TickRecord:
    """Everything that happened and changed in one tick; `after` applies it to the world."""

    tick: int
    events: tuple[LedgerEvent, ...]
    """The ledger, place by place, in order."""
    characters: tuple[CharacterChange, ...]
    places: tuple[PlaceChange, ...]
    conditions: tuple[tuple[str, str], ...] = ()
    """Ids of objects whose condition changed, with the new condition."""
    degraded: tuple[Degraded, ...] = ()
    calls: int = 0
    """Calls to models, including those for stories, excluding repeated ones."""
    reasked: int = 0
    """Calls repeated because the first reply was unusable, excluding those for stories."""

    def acts(self, character: str = "") -> list[LedgerEvent]:
        """Return the resolved intentions in order: everybody's, or one character's."""
        return [one for one in self.events if one.kind in ("act", "move") and character in ("", one.actor)]

    def change(self, character: str) -> CharacterChange:
        """Return a character's change. Raises KeyError if it was not in the tick."""
        return _found(self.characters, character)


def after(world: World, record: TickRecord) -> World:
    """Return the world after a tick."""
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
    """Return a place after a tick."""
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
    """Return the cells that the next tick's summary has to cover, oldest first, if memories have `size` cells."""
    return (*one.memory.overflow, *reversed(one.memory.cells[size - 1 :]))


# --- JSON ----------------------------------------------------------------------------------------


def dump(value: World | TickRecord) -> dict[str, JsonValue]:
    """Return a world or a tick record as JSON-ready data; a round trip gives the same bytes."""
    return {"version": VERSION, **adapter_of(type(value)).dump_python(value, mode="json")}


def load(data: Mapping[str, JsonValue], kind: type[T]) -> T:
    """Return the world or tick record from the data of `dump`.

    Raises SnapshotError if the data has another version, is damaged, or describes an invalid world.
    """
    from pydantic import ValidationError  # deferred for weight

    if (version := data.get("version")) != VERSION:
        raise SnapshotError(f"The sandbox data has version {version!r}; only version {VERSION} can be read.")
    try:
        value: T = adapter_of(kind).validate_python({key: data[key] for key in data if key != "version"})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise SnapshotError(f"The sandbox data is damaged at {where}: {first['msg']}.") from error
    found: object = value
    if isinstance(found, World) and (wrong := next(faults(found), None)):
        raise SnapshotError(f"The world is invalid: {wrong}")
    return value


def faults(world: World) -> Iterator[str]:
    """Yield each reason why a world is invalid, as a sentence."""
    used = [part.id for part in world.parts]
    yield from (f"the id {one!r} is used twice." for one in _doubled(used))
    yield from (f"the id {one!r} is reserved; choose another." for one in used if one in RESERVED)
    places = {place.id for place in world.places}
    nowhere = [(place.id, to) for place in world.places for to in place.exits if to not in places]
    yield from (f"an exit of {one} leads to {to!r}, which is not a place." for one, to in nowhere)
    lost = [one for one in world.characters if one.place not in places]
    yield from (f"{one.id} is in {one.place!r}, which is not a place." for one in lost)
    held = [thing for holder in world.places for thing in holder.objects]
    held += [thing for one in world.characters for thing in one.inventory]
    known = {thing.id for thing in world.objects}
    yield from (f"the object {thing!r} is in two places." for thing in _doubled(held))
    yield from (f"the object {thing!r} is nowhere." for thing in sorted(known - set(held)))
    yield from (f"there is no object {thing!r}." for thing in sorted(set(held) - known))
    if not 1 <= world.cells <= 10:
        yield f"cells = {world.cells} is out of range; a memory has 1 to 10 cells."
    if world.language not in LANGUAGES:
        yield f"the language {world.language!r} is unknown; choose {' or '.join(LANGUAGES)}."


def adapter_of(kind: type) -> Any:  # TypeAdapter[kind]
    """Return the cached pydantic TypeAdapter of a dataclass."""
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
