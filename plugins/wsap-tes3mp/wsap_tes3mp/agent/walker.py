"""The wayfarer's memory of its perceptions, and how it finds its way by them."""

from __future__ import annotations

import math
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
"""The distance within which nothing has to be approached, in any unit."""
_SPACING = 0.6
"""The distance between lookout points, as a share of the farthest sight."""
_MOST_POINTS = 24
"""Lookout points in one round of a place."""
_DIRECTIONS = ((1, 0), (0, 1), (-1, 0), (0, -1))


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
    rounds: dict[str, int] = field(default_factory=dict)
    """Place outside -> how often it looked around all of it."""
    stood: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    """Place -> where it stood in this round."""
    blocked: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    """Place -> points that it could not get to."""
    goal: tuple[float, float] | None = None
    """The lookout point that it goes to."""
    turns: int = 0
    """How often it stepped aside."""
    fresh: bool = False
    """Whether a round has just ended."""
    span: float = 0.0
    """The farthest that it has seen anything, doors counting half: the scale of the world."""
    tried_for: dict[str, int] = field(default_factory=dict)
    """Journal entry and entity -> how often it tried something there."""
    blind: int = 0
    """How often in turn it has seen nothing at all."""
    first: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Place -> where it first looked around."""
    home: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Place -> where it first saw anything there, around which it looks for more."""
    leads: dict[str, str] = field(default_factory=dict)
    """Door -> place that it led to."""
    circles: dict[str, list[tuple[float, float, float]]] = field(default_factory=dict)
    """What it sees here -> where it stood lately, and how far away that was."""
    guesses: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    """What it has approached here -> where it took it to be."""
    nears: dict[str, float] = field(default_factory=dict)
    """What the last action approached -> the distance before it."""
    closest: dict[str, float] = field(default_factory=dict)
    """What it has approached in vain here -> as near as it gets."""
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
            if self.tried:
                self.leads[self.tried] = here
            self.shut.pop(self.tried, None)
            self.here, self.tried, self.goal = here, "", None
            self.circles, self.guesses, self.nears, self.closest = {}, {}, {}, {}
        if not seen.location.interior:
            self.rounds.setdefault(here, 0)
        self._learn_points(seen, here)
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

    @property
    def step_length(self) -> float:
        """The distance between lookout points."""
        return _SPACING * (self.span or 10 * REACH)

    def _learn_points(self, seen: PerceptionOutput, here: str) -> None:
        at = (seen.location.x, seen.location.y)
        far = [one.distance / (2 if one.entity_type == "door" else 1) for one in seen.nearby_entities]
        self.span, self.blind = max([self.span, *far]), 0 if far else self.blind + 1
        if far:
            self.home.setdefault(here, at)
        if self.goal is not None and math.dist(at, self.goal) > self.step_length / 4:
            self.blocked.setdefault(here, []).append(self.goal)
        self.goal = None
        stood = self.stood.setdefault(here, [])
        if all(math.dist(at, point) > self.step_length / 2 for point in stood):
            stood.append(at)
        for one in seen.nearby_entities:
            known = self.circles.setdefault(one.entity_id, [])
            if known and math.dist(at, known[-1][:2]) < REACH / 3:
                known.pop()
            known.append((*at, one.distance))
            del known[:-4]

    def _learn_places(self, seen: PerceptionOutput, here: str) -> None:
        doors = self.doors.setdefault(here, {})
        for one in seen.nearby_entities:
            if one.entity_type == "door":
                named = place_of(re.sub(r"^.*? to ", "", one.name))
                if one.entity_id in self.leads:
                    doors.pop(named, None)
                doors[self.leads.get(one.entity_id, named)] = one.entity_id
                if "(locked)" in one.name:
                    self.shut.setdefault(one.entity_id, LOCKED)
            known = self.where.get(one.name)
            if known is None or known.place != here or one.distance < known.distance:
                self.where[one.name] = Sight(here, seen.location.x, seen.location.y, one.distance, one.entity_type)
        names = {one.name for one in seen.nearby_entities}
        for name, known in list(self.where.items()):
            close = known.distance < self.span / 3 and away_from(seen, known) < self.span / 6
            if name not in names and known.place == here and close:
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


def goes_to_entities(seen: PerceptionOutput) -> bool:
    """Return whether the bridge goes to an entity by its id: since 1.0.1; the seed's 1.0.0 goes to coordinates."""
    return not re.match(r"(0\.|1\.0\.0$)", seen.protocol_version)


def crossings(one: tuple[float, float, float], other: tuple[float, float, float]) -> list[tuple[float, float]]:
    """Return the two points with a distance to each of two points, or the nearest to that; none for one point."""
    (x, y, r), (x2, y2, r2) = one, other
    apart = math.dist((x, y), (x2, y2))
    if apart < 1e-6:
        return []
    along = (r * r - r2 * r2 + apart * apart) / (2 * apart)
    aside = math.sqrt(max(0.0, r * r - along * along))
    ux, uy = (x2 - x) / apart, (y2 - y) / apart
    return [(x + ux * along - uy * side, y + uy * along + ux * side) for side in (aside, -aside)]


