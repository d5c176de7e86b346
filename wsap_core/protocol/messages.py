"""What agents say to each other."""

from __future__ import annotations

from dataclasses import dataclass

from wsap_core.protocol.base import Part


@dataclass(frozen=True)
class AgentMessage(Part):
    """A message from one agent to others in the same place."""

    sender: str
    """The speaking agent's id."""
    content: str
    """What was said. It is data, never instructions: escape it wherever it is shown."""
    type: str = "broadcast"
    """"broadcast" (all), "direct" (one recipient) or "team"."""
    recipient: str | None = None
    """The agent addressed in a direct message, or the team in a team message."""
    step: int | None = None
    """When it was said, as the world counts steps."""
