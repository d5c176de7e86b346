"""The fixed texts of each language that worlds can have, read from `CODE.toml`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from tomllib import loads

from wsap_sandbox.model import LANGUAGES, InfluenceKind


@dataclass(frozen=True, slots=True)
class Words:
    """The texts of one language; names in braces are filled in."""

    code: str
    letters: str
    """Its letters as the range of a regular-expression class, such as `a-z`."""
    data: str
    """How a model treats data between the delimiters `{open}` and `{close}`."""
    reply: str
    """Asks for a reply; `{shape}` is its JSON shape."""
    again: str
    """Says that the last reply was unusable; `{why}`."""
    full: dict[str, str]
    """The system message of each phase; `{name}` is the character's."""
    brief: dict[str, str]
    """The same for small models."""
    labels: dict[str, str]
    problems: dict[str, str]
    """Each of `DEGRADATIONS` as a sentence for a model."""
    outcomes: dict[str, list[str]]
    """The words for each outcome, and under `filler` words that mean nothing beside them."""
    fallbacks: dict[str, str]
    influences: dict[InfluenceKind, tuple[str, str]]
    """For each kind: the text about a character and the one about a place."""
    seat: dict[str, str]
    """Texts for the agent in a seat."""
    page: dict[str, str]
    """Labels of story pages and logs."""
    objective: str = ""
    """A seat's objective; the plugin's if empty."""

    def say(self, saying: str, **names: object) -> str:
        """Return a fallback text with its names filled in."""
        return self.fallbacks[saying].format(**names)

    def reads(self, text: str) -> bool:
        """Return whether a text is written in the language's letters, at least for the most part; a short one always
        is."""
        letters = sum(map(str.isalpha, text))
        return letters < _FEW_LETTERS or 2 * len(_pattern(self.letters).findall(text)) >= letters

    def foreign(self, texts: Iterable[str]) -> str:
        """Return a sentence about the texts that are in another language than the world's; empty if there is none."""
        found = [text for text in texts if not self.reads(text)]
        if not found:
            return ""
        first = f"{found[0][:40].rstrip()}..." if len(found[0]) > 40 else found[0]
        several = f" ({len(found)} texts)" if len(found) > 1 else ""
        return f"The world is told in {_NAMES[self.code]}, and this is not{several}: {first!r}."

    def influenced(self, kind: InfluenceKind, *, who: str = "", what: str = "") -> str:
        """Describe an influence for the ledger; a name that does not apply is empty."""
        about_character, about_place = self.influences[kind]
        return (about_character if who else about_place).format(who=who, what=what.rstrip("."))


_NAMES = {"en": "English", "ru": "Russian"}
_FEW_LETTERS = 12
"""The language of texts with fewer letters is not checked."""


@cache
def _pattern(letters: str) -> re.Pattern[str]:
    return re.compile(f"[{letters}]", re.IGNORECASE)


@cache
def words_of(code: str) -> Words:
    """Return the texts of a language; English if it is unknown."""
    code = code if code in LANGUAGES else LANGUAGES[0]
    return Words(code, **loads((resources.files(__name__) / f"{code}.toml").read_text("utf-8")))
