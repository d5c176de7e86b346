"""A character's seat: observations, intentions and achievements."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from typing_extensions import override

from wsap_core import protocol as wsap
from wsap_core.errors import UsageError
from wsap_core.protocol import Action, ActionResult, ActionSpace, Observation, View
from wsap_core.protocol.lines import bullets
from wsap_core.protocol.observation import render_brief, render_observation
from wsap_core.untrusted import single_line
from wsap_core.worlds.legality import check_action, index_actions
from wsap_sandbox.languages import words_of
from wsap_sandbox.model import TickRecord, World
from wsap_sandbox.tick.facts import IntentFacts, intent_facts

INTEND, WAIT = "intend", "wait"


@dataclass(frozen=True)
class CharacterObservation(Observation):
    """What a character perceives and remembers."""

    memory: Sequence[str] = field(default=(), kw_only=True)
    """Memories, newest first; the last is the summary of everything earlier."""
    whispers: Sequence[str] = field(default=(), kw_only=True)
    """What a voice says that nobody else hears."""

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "memory", tuple(self.memory))
        object.__setattr__(self, "whispers", tuple(self.whispers))

    @override
    def to_text(self) -> str:
        words = words_of(self.language).seat
        more = [(words["title_memory"], bullets(self.memory)), (words["title_whispers"], bullets(self.whispers))]
        return render_observation(self, extra_sections=more)

    @override
    def to_brief(self) -> str:
        words = words_of(self.language).seat
        newest = [f"{words['title_memory'].capitalize()}: {text}" for text in self.memory[:2]]
        heard = [f"{words['title_whispers'].capitalize()}: {text}" for text in self.whispers]
        return render_brief(self, extra_lines=[single_line(line) for line in (*newest, *heard)])


def space_of(language: str) -> ActionSpace:
    """Return a character's actions: state an intention, or wait."""
    words = words_of(language).seat
    return ActionSpace(
        (
            wsap.ActionDef(INTEND, words["intend"], (wsap.ParamDef("text", words["text"]),), (), "talk"),
            wsap.ActionDef(WAIT, words["wait"], (), (), "wait"),
        )
    )


