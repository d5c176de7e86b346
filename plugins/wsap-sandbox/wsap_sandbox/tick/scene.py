"""Applies a scene's result.

A scene changes only its place, the characters who were there at the start of the tick, and the objects that they carry
or that lie there. Impossible changes are dropped, and the character concerned notices that.
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
    """A character's intention, and who decided it."""

    intention: str
    by: DecidedBy


@dataclass(frozen=True, slots=True)
class Scene:
    """The resolved scene of one place."""

    events: tuple[LedgerEvent, ...]
    characters: tuple[CharacterChange, ...]
    """Of those present at the start of the tick; without summaries."""
    place: PlaceChange
    conditions: tuple[tuple[str, str], ...]
    degraded: tuple[Degraded, ...]
    story: StoryFacts


@dataclass
class Resolution:
    """Applies a game master's reply to its place; characters missing from the reply do not change."""

    world: World
    facts: SceneFacts
    decisions: Mapping[str, Decision]
    """By the ids of those present."""
    reply: SceneReply
    limit: int
    """Maximum characters of a text."""

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
        """Return the resolved scene."""
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
        for one in self.world.influences:
            if one.place == self._place.id:
                self._event("influence", one.text)
            elif one.character in self._ids and not one.place:
                name = self.world.character(one.character).name
                text = self._words.influenced(one.kind, who=name, what=one.text)
                hears = (one.character,) if one.kind == "whisper" else ()
                self._event("influence", text, one.character, witnesses=hears)

    def _acts(self) -> dict[str, LedgerEvent]:
        return {
            one: self._act(one, self._doings[one]) for one in sorted(self._ids, key=lambda x: self._doings[x].order)
        }

    def _act(self, one: str, doing: Doing) -> LedgerEvent:
        name = self.world.character(one).name
        if one not in self.reply.characters:
            return self._event("act", self._words.say("does_nothing", who=name), one, "failure")
        # An action may reveal its actor's goal. A text over the limit tells more than an action.
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
        """The place's new description and the id of its cause; None and empty if unchanged."""
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
        """The objects that lie here afterwards, and those that each character present carries."""
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
        heard = [self._words.say("heard", what=_sentence(text)) for text in _whispers(self.world, one.id)]
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

    # --- privacy -------------------------------------------------------------------------------

    def _unknown_to(self, one: str) -> Runs:
        """The runs of words from others' private texts and from events that a character did not notice."""
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


def _sentence(text: str) -> str:
    """A text that ends as a sentence does, so that what follows it is another one."""
    return text if text.rstrip("»\"'”’)")[-1:] in (".", "!", "?", "…") else f"{text}."


def _whispers(world: World, character_id: str) -> tuple[str, ...]:
    return tuple(one.text for one in world.influences if one.kind == "whisper" and one.character == character_id)
