"""Whether a name that a model wrote is one of those that were offered.

Models write `Move Left`, `moveLeft`, `move-left`, `moving_left` and `mvoe_left` for `move_left`.
Each way of meeting a name is tried over all names at once, the strict ones first, and counts only
if exactly one name is met; names that are declared but not legal now take part, so that a wrong
neighbour is not taken for them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_WORD = re.compile(r"[^\W_]+")
_LONGEST = 120

# Words that say nothing about which action it is.
_FILLERS = frozenset({"a", "an", "the", "to", "action", "perform", "execute", "function", "functions", "my", "some"})
_WALKING = frozenset({"move", "go", "walk", "step", "head", "travel"})
_DIRECTIONS = frozenset({
    *("north", "south", "east", "west", "northeast", "northwest", "southeast", "southwest"),
    *("left", "right", "up", "down", "forward", "forwards", "back", "backward", "backwards"),
})  # fmt: skip


def split_words(text: str) -> tuple[str, ...]:
    """Return the words of a name in lower case: `moveLeft`, `MOVE-LEFT` and `move_left` give the same."""
    return tuple(_WORD.findall(_CAMEL.sub(" ", unicodedata.normalize("NFKC", text[:_LONGEST])).casefold()))


def joined(text: str) -> str:
    """Return a name without case and separators."""
    return "".join(split_words(text))


@dataclass(frozen=True)
class Names:
    """The names on offer, ready to be met."""

    words: Mapping[str, tuple[str, ...]]
    """Name -> its words."""

    def resolve(self, text: str) -> str | None:
        """Return the one name that a text stands for, or None if there is none, or more than one."""
        if text in self.words:
            return text
        said = split_words(text)
        if not said or len(text) > _LONGEST:
            return None
        for meets in _WAYS:
            met = [name for name, own in self.words.items() if own and meets(said, own)]
            if met:
                return met[0] if len(met) == 1 else None
        return None

    def leading(self, said: tuple[str, ...]) -> tuple[str, int] | None:
        """Return the longest name that a text's words begin with, and how many words that takes."""
        best: tuple[str, int] | None = None
        for name, own in self.words.items():
            if own and said[: len(own)] == own and (best is None or len(own) > best[1]):
                best = (name, len(own))
        return best


@lru_cache(maxsize=64)
def names_of(names: tuple[str, ...]) -> Names:
    """Return the names on offer, ready to be met; remembered, because they seldom change."""
    return Names({name: split_words(name) for name in names})


def _same(said: tuple[str, ...], own: tuple[str, ...]) -> bool:
    return "".join(said) == "".join(own)


def _without_fillers(said: tuple[str, ...], own: tuple[str, ...]) -> bool:
    kept = [word for word in said if word not in _FILLERS]
    return bool(kept) and "".join(kept) == "".join(word for word in own if word not in _FILLERS)


def _walking(said: tuple[str, ...], own: tuple[str, ...]) -> bool:
    """`go_left`, `walk left` and `left` for `move_left`, never for `turn_left`."""
    said = tuple(word for word in said if word not in _FILLERS)
    if len(own) == 1 and own[0] in _WALKING:
        return len(said) == 1 and said[0] in _WALKING
    if len(own) != 2 or own[0] not in _WALKING or own[1] not in _DIRECTIONS:
        return False
    return said == own[1:] or (len(said) == 2 and said[0] in _WALKING and said[1] == own[1])


def _inflected(said: tuple[str, ...], own: tuple[str, ...]) -> bool:
    said = tuple(word for word in said if word not in _FILLERS)
    return len(said) == len(own) and all(map(_form_of, said, own))


def _form_of(word: str, base: str) -> bool:
    if word == base:
        return True
    if len(base) < 3:
        return False
    stems = {base, base + base[-1], base[:-1] if base.endswith("e") else base}
    return word in {stem + end for stem in stems for end in ("s", "es", "ing", "ed")}


def _misspelt(said: tuple[str, ...], own: tuple[str, ...]) -> bool:
    """One slip of the keyboard: a letter too many, too few, another, or two swapped.

    Short words are left alone, and so are first letters and digits: `eat` is not `heat`, and
    `slot_1` is not `slot_2`.
    """
    said = tuple(word for word in said if word not in _FILLERS) or said
    if len(said) == len(own):
        wrong = [(a, b) for a, b in zip(said, own, strict=True) if a != b]
        return len(wrong) == 1 and _one_slip(*wrong[0])
    return abs(len(said) - len(own)) == 1 and min(len(said), len(own)) == 1 and _one_slip("".join(said), "".join(own))


def _one_slip(said: str, own: str) -> bool:
    if len(own) < 4 or len(said) < 4 or said[0] != own[0] or not (said.isalpha() and own.isalpha()):
        return False
    if len(said) > len(own):
        return any(said[:i] + said[i + 1 :] == own for i in range(len(said)))
    if len(said) < len(own):
        return any(own[:i] + own[i + 1 :] == said for i in range(len(own)))
    differ = [i for i in range(len(own)) if said[i] != own[i]]
    if len(differ) == 1:
        # Another letter makes another word too easily (`plank`, `plant`) unless the word is long.
        return len(own) >= 6
    return (
        len(differ) == 2
        and differ[1] == differ[0] + 1
        and said[differ[0]] == own[differ[1]]
        and (said[differ[1]] == own[differ[0]])
    )


_WAYS: tuple[Callable[[tuple[str, ...], tuple[str, ...]], bool], ...] = (
    _same,
    _without_fillers,
    _walking,
    _inflected,
    _misspelt,
)


def vocabulary(names: Iterable[str]) -> frozenset[str]:
    """Return all words that occur in names."""
    return frozenset(word for name in names for word in split_words(name))
