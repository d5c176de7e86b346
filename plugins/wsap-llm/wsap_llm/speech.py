"""Speaking to people: what an agent says in its own words, besides what it decides."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from wsap_core.seams.memory import AgentMemory
from wsap_core.seams.model import Backend, Message, Request, collect
from wsap_core.untrusted import Quoter, harmless, printable
from wsap_llm.account import Account
from wsap_llm.prompts import Prompts
from wsap_llm.thinking import split_thinking

if TYPE_CHECKING:
    from wsap_llm.agent import LLMOptions

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

        Args:
            purpose: one of `PURPOSES`.
            facts: what is known of it and of what it lived through, a sentence each.
            said: what a person said to it.

        Raises:
            BackendError: its model can't be asked.
        """
        ...


@dataclass(frozen=True)
class Voice:
    """A model that speaks as an agent: with its persona and what it remembers, outside of any game."""

    backend: Backend
    options: LLMOptions
    prompts: Prompts
    memory: AgentMemory | None
    account: Account
    generator: random.Random
    """Where the delimiters of quoted text are drawn from."""

    async def speak(self, purpose: str, facts: Sequence[str], said: str = "") -> str:
        """Return what the agent says.

        Raises:
            ValueError: there is nothing it could say for that purpose.
            BackendError: the model can't be asked.
        """
        if purpose not in PURPOSES:
            raise ValueError(f"There is no purpose {purpose!r} to speak for; there are: {', '.join(PURPOSES)}.")
        quoter = Quoter.draw(self.generator, 2000)
        budget = self.options.recall_tokens
        found = self.memory.recall(said or " ".join(facts), budget=budget) if self.memory is not None and budget else ()
        system = self.prompts.render(
            "speak",
            persona=self.options.persona.strip(),
            facts=[harmless(fact, 500) for fact in facts],
            memories=[harmless(recollection.text, 400) for recollection in found],
        )
        question = self.prompts.render(
            purpose,
            said=quoter.quote(said, "a person", lines=True) if said else "",
            explanation=quoter.explain() if said else "",
        )
        most = min(self.options.sampling.max_tokens or MOST_TOKENS, MOST_TOKENS)
        request = Request(
            (Message("system", system), Message("user", question)),
            sampling=replace(self.options.sampling, max_tokens=most),
            thinking=None if self.options.thinking == "auto" else self.options.thinking,
            options=self.options.provider,
            purpose=purpose,
        )
        reply = await collect(self.backend, request)
        self.account.add(reply.usage)
        return printable(split_thinking(reply.text).said).strip()[:LONGEST]
