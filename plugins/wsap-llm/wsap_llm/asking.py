"""Asking the model of one agent: its requests, and what one decision needs and comes to."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from wsap_core.protocol import Action, ActionDef
from wsap_core.seams.agent import DecisionInfo, Resumption
from wsap_core.seams.model import Abilities, Backend, ChooseConstraint, Constraint, Message, Reply, Request, collect
from wsap_core.seams.model_errors import ConstraintError
from wsap_core.seams.tool import AgentTool
from wsap_llm.constraint import ConstraintState
from wsap_llm.lookup import PendingCall
from wsap_llm.middleware.measure import UsageCounter
from wsap_llm.options import LLMOptions
from wsap_llm.pictures import with_picture
from wsap_llm.prompts import Prompts
from wsap_llm.reply.steps import NOTHING_SAID, Steps
from wsap_llm.turn import Conversation, PausedTurn


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


@dataclass(frozen=True)
class Decision:
    """A decision and how it came about."""

    action: Action | None
    """None if neither reply could be read."""
    repaired: bool = False
    said: str = ""
    """The model's turn as it is kept in the conversation: without its thinking."""
    resumption: Resumption | None = None
    """How the reply was continued after tools; None if none were called."""
    steps: Steps = NOTHING_SAID
    """How many steps it is for, if the model said."""
    pending: PendingCall | None = None
    """If the action is a tool of the world: what is needed to resume the turn with its result."""
    chosen: bool = False
    """Whether the model scored the options and one was drawn."""


@dataclass
class DecisionTurn:
    """Everything that one decision needs."""

    paused: PausedTurn
    """What was shown, and the call that the turn resumes from, if it does."""
    legal: Sequence[ActionDef]
    declared: Sequence[ActionDef]
    tools: Mapping[str, AgentTool]
    constraint: ConstraintState
    """Whether replies are constrained where the backend can; told what it refuses, and which replies are unusable."""
    asker: Asker
    options: Mapping[str, Action]
    """What can be chosen instead of written, by the text that stands for it; empty for nothing."""
    unconstrained: bool = False
    """Whether a reply was not constrained to what is legal."""
    cut: bool = False
    """Whether a reply was cut off at its limit of tokens."""
    bound: bool = False
    """Whether the backend took a constraint with the last request."""
    cause: str = ""
    """Why a reply could not be used."""

    @property
    def abilities(self) -> Abilities:
        """What the backend can do."""
        return self.asker.backend.abilities

    @property
    def prompts(self) -> Prompts:
        """The words that the model is asked in."""
        return self.asker.prompts

    @property
    def opening(self) -> Message:
        """The message that begins the decision."""
        return Message("user", with_picture(self.paused.shown, self.paused.picture))

    async def ask_constrained(
        self,
        purpose: str,
        messages: Sequence[Message],
        constraint: Constraint | None,
        *,
        prefill: str = "",
        stop: Sequence[str] = (),
    ) -> Reply:
        """Return the reply to a request, constrained if the backend can do that; `stop` texts end an unconstrained
        reply alone.

        Raises ConstraintError if the backend refuses the constraint, and strict play was asked for.
        """
        reply: Reply | None = None
        if constraint is not None and self.constraint.wanted:
            try:
                reply = await self.asker.ask(purpose, messages, constraint=constraint, prefill=prefill)
            except ConstraintError as error:
                self.constraint.refused(error)
        if reply is None:
            self.unconstrained = True
            reply = await self.asker.ask(purpose, messages, prefill=prefill, stop=stop)
        self.cut = self.cut or reply.truncated
        self.bound = constraint is not None and self.constraint.wanted
        return reply

    def info(self, decision: Decision) -> DecisionInfo:
        """Return how the decision came about, with the usage that no other has taken over."""
        forced = decision.action is None
        return DecisionInfo(
            decision.repaired and not forced,
            forced,
            self.asker.counter.flush(),
            self.unconstrained or self.constraint.ignored,
            self.cut,
            decision.resumption,
            chosen=decision.chosen,
            cause=self.cause,
        )

    def misread(self, reply: Reply, reason: str) -> None:
        """Take a reply that is not what was asked for."""
        self.cause = self.constraint.unusable(reply, reason, bound=self.bound)
