"""A character's seat: what it perceives, and what it means to do."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from typing_extensions import override

from wsap_core import protocol as wsap
from wsap_core.errors import UsageError
from wsap_core.protocol import Action, ActionResult, ActionSpace, Observation, View
from wsap_core.protocol.lines import bullets
from wsap_core.protocol.observation import render_brief, render_observation
from wsap_core.untrusted import single_line
from wsap_core.worlds.legality import check_action, index_actions
from wsap_sandbox.languages import words_of
from wsap_sandbox.tick.facts import IntentFacts

INTEND, WAIT = "intend", "wait"


@dataclass(frozen=True)
class CharacterObservation(Observation):
    """What a character perceives and remembers."""

    memory: Sequence[str] = field(default=(), kw_only=True)
    """What it remembers, the newest first; the last is the summary of all that was before."""
    whispers: Sequence[str] = field(default=(), kw_only=True)
    """What a voice that nobody else hears says."""

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
    """Return what a character can do: mean something, or wait."""
    words = words_of(language).seat
    return ActionSpace(
        (
            wsap.ActionDef(INTEND, words["intend"], (wsap.ParamDef("text", words["text"]),), (), "talk"),
            wsap.ActionDef(WAIT, words["wait"], (), (), "wait"),
        )
    )


def observed(facts: IntentFacts, events: Sequence[str]) -> CharacterObservation:
    """Return the observation of a character: what its own prompt would say, and the events that it noticed last."""
    words, place = words_of(facts.language).seat, facts.place
    things = [wsap.Entity("object", thing.name, description=_told(thing.name, thing.condition or thing.description))
              for thing in place.objects]  # fmt: skip
    people = [wsap.Entity("character", one.name, interactable=True, description=_told(one.name, one.appearance))
              for one in facts.present]  # fmt: skip
    exits = [wsap.Entity("exit", way.name, description=words["exit"].format(place=way.name)) for way in place.exits]
    cells = [cell.text for cell in facts.cells]
    told = " ".join(filter(None, (f"{place.name}.", place.description, place.moment)))
    return CharacterObservation(
        status={words["state"]: facts.internal_state} if facts.internal_state else {},
        inventory={thing.name: 1 for thing in facts.inventory},
        location=wsap.Location((), place.id, told),
        nearby_entities=[*people, *things, *exits],
        current_goals=[wsap.Goal("intent", facts.external_intent)] if facts.external_intent else (),
        recent_events=[wsap.Event(text, "world") for text in events],
        step=facts.tick - 1,
        memory=[*cells, *([facts.summary] if facts.summary else [])],
        whispers=facts.whispers,
        language=facts.language,
    )


def described(facts: IntentFacts, title: str) -> str:
    """Return what somebody who takes the seat of a character is told of the world and of who they are."""
    words = words_of(facts.language).seat
    parts = [
        f"{title}. {facts.premise}".strip(),
        words["you"].format(name=facts.me.name, appearance=facts.me.appearance, description=facts.description).strip(),
        words["triggers"].format(what=" ".join(facts.triggers)) if facts.triggers else "",
        words["secret"].format(what=facts.secret) if facts.secret else "",
    ]
    return "\n\n".join(part for part in parts if part)


def _told(name: str, more: str) -> str:
    return f"{name}: {more}" if more else name


class SeatedWorld(Protocol):
    """What a seat needs of its world."""

    def facts_of(self, character: str) -> IntentFacts:
        """Return what the character knows now."""

    def events_for(self, character: str) -> Sequence[str]:
        """Return what the character noticed in the last tick."""

    @property
    def title(self) -> str:
        """The world's title."""


class CharacterSeat:
    """One character, as somebody who sits in it lives it: perceive, mean something, learn what came of it."""

    def __init__(self, world: SeatedWorld, character: str, language: str) -> None:
        self.character = character
        self._world = world
        self._words = words_of(language).seat
        self.action_space = space_of(language)
        """Mean something, or wait."""
        self._declared = index_actions(self.action_space)
        self._given: str | None = None
        self._came = asyncio.Event()
        self._result: asyncio.Future[ActionResult] | None = None

    @property
    def game_description(self) -> str:
        """The world, and who this is."""
        return described(self._world.facts_of(self.character), self._world.title)

    def observe(self) -> Observation:
        """Return what the character perceives and remembers between two ticks."""
        return observed(self._world.facts_of(self.character), self._world.events_for(self.character))

    async def act(self, action: Action) -> ActionResult:
        """Take the character's intention for the next tick, and return what came of it after that."""
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
        """Raise `UsageError`: one agent can't reset a world of several."""
        raise UsageError("One seat can't reset a shared world; reset the world.")

    def default_action(self) -> Action:
        """Return what is done if the agent is late: wait."""
        return Action(WAIT)

    def render(self) -> View:
        """Return the place with who is in it, drawn."""
        facts = self._world.facts_of(self.character)
        place = facts.place
        graph = wsap.PlaceGraphBlock(
            (place.name, *(way.name for way in place.exits)),
            tuple((place.name, way.name) for way in place.exits),
            place.name,
            {place.name: (facts.me.name, *(one.name for one in facts.present))},
        )
        text = wsap.TextBlock(f"{place.description} {place.moment}".strip(), place.name)
        return View((graph, text), self._world.title)

    # --- for the world -------------------------------------------------------------------------

    async def intention(self) -> str:
        """Return the intention for this tick once it is there."""
        while self._given is None:
            self._came.clear()
            await self._came.wait()
        return self._given

    def settle(self, success: bool, message: str, achievements: Sequence[str]) -> None:
        """Tell what came of the intention, once the tick is over."""
        self._given, result, self._result = None, self._result, None
        if result is not None and not result.done():
            result.set_result(ActionResult(success, message, achievements=achievements, observation=self.observe()))

    def give_up(self) -> None:
        """Let nobody wait any more: the world begins anew, or somebody left; what was meant is forgotten."""
        self.settle(False, "You have left this world.", ())
        self._came.set()
