"""Translates the kernel's texts for players: `WORDS["ru"].say("You have acted already.")`.

Texts may have fields, `"There is no action '{name}' here."`; the value of a field whose name starts with `_` is
translated, too. Unknown texts, such as a game's own, stay unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from string import Formatter


@dataclass(frozen=True)
class Words:
    """The kernel's texts in one language."""

    language: str
    """Its code, such as `en`."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """English text -> translation."""

    def say(self, text: str) -> str:
        """Return the translation of an English text, or the text itself if there is none."""
        if not self.texts or not text:
            return text
        found = self.texts.get(text)
        if found is not None:
            return found
        for (begin, *rest), names, wording in self._sentences:
            if text.startswith(begin) and (values := _between(text, len(begin), rest)) is not None:
                told = dict(zip(names, values, strict=True))
                return wording.format(**{n: self.say(v) if n.startswith("_") else v for n, v in told.items()})
        return text

    def and_also(self, texts: Mapping[str, str]) -> Words:
        """Return these translations and more."""
        return Words(self.language, {**self.texts, **texts})

    @cached_property
    def _sentences(self) -> list[tuple[list[str], list[str], str]]:
        found = []
        for text, wording in self.texts.items():
            parts = [(before, name) for before, name, _, _ in Formatter().parse(text)] if "{" in text else []
            names = [name for _, name in parts if name]
            if names and all(name.isidentifier() for name in names):
                literals = [before for before, _ in parts]
                found.append((literals if len(literals) > len(names) else [*literals, ""], names, wording))
        return sorted(found, key=lambda sentence: not sentence[0][0])  # those that start with a field come last


def _between(text: str, at: int, literals: list[str]) -> list[str] | None:
    """Return the texts between literals, each matched at its first occurrence, the last one at the end of the text."""
    values = []
    for number, literal in enumerate(literals, 1):
        last = number == len(literals)
        end = (len(text) - len(literal) if text.endswith(literal) else -1) if last else text.find(literal, at + 1)
        if end <= at:
            return None
        values.append(text[at:end])
        at = end + len(literal)
    return values


ENGLISH = Words("en")

_RUSSIAN: Mapping[str, Mapping[str, str]] = json.loads(Path(__file__).with_name("russian.json").read_text("utf-8"))
"""Heading -> English text -> translation."""

RUSSIAN = Words("ru", {text: wording for part in _RUSSIAN.values() for text, wording in part.items()})

WORDS: Mapping[str, Words] = {words.language: words for words in (ENGLISH, RUSSIAN)}
"""The languages of the kernel, by code."""


def words_of(language: str) -> Words:
    """Return the words of a language, or English if the kernel does not have it."""
    return WORDS.get(language, ENGLISH)
