"""The protocols of agents, and how they report their decisions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from wsap_core.protocol import Action, ActionResult, ActionSpace, Goal, Observation, View

Resumption = Literal["resume", "prefill", "turns"]
"""How a model continued after a tool: with its cache, from a trailing assistant message, or in a new turn."""


@runtime_checkable
class Agent(Protocol):
    """A player of the protocol."""

    def initialize(self, game_desc: str, action_space: ActionSpace) -> Awaitable[None] | None:
        """Receive the game's description and actions; called once per session."""

    def decide(self, observation: Observation) -> Action | Awaitable[Action]:
        """Return an action for the current state."""

    def reflect(self, result: ActionResult) -> Awaitable[None] | None:
        """Receive the result of the last action."""

    def plan(self, goals: list[Goal]) -> list[str] | Awaitable[list[str]]:
        """Return a high-level plan for the goals, one line per step."""


@dataclass(frozen=True)
class Usage:
    """Usage of language models; can be added with `+`."""

    calls: int = 0
    """Requests sent."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = 0.0
    """In US dollars; None if any part of it is unknown."""

    def __add__(self, other: Usage) -> Usage:
        cost = None if self.cost is None or other.cost is None else self.cost + other.cost
        return Usage(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            cost,
        )


NO_USAGE = Usage()
"""The usage of a decision without a model."""


@dataclass(frozen=True)
class DecisionInfo:
    """An agent's report on its last decision."""

    repaired: bool = False
    """Whether its first answer was unreadable and it was asked again."""
    forced: bool = False
    """Whether a fallback replaced its answer."""
    usage: Usage = field(default=NO_USAGE)
    unconstrained: bool = False
    """Whether the model's reply was not constrained to legal actions."""
    cut: bool = False
    """Whether a reply reached its token limit."""
    resumption: Resumption | None = None
    """How the model continued after a tool in the middle of its reply; None if it used none there."""
    continued: bool = False
    """Whether the step continues an earlier decision, without asking a model."""
    chosen: bool = False
    """Whether the model scored the options and one was drawn, without writing anything."""
    cause: str = ""
    """Why an answer could not be used, in a few words, if it was repaired or forced."""


@dataclass(frozen=True)
class ReflectionInfo:
    """The outcome of a reflection."""

    lessons: tuple[str, ...] = ()
    """One line each; may be empty."""


@runtime_checkable
class LooksBack(Protocol):
    """An agent that may draw lessons from the result of an action, and at the end of play."""

    last_reflection: ReflectionInfo | None
    """The outcome of the last `reflect` or `conclude`; None if it did not reflect."""

    def conclude(self) -> Awaitable[None] | None:
        """Reflect because play ends, although the episode may not be over."""


@runtime_checkable
class ExplainsDecisions(Protocol):
    """An agent that reports on its last decision."""

    last_decision: DecisionInfo | None


GetView = Callable[[], Awaitable[View | None]]
"""Returns the seat's current view without changing anything; None if the world has none."""


@runtime_checkable
class UsesVision(Protocol):
    """An agent that looks at the view of its seat."""

    def see_with(self, get_view: GetView) -> None:
        """Receive the function that renders the view, on demand because that takes time; called before `initialize`."""


GetDefault = Callable[[], Awaitable[Action | None]]
"""Returns the seat's current default action; None if the world declares none."""


@runtime_checkable
class UsesDefault(Protocol):
    """An agent that may take the default action of its seat."""

    def take_default_from(self, get_default: GetDefault) -> None:
        """Receive the function that returns the default action; called before `initialize`."""
