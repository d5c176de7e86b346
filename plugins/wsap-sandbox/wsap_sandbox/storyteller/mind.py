"""What a character means to do: its aim, what is about to be lost, whom it meets, and how it feels about them; and what
is left of its memories: the newest half clear, the older ones short, the oldest gone, and some of it not so."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from functools import partial

from wsap_sandbox.model import Cell
from wsap_sandbox.storyteller.deeds import mood_towards
from wsap_sandbox.storyteller.grammar import Form, Slots, sentence
from wsap_sandbox.storyteller.lore import Lore, phase_of
from wsap_sandbox.tick.facts import IntentFacts, MemoryFacts

Choice = tuple[float, Callable[[], str]]
"""How likely, and what it says."""


class Mind:
    """Chooses what a character means to do."""

    def __init__(self, facts: IntentFacts, lore: Lore, number: int, rng: random.Random) -> None:
        self._facts, self._lore, self._number, self._rng, self._say = facts, lore, number, rng, lore.grammar
        self._me = lore.person(facts.me)
        self._here, self._present, self._things = facts.place.id, facts.present, facts.place.objects
        self._exits = {way.id: lore.spot(way.id, way.name) for way in facts.place.exits}
        aims = lore.aims(facts.me.id)
        self._aim = next((aim for aim in aims if aim.want == facts.external_intent), aims[0])

    def intention(self) -> str:
        """Return what it means to do, in the first person."""
        if self._facts.whispers and self._rng.random() < 0.6:
            return self._text("intend_voice", said=self._facts.whispers[-1].rstrip(".!?…"))
        choices = [*self._for_the_aim(), *self._for_the_stake(), *self._with_people(), *self._with_things()]
        choices += self._else()
        return self._rng.choices([say for _, say in choices], [weight for weight, _ in choices])[0]()

    def _for_the_aim(self) -> list[Choice]:
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
                weight = 1 + 3 * self._lore.stage(thing) if cared is stake else 2
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
        return [(5.0 if mood else 3.5, lambda: self._do(mood or kind, name, thing))]

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


# --- what is left of memories --------------------------------------------------------------------

MOST = 4
"""Sentences in a summary."""

_SENTENCE = re.compile(r"(?<=[.!?…])\s+")


def summary(facts: MemoryFacts, lore: Lore, number: int, rng: random.Random) -> str:
    """Return what a character still remembers: whether something worked is the first that is no longer certain."""
    slots = {"a": lore.person(facts.me)}
    feelings = {sentence(one) for one in lore.grammar.phrases("feeling", slots)}
    hedges = [tail for rule in ("hedge_good", "hedge_bad") for tail in lore.grammar.phrases(rule, slots)]
    old = [text for text in _SENTENCE.split(facts.summary) if text.strip() and text not in feelings]
    kept = [_faded(text, hedges) for text in old]
    kept += [_blurred(cell, slots, lore, number + at, rng) for at, cell in enumerate(facts.cells)]
    kept = list(dict.fromkeys(kept))[-MOST:]
    if len(kept) == MOST or rng.random() < 0.4:
        kept = [*kept[-MOST + 1 :], lore.grammar.text("feeling", number, slots)]
    return " ".join(kept)


def _blurred(cell: Cell, slots: Slots, lore: Lore, number: int, rng: random.Random) -> str:
    """A memory in one sentence, with an ending that need not be the true one."""
    tried = cell.tried.strip().rstrip(".!?…")
    tried = tried if lore.language == "en" else tried[:1].lower() + tried[1:]
    worked = cell.came_of_it.startswith(
        tuple(re.split(r"[.:,<]", text)[0] for text in lore.grammar.rules["came_success"])
    )
    if rng.random() < 0.2:
        worked = not worked
    hedge = lore.grammar.phrase("hedge_good" if worked else "hedge_bad", number, slots)
    when = lore.grammar.phrase("long_ago", number + rng.randrange(5), slots)
    return sentence(f"{when} {tried}{hedge}")


def _faded(text: str, hedges: Sequence[str]) -> str:
    """An old sentence, without how it ended."""
    end = next((tail for tail in hedges if text.endswith(f"{tail}.")), "")
    return f"{text[: -len(end) - 1]}." if end else text
