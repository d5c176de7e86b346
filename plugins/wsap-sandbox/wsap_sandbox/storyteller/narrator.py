"""The story of a scene from its public events."""

from __future__ import annotations

import random

from wsap_sandbox.model import WorldObject
from wsap_sandbox.phrases.grammar import Form, one_of, sentence
from wsap_sandbox.storyteller.lore import Lore
from wsap_sandbox.tick.facts import Person, StoryFacts


class Narrator:
    """Tells one scene."""

    def __init__(self, facts: StoryFacts, lore: Lore, number: int, rng: random.Random) -> None:
        self._lore, self._say, self._number, self._rng = lore, lore.grammar, number, rng
        self._place, self._people, self._events, self._tick = facts.place, facts.people, facts.events, facts.tick
        self._stake = lore.stake(facts.tick)
        self._title = self._stake.title if self._stake is not None else ""

    def told(self) -> str:
        """Return the scene's story."""
        if not self._people and not self._events:
            return self._empty() if self._rng.random() < 0.2 else self._say.text_drawn("glimpse", self._rng, {})
        parts = [self._empty() if not self._people else self._place.moment]
        parts += [self._linked(at, event.text) for at, event in enumerate(self._events)]
        parts += filter(None, [self._colour(), self._looming()])
        return " ".join(sentence(part) for part in parts if part.strip())

    def _linked(self, at: int, text: str) -> str:
        """An event, linked to the previous one if it starts with a name and nobody speaks in it."""
        named = any(text.startswith(one.name) for one in self._people) and not any(mark in text for mark in '"«')
        return (self._say.phrase("link", self._rng.randrange(99), {}) if at and named else "") + text

    def _empty(self) -> str:
        alone = one_of(self._lore.alone(self._place.id), self._number)
        lists = {**self._lore.sky(self._place.id, self._tick), "alone": alone}
        worn = next(filter(self._lore.stage, self._place.objects), None)
        slots = self._of(worn) if worn is not None else {}
        if worn is None:
            lists["unseen"] = [text for text in self._say.rules["unseen"] if "{o" not in text]
        return self._say.text("empty", self._number, slots, lists)

    def _colour(self) -> str:
        staying = [one for one in self._people if not self._left(one.name)]
        if not staying or self._rng.random() < 0.7:
            return ""
        if len(staying) == 1:
            return self._text("gaze", staying[0], None) if self._rng.random() < 0.4 else ""
        one, other = self._rng.sample(staying, 2)
        return self._text("says" if self._rng.random() < 0.2 else "talk", one, other)

    def _left(self, name: str) -> bool:
        ways = [self._lore.spot(way.id, way.name).to for way in self._place.exits]
        done = [event.text for event in self._events if event.actor == name and event.outcome == "success"]
        return any(way in text for text in done for way in ways)

    def _looming(self) -> str:
        stake = self._stake
        for thing in self._place.objects:
            worn = stake is not None and thing.id == stake.object and self._lore.stage(thing) > 0
            if worn and self._rng.random() < 0.4:
                return self._say.text("looms", self._number, self._of(thing))
        return ""

    def _text(self, rule: str, one: Person, other: Person | None) -> str:
        slots: dict[str, Form | str] = {"a": self._lore.person(one)}
        if other is not None:
            slots["b"] = self._lore.person(other)
        things = list(filter(self._lore.stage, self._place.objects))
        claims = list(self._say.rules["claim"])
        if things:
            slots |= self._of(things[self._number % len(things)])
        else:
            claims = [claim for claim in claims if "{o" not in claim]
        slots["title"] = self._title
        claims = claims if self._stake is not None else [claim for claim in claims if "{title" not in claim]
        lines = [line.rstrip(".") for line in self._lore.lines(one.name)]
        last = lines if self._lore.language == "ru" else [line if line[-1] in "!?…" else f"{line}." for line in lines]
        lists = {**self._lore.manner(one.name), "claim": claims, "line": last, "quoted": self._quoted(lines)}
        return self._say.text(rule, self._number, slots, lists)

    def _of(self, thing: WorldObject) -> dict[str, Form | str]:
        return {"o": self._lore.thing(thing), "cond": thing.condition, "title": self._title}

    def _quoted(self, lines: list[str]) -> list[str]:
        called, said = ("«{}» —", "«{}», —") if self._lore.language == "ru" else ('"{}"', '"{},"')
        return [(called if line[-1] in "!?…" else said).format(line) for line in lines]
