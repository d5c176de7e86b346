"""What a language of worlds has to say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from wsap_sandbox.model import InfluenceKind
from wsap_sandbox.tick.facts import Facts

Saying = Literal[
    # In the first person: an intention for somebody who has none, and the parts of a memory.
    "hesitates",
    "tried",  # {what} was intended
    "nothing_came",
    "could_not_leave",
    "could_not_take",
    "puzzled",
    "heard",  # a voice whispered {what}
    # In the third person: events.
    "does_nothing",  # {who} tried something, and nothing came of it
    "cannot_leave",  # {who}
    "cannot_take",  # {who} does not get what they reached for; follows the event's text
    # To people: the story of a {place} where nothing remarkable happened, and how many replies were {unusable}.
    "quiet",
    "alarm",  # of {calls}
]
"""What stands where a model's text could not be used."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a model is told."""

    system: str
    """Who it is, the rules, and what to reply; the same at every tick as far as can be."""
    user: str
    """The facts."""


class Language(Protocol):
    """One language. Texts in facts are already harmless: one line each, without control characters and tags."""

    @property
    def letters(self) -> str:
        """The range of its letters as in a regular expression's class, such as `a-z`."""

    def prompt(self, facts: Facts) -> Prompt:
        """Ask for what facts are given for: an intention, a scene (see `replies`), a story or a summary."""

    def again(self, problem: str) -> str:
        """Say that the last reply could not be used, and why: a kind of `DEGRADATIONS`."""

    def say(self, saying: Saying, **names: object) -> str:
        """Return what stands where a model's text could not be used, with the names in it."""

    def influenced(self, kind: InfluenceKind, *, who: str = "", what: str = "") -> str:
        """Say what somebody outside did, for the ledger; a name that does not apply is empty.

        `event`: `what` happens. `whisper`: a voice says `what` to `who`. `object`: `what` lies here, or `who` has it.
        `edit`: `what` or `who` is no longer as it was. `move`: `who` or `what` is here now. `take_over`: somebody
        else's will moves `who`.
        """
