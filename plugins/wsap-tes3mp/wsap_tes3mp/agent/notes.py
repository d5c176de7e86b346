"""What the wayfarer remembers of what it perceived."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from wsap_core.protocol.values import JsonValue
from wsap_tes3mp.protocol.perception import OpenDialogue, PerceptionOutput

LOCKED = 100
"""How often a door counts as shut that says so itself."""
_RUMOUR = re.compile(r"(?:^|[.:!?] )([^.:!?]+?) at (?:the )?([^.]+?) asks for help with ([^.]+)\.", re.I)
_LIKES = re.compile(r"I am ([^,.]+), .*nothing does it like an? ([^.]+)\.")
BUY, SELL = re.compile(r"Buy (.+) for (\d+) gold"), re.compile(r"Sell (.+) for (\d+) gold")
_EARLY = ("dawn", "morning")
TRADE = "trade"
"""The topic of those who sell."""


@dataclass
class Notes:
    """What it remembers."""

    doors: dict[str, dict[str, str]] = field(default_factory=dict)
    """Place -> the place behind a door -> the door."""
    where: dict[str, list[JsonValue]] = field(default_factory=dict)
    """Who or what -> the place, where it stood when it saw it from nearest (x, y, distance), and its kind."""
    likes: dict[str, str] = field(default_factory=dict)
    """Somebody -> the gift."""
    wares: dict[str, int] = field(default_factory=dict)
    """What a trader sells -> the price."""
    sold: list[str] = field(default_factory=list)
    """What it ever sold."""
    time_of_day: str = ""
    trader: str = ""
    rumours: dict[str, list[str]] = field(default_factory=dict)
    """Topic -> who asks for help with it, and the place."""
    asked: list[str] = field(default_factory=list)
    """Who was asked for news, and about themselves."""
    sweep: dict[str, int] = field(default_factory=dict)
    """Place -> how many of the points to look around from it has been at."""
    never: list[str] = field(default_factory=list)
    """Points that can't be walked to, as place/number."""
    trying: str = ""
    """The point that it walks to."""
    stood: list[float] = field(default_factory=list)
    shut: dict[str, int] = field(default_factory=dict)
    """Door -> how often it did not open."""
    here: str = ""
    tried: str = ""
    """The place, and the door that it tried last."""
    last: str = ""
    same: int = 0
    """The last action with what was seen, and how often it came to nothing."""

    def learn(self, seen: PerceptionOutput) -> None:
        """Take in a perception."""
        here = place_of(seen.location.cell)
        if self.trying and self.stood == [seen.location.x, seen.location.y]:
            self.never.append(self.trying)
        self.trying, self.stood = "", [seen.location.x, seen.location.y]
        if self.time_of_day not in _EARLY and seen.environment.time_of_day in _EARLY:
            self.wares = {}  # there may be new ones in the morning
        self.time_of_day = seen.environment.time_of_day
        if here != self.here:
            self.shut.pop(self.tried, None)
            self.here, self.tried = here, ""
        if not seen.location.interior:
            self.sweep.setdefault(here, 0)
        self._learn_places(seen, here)
        if seen.dialogue is not None:
            self._learn_speech(seen, seen.dialogue)

    def _learn_places(self, seen: PerceptionOutput, here: str) -> None:
        doors = self.doors.setdefault(here, {})
        for one in seen.nearby_entities:
            if one.entity_type == "door":
                doors[place_of(re.sub(r"^.*? to ", "", one.name))] = one.entity_id
                if "(locked)" in one.name:
                    self.shut.setdefault(one.entity_id, LOCKED)
            known = self.where.get(one.name)
            if known is None or known[0] != here or one.distance < float(known[3]):
                self.where[one.name] = [here, seen.location.x, seen.location.y, one.distance, one.entity_type]
        names = {one.name for one in seen.nearby_entities}
        for name, known in list(self.where.items()):
            if name not in names and known[0] == here and float(known[3]) < 20 and away_from(seen, known) < 10:
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


def away_from(seen: PerceptionOutput, known: Sequence[JsonValue]) -> float:
    """Return how far it is to where something was seen from, in the same place."""
    x, y = seen.location.x - float(known[1]), seen.location.y - float(known[2])
    return float((x * x + y * y) ** 0.5)


def name_of(seen: PerceptionOutput, entity_id: str) -> str:
    """Return the name of something in sight; empty if it is not."""
    return next((one.name for one in seen.nearby_entities if one.entity_id == entity_id), "")


def place_of(name: str) -> str:
    """Return a place's name for comparison: in lower case, without article and remarks."""
    return re.sub(r"\s*\(.*?\)", "", name).strip().lower().removeprefix("the ")
