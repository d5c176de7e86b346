"""What a model is asked in each phase, and under which key."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from hashlib import blake2b

from wsap_core.seams.model import JsonConstraint, Message, Reply, Request, Sampling
from wsap_sandbox.model import World
from wsap_sandbox.tick.facts import PHASES, Facts, SceneFacts, facts_data
from wsap_sandbox.tick.prompts import Language
from wsap_sandbox.tick.replies import schema_of

Ask = Callable[[str, Facts, Request], Awaitable[Reply]]
"""Asks a model: the call's key, the facts that its prompt was built from, the request.

What it raises stops the tick, which then has not happened.
"""


@dataclass(frozen=True)
class Settings:
    """How ticks are carried out."""

    concurrency: int = 16
    """Most calls to models at one time."""
    overlap: bool = False
    """Whether a tick ends before its story is told, so that the next one can begin."""
    text: int = 300
    """Most characters of one text that a model gives; stories and summaries may have three times as many."""


def call_key(world: World, facts: Facts, subject: str, attempt: int) -> str:
    """Return where in the life of a world a call stands: `TICK/PHASE/SUBJECT/ATTEMPT`, in later eras after `ERA:`."""
    era = f"{world.era}:" if world.era else ""
    return f"{era}{facts.tick}/{PHASES[type(facts)]}/{subject}/{attempt}"


def request_for(key: str, facts: Facts, language: Language, *, seed: int, text: int, problem: str = "") -> Request:
    """Return the request of one call, whose reply has texts of at most `text` characters.

    `problem` is why the last reply could not be used, a kind of `DEGRADATIONS`; empty the first time.
    """
    prompt = language.prompt(facts)
    user = f"{prompt.user}\n\n{language.again(problem)}" if problem else prompt.user
    texts = 4 + 7 * len(facts.actors) + len(facts.place.objects) if isinstance(facts, SceneFacts) else 3
    return Request(
        messages=(Message("system", prompt.system), Message("user", user)),
        constraint=JsonConstraint(schema_of(facts, text), PHASES[type(facts)]),
        sampling=Sampling(max_tokens=texts * text // 2 + 200, seed=_number(f"{seed}/{key}")),
        options={"storyteller": facts_data(facts)},
        purpose=PHASES[type(facts)],
        key=key,
    )


def _number(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8"), digest_size=4).digest(), "big") >> 1
