"""The storyteller's game master: resolves a scene's order, conflicts, outcomes, decay and memories."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from wsap_core.protocol.values import JsonValue
from wsap_sandbox.phrases.grammar import Form, Lists, number_of, one_of, sentence
from wsap_sandbox.storyteller.dialogue import HEARD, Dialogue, Mood, Part
from wsap_sandbox.storyteller.intentions import deed_of, mood_towards
from wsap_sandbox.storyteller.lore import ARC, LOST, STAYS, WORSE_AT, Lore, phase_of
from wsap_sandbox.storyteller.news import quotable, remembered
from wsap_sandbox.templates.shape import StakeShape
from wsap_sandbox.tick.facts import Actor, SceneFacts
from wsap_sandbox.tick.replies import MOST_HAPPENINGS

_WON = {"work": "won_work", "ask": "won_ask", "warm": "won_warm", "cold": "won_cold"}
_TRIED = {"move": "tried_move", "far": "tried_move", "wait": "tried_wait"}
_STEM = re.compile(r"\w{5,}")
_BETTER = 0.35
"""The probability that successful work improves the stake instead of only keeping it."""
_LAST = {"move": 2, "far": 2, "wait": 1, **dict.fromkeys(HEARD, -1)}
"""Deeds that come late in a scene, or early."""


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
        self._talk = Dialogue(order, self._lore, self._rng)
        for part in order:
            self._resolve(part)
            self._talk.merge(part)
        order = self._talk.order()
        self._guests()
        self._time_passes()
        return {
            "characters": {part.id: self._entry(part, 1 + order.index(part)) for part in self._parts},
            "objects": self._objects(),
            "happenings": [*self._talk.more, *self._happenings][:MOST_HAPPENINGS],
            "place": {"moment": self._moment(), **self._changed()},
        }

    # --- deeds ---------------------------------------------------------------------------------

    def _part(self, actor: Actor) -> Part:
        one, deed = actor.person.id, deed_of(actor, self._facts, self._lore)
        return Part(one, actor, self._lore.person(actor.person), deed, number_of(self._tick, one))

    def _resolve(self, part: Part) -> None:
        other = next((one for one in self._parts if one.id == part.deed.person), None)
        thing = self._known.get(part.deed.thing)
        part.slots = {"a": part.form, "do": part.deed.do, "at": self._here.at}
        if other is not None:
            part.slots["b"] = other.form
        if thing is not None:
            part.slots["o"] = self._lore.thing(thing)
        if part.deed.kind in HEARD:
            self._talk.resolve(part)
        elif not part.stops:
            self._do(part, other)

    def _do(self, part: Part, other: Part | None) -> None:
        match part.deed.kind:
            case "feast":
                self._feasts(part)
            case "craft":
                self._crafts(part)
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

    def _comes(self, part: Part, rule: str, outcome: str = "success", mood: Mood | None = None) -> None:
        """Set a part's outcome, described by a rule."""
        part.outcome, part.event, part.mood = outcome, self._text(part, rule), mood or part.mood

    def _go(self, part: Part) -> None:
        goal = next((spot for spot in self._lore.spots() if spot.id == part.deed.place), None)
        exits = {way.id: way.name for way in self._place.exits}
        spot = goal or self._lore.spot(part.deed.place, exits.get(part.deed.place, part.deed.place))
        part.slots |= {"to": spot.to, "from": self._here.from_}
        if part.deed.kind == "far" or self._rng.random() < 0.04:
            return self._comes(part, "blocked", "failure")
        part.to = part.deed.place
        return self._comes(part, "moves")

    def _take(self, part: Part) -> None:
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

    def _hand_over(self, part: Part, other: Part | None) -> None:
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

    def _act(self, part: Part, other: Part | None) -> None:
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
        if deed.aim is not None and deed.aim.truth and part.outcome == "success" and other is not None:
            return self._talk.confesses(part, other)
        rule = f"quoted_{part.outcome}" if deed.kind == "voice" else part.outcome
        blocks = "block_ask" if other is not None and deed.kind in ("ask", "cold", "aim") else "block"
        rules = self._say.rules
        lists = {"won": rules[_WON.get(deed.kind, "won_aim")], "block": block or rules[blocks]}
        part.event = self._text(part, rule, lists)
        self._after_aim(part)
        return self._feel(part, other)

    def _crafts(self, part: Part) -> None:
        """Work on something of one's own, which is in most cases done in the end."""
        done = self._rng.random() < 0.6
        past = self._say.past(part.deed.do, part.form)
        part.slots |= {"do": part.deed.do, "done": past}
        part.outcome = "success" if done else "partial"
        lists = self._lore.manner(part.actor.person.name)
        part.event = self._say.text_drawn("crafts" if done else "crafts_on", self._rng, part.slots, lists)

    def _feasts(self, part: Part) -> None:
        """Come to the supper to which it was invited."""
        others = [one for one in self._parts if one is not part and one.deed.kind == "feast"]
        part.event = self._say.text_drawn("feasts" if others else "feasts_alone", self._rng, part.slots)
        if others:
            part.mood = ("warm", self._rng.choice(others).form)
        if len(others) > 1 and part is self._parts[-1]:
            names = self._say.listed([one.form.cases[0] for one in self._parts if one.deed.kind == "feast"])
            self._happenings.append(self._say.text_drawn("supper", self._rng, {"names": names, "at": self._here.at}))

    def _guests(self) -> None:
        """Have somebody come by, tell those here a tale, and leave."""
        guest, phase = self._lore.guest(self._tick)
        if guest is None or guest.place != self._place.id:
            return
        form = Form((guest.name,), guest.gender)
        if phase in (0, STAYS):
            self._happenings.append(guest.comes if phase == 0 else guest.goes)
        elif self._parts:
            part = self._rng.choice(self._parts)
            tale = self._say.drawn("tale", self._rng)
            slots: dict[str, Form | str] = {"a": form, "b": part.form, "said": quotable(tale, self._lore.language)}
            self._happenings.append(self._say.text_drawn("tells_tale", self._rng, slots))
            part.learned.append(remembered("heard_tale", self._lore, 0, {"b": form, "a": part.form}, tale))

    def _changed(self) -> dict[str, JsonValue]:
        """The place's new description, if somebody here made something that stays."""
        for part in self._parts:
            built = self._say.built(part.deed.do) if part.deed.kind == "craft" and not part.stops else ""
            if built and part.outcome == "success":
                before = self._lore.description(self._place.id) or self._place.description
                return {"description": f"{before} {sentence(built)}", "cause": part.id}
        return {"description": "", "cause": "none"}

    def _hindrance(self, part: Part, other: Part | None) -> Sequence[str]:
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

    def _luck(self, part: Part) -> str:
        chance = {"ask": 0.55, "warm": 0.7, "cold": 0.6, "work": 0.5, "mend": 0.7}.get(part.deed.kind, 0.45)
        if mood_towards(self._lore, part.actor.internal_state, [one.form for one in self._parts]) == "warm":
            chance += 0.1
        drawn = self._rng.random()
        return "success" if drawn < chance else "partial" if drawn < chance + 0.55 * (1 - chance) else "failure"

    def _after_aim(self, part: Part) -> None:
        aim = part.deed.aim
        if aim is None or part.outcome != "success" or not aim.object or self._lore.known(aim.object).fixed:
            return
        if aim.object in self._things and aim.object not in self._taken:
            self._taken[aim.object] = part.id
        elif self._holder.get(aim.object) == part.id and self._rng.random() < 0.4:
            self._taken[aim.object] = "here"
            part.slots["o"] = self._lore.thing_by_id(aim.object)
            part.event += " " + self._say.text("leaves", part.number, part.slots)

    def _feel(self, part: Part, other: Part | None) -> None:
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
        if self._rng.random() < 0.75:
            detail = [self._say.drawn("glimpse", self._rng)]
        others = [other for other in details if other not in detail]
        return self._say.text("moment", self._number, {}, {**self._sky, "detail": detail, "detail2": others})

    # --- texts ---------------------------------------------------------------------------------

    def _text(self, part: Part, rule: str, lists: Lists | None = None) -> str:
        known = {**self._sky, **self._lore.manner(part.actor.person.name), **(lists or {})}
        return self._say.text(rule, part.number, part.slots, known)

    def _entry(self, part: Part, order: int) -> dict[str, JsonValue]:
        (mood, other), deed = part.mood, part.deed
        good = part.outcome == "success"
        slots = {**part.slots, "b": other} if other is not None else part.slots
        tried = _TRIED.get(deed.kind, "tried_do" if deed.do else "tried_own")
        aims, goal = self._lore.aims(part.id), part.actor.external_intent
        ends = deed.aim is not None and (good or part.hindered or part.gives_up)
        if not part.stops and (ends or (deed.kind == "craft" and good)):
            goal = self._next_goal(part, [aim.want for aim in aims])
        think = f"think_{mood or ('good' if good else 'bad')}"
        doubts = {"block": self._say.rules["doubt"]}
        came = self._say.text(f"came_{part.outcome}", part.number, slots, doubts)
        tells = self._say.text(tried, part.number, slots)
        if part.stops:
            tells = self._say.text_drawn("tried_listen", self._rng, slots)
        return {
            "order": order,
            "event": part.event,
            "outcome": part.outcome,
            "triggers": self._fired(part),
            "unnoticed_by": self._unnoticed(part),
            "to": part.to,
            "state": self._state(part, slots),
            "goal": goal or aims[0].want,
            "tried": part.told or tells,
            "came_of_it": self._talk.learned(part) if part.learned else came,
            "interpretation": self._say.text(think, part.number, slots),
        }

    def _next_goal(self, part: Part, wants: list[str]) -> str:
        """Another goal: work of one's own, or now and then one of the character's aims."""
        goal = part.actor.external_intent
        if goal in wants and self._rng.random() < 0.35:
            return wants[(wants.index(goal) + 1) % len(wants)]
        if goal not in wants and self._rng.random() < 0.3:
            return self._rng.choice(wants)
        return self._say.drawn("craft_goal", self._rng, {"do": self._say.drawn("craft", self._rng)})

    def _state(self, part: Part, slots: dict[str, Form | str]) -> str:
        mood, _ = part.mood
        if not mood and part.deed.kind in ("move", "wait"):
            return part.actor.internal_state
        rule = f"state_{mood or ('good' if part.outcome == 'success' else 'bad')}"
        # Avoids the words of others' states, which are private.
        taken = [one.actor.internal_state[:9] for one in self._parts if one is not part]
        states = [self._say.phrase(rule, part.number + at, slots) for at in range(7)]
        return next((state for state in states if not state.startswith(tuple(taken))), states[0])

    def _fired(self, part: Part) -> list[JsonValue]:
        """The numbers of the triggers that share words with others' intentions or influences here."""
        heard = [*(one.actor.intention for one in self._parts if one is not part), *self._facts.influences]
        stems = _stems(" ".join(heard)) - _stems(part.actor.person.name)
        return [number for number, trigger in enumerate(part.actor.triggers, 1) if stems & _stems(trigger)]

    def _unnoticed(self, part: Part) -> list[JsonValue]:
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
