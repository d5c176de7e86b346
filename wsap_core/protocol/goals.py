"""What the agent is asked to do, and what it has done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wsap_core.protocol.base import Part


@dataclass(frozen=True)
class Goal(Part):
    """An objective for the agent."""

    id: str
    """Stable within the game."""
    description: str = ""
    """For a reader: "Collect 10 wood"."""
    type: str = "main"
    """"main", "side" or "achievement"; a game may use other words."""
    progress: str | None = None
    """For a reader: "3/10 wood collected"."""
    hints: Sequence[str] = ()
    """Optional guidance."""


@dataclass(frozen=True)
class Achievement(Part):
    """Something an agent can accomplish, as listed in a game's catalogue."""

    name: str
    """Stable within the game; what `ActionResult.achievements` names."""
    description: str = ""
    """What it takes, for a reader."""
    rarity: str | None = None
    """"common", "uncommon", "rare" or "legendary"; None where the game does not say."""