class CharacterSeat:
    """The seat of one character: perceive, state an intention, learn the outcome.

    `now` returns the world between two ticks and the record of the last one.
    """

    def __init__(self, character: str, now: Callable[[], tuple[World, TickRecord | None]]) -> None:
        self.character = character
        self._now = now
        self.action_space = space_of(now()[0].language)
        """State an intention, or wait."""
        self._declared = index_actions(self.action_space)
        self._given: str | None = None
        self._came = asyncio.Event()
        self._result: asyncio.Future[ActionResult] | None = None

    @property
    def _facts(self) -> IntentFacts:
        world, _ = self._now()
        return intent_facts(world, world.character(self.character))

    @property
    def game_description(self) -> str:
        """Describes the world and the character."""
        facts, words = self._facts, self._words
        me = facts.me
        parts = [
            f"{self._now()[0].title}. {facts.premise}".strip(),
            words["you"].format(name=me.name, appearance=me.appearance, description=facts.description).strip(),
            words["triggers"].format(what=" ".join(facts.triggers)) if facts.triggers else "",
            words["secret"].format(what=facts.secret) if facts.secret else "",
        ]
        return "\n\n".join(filter(None, parts))

    def observe(self) -> Observation:
        """Return what the character perceives and remembers between two ticks, as in its own prompt."""
        facts, words, (_, record) = self._facts, self._words, self._now()
        place, cells = facts.place, [cell.text for cell in facts.cells]
        things = [_entity("object", one.name, one.condition or one.description) for one in place.objects]
        people = [_entity("character", one.name, one.appearance) for one in facts.present]
        exits = [wsap.Entity("exit", way.name, description=words["exit"].format(place=way.name)) for way in place.exits]
        told = " ".join(filter(None, (f"{place.name}.", place.description, place.moment)))
        events = () if record is None else record.events
        return CharacterObservation(
            status={words["state"]: facts.internal_state} if facts.internal_state else {},
            inventory=Counter(thing.name for thing in facts.inventory),
            location=wsap.Location((), place.id, told),
            nearby_entities=[*people, *things, *exits],
            current_goals=[wsap.Goal("intent", facts.external_intent)] if facts.external_intent else (),
            recent_events=[wsap.Event(event.text, "world") for event in events if self.character in event.witnesses],
            step=facts.tick - 1,
            memory=[*cells, *filter(None, (facts.summary,))],
            whispers=facts.whispers,
            language=facts.language,
        )

    async def act(self, action: Action) -> ActionResult:
        """Set the character's intention for the next tick, and return its outcome after the tick."""
        action, why = check_action(action, self._declared)
        if not why and self._given is not None:
            why = "You have acted already."
        if why:
            return ActionResult(False, why, observation=self.observe())
        text = str(action.parameters.get("text", "")).strip() if action.name == INTEND else ""
        self._given = text or self._words["waiting"]
        self._result = asyncio.get_running_loop().create_future()
        self._came.set()
        return await self._result

    def reset(self) -> Observation:
        """Raise UsageError: a seat can't reset a shared world."""
        raise UsageError("One seat can't reset a shared world; reset the world.")

    def default_action(self) -> Action:
        """Return the action of an agent that is late: wait."""
        return Action(WAIT)

    def render(self) -> View:
        """Return the character's place with everybody in it."""
        facts, place = self._facts, self._facts.place
        exits = [way.name for way in place.exits]
        here = (facts.me.name, *(one.name for one in facts.present))
        ways = tuple((place.name, to) for to in exits)
        graph = wsap.PlaceGraphBlock((place.name, *exits), ways, place.name, {place.name: here})
        text = wsap.TextBlock(f"{place.description} {place.moment}".strip(), place.name)
        return View((graph, text), self._now()[0].title)

    @property
    def _words(self) -> dict[str, str]:
        return words_of(self._now()[0].language).seat

    # --- for the world -------------------------------------------------------------------------

    async def intention(self) -> str:
        """Wait for the intention of this tick."""
        while self._given is None:
            self._came.clear()
            await self._came.wait()
        return self._given

    def live_through(self, before: World, record: TickRecord, earned: list[str]) -> None:
        """Resolve the pending `act` with the tick's outcome; extend `earned`, the achievements so far."""
        new = achieved(before, record, self.character, earned)
        earned += new
        failed = any(event.outcome == "failure" for event in record.acts(self.character))
        came_of_it = record.change(self.character).cell.came_of_it
        self._settle(not failed, came_of_it, [name for name in new if name[0] != "_"])

    def _settle(self, success: bool, message: str, achievements: Sequence[str]) -> None:
        self._given, result, self._result = None, self._result, None
        if result is not None and not result.done():
            result.set_result(ActionResult(success, message, achievements=achievements, observation=self.observe()))

    def give_up(self) -> None:
        """Cancel the pending intention, because the world was reset or the agent left."""
        self._settle(False, "You have left this world.", ())
        self._came.set()


def _entity(kind: str, name: str, more: str) -> wsap.Entity:
    said = f"{name}: {more}" if more else name
    return wsap.Entity(kind, name, interactable=kind == "character", description=said)


_FAILED = "_failed"
"""Internal marker for `recover`: the character has failed once."""


def achieved(before: World, record: TickRecord, character: str, earned: Sequence[str]) -> list[str]:
    """Return the achievements that a character earns for the first time in a tick; `earned` are the earlier ones."""
    one = before.character(character)
    present = {other.id for other in before.present(one.place) if other.id != character}
    acts = record.acts(character)
    won = any(event.outcome == "success" for event in acts)
    had = {other.id: set(other.inventory) for other in before.characters}
    has = {other.id: set(other.inventory) for other in record.characters}
    found = {
        "get_your_way": won,
        "keep_company": bool(present),
        "touch_a_nerve": any(event.triggers and event.actor in present for event in record.events),
        "give": any((had[character] - has[character]) & has.get(other, set()) for other in present),
        "receive": any((has[character] - had[character]) & had[other] for other in present),
        "travel": record.change(character).place != one.place,
        "recover": won and _FAILED in earned,
        _FAILED: any(event.outcome == "failure" for event in acts),
    }
    return [name for name, there in found.items() if there and name not in earned]
