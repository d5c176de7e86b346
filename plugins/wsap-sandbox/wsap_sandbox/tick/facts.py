"""The facts available to each phase: the only input of prompts and of the storyteller.

A character knows itself, its memories, and what everybody sees. The game master knows the nature, triggers and states
of those present, but no secrets and no memories. The narrator knows what is public.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from wsap_core.protocol.values import JsonValue
from wsap_sandbox.model import Cell, Character, LedgerEvent, Phase, Place, TickRecord, World, WorldObject, adapter_of


@dataclass(frozen=True, slots=True)
class Exit:
    """A way to another place."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class PlaceFacts:
    """A place as everybody in it perceives it."""

    id: str
    name: str
    description: str
    moment: str
    exits: tuple[Exit, ...]
    objects: tuple[WorldObject, ...]


@dataclass(frozen=True, slots=True)
class Person:
    """A character as everybody sees it."""

    id: str
    name: str
    appearance: str
    came_from: str = ""
    """The name of the place that it just came from; empty if it was here before."""


@dataclass(frozen=True, slots=True)
class _InTick:
    language: str
    tick: int
    premise: str


@dataclass(frozen=True, slots=True)
class IntentFacts(_InTick):
    """What a character, or the agent in its seat, knows when it forms its intention."""

    me: Person
    description: str
    triggers: tuple[str, ...]
    secret: str
    internal_state: str
    external_intent: str
    inventory: tuple[WorldObject, ...]
    place: PlaceFacts
    present: tuple[Person, ...]
    cells: tuple[Cell, ...]
    """Its memories, newest first."""
    summary: str
    whispers: tuple[str, ...]
    """What a voice says that nobody else hears."""


@dataclass(frozen=True, slots=True)
class Actor:
    """A character as the game master knows it."""

    person: Person
    description: str
    triggers: tuple[str, ...]
    internal_state: str
    external_intent: str
    inventory: tuple[WorldObject, ...]
    intention: str


@dataclass(frozen=True, slots=True)
class SceneFacts(_InTick):
    """What the game master knows when it resolves the scene of one place."""

    place: PlaceFacts
    actors: tuple[Actor, ...]
    """Everybody here, in the world's order."""
    past: tuple[str, ...]
    influences: tuple[str, ...]
    """Influences from outside that take effect here before anybody acts."""

    @property
    def present(self) -> list[str]:
        """The ids of everybody here."""
        return [actor.person.id for actor in self.actors]

    @property
    def things(self) -> list[WorldObject]:
        """The objects that lie here, followed by those carried."""
        return [*self.place.objects, *(thing for actor in self.actors for thing in actor.inventory)]


@dataclass(frozen=True, slots=True)
class StoryEvent:
    """An event as the narrator knows it."""

    actor: str
    """The actor's name; empty if there is none."""
    text: str
    outcome: str


@dataclass(frozen=True, slots=True)
class StoryFacts(_InTick):
    """What the narrator knows: the resolved scene without inner states."""

    place: PlaceFacts
    """After the scene."""
    people: tuple[Person, ...]
    events: tuple[StoryEvent, ...]


@dataclass(frozen=True, slots=True)
class MemoryFacts:
    """What a character knows when it summarizes the cells to be dropped from its memory."""

    language: str
    tick: int
    me: Person
    description: str
    summary: str
    """The old summary; empty the first time."""
    cells: tuple[Cell, ...]
    """The cells to be dropped, oldest first; nearly always one."""


Facts = IntentFacts | SceneFacts | StoryFacts | MemoryFacts

PHASES: Mapping[type, Phase] = {IntentFacts: "intent", SceneFacts: "scene", StoryFacts: "story", MemoryFacts: "memory"}
"""The phase of each kind of facts, as in call keys: `TICK/PHASE/SUBJECT/ATTEMPT`."""


