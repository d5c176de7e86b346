"""What an intention comes to in a scene: the storyteller reads its own sentences and anybody else's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

from wsap_sandbox.storyteller.grammar import Form, Slots
from wsap_sandbox.storyteller.lore import Lore
from wsap_sandbox.templates.shape import Aim
from wsap_sandbox.tick.facts import Actor, SceneFacts

Kind = Literal[
    "aim", "work", "move", "far", "ask", "warm", "cold", "take", "give", "snatch", "demand", "mend", "wait", "own"
]

_WITH_THINGS: tuple[Kind, ...] = ("take", "mend")
_SOCIAL: tuple[Kind, ...] = ("ask", "warm", "cold")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Deed:
    """What somebody means to do, as a kind that the rules know."""

    kind: Kind
    do: str = ""
    """The infinitive that tells it."""
    place: str = ""
    """Where to; the id."""
    person: str = ""
    """With whom; the id."""
    thing: str = ""
    """What with; the id."""
    aim: Aim | None = None


def deed_of(actor: Actor, scene: SceneFacts, lore: Lore) -> Deed:
    """Return what somebody's intention comes to in a scene."""
    reader = _Reader(actor, scene, lore)
    return reader.own_words() or reader.anybodys() or Deed("own")


def mood_towards(lore: Lore, state: str, people: Sequence[Form]) -> str:
    """Return `warm` or `cold` if that is how a state says it stands to one of these people; else nothing."""
    for one, mood in product(people, ("warm", "cold")):
        for whose in (one, Form(("",), "m"), Form(("",), "f")):
            if state in lore.grammar.phrases(f"state_{mood}", {"b": one, "a": whose}):
                return mood
    return ""


class _Reader:
    def __init__(self, me: Actor, scene: SceneFacts, lore: Lore) -> None:
        self._text, self._me, self._lore = me.intention, me.person.id, lore
        self._words = _WORD.findall(me.intention.casefold())
        self._here = scene.place.id
        self._exits = {way.id: way.name for way in scene.place.exits}
        others = [actor for actor in scene.actors if actor is not me]
        self._others = {one.person.id: lore.person(one.person) for one in others}
        self._lying = {one.id: lore.thing(one) for one in scene.place.objects}
        self._mine = {one.id: lore.thing(one) for one in me.inventory}
        self._theirs = {one.id: actor.person.id for actor in others for one in actor.inventory}

    def own_words(self) -> Deed | None:
        """What one of the storyteller's own sentences means."""
        for aim in self._lore.aims(self._me):
            if aim.do in self._text:
                return Deed("aim", aim.do, aim.at, aim.person, aim.object, aim)
        for work in self._lore.works:
            if work in self._text:
                return Deed("work", work)
        for spot in sorted(self._lore.spots(), key=lambda spot: -len(spot.to)):
            if spot.id != self._here and spot.to in self._text:
                return Deed("move" if spot.id in self._exits else "far", place=spot.id)
        if self._text in self._lore.grammar.phrases("intend_wait", {}):
            return Deed("wait")
        return self._handled() or self._social()

    def _handled(self) -> Deed | None:
        """What it does with a thing: one that lies here, its own, or one that somebody else may have."""
        for thing, form in (*self._lying.items(), *self._mine.items()):
            for kind in _WITH_THINGS:
                if phrase := self._phrase(kind, {"o": form}):
                    return Deed(kind, phrase, thing=thing)
            for who, name in self._others.items() if thing in self._mine else ():
                if phrase := self._phrase("give", {"o": form, "b": name}):
                    return Deed("give", phrase, person=who, thing=thing)
        for thing in dict.fromkeys(aim.object for aim in self._lore.aims(self._me) if aim.object):
            form = self._lore.thing_by_id(thing)
            for who, name in self._others.items():
                if phrase := self._phrase("snatch", {"o": form, "b": name}):
                    held = self._theirs.get(thing) == who
                    return Deed("snatch" if held else "demand", phrase, person=who, thing=thing)
        return None

    def _social(self) -> Deed | None:
        """What it wants of somebody."""
        for who, name in self._others.items():
            for kind in _SOCIAL:
                for phrase in self._lore.grammar.phrases(kind, {"b": name, "o": Form(("\0",))}):
                    head = phrase.split("\0")[0].rstrip(" ,")
                    if head in self._text:
                        return Deed(kind, self._from(head), person=who)
        return None

    def _phrase(self, rule: str, slots: Slots) -> str:
        return next((one for one in self._lore.grammar.phrases(rule, slots) if one in self._text), "")

    def _from(self, head: str) -> str:
        """The part of the intention from these words to the end of the clause they stand in."""
        rest = self._text[self._text.index(head) :]
        # A subordinate clause after the first comma belongs to it.
        end = re.compile(r"[^.,;:!?…]*(?:,[^.;:!?…]*)?").match(rest, len(head))
        return rest[: end.end()] if end is not None else rest

    def anybodys(self) -> Deed | None:
        """What somebody else's sentence most likely means: where to, what to take, whom to turn to."""
        goes = self._says("go_words")
        names = [(spot.id, spot.name) for spot in self._lore.spots()]
        names += [(place, name) for place, name in self._exits.items() if place not in dict(names)]
        for place, called in names:
            if goes and place != self._here and self._mentions(called):
                return Deed("move" if place in self._exits else "far", place=place)
        for thing, form in self._lying.items():
            if self._mentions(form.cases[0]) and self._says("take_words"):
                return Deed("take", thing=thing)
        for who, name in self._others.items():
            if self._mentions(name.cases[0]):
                mine = next((thing for thing, form in self._mine.items() if self._mentions(form.cases[0])), "")
                return Deed("give", person=who, thing=mine) if mine else Deed("own", person=who)
        return None

    def _says(self, rule: str) -> bool:
        return any(word.startswith(tuple(self._lore.grammar.rules[rule])) for word in self._words)

    def _mentions(self, name: str) -> bool:
        """Whether every word of a name stands in the intention, whatever its ending."""
        stems = [word[: max(3, len(word) - 2)] for word in _WORD.findall(name.casefold()) if len(word) > 3]
        stems = stems or [word for word in _WORD.findall(name.casefold()) if len(word) == 3]
        return bool(stems) and all(any(word.startswith(stem) for word in self._words) for stem in stems)
