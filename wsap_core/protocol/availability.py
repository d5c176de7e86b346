"""Which actions are available now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from wsap_core.protocol.base import Part
from wsap_core.protocol.lines import bullets
from wsap_core.protocol.words import ENGLISH, Words
from wsap_core.untrusted import single_line

MOST_REFUSED = 3
"""Most reasons in an observation's text for actions that are not possible now."""


@dataclass(frozen=True)
class ActionAvailability(Part):
    """Whether a declared action can succeed now, and if not, why."""

    name: str
    available: bool = True
    reason: str = ""
    """Why it is not available, so that it helps: "needs 2 wood, you have 1"."""


@dataclass(frozen=True)
class Possible(ActionAvailability):
    """An action with only some parameter values possible now, such as the candidates of a vote."""

    choices: Mapping[str, Sequence[str]] = field(default_factory=dict, kw_only=True)
    """Parameter -> the words possible for it now; a parameter that is missing here takes all declared ones."""


def choices_of(availability: ActionAvailability) -> Mapping[str, Sequence[str]]:
    """Return the `choices` of a `Possible`, else an empty mapping."""
    return availability.choices if isinstance(availability, Possible) else {}


def render_availability(told: Sequence[ActionAvailability], words: Words = ENGLISH) -> list[tuple[str, str]]:
    """Return the sections (title, body) of the actions that are not possible now, and of those that are. Actions
    refused for the same reason share a line; only the `MOST_REFUSED` reasons with the fewest actions are shown."""
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
