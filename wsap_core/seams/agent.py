"""What an agent implements, and what it tells about its decisions: what they cost, and whether they were its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from wsap_core.protocol import Action, ActionResult, ActionSpace, Goal, Observation, View

Resumption = Literal["resume", "prefill", "turns"]
"""How a model went on after a tool: with its cache, by a trailing assistant message, or in a new turn."""


@runtime_checkable
class Agent(Protocol):
    """A mind that plays through the protocol."""

    def initialize(self, game_desc: str, action_space: ActionSpace) -> Awaitable[None] | None:
        """Take in the game's description and actions. Called once for each session."""

    def decide(self, observation: Observation) -> Action | Awaitable[Action]:
        """Choose an action, given the current state."""

    def reflect(self, result: ActionResult) -> Awaitable[None] | None:
        """Take in what came of the last action."""

    def plan(self, goals: list[Goal]) -> list[str] | Awaitable[list[str]]:
        """Return a high-level plan for the goals, one step a line."""


@dataclass(frozen=True)
class Usage:
    """What language models were asked for. Adds up with `+`; an unknown cost stays unknown."""

    calls: int = 0
    """Requests sent."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = 0.0
    """In US dollars; None if any part of it is not known, never a guessed 0."""

    def __add__(self, other: Usage) -> Usage:
        cost = None if self.cost is None or other.cost is None else self.cost + other.cost
        return Usage(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            cost,
        )


NO_USAGE = Usage()
"""What a decision without a model costs."""


@dataclass(frozen=True)
class DecisionInfo:
    """What an agent tells about its last decision."""

    repaired: bool = False
    """True if its first answer could not be read and it was asked again."""
    forced: bool = False
    """True if a fallback was taken in place of an answer."""
    usage: Usage = field(default=NO_USAGE)
    unconstrained: bool = False
    """True if a model could have answered with anything: its reply was not bound to what was legal."""
    cut: bool = False
    """True if a reply was cut off at its limit of tokens."""
    resumption: Resumption | None = None
    """How the model went on after a tool in the middle of its reply; None if it used none there."""
    continued: bool = False
    """True if nobody was asked: the step goes on with an earlier decision."""
    chosen: bool = False
    """True if the model scored the options and one was drawn; it wrote nothing."""
    cause: str = ""
    """Why an answer could not be used, in a few words, where it was asked for again or a fallback was taken."""


@dataclass(frozen=True)
class ReflectionInfo:
    """What an agent took away from looking back."""

    lessons: tuple[str, ...] = ()
    """One line each; may be none."""


@runtime_checkable
class LooksBack(Protocol):
    """An agent that may draw lessons when it is told what came of an action, and when play ends."""

    last_reflection: ReflectionInfo | None
    """What the last `reflect` or `conclude` came to; None if it did not look back."""

    def conclude(self) -> Awaitable[None] | None:
        """Look back because play ends here, though the episode may not be over."""


@runtime_checkable
class ExplainsDecisions(Protocol):
    """An agent that tells how its last decision came about."""

    last_decision: DecisionInfo | None


GetView = Callable[[], Awaitable[View | None]]
"""Returns what is drawn for a seat now; None where the world draws nothing. Changes nothing."""


@runtime_checkable
class UsesVision(Protocol):
    """An agent that looks at what the world draws, besides reading what it tells."""

    def see_with(self, get_view: GetView) -> None:
        """Take the means to see; called once, before `initialize`.

        While it decides, `await get_view()` gives what is drawn for its seat at that moment, or None where the
        world draws nothing. Drawing takes time, so that nothing is drawn unless it looks.
        """


GetDefault = Callable[[], Awaitable[Action | None]]
"""Returns the action that a seat takes by default now; None where the world declares none."""


@runtime_checkable
class UsesDefault(Protocol):
    """An agent that takes the seat's default action where it has none of its own."""

    def take_default_from(self, get_default: GetDefault) -> None:
        """Take the means to ask for the default action; called once, before `initialize`."""
