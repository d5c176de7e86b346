"""What is legal now."""

from __future__ import annotations

from dataclasses import dataclass

from wsap_core.models.base import Part


@dataclass(frozen=True)
class ActionAvailability(Part):
    """Whether one declared action can succeed now, and if not, why."""

    name: str
    """The action's name, as declared in the action space."""
    available: bool = True
    """True if the game would carry it out now."""
    reason: str = ""
    """Why not, in a way that helps: "needs 2 wood, you have 1". Empty when available."""
