"""What a reply may name now, and which of these names a written one stands for.

Models write `Move Left`, `moveLeft` and `mvoe_left` for `move_left`. Each way of meeting a name is
tried over all names at once, the strictest first, and counts only if exactly one name is met. Names
that are declared but not legal now take part, so that a wrong neighbour is not taken for them.
Other words for the same, such as `go left`, are asked for again.
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

# Words that say nothing about which action it is.
_FILLERS = frozenset({"a", "an", "the", "to", "action", "perform", "execute", "function", "functions", "my", "some"})

Words = tuple[str, ...]


def split_words(text: str) -> Words:
    """Return the words of a name in lower case: `moveLeft`, `MOVE-LEFT` and `move_left` give the same."""
    return tuple(_WORD.findall(_CAMEL.sub(" ", unicodedata.normalize("NFKC", text[:_LONGEST])).casefold()))


def joined(text: str) -> str:
    """Return a name without case and separators."""
    return "".join(split_words(text))


@dataclass(frozen=True)
class Names:
    """Names that can be met."""

    words: Mapping[str, Words]
    """Name -> its words."""

    def resolve(self, text: str, *, exactly: bool = False) -> str | None:
        """Return the one name that a text stands for; None if there is none, or more than one. If `exactly`, only case
        and separators may differ."""
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
        """Return the longest name that a text's words begin with, and how many words that takes."""
        met = [(len(own), name) for name, own in self.words.items() if own and said[: len(own)] == own]
        return (max(met)[1], max(met)[0]) if met else None


@lru_cache(maxsize=64)
def names_of(names: tuple[str, ...]) -> Names:
    """Return names ready to be met; cached, because they seldom change."""
    return Names({name: split_words(name) for name in names})


@dataclass(frozen=True)
class LegalChoices:
    """Everything that a reply may name."""

    actions: dict[str, ActionDef]
    """Legal now, by name."""
    tools: dict[str, ActionDef]
    """Tools by name, in the form of actions."""
    names: Names
    """Every name, those declared but not legal now included."""
    numbered: Sequence[str] = ()
    """Names in the order of the numbered list that the model was shown; empty if it was shown none."""

    @classmethod
    def of(
        cls,
        actions: Sequence[ActionDef],
        tools: Sequence[Tool],
        declared: Sequence[ActionDef],
        numbered: Sequence[str] = (),
    ) -> LegalChoices:
        """Return the choices; an action keeps its name where a tool has the same one."""
        by_name = {action.name: action for action in actions}
        as_actions = {t.name: ActionDef(t.name, t.description, t.parameters) for t in tools if t.name not in by_name}
        names = dict.fromkeys([*by_name, *as_actions, *(action.name for action in declared)])
        return cls(by_name, as_actions, names_of(tuple(names)), numbered)

    def definition(self, name: str) -> ActionDef | None:
        """Return the legal action or tool of that name."""
        return self.actions.get(name) or self.tools.get(name)


def _kept(words: Words) -> Words:
    return tuple(word for word in words if word not in _FILLERS)


def _same(said: Words, own: Words) -> bool:
    return "".join(said) == "".join(own)


def _without_fillers(said: Words, own: Words) -> bool:
    return bool(_kept(said)) and "".join(_kept(said)) == "".join(_kept(own))


def _misspelt(said: Words, own: Words) -> bool:
    """One slip of the keyboard: a letter too many, too few, another, or two swapped.

    Short words are left alone, and so are first letters and digits: `eat` is not `heat`, and
    `slot_1` is not `slot_2`.
    """
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
        # Another letter makes another word too easily (`plank`, `plant`) unless the word is long.
        return len(own) >= 6
    return (
        len(differ) == 2 and differ[1] == differ[0] + 1 and [said[i] for i in differ] == [own[i] for i in differ[::-1]]
    )


_WAYS: tuple[Callable[[Words, Words], bool], ...] = (_same, _without_fillers, _misspelt)
