"""A body in the world: where it is, what it carries, and how it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import field
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter
from pydantic.dataclasses import dataclass

from wsap_core.protocol.values import JsonValue
from wsap_starbound.data import items, planets

MOST_HEALTH, MOST_BREATH = 20, 40
"""Health, and beats under water or without air."""
SLOTS = 10
MOST = 999
"""Most of one item in a bag."""
ABILITIES = ("scanner", "might", "handy")
"""What skills from other worlds give: a wider view, more damage, recipes of the bench by hand."""

Whole = Annotated[int, Field(strict=True, ge=-(2**40), le=2**40)]
Count = Annotated[int, Field(strict=True, ge=0, le=2**40)]
Bag = dict[str, Annotated[int, Field(strict=True, ge=1, le=MOST)]]


@dataclass
class Being:
    """One body."""

    owner: str
    place: str
    """Where it is: a planet's id or `ship:OWNER`."""
    x: Whole
    y: Count
    """Its feet; the head is one row above."""
    health: Annotated[int, Field(strict=True, ge=0, le=MOST_HEALTH)] = MOST_HEALTH
    breath: Annotated[int, Field(strict=True, ge=0, le=MOST_BREATH)] = MOST_BREATH
    facing: Literal[-1, 1] = 1
    rise: Count = 0
    """Tiles that it still rises from a jump."""
    fallen: Count = 0
    """Tiles that it has fallen since it last stood."""
    bag: Bag = field(default_factory=dict)
    slots: list[str] = field(default_factory=lambda: [""] * SLOTS)
    """The items of slots 1 to 10; empty text for none."""
    worn: list[str] = field(default_factory=list)
    abilities: list[Literal["scanner", "might", "handy"]] = field(default_factory=list)
    beats: Count = 0
    """Beats that it has lived in this episode."""
    hurt_at: Whole = -1000
    """The beat at which a creature last hurt it."""
    orbit: str = next(iter(planets()))
    """The planet that its ship is at."""
    visited: list[str] = field(default_factory=list)
    pad: bool = False
    """Whether the buffer of the beam pad is repaired."""
    lenses: list[str] = field(default_factory=list)
    """Lenses that are in the lantern aboard."""
    charted: bool = False
    """Whether it has read on the star chart where the lenses are."""
    read: bool = False
    """Whether the message of the lantern has been read aloud."""
    feats: list[str] = field(default_factory=list)
    """Achievements so far."""
    stages: list[str] = field(default_factory=list)
    """Stages of the quests reached so far."""
    done: list[str] = field(default_factory=list)
    """Quests that are finished."""
    bed: tuple[str, Whole, Count] | None = None
    flag: tuple[str, Whole, Count] | None = None
    asleep: bool = False
    """Whether it lies down while its agent is away."""
    away: bool = False
    """Whether it is out of the world, so that nothing reaches it."""
    cause: str = ""
    """What killed it; empty while it lives."""
    killer: str = ""

    @property
    def alive(self) -> bool:
        """Whether it lives."""
        return self.health > 0

    @property
    def cells(self) -> tuple[tuple[int, int], ...]:
        """Its cells: feet and head; asleep, too, so that it can get up."""
        return ((self.x, self.y), (self.x, self.y - 1))

    def room_for(self, item: str) -> int:
        """Return how many more of an item it can carry."""
        return MOST - self.bag.get(item, 0)

    def gain(self, item: str, count: int = 1) -> int:
        """Take up to `count` of an item into the bag; return how many there was room for."""
        count = min(count, self.room_for(item))
        if count <= 0:
            return 0
        if item not in self.bag and item not in self.slots and "" in self.slots:
            self.slots[self.slots.index("")] = item
        self.bag[item] = self.bag.get(item, 0) + count
        return count

    def lose(self, item: str, count: int = 1) -> None:
        """Take items out of the bag, which has them."""
        left = self.bag[item] - count
        if left < 0:
            raise ValueError(f"there are only {self.bag[item]} of {item}")
        if left:
            self.bag[item] = left
            return
        del self.bag[item]
        self.slots = ["" if slot == item else slot for slot in self.slots]
        self.worn = [one for one in self.worn if one != item]

    def has(self, needs: dict[str, int]) -> bool:
        """Whether the bag has all of these."""
        return all(self.bag.get(item, 0) >= count for item, count in needs.items())

    def best(self, kind: str) -> str:
        """Return the best tool or weapon in the bag; empty for bare hands."""
        known = items()
        owned = [name for name in self.bag if known[name].kind == kind and known[name].reach <= 2]
        return max(owned, key=lambda name: (known[name].power, known[name].damage, name), default="")

    def in_fight(self) -> bool:
        """Whether a creature hurt it within the last 12 beats."""
        return self.beats - self.hurt_at < 12

    def to_json(self) -> JsonValue:
        """Return it as JSON-ready data."""
        return _BEING.dump_python(self, mode="json")


_BEING = TypeAdapter(Being)


def load_being(data: JsonValue) -> Being:
    """Return a body from untrusted data; `ValueError` if it is invalid."""
    being: Being = _BEING.validate_python(data)
    known = items()
    named: Sequence[str] = [*being.bag, *being.worn, *being.lenses, *filter(None, being.slots)]
    if not known.keys() >= set(named) or len(being.slots) != SLOTS:
        raise ValueError("an item of a body is unknown")
    if not {*being.worn, *filter(None, being.slots)} <= being.bag.keys():
        raise ValueError("a body wears or holds what it does not have")
    if being.orbit not in planets() or not {*being.visited} <= planets().keys():
        raise ValueError("a planet of a body is unknown")
    return being


def new_being(owner: str, place: str, at: tuple[int, int], loadout: str = "default") -> Being:
    """Return a new body with its first things."""
    being = Being(owner, place, *at, visited=[place])
    for item, count in LOADOUTS[loadout].items():
        being.gain(item, count)
    return being


LOADOUTS: dict[str, dict[str, int]] = {
    "default": {"worn_pick": 1, "torch": 4, "bandage": 1},
    "bare": {"worn_pick": 1},
    "provisioned": {"worn_pick": 1, "torch": 8, "bandage": 3, "ladder": 20, "wood_club": 1},
}
"""What a body carries at first, by the terms of its entry."""


def total(being: Being) -> Counter[str]:
    """Return all that a body has, fitted lenses included."""
    return Counter(being.bag) + Counter(being.lenses)
