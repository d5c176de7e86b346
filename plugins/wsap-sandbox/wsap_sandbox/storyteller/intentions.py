"""Characters' intentions and memory summaries, and the interpretation of any intention as a deed."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Literal

from wsap_sandbox.languages import words_of
from wsap_sandbox.model import Cell
from wsap_sandbox.phrases.grammar import Form, Slots, sentence
from wsap_sandbox.storyteller.lore import Lore, phase_of
from wsap_sandbox.storyteller.news import notes, plain, remembered, speech_of, whispered
from wsap_sandbox.storyteller.talk import Choice, Talk
from wsap_sandbox.templates.shape import Aim
from wsap_sandbox.tick.facts import Actor, IntentFacts, MemoryFacts, SceneFacts

Kind = Literal[
    "aim", "work", "move", "far", "ask", "warm", "cold", "take", "give", "snatch", "demand", "mend", "wait", "own",
    "craft", "news", "tale", "invite", "feast", "voice", "speech",
]  # fmt: skip

_TOLD: tuple[Kind, ...] = ("news", "tale", "invite")
_WITH_THINGS: tuple[Kind, ...] = ("take", "mend")
_SOCIAL: tuple[Kind, ...] = ("ask", "warm", "cold")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Deed:
    """An intention as a kind that the rules know."""

    kind: Kind
    do: str = ""
    place: str = ""
    """The destination's id."""
    person: str = ""
    """The other character's id."""
    thing: str = ""
    """The object's id."""
    aim: Aim | None = None
    said: str = ""
    """The words that it says."""


def deed_of(actor: Actor, scene: SceneFacts, lore: Lore) -> Deed:
    """Return the deed that an actor intends in a scene."""
    reader = _Reader(actor, scene, lore)
    return reader.own_words() or reader.anybodys() or reader.outsiders()


def mood_towards(lore: Lore, state: str, people: Sequence[Form]) -> str:
    """Return the mood towards one of these people, `warm` or `cold`, that a state expresses; else empty."""
    for one, mood in product(people, ("warm", "cold")):
        for whose in (one, Form(("",), "m"), Form(("",), "f")):
            if state in lore.grammar.phrases(f"state_{mood}", {"b": one, "a": whose}):
                return mood
    return ""


class _Reader:
    def __init__(self, me: Actor, scene: SceneFacts, lore: Lore) -> None:
        self._text, self._me, self._lore = me.intention, me.person.id, lore
        self._goal = me.external_intent
        self._words = _WORD.findall(me.intention.casefold())
        self._here = scene.place.id
        self._exits = {way.id: way.name for way in scene.place.exits}
        others = [actor for actor in scene.actors if actor is not me]
        self._others = {one.person.id: lore.person(one.person) for one in others}
        self._lying = {one.id: lore.thing(one) for one in scene.place.objects}
        self._mine = {one.id: lore.thing(one) for one in me.inventory}
        self._theirs = {one.id: actor.person.id for actor in others for one in actor.inventory}

    def own_words(self) -> Deed | None:
        """Interpret a sentence of the storyteller."""
        if told := self._told():
            return told
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
        if self._text in self._lore.grammar.phrases("intend_feast", {}):
            return Deed("feast")
        craft = self._lore.craft_of(self._goal)
        if craft and craft in self._text:
            return Deed("craft", craft)
        return self._handled() or self._social()

    def _told(self) -> Deed | None:
        """Interpret what the storyteller's characters say to each other."""
        for who, name in self._others.items():
            for kind in _TOLD:
                for phrase in self._lore.grammar.phrases(f"intend_{kind}", {"b": name, "said": "\0"}):
                    head, tail = phrase.split("\0")
                    if self._text.startswith(head) and self._text.endswith(tail) and len(self._text) > len(phrase):
                        said = self._text[len(head) : len(self._text) - len(tail)]
                        return Deed(kind, person=who, said=said)
        return None

    def outsiders(self) -> Deed:
        """Interpret a sentence of which the storyteller knows only that somebody says or does it."""
        words = words_of(self._lore.language)
        if self._text in (words.seat["waiting"], words.say("hesitates")):
            return Deed("wait")
        if any(self._text.startswith(head) for head in self._voices()):
            return Deed("voice")
        named = (who for who, name in self._others.items() if self._mentions(name.cases[0]))
        said = speech_of(self._text, self._lore)
        return Deed("speech" if said else "own", person=next(named, ""), said=said or self._text)

    def _voices(self) -> list[str]:
        return [one.split("\0")[0] for one in self._lore.grammar.phrases("intend_voice", {"said": "\0"})]

    def _handled(self) -> Deed | None:
        """Interpret actions on an object: one that lies here, an own one, or one that somebody else may have."""
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
        """The part of the intention from these words to the end of their clause."""
        rest = self._text[self._text.index(head) :]
        # Includes a subordinate clause after the first comma.
        end = re.compile(r"[^.,;:!?…]*(?:,[^.;:!?…]*)?").match(rest, len(head))
        return rest[: end.end()] if end is not None else rest

    def anybodys(self) -> Deed | None:
        """Guess the meaning of any other sentence: a destination, an object, a character."""
        if self._text[-1:] == "?" or any(mark in self._text for mark in '"“«'):
            return None
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
                return Deed("give", person=who, thing=mine) if mine and self._says("give_words") else None
        return None

    def _says(self, rule: str) -> bool:
        return any(word.startswith(tuple(self._lore.grammar.rules[rule])) for word in self._words)

    def _mentions(self, name: str) -> bool:
        """Whether every word of a name occurs in the intention, ignoring endings."""
        stems = [word[: max(3, len(word) - 2)] for word in _WORD.findall(name.casefold()) if len(word) > 3]
        stems = stems or [word for word in _WORD.findall(name.casefold()) if len(word) == 3]
        return bool(stems) and all(any(word.startswith(stem) for word in self._words) for stem in stems)


