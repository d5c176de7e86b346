"""Texts that an agent writes for people in its own words, outside of games."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

from wsap_core.protocol.words import Words
from wsap_core.seams.memory import AgentMemory, Recollection
from wsap_core.seams.model import Message, Request
from wsap_core.untrusted import sanitize, strip_control
from wsap_llm.decision.asking import Asker
from wsap_llm.memory.cells import within
from wsap_llm.text.quoting import Quoter
from wsap_llm.text.thinking import split_thinking

PURPOSES = ("talk", "diary", "keep")
"""The purposes that have templates."""
KEPT = 5
"""Number of core memories, and of strategies, that are asked for."""
LONGEST = 4000
"""Maximum length of a text in characters."""
MOST_TOKENS = 400
"""Maximum number of tokens of a reply."""


@runtime_checkable
class Speaks(Protocol):
    """An agent that writes texts in its own words."""

    async def speak(self, purpose: str, facts: Sequence[str], said: str = "") -> str:
        """Return a text to a person ("talk"), for the agent's diary ("diary"), or what it keeps in mind for every world
        ("keep"): lines that begin with "MEMORY:" or "STRATEGY:".

        `facts` are sentences about the agent and its experiences; `said` is a message from a person. Raises ValueError
        for an unknown purpose, and BackendError if the request to its model fails.
        """
        ...


async def speak(asker: Asker, memory: AgentMemory | None, purpose: str, facts: Sequence[str], said: str) -> str:
    """Return a text by an agent with its persona and memory; arguments and errors as in `Speaks.speak`. It is cut to
    `LONGEST` characters, without thinking and unprintable characters."""
    if purpose not in PURPOSES:
        raise ValueError(f"Unknown purpose {purpose!r}; expected one of: {', '.join(PURPOSES)}.")
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
        most=KEPT,
    )
    request = Request(
        (Message("system", system), Message("user", question)),
        sampling=replace(options.sampling, max_tokens=min(options.sampling.max_tokens or MOST_TOKENS, MOST_TOKENS)),
        thinking=options.thinking,
        purpose=purpose,
    )
    reply = await asker.send(request)
    return strip_control(split_thinking(reply.text).said).strip()[:LONGEST]


def recalled(
    memory: AgentMemory | None,
    about: str,
    tokens: int,
    words: Words,
    known: Callable[[Recollection], bool] | None = None,
) -> list[str]:
    """Return memories about a text for a prompt, one line each, in at most about `tokens` tokens, without those that
    the prompt holds already by `known`."""
    if memory is None or not tokens:
        return []
    found = memory.recall(about, budget=tokens)
    if known is not None and any(map(known, found)):  # others in their place
        more = memory.recall(about, budget=4 * tokens)
        found = within([recollection for recollection in more if not known(recollection)], tokens)
    return [sanitize(words.say(recollection.text), 400) for recollection in found]
