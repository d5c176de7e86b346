"""History, memory and tools of agents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wsap_core.protocol.actions import Action, ActionResult, ParamDef
from wsap_core.protocol.base import Part
from wsap_core.protocol.observation import Observation


@dataclass(frozen=True)
class HistoryEntry(Part):
    """One experienced step: observation, action and result."""

    observation: Observation
    action: Action
    result: ActionResult | None = None
    """None until the action is resolved."""
    world: str | None = None
    """The game it happened in."""
    step: int | None = None
    """The game's number of the step."""


@dataclass(frozen=True)
class Memory(Part):
    """Long-term memory in the protocol's plain form."""

    facts: Sequence[str] = ()
    """Such as "There's a village to the north"."""
    plans: Sequence[str] = ()
    """Such as "Need to craft iron pickaxe"."""
    history: Sequence[HistoryEntry] = ()
    """Oldest first."""


@dataclass(frozen=True)
class Tool(Part):
    """A tool that an agent can use while it thinks."""

    name: str
    """Such as "calculator"."""
    description: str = ""
    """What it does, for the model."""
    parameters: Sequence[ParamDef] = ()
