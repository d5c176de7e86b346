"""Conversations in a scene: who says what, who answers, and what everybody learns from it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from wsap_sandbox.phrases.grammar import Form
from wsap_sandbox.storyteller.intentions import Deed, mood_towards
from wsap_sandbox.storyteller.lore import Lore
from wsap_sandbox.storyteller.news import LONGEST_SPEECH, quotable, remembered, shortened
from wsap_sandbox.tick.facts import Actor

Mood = tuple[str, Form | None]

TOLD = ("news", "tale", "invite")
HEARD = (*TOLD, "speech", "own")
"""Deeds that consist of saying something; they come first in a scene."""
_STOPS = ("wait", "ask", "warm", "cold", "mend", "craft", "aim", "work")
"""Deeds that somebody puts off who is spoken to."""
MOST = 290
"""Maximum characters of an event with an answer in it."""


@dataclass(slots=True)
class Part:
    """What one character does in a scene, and what comes of it."""

    id: str
    actor: Actor
    form: Form
    deed: Deed
    number: int
    outcome: str = "success"
    event: str = ""
    hindered: bool = False
    """Whether its aim was impossible, so that it moves on to the next."""
    gives_up: bool = False
    """Whether it moves on to the next aim after a failure."""
    to: str = "stay"
    mood: Mood = ("", None)
    """`warm` or `cold`, and towards whom."""
    slots: dict[str, Form | str] = field(default_factory=dict)
    answer: str = ""
    """What it answered to somebody."""
    answers: Part | None = None
    """Whom it answered."""
    stops: bool = False
    """Whether it answers instead of doing what it intended."""
    told: str = ""
    """What it remembers of what it said."""
    learned: list[str] = field(default_factory=list)
    """What it remembers of what others said."""


class Dialogue:
    """The conversations of one scene; `parts` are in the order in which they act."""

    def __init__(self, parts: Sequence[Part], lore: Lore, rng: random.Random) -> None:
        self._parts, self._lore, self._say, self._rng = parts, lore, lore.grammar, rng
        self.more: list[str] = []
        """Answers that have no place in the event of whoever answers."""

    def resolve(self, part: Part) -> None:
        """Resolve a deed that consists of saying something."""
        other = self._of(part.deed.person) or self._somebody(part)
        if part.deed.kind in TOLD and other is not None:
            self._tells(part, other)
        else:
            self._says(part, other)

    def _tells(self, part: Part, other: Part) -> None:
        """Tell somebody news or a tale, or invite it."""
        kind, said = part.deed.kind, part.deed.said
        part.slots |= {"b": other.form, "said": self._quoted(said)}
        part.event = self._drawn(f"tells_{kind}", part)
        part.told = remembered(f"told_{kind}", self._lore, 0, part.slots, said)
        self._hear(part, other, kind, said)
        exposed = self._lore.exposed(said)
        if kind == "invite":
            cold = mood_towards(self._lore, other.actor.internal_state, [part.form]) == "cold"
            self._answer(part, other, "answers_no" if cold else "answers_invite")
        elif exposed == other.id:
            self._answer(part, other, "answers_exposed")
            other.mood = ("cold", part.form)
        else:
            self._answer(part, other, f"answers_{kind}")
            if exposed and exposed != part.id:
                other.mood = ("cold", self._lore.named_by_id(exposed))

    def confesses(self, part: Part, other: Part) -> None:
        """Tell somebody one's own secret."""
        said = self._lore.truth(part.id)
        part.slots |= {"b": other.form, "said": self._quoted(said)}
        part.event = self._drawn("confesses", part)
        part.told = remembered("told_news", self._lore, 0, part.slots, said)
        self._hear(part, other, "news", said, aloud=False)
        self._answer(part, other, "answers_truth")
        other.mood = ("warm", part.form)

    def _says(self, part: Part, other: Part | None) -> None:
        """Say what somebody outside wants the character to say, or what it does."""
        speech, said = part.deed.kind != "own", part.deed.said
        part.slots["said"] = self._quoted(shortened(said, LONGEST_SPEECH))
        if other is None:
            part.event = self._drawn("speaks_alone" if speech else "does_own", part)
            return
        part.slots["b"] = other.form
        part.event = self._drawn("speaks" if speech else "does_own", part)
        part.told = remembered("told_news", self._lore, 0, part.slots, said)
        self._hear(part, other, "news", said)
        question = said.rstrip(" \"'»”)").endswith("?")
        self._answer(part, other, "answers_own" if not speech else "answers_ask" if question else "answers_say")

    def order(self) -> list[Part]:
        """Return the parts in the order in which they are told: an answer follows what it answers."""
        found: list[Part] = []

        def add(part: Part) -> None:
            found.append(part)
            for one in self._parts:
                if one.answers is part:
                    add(one)

        for part in self._parts:
            if part.answers is None:
                add(part)
        return found

    def learned(self, part: Part) -> str:
        """Return what a character remembers of what others said: as much as fits."""
        first, *more = dict.fromkeys(part.learned)
        return next((f"{first} {one}" for one in more if len(first) + len(one) < MOST), first)

    def merge(self, part: Part) -> None:
        """Put a character's answer before what it did."""
        if part.answer and part.event and len(part.answer) + len(part.event) < MOST:
            part.event = f"{part.answer} {part.event}"
        elif part.answer and part.event:
            self.more.append(part.answer)
        else:
            part.event = part.answer or part.event

    def _hear(self, part: Part, other: Part, kind: str, said: str, *, aloud: bool = True) -> None:
        for one in self._parts:
            slots = {"b": part.form, "a": one.form}
            if one is other:
                one.learned.append(remembered(f"heard_{kind}", self._lore, 0, slots, said))
            elif one is not part and aloud and self._rng.random() < 0.5:
                one.learned.append(remembered(f"overheard_{kind}", self._lore, 0, slots, said))

    def _answer(self, part: Part, other: Part, rule: str) -> None:
        slots = {"a": part.form, "b": other.form}
        answer = self._say.text_drawn(rule, self._rng, slots, self._lore.manner(other.actor.person.name))
        order = list(self._parts)
        if other.answer or order.index(other) < order.index(part):
            self.more.append(answer)
            return
        other.answer, other.answers = answer, part
        other.stops = other.deed.kind in _STOPS and not other.deed.place

    def _quoted(self, said: str) -> str:
        return quotable(said, self._lore.language)

    def _drawn(self, rule: str, part: Part) -> str:
        return self._say.text_drawn(rule, self._rng, part.slots, self._lore.manner(part.actor.person.name))

    def _of(self, one: str) -> Part | None:
        return next((part for part in self._parts if part.id == one), None)

    def _somebody(self, part: Part) -> Part | None:
        """Somebody who can answer: rather one who acts later and stays."""
        others = [one for one in self._parts if one is not part]
        order = list(self._parts)
        later = [one for one in others if order.index(one) > order.index(part) and one.deed.kind in _STOPS]
        return self._rng.choice(later or others) if others else None
