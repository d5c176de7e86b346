"""What a language of worlds has to say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from wsap_sandbox.model import InfluenceKind
from wsap_sandbox.tick.facts import IntentFacts, MemoryFacts, SceneFacts, StoryFacts


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
    def code(self) -> str:
        """Its code, such as `en`."""

    @property
    def letters(self) -> str:
        """The range of its letters as in a regular expression's class, such as `a-z`."""

    def intent(self, facts: IntentFacts) -> Prompt:
        """Ask a character what it means to do now."""

    def scene(self, facts: SceneFacts) -> Prompt:
        """Ask the game master how a scene comes out; its reply is described in `tick/replies.py`."""

    def story(self, facts: StoryFacts) -> Prompt:
        """Ask the narrator to tell a scene."""

    def memory(self, facts: MemoryFacts) -> Prompt:
        """Ask a character to sum up what it remembers."""

    def again(self, problem: str) -> str:
        """Say that the last reply could not be used, and why: a kind of `DEGRADATIONS`."""

    # --- fallbacks: what stands where a model's text could not be used -------------------------

    def hesitates(self) -> str:
        """Say, in the first person, an intention for somebody who has none."""

    def tried(self, intention: str) -> str:
        """Say, in the first person, what I tried."""

    def nothing_came(self) -> str:
        """Say, in the first person, that nothing came of it."""

    def could_not_leave(self) -> str:
        """Say, in the first person, that I tried to leave and could not."""

    def could_not_take(self) -> str:
        """Say, in the first person, that I reached for something and did not get it."""

    def puzzled(self) -> str:
        """Say, in the first person, that I don't know what to make of it."""

    def does_nothing(self, name: str) -> str:
        """Say, in the third person, that somebody tried something and nothing came of it."""

    def cannot_leave(self, name: str) -> str:
        """Say, in the third person, that somebody tries to leave and can't."""

    def cannot_take(self, name: str) -> str:
        """Say, in the third person, that somebody does not get what they reached for; follows the event's text."""

    def heard(self, words: str) -> str:
        """Say, in the first person, that I heard a voice whisper something."""

    def quiet(self, place: str) -> str:
        """Tell a scene in which nothing remarkable happened."""

    def alarm(self, unusable: int, calls: int) -> str:
        """Say that of so many replies of models so many could not be used."""

    def influenced(self, kind: InfluenceKind, who: str, what: str, where: str) -> str:
        """Say what somebody outside did, for the ledger; the names that do not apply are empty.

        `event`: what happens (`what`). `whisper`: a voice says `what` to `who`. `object`: `what` lies in `where` now.
        `edit`: `what` or `who` is no longer as it was. `move`: `who` or `what` is in `where` now.
        `take_over`: somebody else's will moves `who`.
        """
