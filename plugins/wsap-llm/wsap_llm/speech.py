"""What an agent says to people in its own words, outside of any game."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

from wsap_core.protocol.words import Words
from wsap_core.seams.memory import AgentMemory
from wsap_core.seams.model import Message, Request
from wsap_core.untrusted import sanitize, strip_control
from wsap_llm.asking import Asker
from wsap_llm.quoting import Quoter
from wsap_llm.thinking import split_thinking

PURPOSES = ("talk", "diary")
"""What there are templates for."""
LONGEST = 4000
"""Characters of what is said."""
MOST_TOKENS = 400
"""Tokens of a reply."""


@runtime_checkable
class Speaks(Protocol):
    """An agent that says things in its own words."""

    async def speak(self, purpose: str, facts: Sequence[str], said: str = "") -> str:
        """Return what it says: to a person ("talk"), or for its diary ("diary").

        `facts` are known of it and of what it lived through, a sentence each; `said` is what a person said to it.
        Raises ValueError if there is no such purpose, and BackendError if its model can't be asked.
        """
        ...


async def speak(asker: Asker, memory: AgentMemory | None, purpose: str, facts: Sequence[str], said: str) -> str:
    """Return what an agent says, with its persona and what it remembers; arguments and errors as in `Speaks.speak`.

    Thinking, and whatever can't be printed, is left out, and so is what is longer than `LONGEST` characters.
    """
    if purpose not in PURPOSES:
        raise ValueError(f"There is no purpose {purpose!r} to speak for; there are: {', '.join(PURPOSES)}.")
    options, prompts = asker.options, asker.prompts
    quoter = Quoter.draw(asker.generator, 2000)
    system = prompts.render(
        "speak",
        persona=options.persona.strip(),
        facts=[sanitize(fact, 500) for fact in facts],
        memories=recalled(memory, said or " ".join(facts), options.recall_tokens, prompts.words),
    )
    question = prompts.render(
        purpose,
        said=quoter.quote(said, "a person", lines=True) if said else "",
        explanation=quoter.explain(prompts.words) if said else "",
    )
    request = Request(
        (Message("system", system), Message("user", question)),
        sampling=replace(options.sampling, max_tokens=min(options.sampling.max_tokens or MOST_TOKENS, MOST_TOKENS)),
        thinking=options.thinking,
        purpose=purpose,
    )
    reply = await asker.send(request)
    return strip_control(split_thinking(reply.text).said).strip()[:LONGEST]


def recalled(memory: AgentMemory | None, about: str, tokens: int, words: Words) -> list[str]:
    """Return what is remembered of something, a line each for a prompt, in at most about so many tokens."""
    found = memory.recall(about, budget=tokens) if memory is not None and tokens else ()
    return [sanitize(words.say(recollection.text), 400) for recollection in found]
