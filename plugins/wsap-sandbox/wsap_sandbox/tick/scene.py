"""A scene's result, applied: mechanical, ordered, and within its own place.

A scene changes the characters who were there when the tick began, the objects that they carry or that lie there, and
its place. Whatever is not possible changes nothing and is felt by the character that it concerns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wsap_sandbox.languages import words_of
from wsap_sandbox.model import (
    Cell,
    Character,
    CharacterChange,
    DecidedBy,
    Degraded,
    EventKind,
    LedgerEvent,
    Outcome,
    PlaceChange,
    World,
    place_after,
)
from wsap_sandbox.tick import privacy
from wsap_sandbox.tick.facts import SceneFacts, StoryFacts, story_facts
from wsap_sandbox.tick.privacy import Runs
from wsap_sandbox.tick.replies import HAPPENING, HERE, Doing, SceneReply


@dataclass(frozen=True, slots=True)
class Decision:
    """What a character means to do, and who decided it."""

    intention: str
    by: DecidedBy


@dataclass(frozen=True, slots=True)
class Scene:
    """What came of one place's scene."""

    events: tuple[LedgerEvent, ...]
    characters: tuple[CharacterChange, ...]
    """Of those who were present when the tick began; summaries are not in it yet."""
    place: PlaceChange
    conditions: tuple[tuple[str, str], ...]
    degraded: tuple[Degraded, ...]
    story: StoryFacts


