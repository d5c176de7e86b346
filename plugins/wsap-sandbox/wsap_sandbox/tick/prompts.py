"""What is asked in the four phases, laid out the same in every language, and under which key; a language supplies the
words."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from wsap_core.errors import ConfigError
from wsap_core.protocol.values import JsonValue
from wsap_core.seams.model import JsonConstraint, Message, Request, Sampling
from wsap_llm.kit import Quoter
from wsap_sandbox.languages import LANGUAGES, Words, words_of
from wsap_sandbox.model import InfluenceKind, World, WorldObject
from wsap_sandbox.tick import facts as known
from wsap_sandbox.tick.facts import Actor, Facts, IntentFacts, MemoryFacts, SceneFacts, StoryFacts
from wsap_sandbox.tick.replies import INNER, schema_of

_FULL = {"long": 1200, "text": 400, "memory": 400, "cells": 10, "triggers": 9}
_COMPACT = {"long": 120, "text": 56, "memory": 110, "cells": 2, "triggers": 2}
"""Most characters of a long text, a short one, one memory; and how many memories and triggers. A compact
prompt in English has at most 900 tokens in a scene of three characters."""


class Prompt(NamedTuple):
    """What a model is told."""

    system: str
    """Who it is, the rules, and what to reply; the same at every tick as far as can be."""
    user: str
    """The facts."""


def language(code: str, *, compact: bool = False) -> Language:
    """Return a language by its code, with short prompts if it is to be compact.

    Raises ConfigError if there is none of that code.
    """
    if code not in LANGUAGES:
        raise ConfigError(f"There is no language {code!r}; choose {' or '.join(LANGUAGES)}.")
    return Language(words_of(code), compact)


@dataclass(frozen=True, slots=True)
class Language:
    """A language of worlds. Texts in facts are already harmless: one line each, without control characters and tags."""

    words: Words
    compact: bool = False
    """Short prompts, for models with small contexts."""

    @property
    def letters(self) -> str:
        """The range of its letters."""
        return self.words.letters

    def prompt(self, facts: Facts) -> Prompt:
        """Ask for what facts are given for."""
        match facts:
            case IntentFacts():
                return self._intent(facts)
            case SceneFacts():
                return self._scene(facts)
            case StoryFacts():
                return self._story(facts)
            case MemoryFacts():
                return self._memory(facts)

    def _intent(self, facts: IntentFacts) -> Prompt:
        say = _Lines(self, facts)
        say.line("world", facts.premise, "long")
        say.line("me", f"{facts.me.name}. {facts.me.appearance} {facts.description}", "long")
        say.line("secret", facts.secret)
        say.many("triggers", facts.triggers)
        say.line("state", facts.internal_state)
        say.line("goal", facts.external_intent)
        say.things("have", facts.inventory)
        say.place(facts.place)
        say.many("present", [say.person(one.name, one.came_from, one.appearance) for one in facts.present])
        say.line("summary", facts.summary, "long")
        say.many("memory", [cell.text for cell in facts.cells[: say.limits["cells"]]], "memory")
        say.many("whispers", facts.whispers)
        return say.prompt("intent", facts.me.name, {"intention": "..."})

    def _scene(self, facts: SceneFacts) -> Prompt:
        say = _Lines(self, facts)
        say.line("world", facts.premise, "long")
        say.place(facts.place, ids=True)
        say.many("past", facts.past)
        say.many("influences", facts.influences)
        for actor in facts.actors:
            self._actor(say, actor)
        if not facts.actors:
            say.line("empty", self.words.labels["nobody"])
        shape: dict[str, JsonValue] = {
            "order": 1,
            "event": "...",
            "outcome": "success|partial|failure",
            "triggers": [1] if not self.compact else [],
            "unnoticed_by": [],
            "to": "stay",
            **dict.fromkeys(INNER, "..."),
        }
        whole: dict[str, JsonValue] = {
            "characters": {actor.person.id: shape if at == 0 else "..." for at, actor in enumerate(facts.actors)},
            "objects": [{"id": "...", "holder": "here", "condition": "..."}],
            "happenings": ["..."],
            "place": {"moment": "...", "description": "", "cause": "none"},
        }
        return say.prompt("scene", "", whole)

    def _actor(self, say: _Lines, actor: Actor) -> None:
        one = actor.person
        appearance = "" if self.compact else one.appearance
        say.line("character", f"{one.id} = {say.person(one.name, one.came_from, appearance)}")
        say.line("nature", actor.description)
        triggers = actor.triggers[: say.limits["triggers"]]
        say.many("triggers", [f"{number}. {text}" for number, text in enumerate(triggers, 1)])
        say.line("state", actor.internal_state)
        say.line("goal", actor.external_intent)
        say.things("has", actor.inventory, ids=True)
        say.line("intention", actor.intention)

    def _story(self, facts: StoryFacts) -> Prompt:
        say = _Lines(self, facts)
        say.line("world", facts.premise, "long")
        say.place(facts.place)
        say.many("present", [say.person(one.name, one.came_from, one.appearance) for one in facts.people])
        outcomes = self.words.labels
        say.many("events", [f"{event.text} ({outcomes[event.outcome]})" for event in facts.events])
        return say.prompt("story", "", {"story": "..."})

    def _memory(self, facts: MemoryFacts) -> Prompt:
        say = _Lines(self, facts)
        say.line("me", f"{facts.me.name}. {facts.description}")
        say.line("summary", facts.summary, "long")
        say.many("memory", [cell.text for cell in facts.cells], "memory")
        return say.prompt("memory", facts.me.name, {"summary": "..."})

    def again(self, problem: str) -> str:
        """Say that the last reply could not be used, and why: one of `DEGRADATIONS`."""
        return self.words.again.format(why=self.words.problems[problem])

    def say(self, saying: str, **names: object) -> str:
        """Return what stands where a model's text could not be used, with the names in it."""
        return self.words.fallbacks[saying].format(**names)

    def influenced(self, kind: InfluenceKind, *, who: str = "", what: str = "") -> str:
        """Say what somebody outside did, for the ledger; a name that does not apply is empty."""
        about_character, about_place = self.words.influences[kind]
        return (about_character if who else about_place).format(who=who, what=what.rstrip("."))


