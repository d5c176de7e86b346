"""The record of a game: choices and papers in order, from which it is replayed with its seed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

__all__ = ["WRITINGS", "Entry", "Writing", "entries_of", "rows_of", "steps_of"]

Writing = str
"""The papers, which take no turn to write."""
WRITINGS = ("will", "note", "notebook")


class Entry(NamedTuple):
    """One line of a game's record: a choice or a paper."""

    round: int
    """Its round; see `Game.round`."""
    player: int
    verb: str
    """A `Verb`, or "will", "note" or "notebook"."""
    targets: tuple[int, ...] = ()
    text: str = ""
    forced: bool = False
    """Whether it was made for the player, after a missed deadline or unreadable reply."""


def rows_of(record: Iterable[Entry]) -> list[list[Any]]:
    """Return a record as rows that `entries_of` reads; JSON-ready."""
    return [[e.round, e.player, str(e.verb), list(e.targets), e.text, e.forced] for e in record]


def entries_of(rows: Iterable[Sequence[Any]]) -> list[Entry]:
    """Return a record from its rows.

    Raises:
        ValueError, TypeError: a row is invalid.
    """
    return [
        Entry(int(n), int(p), str(v), tuple(int(t) for t in targets), str(text), bool(forced))
        for n, p, v, targets, text, forced in rows
    ]


def steps_of(entries: Sequence[Entry], rounds: int | None = None) -> Iterator[Sequence[Entry]]:
    """Yield a record in steps, up to a number of rounds if given.

    A step is a paper before a round's choices, or a round from its first choice.
    """
    at = 0
    while at < len(entries) and (rounds is None or entries[at].round < rounds):
        first, start = entries[at], at
        at += 1
        if first.verb not in WRITINGS:
            while at < len(entries) and entries[at].round == first.round:
                at += 1
        yield entries[start:at]
