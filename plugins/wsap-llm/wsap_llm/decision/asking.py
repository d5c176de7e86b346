"""The model requests of one agent, and the input and outcome of one decision."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from wsap_core.protocol import Action, ActionDef
from wsap_core.seams.agent import DecisionInfo, Resumption
from wsap_core.seams.context import derive_seed
from wsap_core.seams.model import Abilities, Backend, ChooseConstraint, Constraint, Message, Reply, Request
from wsap_core.seams.model_errors import ConstraintError, ContextTooSmallError
from wsap_core.seams.tool import AgentTool
from wsap_llm.decision.constraint import ConstraintState
from wsap_llm.decision.turn import MORE_CONTEXT, Conversation, PausedTurn
from wsap_llm.middleware.measure import UsageCounter
from wsap_llm.options.llm import LLMOptions
from wsap_llm.prompts import Prompts
from wsap_llm.reply.steps import NOTHING_SAID, Steps
from wsap_llm.text.pictures import with_picture
from wsap_llm.tools.lookup import PendingCall


@dataclass
class RequestNumber:
    """How many requests an agent has made; part of its snapshot."""

    made: int = 0


@dataclass(frozen=True)
class Asker:
    """Sends an agent's requests with the sampling and thinking of its options, and counts their usage.

    Each request has a sampling seed of its own, derived from the agent's seed and the number of the request. With one
    seed for all, a server that honours it would answer equal prompts with equal replies, for ever.
    """

    backend: Backend
    options: LLMOptions
    prompts: Prompts
    conversation: Conversation
    counter: UsageCounter
    generator: random.Random
    """Source of the delimiters of quoted text, and of the seeds of drawn options if none are sent to the model."""
    number: RequestNumber = field(default_factory=RequestNumber)

    async def ask(
        self,
        purpose: str,
        messages: Sequence[Message],
        *,
        constraint: Constraint | None = None,
        prefill: str = "",
        stop: Sequence[str] = (),
    ) -> Reply:
        """Return the reply to messages appended to the conversation; the log shows the purpose ("decide", "plan").

        While the server refuses the request as too large for the context, old turns are cut.
        """
        sampling = self.options.sampling
        if isinstance(constraint, ChooseConstraint) and sampling.seed is None:  # the draw is ours, not the server's
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
        while True:
            whole = self.conversation.before(request)
            try:
                return await self.send(whole)
            except ContextTooSmallError as error:
                if not whole.shortens:
                    raise type(error)(f"{error} {MORE_CONTEXT}") from error
                self.conversation.refused(whole)

    async def send(self, request: Request) -> Reply:
        """Return the reply to a request with the next sampling seed."""
        if self.options.sampling.seed is not None:
            seed = derive_seed(self.options.sampling.seed, "request", self.number.made)
            request = replace(request, sampling=replace(request.sampling, seed=seed))
        self.number.made += 1
        reply = await self.backend.complete(request)
        self.counter.add(reply.usage)
        return reply


@dataclass(frozen=True)
class Decision:
    """A decision and how it was made."""

    action: Action | None
    """None if neither reply could be read."""
    repaired: bool = False
    said: Message | None = None
    """The model's turn for the conversation, without its thinking; None if there is none."""
    resumption: Resumption | None = None
    """How the reply was continued after tool calls; None without calls."""
    steps: Steps = NOTHING_SAID
    """The number of steps that the model gave, if any."""
    pending: PendingCall | None = None
    """If the action is a tool of the world: the data to resume the turn with its result."""
    chosen: bool = False
    """Whether the action was drawn from scored options."""


@dataclass
class DecisionTurn:
    """The input of one decision."""

    paused: PausedTurn
    """The text shown, and the call from which the turn resumes, if any."""
    legal: Sequence[ActionDef]
    declared: Sequence[ActionDef]
    tools: Mapping[str, AgentTool]
    constraint: ConstraintState
    asker: Asker
    options: Mapping[str, Action]
    """Actions that can be chosen instead of written, by their text; empty if they can't be listed."""
    unconstrained: bool = False
    """Whether a reply was not constrained to the legal actions."""
    cut: bool = False
    """Whether a reply was cut off at its token limit."""
    bound: bool = False
    """Whether the backend accepted a constraint with the last request."""
    cause: str = ""
    """Why a reply could not be used."""

    @property
    def abilities(self) -> Abilities:
        """The abilities of the backend."""
        return self.asker.backend.abilities

    @property
    def prompts(self) -> Prompts:
        """The prompt templates."""
        return self.asker.prompts

    @property
    def opening(self) -> Message:
        """The first message of the decision."""
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
        """Return the reply to a request, constrained if the backend can; `stop` applies to unconstrained replies only.
        Raises ConstraintError if the backend refuses the constraint and strict play was requested."""
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
        """Return how the decision was made, with the usage since the last one."""
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
        """Record an unusable reply; raise ConstraintError as `ConstraintState.unusable` does."""
        self.cause = self.constraint.unusable(reply, reason, bound=self.bound)