class _Lines:
    """The facts of one prompt, line by line."""

    def __init__(self, language: Language, facts: Facts) -> None:
        self._language = language
        self._facts = facts
        self.limits = _COMPACT if language.compact else _FULL
        self._lines: list[str] = []

    def line(self, label: str, text: str, limit: str = "text") -> None:
        if text.strip():
            self._lines.append(f"{self._language.words.labels[label]}: {_cut(text.strip(), self.limits[limit])}")

    def many(self, label: str, texts: Sequence[str], limit: str = "text") -> None:
        if texts:
            self._lines.append(f"{self._language.words.labels[label]}:")
            self._lines.extend(f"- {_cut(text, self.limits[limit])}" for text in texts)

    def things(self, label: str, things: Iterable[WorldObject], *, ids: bool = False) -> None:
        self.many(label, [self._thing(thing, ids) for thing in things])

    def place(self, place: known.PlaceFacts, *, ids: bool = False) -> None:
        self.line("place", f"{place.name}. {place.description}", "long")
        self.line("moment", place.moment)
        exits = [f"{way.id} = {way.name}" if ids else way.name for way in place.exits]
        self.line("exits", ", ".join(exits), "long")
        self.things("objects", place.objects, ids=ids)

    def person(self, name: str, came_from: str, appearance: str) -> str:
        came = f" ({self._language.words.labels['came'].format(place=came_from)})" if came_from else ""
        return f"{name}{came}: {appearance}" if appearance else f"{name}{came}"

    def prompt(self, phase: str, name: str, shape: dict[str, JsonValue]) -> Prompt:
        import json  # deferred for weight

        words = self._language.words
        # Nobody can know the delimiters while they write: they depend on all that is between them.
        digest = hashlib.sha256(repr((self._facts, self._lines)).encode("utf-8", "replace")).hexdigest()
        quoter = Quoter(digest[:10])
        data = quoter.quote("\n".join(self._lines), lines=True, limit=60_000)
        told = words.data.format(open=f"<data-{quoter.nonce}>", close=quoter.closing)
        reply = words.reply.format(shape=json.dumps(shape, ensure_ascii=False))
        system = words.brief[phase] if self._language.compact else words.full[phase]
        return Prompt(system.format(name=name), f"{told}\n{data}\n{reply}")

    def _thing(self, thing: WorldObject, ids: bool) -> str:
        head = f"{thing.id} = {thing.name}" if ids else thing.name
        description = "" if self._language.compact else thing.description.rstrip(".")
        tail = "; ".join(part for part in (description, thing.condition) if part)
        return f"{head}: {tail}" if tail else head


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 3].rsplit(' ', 1)[0]}..."


def call_key(world: World, facts: Facts, subject: str, attempt: int) -> str:
    """Return where in the life of a world a call stands: `TICK/PHASE/SUBJECT/ATTEMPT`, in later eras after `ERA:`."""
    era = f"{world.era}:" if world.era else ""
    return f"{era}{facts.tick}/{known.PHASES[type(facts)]}/{subject}/{attempt}"


def request_for(key: str, facts: Facts, language: Language, *, seed: int, text: int, problem: str = "") -> Request:
    """Return the request of one call, whose reply has texts of at most `text` characters.

    `problem` is why the last reply could not be used, one of `DEGRADATIONS`; empty the first time.
    """
    system, user = language.prompt(facts)
    user = f"{user}\n\n{language.again(problem)}" if problem else user
    texts = 4 + 7 * len(facts.actors) + len(facts.place.objects) if isinstance(facts, SceneFacts) else 3
    phase, digest = known.PHASES[type(facts)], hashlib.blake2b(f"{seed}/{key}".encode(), digest_size=4).digest()
    return Request(
        messages=(Message("system", system), Message("user", user)),
        constraint=JsonConstraint(schema_of(facts, text), phase),
        sampling=Sampling(max_tokens=texts * text // 2 + 200, seed=int.from_bytes(digest, "big") >> 1),
        options={"storyteller": known.facts_data(facts)},
        purpose=phase,
        key=key,
    )
