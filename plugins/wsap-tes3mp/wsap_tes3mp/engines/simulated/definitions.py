"""The definitions of the world, read from `world.toml`: frozen, the same for every seed."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

_VERBS = "stage|disposition|disposition_of|give|take|gold|health|time|close"
Effect = Annotated[str, Field(pattern=rf"^({_VERBS})( \S+)*$")]
"""A verb with its arguments: a name, an amount, or both."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Cell(_Part):
    """A place, connected to others by doors."""

    name: str
    size: tuple[int, int]
    """Its extent in metres: x from 0 to the first, y from 0 to the second."""
    inside: bool = False
    opens: int = 0
    closes: int = 24
    """Its opening hours."""


class Door(_Part):
    """A way between two cells."""

    between: tuple[str, str]
    at: tuple[int, int]
    """Its position in the first; the seed decides that in the second."""
    key: str = ""
    note: str = ""


class Item(_Part):
    """A kind of item."""

    name: str
    kind: str
    weight: float
    value: int
    power: int = 0
    """Damage of a weapon, protection of armour, or health restored by food or a potion."""
    category: str = ""
    """Its category in other worlds; "" for what stays here: gold, gifts and quest items."""
    tier: int = 0
    """Its tier in other worlds."""


class Creature(_Part):
    """A kind of creature; all are hostile."""

    name: str
    health: int
    damage: int
    speed: float
    """Metres per second."""
    cells: tuple[str, ...]
    """One lives in each of them."""
    drop: Mapping[str, int]


class Container(_Part):
    """Something that holds items, or that items are used on."""

    name: str
    cell: str
    fixed: bool = False
    """Nothing can be put into it."""


class Person(_Part):
    """A role in the story; the seed decides the name."""

    cell: str
    title: str


class Quest(_Part):
    """A quest and its stages, each with its journal entry; the last one completes it."""

    title: str
    begins: str
    stages: Mapping[int, str]

    @property
    def end(self) -> int:
        """The stage that completes it."""
        return max(self.stages)


class Needs(_Part):
    """Conditions for a topic to open or a use to take effect."""

    quest: str = ""
    since: int = 0
    """The minimum stage of the quest."""
    below: int = 1000
    disposition: int = 0
    being: str = ""
    """The role that the seed must have given this person."""
    items: tuple[str, ...] = ()
    without: str = ""
    """An item the agent must not carry."""
    hours: tuple[int, int] = (0, 24)


class Choice(_Part):
    """An answer to choose."""

    text: str
    reply: str
    effects: tuple[Effect, ...] = ()


class Topic(Needs):
    """A topic of dialogue."""

    who: tuple[str, ...]
    name: str
    text: str
    effects: tuple[Effect, ...] = ()
    choices: tuple[Choice, ...] = ()
    trade: bool = False


class Use(Needs):
    """The effect of an item ("" for a bare hand) on a person or thing."""

    item: str
    on: str
    text: str
    effects: tuple[Effect, ...]


class Definitions(_Part):
    """Everything about the world that no seed or event changes."""

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
    """Return the world's definitions, cached."""
    text = resources.files(__package__).joinpath("world.toml").read_text("utf-8")
    return Definitions.model_validate(tomllib.loads(text))
