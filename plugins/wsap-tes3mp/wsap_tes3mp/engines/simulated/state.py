"""The state of the world: the data of snapshots, values derived from it, and what agents see and reach."""

from __future__ import annotations

import math
import random
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Literal

from wsap_tes3mp.engines.engine import Done, time_of_day
from wsap_tes3mp.engines.simulated.definitions import Item, definitions

CAPACITY = 100.0
"""Maximum weight with which a body can walk."""
REACH = 3.0
"""Metres within which things can be touched and people talked to."""
COMBAT_SECONDS = 8.0
"""How long an agent counts as fighting after a blow."""
GAME_SECONDS = 30.0
"""Seconds of the world's day per second."""
FIRST_HOUR = 8.0

Kind = Literal["npc", "creature", "item", "door", "container"]
Items = dict[str, int]
"""Item id -> count; never zero."""
Plan = Generator[float, None, Done]
"""A command: yields the seconds it takes, then takes effect and returns its outcome."""


class Refused(Exception):
    """The world does not allow a command: an outcome, not an error of the engine."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass
class Thing:
    """Anything in the world except agents' bodies."""

    id: str
    kind: Kind
    base: str
    """Its definition: role of a person, kind of a creature or an item, id of a container, cell behind a door."""
    name: str
    cell: str
    x: float
    y: float
    items: Items = field(default_factory=dict)
    """The contents of a container, a dead creature, a person, or a pile."""
    health: int = 0
    partner: str = ""
    """The other side of a door."""
    key: str = ""


@dataclass
class Body:
    """An agent in the world."""

    agent_id: str
    """Its entity id is `agent:` plus this."""
    name: str
    cell: str
    x: float
    y: float
    embodiment: str = "avatar"
    health: int = 100
    max_health: int = 100
    presence: Literal["awake", "dormant", "suspend"] = "awake"
    items: Items = field(default_factory=dict)
    equipped: list[str] = field(default_factory=list)
    dispositions: dict[str, int] = field(default_factory=dict)
    """Thing id of a person -> from 0 to 100."""
    quests: Items = field(default_factory=dict)
    """Quest -> stage."""
    told: list[str] = field(default_factory=list)
    """Topics heard, as `person/topic`: each raises the disposition once."""
    talking: str = ""
    said: str = ""
    choices: list[tuple[str, str]] = field(default_factory=list)
    """The answers to choose from: a key and the text."""
    goal: tuple[float, float] | None = None
    """Where it is walking to."""
    guard: bool = False
    """Whether it blocks until its next command."""
    fought_at: float = -1000.0
    rested: float = 0.0
    """The fraction of a point of health restored by rest."""
    receipts: dict[str, str] = field(default_factory=dict)
    """Transfer id -> its receipt as JSON."""
    harm: int = 100
    """Percent of the damage that it takes."""

    def be_silent(self) -> None:
        """Close the dialogue, if any."""
        self.talking, self.choices = "", []

    def put_away(self, item_id: str) -> None:
        """Unequip an item that is no longer carried."""
        if item_id in self.equipped and item_id not in self.items:
            self.equipped.remove(item_id)

    def fighting(self, world: World) -> bool:
        """Whether it counts as fighting."""
        return self.fought_at > world.time - COMBAT_SECONDS

    def escape(self, world: World) -> None:
        """Stop counting as fighting."""
        self.fought_at = world.time - COMBAT_SECONDS


