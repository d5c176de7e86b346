"""Asking the model of one agent, and adding up what that takes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from wsap_core.seams.model import Backend, ChooseConstraint, Constraint, Message, Reply, Request, collect
from wsap_llm.middleware import UsageCounter
from wsap_llm.options import LLMOptions
from wsap_llm.prompts import Prompts
from wsap_llm.turn import Conversation


@dataclass(frozen=True)
class Asker:
    """Sends an agent's requests: as its options say, and counted."""

    backend: Backend
    options: LLMOptions
    prompts: Prompts
    conversation: Conversation
    counter: UsageCounter
    generator: random.Random
    """Where seeds, and the delimiters of quoted text, are drawn from."""

    async def ask(
        self,
        purpose: str,
        messages: Sequence[Message],
        *,
        constraint: Constraint | None = None,
        prefill: str = "",
        stop: Sequence[str] = (),
    ) -> Reply:
        """Return the reply to messages that follow the conversation; the purpose ("decide", "plan") is for the log."""
        sampling = self.options.sampling
        if isinstance(constraint, ChooseConstraint):  # a draw of its own: equal prompts are not stuck with one option
            sampling = replace(sampling, seed=self.generator.getrandbits(31))
        request = Request(
            tuple(messages),
            prefill=prefill,
            stop=tuple(stop),
            constraint=constraint,
            sampling=sampling,
            thinking=self.options.thinking,
            purpose=purpose,
        )
        return await self.send(self.conversation.before(request))

    async def send(self, request: Request) -> Reply:
        """Return the reply to a request as it is."""
        reply = await collect(self.backend, request)
        self.counter.add(reply.usage)
        return reply
