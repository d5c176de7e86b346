"""What is legal now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from wsap_core.protocol.base import Part
from wsap_core.protocol.lines import bullets
from wsap_core.protocol.words import ENGLISH, Words
from wsap_core.untrusted import single_line

MOST_REFUSED = 3
"""Reasons in the text of an observation for what is not possible now."""


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


def choices_of(availability: ActionAvailability) -> Mapping[str, Sequence[str]]:
    """Return what is possible for an action's parameters, where an observation says so."""
    return availability.choices if isinstance(availability, Possible) else {}


def render_availability(told: Sequence[ActionAvailability], words: Words = ENGLISH) -> list[tuple[str, str]]:
    """Return sections (title, body) of what is not possible now and why, and last of what is, with its choices.

    Actions refused for the same reason share a line; the reasons that concern fewest actions are told.
    """
    refused: dict[str, list[str]] = {}
    for action in told:
        if not action.available and action.reason:
            refused.setdefault(action.reason, []).append(action.name)
    rarest = sorted(refused.items(), key=lambda item: len(item[1]))[:MOST_REFUSED]
    return [
        (
            words.say("NOT POSSIBLE NOW"),
            bullets(f"{', '.join(names)}: {words.say(reason)}" for reason, names in rarest),
        ),
        (words.say("POSSIBLE NOW"), ", ".join(map(_with_choices, filter(lambda action: action.available, told)))),
    ]


def _with_choices(action: ActionAvailability) -> str:
    choices = "; ".join(f"{name}: {'|'.join(words)}" for name, words in choices_of(action).items())
    return single_line(f"{action.name}({choices})" if choices else action.name)
