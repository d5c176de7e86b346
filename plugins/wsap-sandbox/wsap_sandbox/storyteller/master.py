"""The storyteller's game master: resolves a scene's order, conflicts, outcomes, decay and memories."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from wsap_core.protocol.values import JsonValue
from wsap_sandbox.storyteller.grammar import Form, Lists, number_of, one_of
from wsap_sandbox.storyteller.intentions import Deed, deed_of, mood_towards
from wsap_sandbox.storyteller.lore import ARC, LOST, WORSE_AT, Lore, phase_of
from wsap_sandbox.templates.shape import StakeShape
from wsap_sandbox.tick.facts import Actor, SceneFacts

Mood = tuple[str, Form | None]

_WON = {"work": "won_work", "ask": "won_ask", "warm": "won_warm", "cold": "won_cold"}
_TRIED = {"move": "tried_move", "far": "tried_move", "wait": "tried_wait"}
_STEM = re.compile(r"\w{5,}")
_BETTER = 0.35
"""The probability that successful work improves the stake instead of only keeping it."""
_LAST = {"move": 2, "far": 2, "wait": 1}
"""Deeds that come late in a scene."""


@dataclass(slots=True)
class _Part:
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


class Master:
    """Resolves one scene; `number` is the place's sentence number."""

    def __init__(self, facts: SceneFacts, lore: Lore, number: int, rng: random.Random) -> None:
        self._facts, self._lore, self._say, self._rng, self._number = facts, lore, lore.grammar, rng, number
        self._tick, self._place = facts.tick, facts.place
        self._sky = lore.sky(facts.place.id, facts.tick)
        self._here = lore.spot(facts.place.id, facts.place.name)
        self._things = {one.id: one for one in facts.place.objects}
        self._known = {one.id: one for one in facts.things}
        self._holder = {one.id: actor.person.id for actor in facts.actors for one in actor.inventory}
        self._taken: dict[str, str] = {}
        """Object -> its new holder."""
        self._conditions: dict[str, str] = {}
        self._happenings: list[str] = []
        self._kept = False
        """Whether somebody worked on the stake here."""
        self._parts = [self._part(actor) for actor in facts.actors]

    def reply(self) -> dict[str, JsonValue]:
        """Return the resolved scene in the form of a game master's reply."""
        order = sorted(self._parts, key=lambda part: (_LAST.get(part.deed.kind, 0), self._rng.random()))
        for part in order:
            self._resolve(part)
        self._time_passes()
        return {
            "characters": {part.id: self._entry(part, 1 + order.index(part)) for part in self._parts},
            "objects": self._objects(),
            "happenings": self._happenings[:3],
            "place": {"moment": self._moment(), "description": "", "cause": "none"},
        }

    # --- deeds ---------------------------------------------------------------------------------

    def _part(self, actor: Actor) -> _Part:
        one, deed = actor.person.id, deed_of(actor, self._facts, self._lore)
        return _Part(one, actor, self._lore.person(actor.person), deed, number_of(self._tick, one))

    def _resolve(self, part: _Part) -> None:
        other = next((one for one in self._parts if one.id == part.deed.person), None)
        thing = self._known.get(part.deed.thing)
        part.slots = {"a": part.form, "do": part.deed.do, "at": self._here.at}
        if other is not None:
            part.slots["b"] = other.form
        if thing is not None:
            part.slots["o"] = self._lore.thing(thing)
        match part.deed.kind:
            case "move" | "far":
                self._go(part)
            case "take":
                self._take(part)
            case "demand":
                part.slots["o"] = self._lore.thing_by_id(part.deed.thing)
                self._comes(part, "has_not", "failure")
            case "give" | "snatch":
                self._hand_over(part, other)
            case "wait":
                self._comes(part, "waits")
            case _:
                self._act(part, other)

    def _comes(self, part: _Part, rule: str, outcome: str = "success", mood: Mood | None = None) -> None:
        """Set a part's outcome, described by a rule."""
        part.outcome, part.event, part.mood = outcome, self._text(part, rule), mood or part.mood

    def _go(self, part: _Part) -> None:
        goal = next((spot for spot in self._lore.spots() if spot.id == part.deed.place), None)
        exits = {way.id: way.name for way in self._place.exits}
        spot = goal or self._lore.spot(part.deed.place, exits.get(part.deed.place, part.deed.place))
        part.slots |= {"to": spot.to, "from": self._here.from_}
        if part.deed.kind == "far" or self._rng.random() < 0.04:
            return self._comes(part, "blocked", "failure")
        part.to = part.deed.place
        return self._comes(part, "moves")

    def _take(self, part: _Part) -> None:
        thing = part.deed.thing
        if thing in self._taken:
            winner = next(one.form for one in self._parts if one.id == self._taken[thing])
            part.slots["b"] = winner
            return self._comes(part, "loses", "failure", ("cold", winner))
        if self._lore.known(thing).fixed:
            return self._comes(part, "quoted_failure", "failure")
        self._taken[thing] = part.id
        rival = next((one for one in self._parts if one is not part and one.deed.thing == thing), None)
        if rival is not None and rival.deed.kind == "take":
            part.slots["b"] = rival.form
        return self._comes(part, "grabs" if "b" in part.slots else "takes")

    def _hand_over(self, part: _Part, other: _Part | None) -> None:
        if other is None:
            self._comes(part, "quoted_failure", "failure")
        elif part.deed.kind == "give":
            self._taken[part.deed.thing] = other.id
            self._comes(part, "gives", mood=("warm", other.form))
            other.mood = other.mood if other.mood[0] else ("warm", part.form)
        elif self._rng.random() < 0.5:
            self._taken[part.deed.thing] = part.id
            self._comes(part, "snatches")
            other.mood = ("cold", part.form)
        else:
            self._comes(part, "keeps_own", "failure", ("cold", other.form))

    def _act(self, part: _Part, other: _Part | None) -> None:
        deed = part.deed
        block = self._hindrance(part, other)
        part.hindered = bool(block)
        part.outcome = "failure" if block else self._luck(part)
        part.gives_up = part.outcome != "success" and self._rng.random() < 0.3
        if part.outcome == "success":
            if deed.kind == "work":
                self._kept = True
                stake = self._lore.stake(self._tick)
                if self._rng.random() < _BETTER and stake is not None:
                    self._better(stake.object)
            if deed.kind == "mend":
                self._better(deed.thing)
            if deed.kind == "cold" and other is not None and self._rng.random() < 0.3:
                other.mood = ("warm", part.form)
                return self._comes(part, "reconcile", mood=("warm", other.form))
        rule = f"quoted_{part.outcome}" if deed.kind == "own" else part.outcome
        blocks = "block_ask" if other is not None and deed.kind in ("ask", "cold", "aim") else "block"
        rules = self._say.rules
        lists = {"won": rules[_WON.get(deed.kind, "won_aim")], "block": block or rules[blocks]}
        part.event = self._text(part, rule, lists)
        self._after_aim(part)
        return self._feel(part, other)

    def _hindrance(self, part: _Part, other: _Part | None) -> Sequence[str]:
        """Phrases for why the deed is impossible; empty if it is possible."""
        aim = part.deed.aim
        if aim is None:
            return ()
        if aim.at and aim.at != self._place.id:
            return self._say.rules["doubt"]
        if aim.person and other is None:
            part.slots["b"] = self._lore.named_by_id(aim.person)
            return self._say.rules["block_alone"]
        if aim.object and aim.object not in {*self._known, *self._taken}:
            part.slots["o"] = self._lore.thing_by_id(aim.object)
            return self._say.rules["block_missing"]
        return ()

    def _luck(self, part: _Part) -> str:
        chance = {"ask": 0.55, "warm": 0.7, "cold": 0.6, "work": 0.5, "mend": 0.7}.get(part.deed.kind, 0.45)
        if mood_towards(self._lore, part.actor.internal_state, [one.form for one in self._parts]) == "warm":
            chance += 0.1
        drawn = self._rng.random()
        return "success" if drawn < chance else "partial" if drawn < chance + 0.55 * (1 - chance) else "failure"

    def _after_aim(self, part: _Part) -> None:
        aim = part.deed.aim
        if aim is None or part.outcome != "success" or not aim.object or self._lore.known(aim.object).fixed:
            return
        if aim.object in self._things and aim.object not in self._taken:
            self._taken[aim.object] = part.id
        elif self._holder.get(aim.object) == part.id and self._rng.random() < 0.4:
            self._taken[aim.object] = "here"
            part.slots["o"] = self._lore.thing_by_id(aim.object)
            part.event += " " + self._say.text("leaves", part.number, part.slots)

    def _feel(self, part: _Part, other: _Part | None) -> None:
        if other is None:
            return
        if part.deed.kind == "cold":
            other.mood = ("cold", part.form)
        elif part.deed.kind == "warm" and part.outcome == "success":
            other.mood = ("warm", part.form)
        if part.outcome == "success":
            part.mood = ("warm", other.form) if part.deed.kind != "cold" else ("", None)
        elif part.outcome == "failure":
            part.mood = ("cold", other.form)

    # --- what happens by itself ----------------------------------------------------------------

    def _time_passes(self) -> None:
        stake = self._lore.stake(self._tick)
        for thing in self._things:
            every = self._lore.known(thing).every
            if stake is not None and thing == stake.object:
                self._arc(thing, stake)
            elif thing not in self._conditions and every and self._tick % every == 0:
                self._fade(thing)

    def _fade(self, thing: str) -> None:
        """Advance an object to its next stage; from the last one it is renewed once somebody is here."""
        at, stages = self._stage(thing) + 1, self._lore.known(thing).stages
        if at < len(stages):
            if at > 1:
                self._becomes(thing, "fades", stages[at])
            self._conditions[thing] = stages[at]
        elif self._parts:
            self._becomes(thing, "renews", stages[0])

    def _arc(self, thing: str, stake: StakeShape) -> None:
        stages, phase = self._lore.known(thing).stages, phase_of(self._tick)
        at = stages.index(self._conditions[thing]) if thing in self._conditions else self._stage(thing)
        if phase == 0:
            self._becomes(thing, "begins", title=stake.title, worse=stake.worse[0])
        elif phase == ARC - 4:
            lost = at >= LOST
            end = stake.bad if lost else stake.good
            self._becomes(thing, "ends_bad" if lost else "ends_good", end=end, worse=stake.worse[-1])
            self._conditions[thing] = stages[-1 if lost else 0]
        elif phase == ARC - 1 and at > 0:
            self._becomes(thing, "renews", stages[0])
        elif phase in WORSE_AT and not self._kept and at + 2 < len(stages):
            self._becomes(thing, "worsens", stages[at + 1], worse=stake.worse[at + 1])

    def _becomes(self, thing: str, rule: str, condition: str = "", **slots: str) -> None:
        """Record a happening to an object, and its new condition."""
        number = self._number + 7919 * len(self._happenings)
        form = self._lore.thing(self._things[thing])
        self._happenings.append(self._say.text(rule, number, {"o": form, "cond": condition, **slots}))
        if condition:
            self._conditions[thing] = condition

    def _stage(self, thing: str) -> int:
        return self._lore.stage(self._things[thing])

    def _better(self, thing: str) -> None:
        at = self._stage(thing) if thing in self._things else 0
        if at > 0:
            self._conditions[thing] = self._lore.known(thing).stages[at - 1]

    def _moment(self) -> str:
        details = self._lore.details(self._place.id)
        detail = one_of(details, self._number)
        others = [other for other in details if other not in detail]
        return self._say.text("moment", self._number, {}, {**self._sky, "detail": detail, "detail2": others})

    # --- texts ---------------------------------------------------------------------------------

    def _text(self, part: _Part, rule: str, lists: Lists | None = None) -> str:
        known = {**self._sky, **self._lore.manner(part.actor.person.name), **(lists or {})}
        return self._say.text(rule, part.number, part.slots, known)

    def _entry(self, part: _Part, order: int) -> dict[str, JsonValue]:
        (mood, other), deed = part.mood, part.deed
        good = part.outcome == "success"
        slots = {**part.slots, "b": other} if other is not None else part.slots
        tried = _TRIED.get(deed.kind, "tried_do" if deed.do else "tried_own")
        aims, goal = self._lore.aims(part.id), part.actor.external_intent
        if deed.aim is not None and (good or part.hindered or part.gives_up):
            goal = aims[(aims.index(deed.aim) + 1) % len(aims)].want
        think = f"think_{mood or ('good' if good else 'bad')}"
        doubts = {"block": self._say.rules["doubt"]}
        return {
            "order": order,
            "event": part.event,
            "outcome": part.outcome,
            "triggers": self._fired(part),
            "unnoticed_by": self._unnoticed(part),
            "to": part.to,
            "state": self._state(part, slots),
            "goal": goal or aims[0].want,
            "tried": self._say.text(tried, part.number, slots),
            "came_of_it": self._say.text(f"came_{part.outcome}", part.number, slots, doubts),
            "interpretation": self._say.text(think, part.number, slots),
        }

    def _state(self, part: _Part, slots: dict[str, Form | str]) -> str:
        mood, _ = part.mood
        if not mood and part.deed.kind in ("move", "wait"):
            return part.actor.internal_state
        rule = f"state_{mood or ('good' if part.outcome == 'success' else 'bad')}"
        # Avoids the words of others' states, which are private.
        taken = [one.actor.internal_state[:9] for one in self._parts if one is not part]
        states = [self._say.phrase(rule, part.number + at, slots) for at in range(7)]
        return next((state for state in states if not state.startswith(tuple(taken))), states[0])

    def _fired(self, part: _Part) -> list[JsonValue]:
        """The numbers of the triggers that share words with others' intentions or influences here."""
        heard = [*(one.actor.intention for one in self._parts if one is not part), *self._facts.influences]
        stems = _stems(" ".join(heard)) - _stems(part.actor.person.name)
        return [number for number, trigger in enumerate(part.actor.triggers, 1) if stems & _stems(trigger)]

    def _unnoticed(self, part: _Part) -> list[JsonValue]:
        others = [one.id for one in self._parts if one.id not in (part.id, part.deed.person)]
        secret = part.deed.kind in ("aim", "take") and self._rng.random() < 0.1
        return [self._rng.choice(others)] if others and secret else []

    def _objects(self) -> list[JsonValue]:
        found: list[JsonValue] = []
        for thing in dict.fromkeys((*self._taken, *self._conditions)):
            if thing in self._known:
                holder = self._taken.get(thing) or self._holder.get(thing, "here")
                condition = self._conditions.get(thing, self._known[thing].condition)
                found.append({"id": thing, "holder": holder, "condition": condition})
        return found


def _stems(text: str) -> set[str]:
    return {word[:5] for word in _STEM.findall(text.casefold())}
