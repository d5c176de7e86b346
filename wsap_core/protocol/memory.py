"""What an agent keeps and uses: history, memory and tools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wsap_core.protocol.actions import Action, ActionResult, ParamDef
from wsap_core.protocol.base import Part
from wsap_core.protocol.observation import Observation


@dataclass(frozen=True)
class HistoryEntry(Part):
    """One lived step: what was perceived, what was done, and what came of it."""

    observation: Observation
    action: Action
    result: ActionResult | None = None
    """None while the action is not yet resolved."""
    world: str | None = None
    """The game it happened in; provenance for a memory that spans games."""
    step: int | None = None
    """The step it happened at, as the game counts."""


@dataclass(frozen=True)
class Memory(Part):
    """Long-term memory in the protocol's plain form."""

    facts: Sequence[str] = ()
    """What is held to be true: "There's a village to the north"."""
    plans: Sequence[str] = ()
    """What is intended: "Need to craft iron pickaxe"."""
    history: Sequence[HistoryEntry] = ()
    """Past observations and actions, oldest first."""


@dataclass(frozen=True)
class Tool(Part):
    """An external tool that an agent can invoke while it thinks."""

    name: str
    """How it is called: "calculator", "wiki_search"."""
    description: str = ""
    """What it does, for the model that reads it."""
    parameters: Sequence[ParamDef] = ()
