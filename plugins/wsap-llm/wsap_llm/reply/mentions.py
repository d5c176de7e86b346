"""Where a text speaks of an action."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from wsap_llm.reply.choices import LegalChoices
from wsap_llm.reply.words import split_words

# Words of everyday speech: an action of that name is spoken of only where the text marks it as a name.
LIGHT = frozenset({
    *("act", "be", "call", "check", "continue", "do", "drop", "find", "get", "give", "go", "have", "hold", "let"),
    *("keep",),
    *("look", "make", "move", "pass", "place", "play", "put", "run", "say", "set", "start", "stop", "take", "try"),
    *("turn", "use", "work", "note", "notes", "read", "see", "say", "speak", "ask", "open", "close", "left", "right"),
    *("up", "down", "back", "forward", "none", "recall", "search", "help", "end", "action", "interact", "plan"),
})  # fmt: skip
_BETWEEN = r"(?:[\s_\-]{0,2}(?:(?:to the|to|towards the|toward the|towards|toward|the|an|a|some|one|my)\s{1,2})?)"
_ITEM_BEFORE = re.compile(r"(?:\A|[\n,|;/])[\s\-*•>]{0,5}(?:\d{1,2}[.)]\s{0,2})?\Z")
_ITEM_AFTER = re.compile(r"\s{0,3}(?:\Z|[\n,|;/])")
_MARKS = "`*\"'“‘_"


@dataclass(frozen=True)
class Mention:
    """A place where a text has the name of an action in it."""

    name: str
    start: int
    end: int
    marked: bool
    """True if it is written as a name: `move_left`, "noop", **do**."""
    light: bool
    """True if its name is a word of everyday speech, so that it may not be spoken of at all."""


def mentions(text: str, offer: LegalChoices) -> Iterator[Mention]:
    """Yield the places where a text has an offered name in it, the longest at each place."""
    pattern, names = _pattern(tuple(offer.names.words))
    if pattern is None:
        return
    for match in pattern.finditer(text):
        name = names[int(str(match.lastgroup)[1:])]
        before, after = text[match.start() - 1 : match.start()], text[match.end() : match.end() + 1]
        marked = (
            "_" in match[0]
            or after == "("
            or (bool(before) and before in _MARKS and bool(after) and after in _MARKS + "”’")
        )
        marked = marked or _item(text, match.start(), match.end())
        light = len(split_words(name)) == 1 and name.casefold() in LIGHT
        yield Mention(name, match.start(), match.end(), marked, light)


def _item(text: str, start: int, end: int) -> bool:
    """Whether a name stands by itself, as in a list: on a line of its own, or between commas or bars."""
    return (
        _ITEM_BEFORE.search(text[max(0, start - 10) : start]) is not None and _ITEM_AFTER.match(text, end) is not None
    )


def mentioned(text: str, offer: LegalChoices) -> set[str]:
    """Return the names that a text speaks of."""
    return {m.name for m in mentions(text, offer) if m.marked or not m.light}


@lru_cache(maxsize=64)
def _pattern(names: tuple[str, ...]) -> tuple[re.Pattern[str] | None, tuple[str, ...]]:
    order = sorted((n for n in names if split_words(n)), key=lambda n: (-len(split_words(n)), -len(n), n))
    parts = [f"(?P<n{i}>{_form(split_words(name))})" for i, name in enumerate(order)]
    if not parts:
        return None, ()
    return re.compile(r"(?<![^\W_])(?:" + "|".join(parts) + r")(?![^\W_])", re.IGNORECASE), tuple(order)


def _form(words: tuple[str, ...]) -> str:
    first, *rest = words
    forms = [first]
    if len(first) >= 3:
        stem = first[:-1] if first.endswith("e") else first
        forms += [first + "s", stem + "ing", stem + "ed", first + first[-1] + "ing"]
    return _BETWEEN.join(["(?:" + "|".join(map(re.escape, forms)) + ")", *map(re.escape, rest)])