class Mind:
    """Chooses a character's intention."""

    def __init__(self, facts: IntentFacts, lore: Lore, number: int, rng: random.Random) -> None:
        self._facts, self._lore, self._number, self._rng, self._say = facts, lore, number, rng, lore.grammar
        self._me = lore.person(facts.me)
        self._here, self._present, self._things = facts.place.id, facts.present, facts.place.objects
        self._exits = {way.id: lore.spot(way.id, way.name) for way in facts.place.exits}
        aims = lore.aims(facts.me.id)
        self._craft = lore.craft_of(facts.external_intent)
        self._aim = next((aim for aim in aims if aim.want == facts.external_intent), aims[0])
        self._talk = Talk(facts, lore, rng)

    def intention(self) -> str:
        """Return the intention, in the first person."""
        if self._facts.whispers and self._rng.random() < 0.6:
            return self._text("intend_voice", said=self._facts.whispers[-1].rstrip(".!?…"))
        if (supper := self._talk.supper()) is not None:
            return supper.intention or self._go("intend_supper", self._lore.step(self._here, supper.place))
        choices = [*self._for_the_aim(), *self._for_the_stake(), *self._with_people(), *self._with_things()]
        choices += [*self._talk.choices(), *self._else()]
        if self._talk.is_bursting and not self._present:
            choices.append((8, lambda: self._go("intend_roam")))
        return self._rng.choices([say for _, say in choices], [weight for weight, _ in choices])[0]()

    def _for_the_aim(self) -> list[Choice]:
        if self._craft:
            return [(9, lambda: self._text("intend_do", do=self._craft))]
        aim = self._aim
        if aim.at and aim.at != self._here:
            return [(4, lambda: self._go("intend_move", self._lore.step(self._here, aim.at)))]
        if aim.person and aim.person not in {one.id for one in self._present}:
            return [(0.8, lambda: self._go("intend_roam")), (0.8, self._wait)]
        return [(9, lambda: self._text("intend_aim", do=aim.do, purpose=self._purpose()))]

    def _for_the_stake(self) -> list[Choice]:
        stake, phase = self._lore.stake(self._facts.tick), phase_of(self._facts.tick)
        if stake is None:
            return []
        where = self._lore.known(stake.object).place
        step = self._lore.step(self._here, where)
        choices: list[Choice] = []
        if where != self._here and step:
            choices.append((0.3 + phase / 8, lambda: self._go("intend_help", step)))
        for thing in self._things:
            cared = self._lore.stake_of(thing.id)
            if cared is not None:
                work = cared.work[self._number % len(cared.work)]
                weight = 1 + 1.5 * self._lore.stage(thing) if cared is stake else 0.7
                choices.append((weight, partial(self._text, "intend_work", do=work)))
        return choices

    def _with_people(self) -> list[Choice]:
        if not self._present:
            return []
        one = self._rng.choice(self._present)
        name = self._lore.person(one)
        mood = mood_towards(self._lore, self._facts.internal_state, [name])
        kind = self._rng.choice(["ask", "ask", "warm", "cold"])
        thing = self._lore.thing(self._rng.choice(self._things)) if self._things else self._me
        return [(4.0 if mood else 1.5, lambda: self._do(mood or kind, name, thing))]

    def _with_things(self) -> list[Choice]:
        choices: list[Choice] = []
        carried = self._facts.inventory
        loose = [thing for thing in self._things if not self._lore.known(thing.id).fixed]
        if loose and len(carried) < 3:
            thing = self._lore.thing(self._rng.choice(loose))
            choices.append((1.8, lambda: self._do("take", self._me, thing)))
        if carried and self._present:
            mine = self._lore.thing(self._rng.choice(carried))
            other = self._lore.person(self._rng.choice(self._present))
            choices.append((0.5, lambda: self._do("give", other, mine)))
        wanted = self._aim.object
        if wanted and wanted not in {thing.id for thing in (*self._things, *carried)} and self._present:
            missing = self._lore.thing_by_id(wanted)
            holder = self._lore.person(self._rng.choice(self._present))
            choices.append((3, lambda: self._do("snatch", holder, missing)))
        worn = [thing for thing in self._things if self._lore.known(thing.id).every and self._lore.stage(thing)]
        if worn:
            old = self._lore.thing(self._rng.choice(worn))
            choices.append((0.8, lambda: self._do("mend", self._me, old)))
        return choices

    def _else(self) -> list[Choice]:
        far = [spot for spot in self._lore.spots() if spot.id not in (self._here, *self._exits)]
        choices: list[Choice] = [(0.5, self._wait), (0.2 if far else 1.5, lambda: self._go("intend_roam"))]
        if far:
            choices.append((0.2, lambda: self._text("intend_help", to=self._rng.choice(far).to)))
        return choices

    def _do(self, kind: str, other: Form, thing: Form) -> str:
        what = self._say.phrase(kind, self._number + self._rng.randrange(7), {"b": other, "o": thing})
        return self._text("intend_do", do=what)

    def _go(self, rule: str, place: str = "") -> str:
        if not self._exits:
            return self._wait()
        spot = self._exits.get(place) or self._rng.choice(list(self._exits.values()))
        return self._text(rule, to=spot.to, purpose=self._purpose())

    def _wait(self) -> str:
        return self._text("intend_wait")

    def _purpose(self) -> str:
        want = self._aim.want
        if self._lore.language == "ru":
            return want if want.startswith("чтобы ") else f"чтобы {want}"
        return f"to {want}"

    def _text(self, rule: str, **slots: str) -> str:
        return sentence(self._say.text(rule, self._number, {"a": self._me, **slots}))


