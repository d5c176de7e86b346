"""What characters tell each other: news, tales, and invitations to a supper to which they come."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from wsap_sandbox.phrases.grammar import Form
from wsap_sandbox.storyteller.lore import Lore
from wsap_sandbox.storyteller.news import LONGEST, News, news_of, quotable, shortened
from wsap_sandbox.tick.facts import IntentFacts, Person

Choice = tuple[float, Callable[[], str]]
"""A weight, and what returns the intention."""

EVERY, EVENING = 24, 22
"""Ticks between two suppers, and the tick of the first."""
A_DAY = 4
INVITING = range(5, 15)
"""Ticks before a supper in which somebody may invite to it."""
SETS_OUT = 4
"""Ticks before a supper in which those invited set out."""


def supper_after(tick: int) -> int:
    """Return the tick of the next supper; this tick, if it is one."""
    return tick + (EVENING - tick) % EVERY


def day_of(tick: int, lore: Lore) -> str:
    """Return the day of the week of a tick, as in "on Monday"."""
    days = lore.grammar.rules["days"]
    return days[tick // A_DAY % len(days)]


@dataclass(frozen=True, slots=True)
class Supper:
    """A supper to which a character goes."""

    place: str
    intention: str
    """What it does there; empty while it is on its way."""


class Talk:
    """What one character may say in a tick."""

    def __init__(self, facts: IntentFacts, lore: Lore, rng: random.Random) -> None:
        self._facts, self._lore, self._rng, self._say = facts, lore, rng, lore.grammar
        self._news = news_of(facts.cells, facts.summary, lore)
        self._supper = supper_after(facts.tick)
        self._left = self._supper - facts.tick
        self._day = day_of(self._supper, lore)
        self._invited = next((one for one in self._news if one.kind == "invite" and self._day in one.text), None)

    def supper(self) -> Supper | None:
        """Return the supper to which the character goes now; None if it does something else."""
        if self._invited is None or self._left > SETS_OUT:
            return None
        place = next((one.id for one in self._lore.spots() if self._named(one.at) or self._named(one.to)), "")
        if not place or self._refuses():
            return None
        if place != self._facts.place.id:
            return Supper(place, "")
        return Supper(place, self._say.drawn("intend_feast", self._rng)) if self._left == 0 else None

    def choices(self) -> list[Choice]:
        """Return what the character may say to somebody here."""
        if not self._facts.present:
            return []
        person = self._listener()
        other = self._lore.person(person)
        found: list[Choice] = []
        if self._left in INVITING:
            if self._invited is None and self._lore.home(self._facts.me.id) and self._rng.random() < 0.25:
                found.append((6, lambda: self._told("invite", other, self._invitation())))
            elif self._invited is not None and not self._knows(self._invited, other):
                invited = self._invited
                found.append((9, lambda: self._told("invite", other, invited.text)))
        for kind, weight in (("news", 14.0), ("tale", 1.5)):
            passed = next((one for one in self._news if one.kind == kind and self._passes_on(one, other)), None)
            if passed is not None:
                weight = weight if not passed.told else weight / 2
                found.append((weight, partial(self._told, kind, other, passed.text)))
        found.append((4, lambda: self._told("tale", other, self._say.drawn("tale", self._rng))))
        return found

    @property
    def is_bursting(self) -> bool:
        """Whether the character has news that it has told nobody yet."""
        return any(one.kind == "news" and one.heard == 1 and not one.told for one in self._news)

    def _listener(self) -> Person:
        """Somebody here, rather a friend than somebody the character bears a grudge against."""
        state = self._facts.internal_state
        liked = [self._likes(one, state) for one in self._facts.present]
        return self._rng.choices(self._facts.present, [4 if like > 0 else 1 if like < 0 else 2 for like in liked])[0]

    def _likes(self, one: Person, state: str) -> int:
        name = self._lore.person(one)
        for mood, liked in (("warm", 1), ("cold", -1)):
            if any(name.cases[0] in text and text == state for text in self._states(mood, name)):
                return liked
        return 0

    def _states(self, mood: str, name: Form) -> list[str]:
        genders = (Form(("",), one) for one in "mf")
        return [text for me in genders for text in self._say.phrases(f"state_{mood}", {"b": name, "a": me})]

    def _refuses(self) -> bool:
        """Whether the character bears a grudge against whoever invited it."""
        assert self._invited is not None
        if self._invited.told:
            return False
        hosts = [one for one in self._lore.people() if self._lore.person(one).cases[0] in self._invited.around]
        return any(self._likes(one, self._facts.internal_state) < 0 for one in hosts)

    def _named(self, phrase: str) -> bool:
        return bool(phrase) and self._invited is not None and phrase in self._invited.text

    def _passes_on(self, one: News, other: Form) -> bool:
        return one.heard == 1 and one.told < 2 and not one.names(other)

    def _knows(self, one: News, other: Form) -> bool:
        return any(form and form in one.around for form in other.cases)

    def _invitation(self) -> str:
        spot = next(one for one in self._lore.spots() if one.id == self._lore.home(self._facts.me.id))
        return self._say.drawn("invitation", self._rng, {"at": spot.at, "to": spot.to, "day": self._day})

    def _told(self, kind: str, other: Form, said: str) -> str:
        told = quotable(shortened(said, LONGEST), self._lore.language)
        return self._say.drawn(f"intend_{kind}", self._rng, {"b": other, "said": told})
