"""The wayfarer's memory of its perceptions, and how it finds its way by them."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from wsap_core.protocol import Action
from wsap_core.protocol.values import JsonValue
from wsap_tes3mp.protocol.perception import NearbyEntity, OpenDialogue, PerceptionOutput

LOCKED = 100
"""The failed attempts counted for a door whose name says that it is locked."""
_RUMOUR = re.compile(r"(?:^|[.:!?] )([^.:!?]+?) at (?:the )?([^.]+?) asks for help with ([^.]+)\.", re.I)
_LIKES = re.compile(r"I am ([^,.]+), .*nothing does it like an? ([^.]+)\.")
BUY = re.compile(r"Buy (.+) for (\d+) gold")
_EARLY = ("dawn", "morning")
TRADE = "trade"
"""The topic of traders."""

REACH = 3.0
_EAST = (15, 45, 75, 105, 130)
_SWEEP = (*((x, 15) for x in _EAST), *((x, 45) for x in _EAST[::-1]), (30, 30))
"""Lookout points."""


class Sight(NamedTuple):
    """The closest sighting of something."""

    place: str
    x: float
    """Where the agent stood."""
    y: float
    distance: float
    kind: str


@dataclass
class Notes:
    """What it remembers."""

    doors: dict[str, dict[str, str]]
    """Place -> place behind a door -> the door."""
    where: dict[str, Sight] = field(default_factory=dict)
    """Name -> sighting."""
    likes: dict[str, str] = field(default_factory=dict)
    """Person -> favourite gift."""
    wares: dict[str, int] = field(default_factory=dict)
    """The trader's wares -> price."""
    sold: list[str] = field(default_factory=list)
    """Everything the trader has sold so far."""
    time_of_day: str = ""
    trader: str = ""
    rumours: dict[str, list[str]] = field(default_factory=dict)
    """Topic -> who asks for help with it, and where."""
    asked: list[str] = field(default_factory=list)
    """People already asked for news or about themselves."""
    sweep: dict[str, int] = field(default_factory=dict)
    """Place -> number of lookout points visited."""
    shut: dict[str, int] = field(default_factory=dict)
    """Door -> failed attempts to open it."""
    here: str = ""
    tried: str = ""
    """The last door it tried."""
    last: str = ""
    same: int = 0
    """The last action with what was seen, and how often it had no effect."""
    step: int = -1
    """The step of the last observation; a new episode begins again at 0."""
    over: bool = False
    """Whether the episode ended with the last action."""
    load: float = 0.0
    carried: dict[str, int] = field(default_factory=dict)
    """The last encumbrance, and item -> count."""
    weights: dict[str, float] = field(default_factory=dict)
    """Item -> share of the capacity that one of it takes, found out where only this item was gained or lost."""

    def learn(self, seen: PerceptionOutput) -> None:
        """Remember a perception."""
        here = place_of(seen.location.cell)
        if self.time_of_day not in _EARLY and seen.environment.time_of_day in _EARLY:
            self.wares = {}  # wares may change in the morning
        self.time_of_day = seen.environment.time_of_day
        if here != self.here:
            self.shut.pop(self.tried, None)
            self.here, self.tried = here, ""
        if not seen.location.interior:
            self.sweep.setdefault(here, 0)
        self._learn_places(seen, here)
        if seen.dialogue is not None:
            self._learn_speech(seen, seen.dialogue)
        self._learn_weights(seen)

    def _learn_weights(self, seen: PerceptionOutput) -> None:
        load, carried = seen.inventory_summary.encumbrance_pct, {i.item_id: i.count for i in seen.inventory or ()}
        both = {item: carried.get(item, 0) - self.carried.get(item, 0) for item in (*carried, *self.carried)}
        changed = {item: more for item, more in both.items() if more}
        if len(changed) == 1:
            ((item, more),) = changed.items()
            self.weights[item] = max(0.0, (load - self.load) / more)
        self.load, self.carried = load, carried

    def _learn_places(self, seen: PerceptionOutput, here: str) -> None:
        doors = self.doors.setdefault(here, {})
        for one in seen.nearby_entities:
            if one.entity_type == "door":
                doors[place_of(re.sub(r"^.*? to ", "", one.name))] = one.entity_id
                if "(locked)" in one.name:
                    self.shut.setdefault(one.entity_id, LOCKED)
            known = self.where.get(one.name)
            if known is None or known.place != here or one.distance < known.distance:
                self.where[one.name] = Sight(here, seen.location.x, seen.location.y, one.distance, one.entity_type)
        names = {one.name for one in seen.nearby_entities}
        for name, known in list(self.where.items()):
            if name not in names and known.place == here and known.distance < 20 and away_from(seen, known) < 10:
                del self.where[name]

    def _learn_speech(self, seen: PerceptionOutput, talk: OpenDialogue) -> None:
        for who, where, topic in _RUMOUR.findall(talk.text):
            self.rumours[topic.strip()] = [who.removeprefix("People say: ").strip(), place_of(where)]
        if found := _LIKES.search(talk.text):
            self.likes[found[1]] = found[2]
        if TRADE in talk.topics:
            self.trader = name_of(seen, talk.entity_id)
        offers = [BUY.fullmatch(choice) for choice in talk.choices]
        if any(offers):
            self.wares = {offer[1]: int(offer[2]) for offer in offers if offer}
            self.sold += [name for name in self.wares if name not in self.sold]


