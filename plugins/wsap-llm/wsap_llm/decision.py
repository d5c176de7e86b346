"""One decision of a model: what asking for it needs, and what came of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from wsap_core.protocol import Action, ActionDef
from wsap_core.seams.agent import DecisionInfo, Resumption, Usage
from wsap_core.seams.model import Abilities, Constraint, ImagePart, Message, Reply
from wsap_core.seams.model_errors import ConstraintError
from wsap_core.seams.tool import AgentTool
from wsap_llm.lookup import PendingCall
from wsap_llm.pictures import with_picture
from wsap_llm.prompts import Prompts
from wsap_llm.reply.steps import NOTHING_SAID, Steps


class Unusable(Protocol):
    """Takes a reply that is not what was asked for, and returns the cause in a few words."""

    def __call__(self, reply: Reply, reason: str, *, bound: bool) -> str:
        """Take a reply, `bound` if the backend took a constraint with the request; raises if that ends the game."""
        ...


class Ask(Protocol):
    """Sends one request of a decision and returns the reply."""

    def __call__(
        self,
        purpose: str,
        messages: Sequence[Message],
        *,
        constraint: Constraint | None = None,
        prefill: str = "",
        stop: Sequence[str] = (),
    ) -> Awaitable[Reply]:
        """Ask for `purpose`: "decide", "tool" or "re-ask"."""
        ...


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

    shown: str
    """The user message."""
    legal: Sequence[ActionDef]
    declared: Sequence[ActionDef]
    tools: Mapping[str, AgentTool]
    most_calls: int
    abilities: Abilities
    constrain: bool
    """Whether replies are constrained where the backend can; False once it has refused."""
    ask: Ask
    prompts: Prompts
    refused: Callable[[ConstraintError], None]
    """Called when the backend refuses a constraint; raises if that ends the game."""
    unusable: Unusable
    unconstrained: bool = False
    """Whether a reply was not constrained to what is legal."""
    cut: bool = False
    """Whether a reply was cut off at its limit of tokens."""
    bound: bool = False
    """Whether the backend took a constraint with the last request."""
    cause: str = ""
    """Why a reply could not be used."""
    options: Mapping[str, Action] = field(default_factory=dict)
    """What can be chosen instead of written, by the text that stands for it; empty for nothing."""
    picture: ImagePart | None = None
    """What the agent sees beside the text."""
    pending: PendingCall | None = None
    """The call that the turn resumes from, with the world's answer; None for a new turn."""

    @property
    def opening(self) -> Message:
        """The message that begins the decision."""
        return Message("user", with_picture(self.shown, self.picture))

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
        if constraint is not None and self.constrain:
            try:
                reply = await self.ask(purpose, messages, constraint=constraint, prefill=prefill)
            except ConstraintError as error:
                self.refused(error)
                self.constrain = False
        if reply is None:
            self.unconstrained = True
            reply = await self.ask(purpose, messages, prefill=prefill, stop=stop)
        self.cut = self.cut or reply.truncated
        self.bound = constraint is not None and self.constrain
        return reply

    def info(self, decision: Decision, usage: Usage, *, ignored: bool) -> DecisionInfo:
        """Return how the decision came about; `ignored` if the backend did not keep to a constraint it took."""
        forced = decision.action is None
        return DecisionInfo(
            decision.repaired and not forced,
            forced,
            usage,
            self.unconstrained or ignored,
            self.cut,
            decision.resumption,
            chosen=decision.chosen,
            cause=self.cause,
        )

    def misread(self, reply: Reply, reason: str) -> None:
        """Take a reply that is not what was asked for."""
        self.cause = self.unusable(reply, reason, bound=self.bound)
