"""The names that a reply may use now, with near misses.

Models write `Move Left`, `moveLeft` and `mvoe_left` for `move_left`. Matchers are tried for all names, the strictest
first, and a match counts only if it is unique. Names that are declared but not legal now are included, so that they are
not mistaken for similar ones. Synonyms such as `go left` do not match.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from wsap_core.protocol import ActionDef, Tool

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_WORD = re.compile(r"[^\W_]+")
_LONGEST = 120

# Words that do not distinguish actions.
_FILLERS = frozenset({"a", "an", "the", "to", "action", "perform", "execute", "function", "functions", "my", "some"})

Words = tuple[str, ...]


def split_words(text: str) -> Words:
    """Return the words of a name in lower case; equal for `moveLeft`, `MOVE-LEFT` and `move_left`."""
    return tuple(_WORD.findall(_CAMEL.sub(" ", unicodedata.normalize("NFKC", text[:_LONGEST])).casefold()))


def joined(text: str) -> str:
    """Return a name without case and separators."""
    return "".join(split_words(text))


@dataclass(frozen=True)
class Names:
    """Names to match."""

    words: Mapping[str, Words]
    """Name -> its words."""

    def resolve(self, text: str, *, exactly: bool = False) -> str | None:
        """Return the one name that a text matches, or None. If `exactly`, only case and separators may differ."""
        if text in self.words:
            return text
        said = split_words(text)
        if not said or len(text) > _LONGEST:
            return None
        for meets in _WAYS[:1] if exactly else _WAYS:
            met = [name for name, own in self.words.items() if own and meets(said, own)]
            if met:
                return met[0] if len(met) == 1 else None
        return None

    def leading(self, said: Words) -> tuple[str, int] | None:
        """Return the longest name with which a text's words start, and the number of its words."""
        met = [(len(own), name) for name, own in self.words.items() if own and said[: len(own)] == own]
        return (max(met)[1], max(met)[0]) if met else None


@lru_cache(maxsize=64)
def names_of(names: tuple[str, ...]) -> Names:
    """Return names to match, cached because they seldom change."""
    return Names({name: split_words(name) for name in names})


@dataclass(frozen=True)
class LegalChoices:
    """The actions and tools that a reply may name."""

    actions: dict[str, ActionDef]
    """Legal actions by name."""
    tools: dict[str, ActionDef]
    """Tools by name, as actions."""
    names: Names
    """All names, including those declared but not legal now."""
    numbered: Sequence[str] = ()
    """Names in the order of the numbered list shown to the model, if any."""

    @classmethod
    def of(
        cls,
        actions: Sequence[ActionDef],
        tools: Sequence[Tool],
        declared: Sequence[ActionDef],
        numbered: Sequence[str] = (),
    ) -> LegalChoices:
        """Return the choices; an action hides a tool of the same name."""
        by_name = {action.name: action for action in actions}
        as_actions = {t.name: ActionDef(t.name, t.description, t.parameters) for t in tools if t.name not in by_name}
        names = dict.fromkeys([*by_name, *as_actions, *(action.name for action in declared)])
        return cls(by_name, as_actions, names_of(tuple(names)), numbered)

    def definition(self, name: str) -> ActionDef | None:
        """Return the legal action or tool with a name."""
        return self.actions.get(name) or self.tools.get(name)


def _kept(words: Words) -> Words:
    return tuple(word for word in words if word not in _FILLERS)


def _same(said: Words, own: Words) -> bool:
    return "".join(said) == "".join(own)


def _without_fillers(said: Words, own: Words) -> bool:
    return bool(_kept(said)) and "".join(_kept(said)) == "".join(_kept(own))


def _misspelt(said: Words, own: Words) -> bool:
    """Match with one typo: a letter added, omitted, replaced, or two swapped; not in short words, first letters or
    digits, so that `eat` is not `heat`, and `slot_1` is not `slot_2`."""
    said = _kept(said) or said
    if len(said) == len(own):
        wrong = [(a, b) for a, b in zip(said, own, strict=True) if a != b]
        return len(wrong) == 1 and _one_slip(*wrong[0])
    return abs(len(said) - len(own)) == 1 and min(len(said), len(own)) == 1 and _one_slip("".join(said), "".join(own))


def _one_slip(said: str, own: str) -> bool:
    if min(len(own), len(said)) < 4 or said[0] != own[0] or not (said.isalpha() and own.isalpha()):
        return False
    if len(said) != len(own):
        longer, shorter = (said, own) if len(said) > len(own) else (own, said)
        return any(longer[:i] + longer[i + 1 :] == shorter for i in range(len(longer)))
    differ = [i for i in range(len(own)) if said[i] != own[i]]
    if len(differ) == 1:
        # In a short word, another letter may make another word (`plank`, `plant`).
        return len(own) >= 6
    return (
        len(differ) == 2 and differ[1] == differ[0] + 1 and [said[i] for i in differ] == [own[i] for i in differ[::-1]]
    )


_WAYS: tuple[Callable[[Words, Words], bool], ...] = (_same, _without_fillers, _misspelt)