def away_from(seen: PerceptionOutput, known: Sight) -> float:
    """Return the distance to where the agent stood at a sighting in the same place."""
    x, y = seen.location.x - known.x, seen.location.y - known.y
    return float((x * x + y * y) ** 0.5)


def name_of(seen: PerceptionOutput, entity_id: str) -> str:
    """Return the name of something in sight, or ""."""
    return next((one.name for one in seen.nearby_entities if one.entity_id == entity_id), "")


def place_of(name: str) -> str:
    """Return a place's name for comparison: lower case, without article and remarks."""
    return re.sub(r"\s*\(.*?\)", "", name).strip().lower().removeprefix("the ")


class Walker:
    """Moves by its notes: through doors to places, to what it sees, and around places where it sees nothing."""

    def __init__(self) -> None:
        self.notes = Notes({})
        self._seen: PerceptionOutput
        self._why = ""

    def _at(self, name: str, where: str, do: Callable[[NearbyEntity], Action | None]) -> Action | None:
        """Go to somebody or something in a place, then do something with it."""
        for one in self._seen.nearby_entities:
            if one.name.lower() == name.lower():
                return self._touch(one, do)
        return self._toward(place_of(where), self.notes.where.get(name))

    def _touch(self, one: NearbyEntity, do: Callable[[NearbyEntity], Action | None]) -> Action | None:
        if one.distance > REACH:
            return self._act("move_to", "", target_entity_id=one.entity_id)
        return do(one)

    def _toward(self, where: str, known: Sight | None = None) -> Action | None:
        """Return the next step to a place, and within it to where something was seen."""
        here = self.notes.here
        if here == where:
            if known is not None and known.place == here and away_from(self._seen, known) > REACH:
                return self._act("walk_to", "", target_x=known.x, target_y=known.y)
            return self._look_around()
        door = self._first_door(here, lambda place: place == where)
        return self._through(door) if door else self._wander()

    def _through(self, door: str) -> Action | None:
        for one in self._seen.nearby_entities:
            if one.entity_id == door:
                return self._touch(one, self._open)
        return self._look_around()

    def _open(self, one: NearbyEntity) -> Action:
        tried = self.notes.shut[one.entity_id] = self.notes.shut.get(one.entity_id, 0) + 1
        self.notes.tried = one.entity_id
        if tried % 3 == 0:
            return self._act("wait", "It is shut now.", duration_seconds=200)
        return self._act("interact", "", entity_id=one.entity_id, interaction_type="activate")

    def _first_door(self, here: str, wanted: Callable[[str], bool], shut: int = 10**6) -> str | None:
        """Return the first door on the shortest way to a wanted place, avoiding doors that failed `shut` times."""
        queue, met = deque[tuple[str, str]]([(here, "")]), {here}
        while queue:
            place, first = queue.popleft()
            for behind, door in self.notes.doors.get(place, {}).items():
                if behind in met or self.notes.shut.get(door, 0) >= shut:
                    continue
                if wanted(behind):
                    return first or door
                met.add(behind)
                queue.append((behind, first or door))
        return None

    def _look_around(self) -> Action | None:
        """Go to the next lookout point; None indoors, where everything is in sight."""
        here = self.notes.here
        if self._seen.location.interior:
            return None
        index = self.notes.sweep[here] = self.notes.sweep.get(here, 0) + 1
        x, y = _SWEEP[index % len(_SWEEP)]
        return self._act("walk_to", self._why or "I look around.", target_x=x, target_y=y)

    def _wander(self) -> Action | None:
        """Go somewhere new, or else look around outside, place by place."""
        here, rounds = self.notes.here, {p: n // len(_SWEEP) for p, n in self.notes.sweep.items()}
        new = self._first_door(here, lambda place: place not in self.notes.doors, shut=2)
        if new:
            return self._through(new)
        if rounds and rounds.get(here, 10**6) > (least := min(rounds.values())):
            if here in rounds and least > 1 and self.notes.sweep[here] % len(_SWEEP) == 0:
                self.notes.sweep[here] += 1
                return self._act("wait", "Perhaps tomorrow.", duration_seconds=600)
            door = self._first_door(here, lambda place: rounds.get(place) == least)
            return self._through(door) if door else self._look_around()
        return self._look_around()

    def _on(self, name: str, target: str = "entity_id", **params: JsonValue) -> Callable[[NearbyEntity], Action]:
        """Return a function that performs an action on something, passing its id as the parameter `target`."""
        return lambda one: self._act(name, "", **{target: one.entity_id}, **params)

    def _act(self, name: str, why: str, **params: JsonValue) -> Action:
        self._why = why or self._why
        return Action(name, params)