@dataclass
class World:
    """The state of the world."""

    seed: int
    time: float = 0.0
    """Seconds since the world started."""
    version: int = 0
    """Increases with every change."""
    rolls: int = 0
    """Number of random events."""
    dawns: int = 0
    """Number of dawns that renewed the world."""
    made: int = 0
    """Number of ids given to things."""
    cast: dict[str, str] = field(default_factory=dict)
    """Role -> thing id of the person."""
    facts: dict[str, str] = field(default_factory=dict)
    """The seed's choices: part -> role, container or item."""
    likes: dict[str, str] = field(default_factory=dict)
    """Role -> favourite gift."""
    things: dict[str, Thing] = field(default_factory=dict)
    bodies: dict[str, Body] = field(default_factory=dict)
    foreign: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Imported items: id -> name and kind."""
    brought: Items = field(default_factory=dict)
    """Items added since the start: grown, given by the story, imported by agents."""
    spent: Items = field(default_factory=dict)
    """Items removed: eaten, withered, paid, exported."""

    @property
    def hour(self) -> float:
        """The hour of the world's day, from 0 to 24."""
        return (FIRST_HOUR + self.time * GAME_SECONDS / 3600) % 24

    @property
    def day(self) -> int:
        """The number of dawns (6 o'clock) so far."""
        return int((FIRST_HOUR - 6 + self.time * GAME_SECONDS / 3600) // 24)

    @property
    def time_of_day(self) -> str:
        """The part of the day."""
        return time_of_day(self.hour)

    @property
    def weather(self) -> str:
        """The weather, which may change every four hours."""
        hours = int((FIRST_HOUR + self.time * GAME_SECONDS / 3600) // 4)
        chance = random.Random(f"{self.seed}/weather/{hours}")
        return chance.choice(("clear", "clear", "cloudy", "rain", "foggy", "thunder"))

    @property
    def sight(self) -> float:
        """Metres within which things outside are visible; doors are visible from everywhere in their cell."""
        return 30.0 if self.time_of_day == "night" or self.weather in ("foggy", "thunder") else 60.0

    def roll(self) -> random.Random:
        """Return a generator for one random event, seeded by the world's seed and the number of events so far."""
        self.rolls += 1
        return random.Random(f"{self.seed}/{self.rolls}")

    def item(self, item_id: str) -> Item:
        """Return the definition of an item; imported items have that of their kind."""
        if item_id in self.foreign:
            name, kind = self.foreign[item_id]
            return Item(name=name, kind=kind, weight=2.0, value=10, power=_FOREIGN_POWER.get(kind, 0))
        return definitions().items[item_id]

    def equip(self, body: Body, item_id: str) -> None:
        """Equip a weapon or armour, replacing the one of its kind."""
        kind = self.item(item_id).kind
        body.equipped = [other for other in body.equipped if self.item(other).kind != kind] + [item_id]

    def foes(self, cell: str) -> list[Thing]:
        """Return the living creatures of a cell."""
        return [one for one in self.things.values() if (one.cell, one.kind) == (cell, "creature") and one.health > 0]

    def put(self, kind: Kind, base: str, name: str, at: tuple[str, float, float], items: Items | None = None) -> Thing:
        """Place a new thing and return it."""
        self.made += 1
        cell, x, y = at
        thing = Thing(f"{base}_{self.made}", kind, base, name, cell, round(x, 1), round(y, 1), items or {})
        self.things[thing.id] = thing
        return thing

    def lay(self, item_id: str, count: int, at: tuple[str, float, float]) -> Thing:
        """Lay items on the ground and return them."""
        return self.put("item", item_id, self.item(item_id).name, at, {item_id: count})

    def load(self, body: Body) -> float:
        """Return the weight of what a body carries."""
        return sum(self.item(item).weight * count for item, count in body.items.items())

    def create(self, target: Items, item_id: str, count: int = 1) -> None:
        """Add new items to the world."""
        for items in (self.brought, target):
            items[item_id] = items.get(item_id, 0) + count

    # --- what an agent sees and reaches; the lookups raise `Refused` ----------------------------------

    def sees(self, body: Body, other: Thing | Body) -> bool:
        """Whether a body sees something: inside everything; outside doors, and what light and weather allow."""
        if other.cell != body.cell or other is body or (isinstance(other, Body) and other.presence == "suspend"):
            return False
        inside = definitions().cells[body.cell].inside
        return inside or (isinstance(other, Thing) and other.kind == "door") or distance(body, other) <= self.sight

    def near(self, body: Body, entity_id: str) -> Thing | Body:
        """Return the visible thing or body with an id."""
        found: Thing | Body | None = self.things.get(entity_id)
        if found is None and entity_id.startswith("agent:"):
            found = self.bodies.get(entity_id.removeprefix("agent:"))
        if found is None or not self.sees(body, found):
            raise Refused("UNKNOWN_ENTITY", "You see nothing with that id here; ids are in nearby_entities.")
        return found

    def reached(self, body: Body, entity_id: str) -> Thing | Body:
        """Return the thing or body with an id within reach."""
        target = self.near(body, entity_id)
        away = distance(body, target)
        if away > REACH:
            far = f"{target.name} is {away:g} m away and your reach is {REACH:g} m; move_to it."
            raise Refused("OUT_OF_REACH", far)
        return target

    def person(self, body: Body, entity_id: str) -> Thing:
        """Return the person with an id within reach."""
        target = self.reached(body, entity_id)
        if not isinstance(target, Thing) or target.kind != "npc":
            raise Refused("NO_PERSON", f"{target.name} does not talk.")
        return target


_FOREIGN_POWER = {"weapon": 9, "armour": 3, "food": 15, "potion": 40}


def move_items(source: Items, target: Items, item_id: str, count: int = 1) -> None:
    """Move items from one inventory to another, which may be the world's `spent`; ValueError if there are fewer."""
    if source.get(item_id, 0) < count:
        raise ValueError(f"There are no {count} of {item_id}.")
    source[item_id] -= count
    if not source[item_id]:
        del source[item_id]
    target[item_id] = target.get(item_id, 0) + count


def distance(a: Thing | Body, b: Thing | Body) -> float:
    """Return the metres between two places in one cell, rounded to centimetres as perceived."""
    return round(math.hypot(a.x - b.x, a.y - b.y), 2)
