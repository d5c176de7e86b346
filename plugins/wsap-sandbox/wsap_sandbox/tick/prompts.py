"""The prompts and call keys of the four phases; the layout is the same in every language."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from wsap_core.protocol.values import JsonValue
from wsap_core.seams.model import JsonConstraint, Message, Request, Sampling
from wsap_llm.kit import Quoter, estimate_request
from wsap_sandbox.languages import words_of
from wsap_sandbox.model import World, WorldObject
from wsap_sandbox.tick import Settings
from wsap_sandbox.tick import facts as known
from wsap_sandbox.tick.facts import PHASES, Actor, Facts, IntentFacts, MemoryFacts, SceneFacts, StoryFacts
from wsap_sandbox.tick.replies import INNER, schema_of

_FULL = {"long": 1200, "text": 400, "memory": 400, "cells": 10, "triggers": 9}
_COMPACT = {"long": 120, "text": 56, "memory": 110, "cells": 2, "triggers": 2}
"""Maximum characters of a long text, a short text and one memory; maximum number of memories and triggers.

A compact English prompt has at most 900 tokens in a scene of three characters.
"""


_LETTERS = str.maketrans("0123456789", "ghijklmnop")
"""Letters instead of digits, which are a token each."""


ROOM = 1024
"""The tokens for a reply for which a prompt is shortened if it leaves less of the model's context."""


class Prompt(NamedTuple):
    """The messages to a model."""

    system: str
    """Role, rules and form of the reply; as constant across ticks as possible."""
    user: str


def prompt_of(facts: Facts, *, compact: bool = False) -> Prompt:
    """Return the prompt for facts, in their language; `compact` is for small models.

    Texts in facts are already sanitized: single lines without control characters and tags.
    """
    return _Lines(facts, compact).prompt()


class _Lines:
    def __init__(self, facts: Facts, compact: bool) -> None:
        self._facts, self._compact = facts, compact
        self._words = words_of(facts.language)
        self._limits = _COMPACT if compact else _FULL
        self._lines: list[str] = []
        self._lasting = 0
        """The number of lines that come first and seldom change."""

    def prompt(self) -> Prompt:
        match self._facts:
            case IntentFacts() as facts:
                name, shape = facts.me.name, self._intent(facts)
            case SceneFacts() as facts:
                name, shape = "", self._scene(facts)
            case StoryFacts() as facts:
                name, shape = "", self._story(facts)
            case MemoryFacts() as facts:
                name, shape = facts.me.name, self._memory(facts)
        words, phase = self._words, PHASES[type(self._facts)]
        # Equal in every tick, as the lines are that come first, so that a server finds the beginning of the prompt in
        # its cache. Whoever learns it can't forge it, because the quoter removes it from what it quotes.
        digest = hashlib.sha256(repr((phase, self._lines[: self._lasting])).encode("utf-8", "replace")).hexdigest()
        quoter = Quoter(digest[:10].translate(_LETTERS))
        data = quoter.quote("\n".join(self._lines), lines=True, limit=60_000)
        told = words.data.format(open=f"<data-{quoter.nonce}>", close=quoter.closing)
        reply = words.reply.format(shape=json.dumps(shape, ensure_ascii=False))
        system = words.brief[phase] if self._compact else words.full[phase]
        return Prompt(system.format(name=name), f"{told}\n{data}\n{reply}")

    # --- each phase's facts, and the shape of its reply ------------------------------------------

    def _intent(self, facts: IntentFacts) -> dict[str, JsonValue]:
        self._line("world", facts.premise, "long")
        self._line("me", f"{facts.me.name}. {facts.me.appearance} {facts.description}", "long")
        self._line("secret", facts.secret)
        self._many("triggers", facts.triggers)
        self._lasting = len(self._lines)
        self._line("state", facts.internal_state)
        self._line("goal", facts.external_intent)
        self._things("have", facts.inventory)
        self._place(facts.place)
        self._many("present", map(self._person, facts.present))
        self._line("summary", facts.summary, "long")
        self._many("memory", [cell.text for cell in facts.cells[: self._limits["cells"]]], "memory")
        self._many("whispers", facts.whispers)
        return {"intention": "..."}

    def _scene(self, facts: SceneFacts) -> dict[str, JsonValue]:
        self._line("world", facts.premise, "long")
        self._place(facts.place, ids=True)
        self._many("past", facts.past)
        self._many("influences", facts.influences)
        for actor in facts.actors:
            self._actor(actor)
        if not facts.actors:
            self._line("empty", self._words.labels["nobody"])
        shape: dict[str, JsonValue] = {
            "order": 1,
            "event": "...",
            "outcome": "success|partial|failure",
            "triggers": [1] if not self._compact else [],
            "unnoticed_by": [],
            "to": "stay",
            **dict.fromkeys(INNER, "..."),
        }
        return {
            "characters": {actor.person.id: shape if at == 0 else "..." for at, actor in enumerate(facts.actors)},
            "objects": [{"id": "...", "holder": "here", "condition": "..."}],
            "happenings": ["..."],
            "place": {"moment": "...", "description": "", "cause": "none"},
        }

    def _actor(self, actor: Actor) -> None:
        self._line("character", f"{actor.person.id} = {self._person(actor.person, seen=not self._compact)}")
        self._line("nature", actor.description)
        triggers = actor.triggers[: self._limits["triggers"]]
        self._many("triggers", [f"{number}. {text}" for number, text in enumerate(triggers, 1)])
        self._line("state", actor.internal_state)
        self._line("goal", actor.external_intent)
        self._things("has", actor.inventory, ids=True)
        self._line("intention", actor.intention)

    def _story(self, facts: StoryFacts) -> dict[str, JsonValue]:
        self._line("world", facts.premise, "long")
        self._place(facts.place)
        self._many("present", map(self._person, facts.people))
        self._many("events", [f"{event.text} ({self._words.labels[event.outcome]})" for event in facts.events])
        return {"story": "..."}

    def _memory(self, facts: MemoryFacts) -> dict[str, JsonValue]:
        self._line("me", f"{facts.me.name}. {facts.description}")
        self._lasting = len(self._lines)
        self._line("summary", facts.summary, "long")
        self._many("memory", [cell.text for cell in facts.cells], "memory")
        return {"summary": "..."}

    # --- lines -----------------------------------------------------------------------------------

    def _line(self, label: str, text: str, limit: str = "text") -> None:
        if text.strip():
            self._lines.append(f"{self._words.labels[label]}: {_cut(text.strip(), self._limits[limit])}")

    def _many(self, label: str, texts: Iterable[str], limit: str = "text") -> None:
        if lines := [f"- {_cut(text, self._limits[limit])}" for text in texts]:
            self._lines += [f"{self._words.labels[label]}:", *lines]

    def _things(self, label: str, things: Sequence[WorldObject], *, ids: bool = False) -> None:
        self._many(label, [self._thing(thing, ids) for thing in things])

    def _place(self, place: known.PlaceFacts, *, ids: bool = False) -> None:
        self._line("place", f"{place.name}. {place.description}", "long")
        self._lasting = self._lasting or len(self._lines)
        self._line("moment", place.moment)
        exits = [f"{way.id} = {way.name}" if ids else way.name for way in place.exits]
        self._line("exits", ", ".join(exits), "long")
        self._things("objects", place.objects, ids=ids)

    def _person(self, one: known.Person, *, seen: bool = True) -> str:
        came = f" ({self._words.labels['came'].format(place=one.came_from)})" if one.came_from else ""
        return f"{one.name}{came}: {one.appearance}" if seen and one.appearance else f"{one.name}{came}"

    def _thing(self, thing: WorldObject, ids: bool) -> str:
        head = f"{thing.id} = {thing.name}" if ids else thing.name
        description = "" if self._compact else thing.description.rstrip(".")
        tail = "; ".join(part for part in (description, thing.condition) if part)
        return f"{head}: {tail}" if tail else head


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 3].rsplit(' ', 1)[0]}..."