# --- memory summaries ----------------------------------------------------------------------------

MOST = 4
"""Maximum sentences of a summary."""
MOST_NOTES = 2
"""Maximum sentences of a summary that quote what was heard or told; tales are forgotten first."""

_SENTENCE = re.compile(r"(?<=[.!?…])\s+")


def summary(facts: MemoryFacts, lore: Lore, number: int, rng: random.Random) -> str:
    """Return a summary of a character's memories, in which outcomes become uncertain first."""
    slots = {"a": lore.person(facts.me)}
    feelings = {sentence(one) for one in lore.grammar.phrases("feeling", slots)}
    hedges = [tail for rule in ("hedge_good", "hedge_bad") for tail in lore.grammar.phrases(rule, slots)]
    old = [text for text in _SENTENCE.split(plain(facts.summary)) if text.strip() and text not in feelings]
    kept = [_faded(text, hedges) for text in old]
    kept += [_blurred(cell, slots, lore, number + at, rng) for at, cell in enumerate(facts.cells) if plain(cell.tried)]
    heard = notes(facts.summary)
    tales = lore.grammar.rules["tale_words"]
    for cell in facts.cells:
        said = whispered(cell, lore)
        heard += [remembered("heard_voice", lore, 0, slots, said)] if said else []
        heard += notes(f"{cell.came_of_it} {cell.tried}")
    heard = [one for one in heard if not any(word in one.casefold().split(": ")[0] for word in tales)]
    heard = list(dict.fromkeys(heard))[-MOST_NOTES:]
    most = MOST - len(heard)
    kept = list(dict.fromkeys(kept))[-most:]
    if not kept or len(kept) == most or rng.random() < 0.4:
        kept = [*kept[len(kept) - most + 1 :], lore.grammar.text("feeling", number, slots)]
    return " ".join([*kept, *heard])


def _blurred(cell: Cell, slots: Slots, lore: Lore, number: int, rng: random.Random) -> str:
    """A memory in one sentence; its outcome may be wrong."""
    tried = cell.tried.strip().rstrip(".!?…")
    tried = tried if lore.language == "en" else tried[:1].lower() + tried[1:]
    starts = [re.split(r"[.:,<]", text)[0] for text in lore.grammar.rules["came_success"]]
    worked = cell.came_of_it.startswith(tuple(starts))
    if rng.random() < 0.2:
        worked = not worked
    hedge = lore.grammar.phrase("hedge_good" if worked else "hedge_bad", number, slots)
    when = lore.grammar.phrase("long_ago", number + rng.randrange(5), slots)
    return sentence(f"{when} {tried}{hedge}")


def _faded(text: str, hedges: Sequence[str]) -> str:
    """An old sentence without its outcome."""
    end = next((tail for tail in hedges if text.endswith(f"{tail}.")), "")
    return f"{text[: -len(end) - 1]}." if end else text
