"""Everything that a world says in its language beside its own texts: `CODE.toml` holds the words of each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources
from tomllib import loads

from wsap_sandbox.model import LANGUAGES, InfluenceKind


@dataclass(frozen=True, slots=True)
class Words:
    """What one language says. Names in braces are filled in."""

    code: str
    letters: str
    """The range of its letters as in a regular expression's class, such as `a-z`."""
    data: str
    """How to take what is between the delimiters `{open}` and `{close}`."""
    reply: str
    """What to reply with; `{shape}` is the shape in JSON."""
    again: str
    """That the last reply could not be used; `{why}`."""
    full: dict[str, str]
    """The system message of each phase; `{name}` is the character's."""
    brief: dict[str, str]
    """The system message of each phase for small models."""
    labels: dict[str, str]
    """Headings of facts."""
    problems: dict[str, str]
    """Each of `DEGRADATIONS` as a sentence to a model."""
    fallbacks: dict[str, str]
    """What stands where a model's text could not be used."""
    influences: dict[InfluenceKind, tuple[str, str]]
    """Of each kind: about a character, or about a place."""
    seat: dict[str, str]
    """What somebody who sits in a character is told."""
    page: dict[str, str]
    """What pages and logs of stories say around the story."""
    objective: str = ""
    """The objective of whoever sits in a character, where it is not the plugin's own."""

    def say(self, saying: str, **names: object) -> str:
        """Return what stands where a model's text could not be used, with the names in it."""
        return self.fallbacks[saying].format(**names)

    def influenced(self, kind: InfluenceKind, *, who: str = "", what: str = "") -> str:
        """Say what somebody outside did, for the ledger; a name that does not apply is empty."""
        about_character, about_place = self.influences[kind]
        return (about_character if who else about_place).format(who=who, what=what.rstrip("."))


@cache
def words_of(code: str) -> Words:
    """Return the words of a language; English for one that is not known."""
    code = code if code in LANGUAGES else LANGUAGES[0]
    return Words(code, **loads((resources.files(__name__) / f"{code}.toml").read_text("utf-8")))
