"""What the world is made of, read from `world.toml`: frozen, the same for every seed."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

_VERBS = "stage|disposition|disposition_of|give|take|gold|health|time|close"
Effect = Annotated[str, Field(pattern=rf"^({_VERBS})( \S+)*$")]
"""A verb with what it needs: a name, an amount, or both."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Cell(_Part):
    """A place, joined to others by doors."""

    name: str
    size: tuple[int, int]
    """Its extent in metres: x from 0 to the first, y from 0 to the second."""
    inside: bool = False
    opens: int = 0
    closes: int = 24
    """Hours between which its door lets people in."""


class Door(_Part):
    """A way between two cells."""

    between: tuple[str, str]
    at: tuple[int, int]
    """Where it is in the first of them; in the second it is wherever the seed puts it."""
    key: str = ""
    note: str = ""


class Item(_Part):
    """A kind of item."""

    name: str
    kind: str
    weight: float
    value: int
    power: int = 0
    """Damage of a weapon, protection of armour, health that food or a potion gives."""
    category: str = ""
    """What it is in other worlds; empty for what stays here: gold, gifts and what quests need."""
    tier: int = 0
    """How good it is there."""


class Creature(_Part):
    """A kind of creature; all are hostile."""

    name: str
    health: int
    damage: int
    speed: float
    """Metres a second."""
    cells: tuple[str, ...]
    """One of them lives in each."""
    drop: Mapping[str, int]


class Container(_Part):
    """Something that holds items, or that items are used on."""

    name: str
    cell: str
    fixed: bool = False
    """Nothing can be put into it."""


class Person(_Part):
    """Somebody with a part in the story; the seed gives the name."""

    cell: str
    title: str


class Quest(_Part):
    """A quest: its stages, each with what the journal says to do next; the last one ends it."""

    title: str
    begins: str
    stages: Mapping[int, str]

    @property
    def end(self) -> int:
        """The stage at which it is completed."""
        return max(self.stages)


class Needs(_Part):
    """What must hold for a topic to open, or for a use to have its effect."""

    quest: str = ""
    since: int = 0
    """The stage of the quest must be at least that."""
    below: int = 1000
    disposition: int = 0
    being: str = ""
    """The seed chose this person for that part."""
    items: tuple[str, ...] = ()
    without: str = ""
    """The agent does not carry that item."""
    hours: tuple[int, int] = (0, 24)


class Choice(_Part):
    """An answer that an agent can choose."""

    text: str
    reply: str
    effects: tuple[Effect, ...] = ()


class Topic(Needs):
    """Something that people talk about."""

    who: tuple[str, ...]
    name: str
    text: str
    effects: tuple[Effect, ...] = ()
    choices: tuple[Choice, ...] = ()
    trade: bool = False


class Use(Needs):
    """What an item (or, without one, a hand) does to a person or a thing."""

    item: str
    on: str
    text: str
    effects: tuple[Effect, ...]


class Definitions(_Part):
    """All of the world but what the seed decides and what happens."""

    names: tuple[str, ...]
    cells: Mapping[str, Cell]
    doors: tuple[Door, ...]
    items: Mapping[str, Item]
    creatures: Mapping[str, Creature]
    containers: Mapping[str, Container]
    people: Mapping[str, Person]
    chosen: Mapping[str, tuple[str, ...]]
    quests: Mapping[str, Quest]
    topics: tuple[Topic, ...]
    uses: tuple[Use, ...] = ()

    def of_kind(self, kind: str) -> list[str]:
        """Return the ids of the items of a kind, sorted."""
        return sorted(key for key, item in self.items.items() if item.kind == kind)


@cache
def definitions() -> Definitions:
    """Return the world's definitions, read once."""
    text = resources.files(__package__).joinpath("world.toml").read_text("utf-8")
    return Definitions.model_validate(tomllib.loads(text))
