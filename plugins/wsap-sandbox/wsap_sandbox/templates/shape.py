"""The keys of a template file; the JSON Schema in the documentation is generated from these classes.

Keys "for the storyteller" are used only by the built-in storyteller and never shown to language models.
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
    """A goal of a character; for the storyteller, which pursues one after another."""

    want: str
    """The purpose, as an infinitive: "be done before they start asking". Known only to the character and the game
    master."""
    do: str
    """The visible action, as an infinitive in other words: "finish the new bolt"."""
    at: str = ""
    """The id of the place where it can be done; anywhere if empty."""
    object: str = ""
    """The id of the object that it requires."""
    person: str = ""
    """The id of the other character that it requires."""
    truth: bool = False
    """For the storyteller: if it succeeds, the character tells the other its `truth`."""


@dataclass(frozen=True, slots=True)
class CharacterShape(_Shape):
    """An inhabitant of the world."""

    id: str
    """Lower-case Latin letters, digits, `-` and `_`, starting with a letter, at most 40."""
    name: str
    """Its name."""
    place: str
    """The id of its first place."""
    appearance: str
    """What everybody sees."""
    description: str = ""
    """Its nature, known only to itself and the game master."""
    secret: str = ""
    """Known only to itself, not even to the game master."""
    truth: str = ""
    """For the storyteller: its secret in words in which anybody can tell it: "There is a flaw in the bolt"."""
    triggers: tuple[str, ...] = ()
    """What it always reacts to, and how."""
    state: str = ""
    """How it feels at the beginning."""
    intent: str = ""
    """Its goal at the beginning."""
    gender: Gender = "m"
    """For the storyteller: its grammatical gender."""
    cases: tuple[str, ...] = ()
    """For the storyteller, in Russian: the name in its six cases."""
    aims: tuple[Aim, ...] = ()
    """For the storyteller: its goals in order; `intent` is usually the first one's `want`."""
    ways: tuple[str, ...] = ()
    """For the storyteller: how it does things: "without looking up"."""
    says: tuple[str, ...] = ()
    """For the storyteller: sentences that it might say."""


@dataclass(frozen=True, slots=True)
class PlaceShape(_Shape):
    """A place of the world."""

    id: str
    """Like a character's id."""
    name: str
    """Its name."""
    description: str
    """What it is; constant until an event changes it."""
    moment: str = ""
    """What passes there at the beginning: weather, light, smells."""
    exits: tuple[str, ...] = ()
    """Ids of places connected in both directions; omitted in a chain or a field."""
    one_way: tuple[str, ...] = ()
    """Ids of places that can be reached from here but have no way back."""
    spot: tuple[float, float] | None = None
    """Where it is on the map that spectators see: [x, y] from 0 to 1, from the top left."""
    look: str = ""
    """What it looks like there: house, square, mill, dam, orchard, forest, inn, shop, gate or cave."""
    at: str = ""
    """For the storyteller: "in the smithy"."""
    to: str = ""
    """For the storyteller: "to the smithy"."""
    from_: str = field(default="", metadata={"alias": "from"})
    """For the storyteller: "from the smithy"."""
    indoors: bool = False
    """For the storyteller: it is under a roof, so that the weather is heard rather than felt."""
    details: tuple[str, ...] = ()
    """For the storyteller: clauses for what is noticed there: "the bellows sighed"."""
    alone: tuple[str, ...] = ()
    """For the storyteller: clauses for what happens there while nobody is present: "the embers went grey"."""


@dataclass(frozen=True, slots=True)
class ObjectShape(_Shape):
    """An object that lies in a place or is carried: give either `place` or `holder`."""

    id: str
    """Like a character's id."""
    name: str
    """Its name."""
    description: str = ""
    """What it is."""
    place: str = ""
    """The id of the place where it lies at the beginning."""
    holder: str = ""
    """The id of the character who carries it at the beginning."""
    stages: tuple[str, ...] = ()
    """Its conditions from best to worst: "burns", "smoulders", "out". It starts with the first; the storyteller steps
    through them."""
    gender: Gender = "m"
    """For the storyteller: its grammatical gender, `p` for a plural."""
    cases: tuple[str, ...] = ()
    """For the storyteller, in Russian: the name in its six cases."""
    fixed: bool = False
    """It can't be carried: neither by the storyteller's characters nor with `wsap sandbox move`."""
    every: int = 0
    """For the storyteller: ticks until its next stage if nobody tends it; 0 for never."""


@dataclass(frozen=True, slots=True)
class StakeShape(_Shape):
    """Something that can be lost: an object that gets worse unless the characters tend it; for the storyteller."""

    object: str
    """The id of an object with stages."""
    title: str
    """What is at stake: "the light that ships steer by"."""
    worse: tuple[str, ...]
    """A clause for how each stage of the object is noticed; the first is how the arc starts."""
    work: tuple[str, ...]
    """What can be done about it, as infinitives."""
    good: str
    """A clause for the good end."""
    bad: str
    """A clause for the bad end."""


@dataclass(frozen=True, slots=True)
class GuestShape(_Shape):
    """Somebody who comes by, stays for some ticks, tells tales and leaves; for the storyteller."""

    name: str
    """What it is called in a sentence: "the tinker"."""
    place: str
    """The id of the place where it stays."""
    comes: str
    """A sentence for how it arrives."""
    goes: str
    """A sentence for how it leaves."""
    gender: Gender = "m"
    """Its grammatical gender."""


@dataclass(frozen=True, slots=True)
class TopologyShape(_Shape):
    """How places are connected."""

    kind: Literal["graph", "chain", "field"] = "graph"
    """`graph`: by `exits`. `chain`: each with the previous one. `field`: a grid, each with its four neighbours."""
    places: tuple[str, ...] = ()
    """In a chain or a field: the ids in order, row by row. Default: the order in the file."""
    width: int = 0
    """In a field: places in a row."""
    height: int = 0
    """In a field: number of rows."""


@dataclass(frozen=True, slots=True)
class WorldShape(_Shape):
    """The world as a whole."""

    name: str
    """The title of the story."""
    about: str
    """What everybody in it knows, and what is at stake."""
    language: str = "en"
    """The language of the file's texts: `en` or `ru`."""
    cells: int = 5
    """Number of ticks that a character remembers in detail, 1 to 10."""
    topology: TopologyShape = field(default_factory=TopologyShape)
    """How its places are connected."""


# Compared by identity, because it is large and used as a cache key.
@dataclass(frozen=True, slots=True, eq=False)
class TemplateShape(_Shape):
    """A whole file."""

    world: WorldShape
    """The world as a whole."""
    places: tuple[PlaceShape, ...]
    """Its places, at least one."""
    format: Literal[1] = 1
    """The version of this format."""
    characters: tuple[CharacterShape, ...] = ()
    """Its inhabitants."""
    objects: tuple[ObjectShape, ...] = ()
    """Its objects."""
    stakes: tuple[StakeShape, ...] = ()
    """For the storyteller: what can be lost."""
    guests: tuple[GuestShape, ...] = ()
    """For the storyteller: who comes by, one after another."""
    words: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """For the storyteller: lists of phrases of its grammar that are different in this world, such as `tale`."""
