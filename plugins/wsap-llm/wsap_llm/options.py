"""How an agent asks its model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from wsap_core.seams.model import DEFAULT_SAMPLING, Sampling
from wsap_llm.pace import EVERY_STEP, PaceOptions, Thinking

__all__ = ["LLMOptions"]


@dataclass(frozen=True)
class LLMOptions:
    """How a model is asked."""

    game_name: str = "a game"
    objective: str = "Your goal is to survive and accomplish objectives."
    """What the agent is told its goal is; part of the system message."""
    persona: str = ""
    """Who the agent is, in a person's words; part of the system message."""
    window: int = 16
    """About how many steps of the conversation are sent along: from half to twice as many."""
    sampling: Sampling = DEFAULT_SAMPLING
    thinking: Thinking = None
    """Whether the model is asked to think first: "auto" for only where something happened, None for its default."""
    pace: PaceOptions = EVERY_STEP
    """When the model is asked."""
    provider: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Provider options by backend name."""
    constrain: bool = True
    """Constrain replies where the backend can."""
    strict: bool = False
    """Refuse to play where replies can't be bound to what is legal."""
    fallback: str | None = None
    """The action taken when a reply can't be understood twice; when None one that waits, or any where none does."""
    tool_calls: int = 3
    """Most tool calls in a decision."""
    recall_tokens: int = 200
    """About how many tokens of memories are shown with each observation."""
    plan: bool = True
    """Ask for a plan at the start of an episode, and when goals change."""
    plan_lines: int = 6
    reflect: bool = True
    """Ask for lessons at the end of an episode and on a death, where there is a memory to keep them."""
    reflect_every: int = 0
    """Ask for lessons after so many decisions, too; 0 for never."""
    lessons: int = 3
    """Most lessons at a time."""
    pictures: int = 0
    """How many of the newest pictures that the world draws the model is shown; 0 for none."""