@dataclass
class Resolution:
    """What a game master's reply changes in its place; of characters who are not in it nothing changes."""

    world: World
    facts: SceneFacts
    decisions: Mapping[str, Decision]
    """What those present meant to do, by their ids."""
    reply: SceneReply
    limit: int
    """Most characters of a text."""

    def __post_init__(self) -> None:
        self._words = words_of(self.world.language)
        self._place = self.world.place(self.facts.place.id)
        self._present = self.world.present(self._place.id)
        self._ids = tuple(one.id for one in self._present)
        self._doings = {one: self.reply.characters.get(one) or Doing(len(self._ids)) for one in self._ids}
        self._events: list[LedgerEvent] = []
        self._degraded: list[Degraded] = []
        private = {
            one.id: privacy.private_runs(one, self.decisions[one.id].intention, _whispers(self.world, one.id))
            for one in self._present
        }
        self._public = privacy.public_texts(self.facts)
        known = privacy.runs_said(frozenset().union(*private.values()), self._public)
        self._private = {one: hidden - known for one, hidden in private.items()}
        self._all_private: Runs = frozenset().union(*self._private.values())

    def scene(self) -> Scene:
        """Return what came of it."""
        self._influences()
        acts = self._acts()
        happened = [self._event("happening", text) for text in map(self._public_text, self.reply.happenings) if text]
        description, cause = self._description(acts, happened)
        lying, carried = self._objects()
        shown = [event for event in self._events if event.public]
        moment = self._public_text(self.reply.moment) or self._place.moment
        change = PlaceChange(self._place.id, moment, lying, description, cause)
        told = [(one.id, self._public_text(one.condition)) for one in self.reply.handlings]
        conditions = tuple((one, text) for one, text in told if text and text != self.world.object(one).condition)
        characters = tuple(self._change(one, acts[one.id], carried[one.id]) for one in self._present)
        left = place_after(self._place, change, shown)
        story = story_facts(self.world, self.world.tick + 1, left, dict(conditions), shown, self._ids)
        return Scene(tuple(self._events), characters, change, conditions, tuple(self._degraded), story)

    def _influences(self) -> None:
        """Write down what somebody outside did here."""
        for one in self.world.influences:
            if one.place == self._place.id:
                self._event("influence", one.text)
            elif one.character in self._ids and not one.place:
                name = self.world.character(one.character).name
                text = self._words.influenced(one.kind, who=name, what=one.text)
                hears = (one.character,) if one.kind == "whisper" else ()
                self._event("influence", text, one.character, witnesses=hears)

    def _acts(self) -> dict[str, LedgerEvent]:
        """Write down what each of those present did, in order; by their ids."""
        return {
            one: self._act(one, self._doings[one]) for one in sorted(self._ids, key=lambda x: self._doings[x].order)
        }

    def _act(self, one: str, doing: Doing) -> LedgerEvent:
        name = self.world.character(one).name
        if one not in self.reply.characters:
            return self._event("act", self._words.say("does_nothing", who=name), one, "failure")
        # A deed may show what somebody is after. A text longer than was asked for is more than a deed.
        shown = privacy.deed_runs(self.world.character(one)) if len(doing.event) <= self.limit else frozenset()
        text = self._cut(doing.event, self._all_private - shown, one) or self._words.say("does_nothing", who=name)
        outcome = doing.outcome
        if doing.refused:
            text, outcome = self._words.say("cannot_leave", who=name), "failure"
        if one in self.reply.missed:
            text += " " + self._words.say("cannot_take", who=name)
            outcome = "failure" if outcome == "failure" else "partial"
        witnesses = tuple(other for other in self._ids if other not in doing.unnoticed_by)
        return self._event("move" if doing.to else "act", text, one, outcome, doing.triggers, witnesses)

    def _event(
        self,
        kind: EventKind,
        text: str,
        actor: str = "",
        outcome: Outcome = "success",
        triggers: tuple[str, ...] = (),
        witnesses: tuple[str, ...] | None = None,
    ) -> LedgerEvent:
        order, tick, place = len(self._events) + 1, self.world.tick + 1, self._place.id
        seen = self._ids if witnesses is None else witnesses
        event = LedgerEvent(f"{tick}.{place}.{order}", tick, order, place, kind, text, actor, outcome, triggers, seen)
        self._events.append(event)
        return event

    def _description(self, acts: Mapping[str, LedgerEvent], happened: list[LedgerEvent]) -> tuple[str | None, str]:
        """The place's new description and the event that caused it; None and nothing where it stays."""
        new = self._public_text(self.reply.description)
        if not new or new == self._place.description:
            return None, ""
        act = acts.get(self.reply.cause)
        if act is not None and act.outcome != "failure":
            return new, act.id
        if self.reply.cause == HAPPENING and happened:
            return new, happened[-1].id
        self._note("uncaused", self._place.id)
        return None, ""

    def _objects(self) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
        """What lies here afterwards, and what each of those present carries; each object is in one place."""
        before = {HERE: self._place.objects, **{one.id: one.inventory for one in self._present}}
        holder = {thing: who for who, things in before.items() for thing in things}
        moved = {one.id: one.holder for one in self.reply.handlings if holder[one.id] != one.holder}
        after = {who: [thing for thing in things if thing not in moved] for who, things in before.items()}
        for thing, to in moved.items():
            after[to].append(thing)
        return tuple(after[HERE]), {one: tuple(after[one]) for one in self._ids}

    def _change(self, one: Character, act: LedgerEvent, inventory: tuple[str, ...]) -> CharacterChange:
        doing, decision, forbidden = self._doings[one.id], self.decisions[one.id], self._unknown_to(one.id)
        own = {name: self._cut(text, forbidden, one.id) for name, text in doing.inner.items()}
        came = own["came_of_it"] or self._words.say("nothing_came")
        if doing.refused:
            came = self._words.say("could_not_leave")
        if one.id in self.reply.missed:
            came += " " + self._words.say("could_not_take")
        heard = [self._words.say("heard", what=text) for text in _whispers(self.world, one.id)]
        cell = Cell(
            act.tick,
            own["tried"] or self._words.say("tried", what=decision.intention),
            " ".join((*heard, came)),
            own["interpretation"] or self._words.say("puzzled"),
            tuple(event.id for event in self._events if one.id in event.witnesses),
        )
        state, goal = own["state"] or one.internal_state, own["goal"] or one.external_intent
        place, came_from = doing.to or one.place, one.place if doing.to else ""
        return CharacterChange(one.id, place, came_from, state, goal, inventory, decision.intention, decision.by, cell)

    # --- who may know what ---------------------------------------------------------------------

    def _unknown_to(self, one: str) -> Runs:
        """The runs of words that somebody can't know: others' private matters, and events that went unnoticed."""
        others: Runs = frozenset().union(*(hidden for other, hidden in self._private.items() if other != one))
        missed = (event.text for event in self._events if one not in event.witnesses)
        noticed = (event.text for event in self._events if one in event.witnesses)
        unknown: Runs = others.union(*map(privacy.runs, missed)) - self._private[one]
        known = (*self._public, self.decisions[one].intention, *noticed)
        return unknown - privacy.runs_said(unknown, known)

    def _public_text(self, text: str) -> str:
        return self._cut(text, self._all_private, self._place.id)

    def _cut(self, text: str, forbidden: Runs, subject: str) -> str:
        kept = privacy.withhold(text, forbidden)
        if kept != text:
            self._note("withheld", subject)
            if not any(map(str.isalnum, kept)):
                return ""
        return kept if len(kept) <= self.limit else kept[: self.limit - 3].rstrip() + privacy.ELLIPSIS

    def _note(self, kind: str, subject: str) -> None:
        note = Degraded("scene", subject, kind)
        if note not in self._degraded:
            self._degraded.append(note)


def _whispers(world: World, character_id: str) -> tuple[str, ...]:
    return tuple(one.text for one in world.influences if one.kind == "whisper" and one.character == character_id)