def fitting(request: Request, facts: Facts, context: int | None) -> Request:
    """Return a request with the compact prompt of its facts if the other leaves too little of a context for a reply."""
    room = min(request.sampling.max_tokens or ROOM, ROOM)
    if context is None or estimate_request(request) + room <= context:
        return request
    system, user = prompt_of(facts, compact=True)
    again = request.messages[1].text().removeprefix(prompt_of(facts).user)
    return replace(request, messages=(Message("system", system), Message("user", user + again)))


def request_for(
    world: World, facts: Facts, subject: str, settings: Settings, *, attempt: int = 0, problem: str = ""
) -> Request:
    """Return the request of one call.

    Its key is `TICK/PHASE/SUBJECT/ATTEMPT`, in later eras with the prefix `ERA:`. `problem` is why the last reply was
    unusable, one of `DEGRADATIONS`; empty the first time.
    """
    phase, text = PHASES[type(facts)], settings.text
    key = f"{f'{world.era}:' if world.era else ''}{facts.tick}/{phase}/{subject}/{attempt}"
    system, user = prompt_of(facts, compact=settings.compact)
    if problem:
        words = words_of(facts.language)
        user = f"{user}\n\n{words.again.format(why=words.problems[problem])}"
    texts = 4 + 7 * len(facts.actors) + len(facts.place.objects) if isinstance(facts, SceneFacts) else 3
    digest = hashlib.blake2b(f"{world.seed}/{key}".encode(), digest_size=4).digest()
    return Request(
        messages=(Message("system", system), Message("user", user)),
        constraint=JsonConstraint(schema_of(facts, text), phase),
        sampling=Sampling(max_tokens=texts * text // 2 + 200, seed=int.from_bytes(digest, "big") >> 1),
        options={"storyteller": known.facts_data(facts)},
        purpose=phase,
        key=key,
    )