def intent_facts(world: World, one: Character) -> IntentFacts:
    """Return what a character knows at the start of the next tick."""
    return IntentFacts(
        **_in_tick(world),
        **_inner(world, one),
        me=person(world, one),
        secret=one.secret,
        place=place_facts(world, world.place(one.place)),
        present=tuple(person(world, other) for other in world.present(one.place) if other.id != one.id),
        cells=one.memory.cells,
        summary=one.memory.summary,
        whispers=tuple(i.text for i in world.influences if i.kind == "whisper" and i.character == one.id),
    )


def scene_facts(world: World, place: Place, intentions: Mapping[str, str]) -> SceneFacts:
    """Return what the game master knows about a place's scene; `intentions` are by character id."""
    actors = tuple(
        Actor(**_inner(world, one), person=person(world, one), intention=intentions[one.id])
        for one in world.present(place.id)
    )
    influences = tuple(i.text for i in world.influences if i.place == place.id)
    at = place_facts(world, place)
    return SceneFacts(**_in_tick(world), place=at, actors=actors, past=place.past, influences=influences)


def _in_tick(world: World) -> dict[str, Any]:
    return {"language": world.language, "tick": world.tick + 1, "premise": world.premise}


def _inner(world: World, one: Character) -> dict[str, Any]:
    kept = ("description", "triggers", "internal_state", "external_intent")
    return {"inventory": _objects(world, one.inventory), **{name: getattr(one, name) for name in kept}}


def story_facts(
    world: World,
    tick: int,
    place: Place,
    conditions: Mapping[str, str],
    events: Sequence[LedgerEvent],
    present: Sequence[str],
) -> StoryFacts:
    """Return what the narrator knows about a scene, from its public events and the place after it.

    Reads nothing from the world that a scene elsewhere can change. `conditions` are the new ones by object id;
    `present` are the ids of those who were there at the start of the tick.
    """
    names = {one.id: one.name for one in world.characters}
    here = [world.character(one) for one in present]
    at = place_facts(world, place)
    things = tuple(replace(one, condition=conditions.get(one.id, one.condition)) for one in at.objects)
    people = tuple(Person(one.id, one.name, one.appearance) for one in here)
    told = tuple(StoryEvent(names.get(event.actor, ""), event.text, event.outcome) for event in events)
    return StoryFacts(world.language, tick, world.premise, replace(at, objects=things), people, told)


def stories_of(world: World, record: TickRecord) -> list[StoryFacts]:
    """Return what the narrator knows about each scene of the last tick, given the world after it."""
    return [
        story_facts(
            world,
            record.tick,
            place,
            {},
            [event for event in record.events if event.place == place.id and event.public],
            [one.id for one in record.characters if (one.came_from or one.place) == place.id],
        )
        for place in world.places
    ]


def memory_facts(world: World, one: Character, cells: tuple[Cell, ...]) -> MemoryFacts:
    """Return what a character knows when it summarizes these cells."""
    me, tick = person(world, one), world.tick + 1
    return MemoryFacts(world.language, tick, me, one.description, one.memory.summary, cells)


def place_facts(world: World, place: Place) -> PlaceFacts:
    """Return a place as everybody in it perceives it."""
    exits = tuple(Exit(to, world.place(to).name) for to in place.exits)
    return PlaceFacts(place.id, place.name, place.description, place.moment, exits, _objects(world, place.objects))


def person(world: World, one: Character) -> Person:
    """Return a character as everybody sees it."""
    return Person(one.id, one.name, one.appearance, world.place(one.came_from).name if one.came_from else "")


def facts_data(facts: Facts) -> dict[str, JsonValue]:
    """Return facts as JSON-ready data with their `phase`, for the storyteller."""
    return {"phase": PHASES[type(facts)], **adapter_of(type(facts)).dump_python(facts, mode="json")}


def facts_of(data: Mapping[str, JsonValue]) -> Facts:
    """Return facts from the data of `facts_data`."""
    kind = next(kind for kind, phase in PHASES.items() if phase == data["phase"])
    facts: Facts = adapter_of(kind).validate_python(data)
    return facts


def _objects(world: World, ids: tuple[str, ...]) -> tuple[WorldObject, ...]:
    return tuple(map(world.object, ids))
