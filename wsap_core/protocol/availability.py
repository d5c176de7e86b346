"""What is legal now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from wsap_core.protocol.base import Part, freeze_mappings


@dataclass(frozen=True)
class ActionAvailability(Part):
    """Whether one declared action can succeed now, and if not, why."""

    name: str
    """The action's name, as declared in the action space."""
    available: bool = True
    """True if the game would carry it out now."""
    reason: str = ""
    """Why not, in a way that helps: "needs 2 wood, you have 1". Empty when available."""


@dataclass(frozen=True)
class Possible(ActionAvailability):
    """An action that can succeed now with some of the declared words for a parameter only: whom one may vote for."""

    choices: Mapping[str, Sequence[str]] = field(default_factory=dict, kw_only=True)
    """Parameter -> the words that are possible for it now; a parameter that is left out takes all that are declared."""

    def __post_init__(self) -> None:
        freeze_mappings(self, "choices")


def choices_of(availability: ActionAvailability) -> Mapping[str, Sequence[str]]:
    """Return what is possible for an action's parameters, where an observation says so."""
    return availability.choices if isinstance(availability, Possible) else {}
