"""What a template's file holds, key by key; the JSON Schema in the documentation is made from these classes.

The engine needs what is written first in each class. The keys under "for the storyteller" are used by the built-in
storyteller alone, so that it can tell this world well; language models are never shown them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

Gender = Literal["m", "f", "n", "p"]
"""Masculine, feminine, neuter, plural."""


class _Shape:
    __slots__ = ()
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid", "use_attribute_docstrings": True}


@dataclass(frozen=True, slots=True)
class Aim(_Shape):
    """Something that a character pursues; for the storyteller, which goes from one aim to the next."""

    want: str
    """Why, as an infinitive: "be done before they start asking". Only the character and the game master know it."""
    do: str
    """What everybody can see it do for that, as an infinitive, in other words: "finish the new bolt"."""
    at: str = ""
    """The id of the place where it can be done; anywhere if empty."""
    object: str = ""
    """The id of the object that it takes."""
    person: str = ""
    """The id of the character whom it takes."""


@dataclass(frozen=True, slots=True)
class CharacterShape(_Shape):
    """Somebody who lives in the world."""

    id: str
    """Small Latin letters, digits, `-` and `_`, beginning with a letter."""
    name: str
    """How it is called."""
    place: str
    """The id of the place where it begins."""
    appearance: str
    """What everybody sees of it."""
    description: str = ""
    """Its nature; itself and the game master alone know it."""
    secret: str = ""
    """What nobody but itself knows, not even the game master."""
    triggers: tuple[str, ...] = ()
    """What it always reacts to, and how."""
    state: str = ""
    """How it feels at the beginning."""
    intent: str = ""
    """What it is after at the beginning."""
    gender: Gender = "m"
    """For the storyteller: its grammatical gender."""
    cases: tuple[str, ...] = ()
    """For the storyteller, in Russian: the name in its six cases."""
    aims: tuple[Aim, ...] = ()
    """For the storyteller: what it pursues, one after another; `intent` is usually the first one's `want`."""
    ways: tuple[str, ...] = ()
    """For the storyteller: how it does things: "without looking up"."""
    says: tuple[str, ...] = ()
    """For the storyteller: what it might say, a sentence each."""


@dataclass(frozen=True, slots=True)
class PlaceShape(_Shape):
    """A place of the world."""

    id: str
    """As an id of a character."""
    name: str
    """How it is called."""
    description: str
    """What it is; it stays the same until an event changes it."""
    moment: str = ""
    """What is passing there at the beginning: weather, light, smells."""
    exits: tuple[str, ...] = ()
    """Ids of the places that one can go to, and from which one can come back; left out in a chain or a field."""
    one_way: tuple[str, ...] = ()
    """Ids of places that one can go to, and from which there is no way back."""
    at: str = ""
    """For the storyteller: "in the smithy"."""
    to: str = ""
    """For the storyteller: "to the smithy"."""
    from_: str = field(default="", metadata={"alias": "from"})
    """For the storyteller: "from the smithy"."""
    indoors: bool = False
    """For the storyteller: it is under a roof, so that the weather is heard rather than felt."""
    details: tuple[str, ...] = ()
    """For the storyteller: what somebody there notices, a clause each: "the bellows sighed"."""
    alone: tuple[str, ...] = ()
    """For the storyteller: what happens there while nobody is, a clause each: "the embers went grey"."""


@dataclass(frozen=True, slots=True)
class ObjectShape(_Shape):
    """A thing that lies in a place or is carried: give either `place` or `holder`."""

    id: str
    """As an id of a character."""
    name: str
    """How it is called."""
    description: str = ""
    """What it is."""
    place: str = ""
    """The id of the place where it lies at the beginning."""
    holder: str = ""
    """The id of the character who carries it at the beginning."""
    stages: tuple[str, ...] = ()
    """What can become of it, from the best to the worst: "burns", "smoulders", "out". The first is its condition at the
    beginning; a storyteller goes through them."""
    gender: Gender = "m"
    """For the storyteller: its grammatical gender, `p` for a plural."""
    cases: tuple[str, ...] = ()
    """For the storyteller, in Russian: the name in its six cases."""
    fixed: bool = False
    """For the storyteller: it can't be carried."""
    every: int = 0
    """For the storyteller: in how many ticks it comes to its next stage when nobody cares for it; 0 for never."""


@dataclass(frozen=True, slots=True)
class StakeShape(_Shape):
    """Something that can be lost: an object that gets worse unless the characters keep it; for the storyteller."""

    object: str
    """The id of an object with stages."""
    title: str
    """What it is about: "the light that ships steer by"."""
    worse: tuple[str, ...]
    """How it is noticed, a clause for each stage of the object; the first is how it begins."""
    work: tuple[str, ...]
    """What can be done about it, an infinitive each."""
    good: str
    """How it ends when it was kept, as a clause."""
    bad: str
    """How it ends when it was lost, as a clause."""


@dataclass(frozen=True, slots=True)
class TopologyShape(_Shape):
    """How the places lie to each other."""

    kind: Literal["graph", "chain", "field"] = "graph"
    """`graph`: the places' own `exits`. `chain`: each place next to the one before it. `field`: rows of places, with
    exits to the four neighbours."""
    places: tuple[str, ...] = ()
    """In a chain or a field: the ids in order, row by row; the order of the file if left out."""
    width: int = 0
    """In a field: how many places a row has."""
    height: int = 0
    """In a field: how many rows there are."""


@dataclass(frozen=True, slots=True)
class WorldShape(_Shape):
    """The world as a whole."""

    name: str
    """The title of the story."""
    about: str
    """What everybody in it knows, and what is at stake."""
    language: str = "en"
    """The language of everything in the file: `en` or `ru`."""
    cells: int = 5
    """How many ticks a character remembers in detail, 1 to 10."""
    topology: TopologyShape = field(default_factory=TopologyShape)
    """How the places lie to each other."""


# Compared by identity: it is a key of caches, and large.
@dataclass(frozen=True, slots=True, eq=False)
class TemplateShape(_Shape):
    """A whole file."""

    world: WorldShape
    """The world as a whole."""
    places: tuple[PlaceShape, ...]
    """Its places, one at least."""
    format: Literal[1] = 1
    """The version of this format."""
    characters: tuple[CharacterShape, ...] = ()
    """Who lives in it."""
    objects: tuple[ObjectShape, ...] = ()
    """What lies in it."""
    stakes: tuple[StakeShape, ...] = ()
    """For the storyteller: what can be lost."""