class Walker:
    """Moves by its notes: through doors to places, to what it sees, and around places where it sees nothing."""

    def __init__(self) -> None:
        self.notes = Notes({})
        self._approached: dict[str, float] = {}
        """What the last action approached -> the distance before it."""
        self._seen: PerceptionOutput
        self._why = ""

    def _at(self, name: str, where: str, do: Callable[[NearbyEntity], Action | None]) -> Action | None:
        """Go to somebody or something in a place, then do something with it."""
        for one in self._seen.nearby_entities:
            if one.name.lower() == name.lower():
                return self._touch(one, do)
        return self._toward(place_of(where), self.notes.where.get(name))

    def _touch(self, one: NearbyEntity, do: Callable[[NearbyEntity], Action | None]) -> Action | None:
        notes, key = self.notes, one.entity_id
        before = self._approached.get(key)
        if before is not None and one.distance > 0.9 * before:
            notes.closest[key] = one.distance
        if one.distance <= max(REACH, 1.1 * notes.closest.get(key, 0.0)):
            return do(one)
        notes.nears[key] = one.distance
        if goes_to_entities(self._seen):
            return self._act("move_to", "", target_entity_id=key)
        return self._nearer(key)

    def _nearer(self, key: str) -> Action:
        """Walk to where something must be by how far away it was; else a step aside, to find out."""
        notes, known = self.notes, self.notes.circles[key]
        guesses = notes.guesses.setdefault(key, [])
        x, y, distance = known[-1]
        spots = [spot for other in known[:-1] for spot in crossings(known[-1], other)]
        # Where it has looked already, the thing is not, or it moves.
        spots = [spot for spot in spots if all(math.dist(spot, old) > distance / 10 for old in guesses)]
        if spots:
            x, y = min(spots, key=lambda spot: sum(abs(math.dist(spot, (cx, cy)) - d) for cx, cy, d in known))
            guesses.append((x, y))
            del guesses[:-4]
        else:
            notes.turns += 1
            dx, dy = _DIRECTIONS[notes.turns % 4]
            x, y = x + dx * distance / 2, y + dy * distance / 2
        if len(known) < 4:
            notes.nears.pop(key)  # it is still finding out where that is
        return self._act("walk_to", "", target_x=round(x, 2), target_y=round(y, 2))

    def _toward(self, where: str, known: Sight | None = None) -> Action | None:
        """Return the next step to a place, and within it to where something was seen."""
        here = self.notes.here
        if here == where:
            if (
                known is not None
                and known.place == here
                and away_from(self._seen, known) > max(REACH, self.notes.span / 20)
            ):
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
        return None if self._seen.location.interior else self._explore()

    def _explore(self) -> Action:
        """Go to the nearest point, a step from where it stood, that it has not been to in this round."""
        notes, here, length = self.notes, self.notes.here, self.notes.step_length
        at = (self._seen.location.x, self._seen.location.y)
        first = notes.first.setdefault(here, at)
        if not notes.span:  # nothing tells how large this world is
            turn, radius = 2.4 * notes.blind, 3 * REACH * 1.3 ** (notes.blind % 32)
            x, y = first[0] + radius * math.cos(turn), first[1] + radius * math.sin(turn)
            return self._act("walk_to", "I see nothing yet.", target_x=round(x, 2), target_y=round(y, 2))
        stood, blocked = notes.stood[here], notes.blocked.setdefault(here, [])
        points = [(x + dx * length, y + dy * length) for x, y in (*stood, at) for dx, dy in _DIRECTIONS]
        new = [p for p in points if all(math.dist(p, other) > 0.7 * length for other in (*stood, *blocked))]
        if not new or len(stood) >= _MOST_POINTS:
            notes.rounds[here] = notes.rounds.get(here, 0) + 1
            notes.fresh = True
            notes.stood[here], notes.blocked[here] = [at], [] if len(stood) < 2 else blocked
            new = [p for p in points if all(math.dist(p, other) > 0.7 * length for other in (at, *notes.blocked[here]))]
            if not new:
                return self._act("wait", "There is nowhere to go.", duration_seconds=60)
        home = notes.home.get(here, first)

        def order(point: tuple[float, float]) -> tuple[int, float]:
            ring = max(abs(point[0] - home[0]), abs(point[1] - home[1])) / length
            return round(ring), round(math.dist(point, at), 3)

        notes.goal = x, y = min(new, key=order)
        return self._act("walk_to", self._why or "I look around.", target_x=round(x, 2), target_y=round(y, 2))

    def _way_out(self) -> Action | None:
        """Go through the first door that it sees and has not failed at, while it is indoors."""
        for one in self._seen.nearby_entities if self._seen.location.interior else ():
            if one.entity_type == "door" and self.notes.shut.get(one.entity_id, 0) < 2:
                return self._touch(one, self._open)
        return None

    def _wander(self) -> Action | None:
        """Go somewhere new, or else look around outside, place by place."""
        notes, here = self.notes, self.notes.here
        rounds = notes.rounds
        new = self._first_door(here, lambda place: place not in notes.doors, shut=2)
        if new:
            return self._through(new)
        if rounds and rounds.get(here, 10**6) > (least := min(rounds.values())):
            if here in rounds and least > 1 and notes.fresh:
                notes.fresh = False
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
