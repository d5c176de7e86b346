"""What memories of agents have in common; kinds of memory register by the hook `wsap_memories`."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, runtime_checkable

from wsap_core.protocol import HistoryEntry

_TOKEN = re.compile(r"[A-Za-z]{1,6}|\d|[^\sA-Za-z\d]")


@lru_cache(maxsize=4096)
def estimate_tokens(text: str) -> int:
    """Return about how many tokens a text has, rather too many than too few.

    A word counts one token for every six letters begun, a digit and any other mark one each,
    and a character beyond ASCII one; common tokenizers need less for all but random text.
    """
    if not text.isascii():
        extra = sum(1 for c in text if ord(c) > 127)
        return extra + estimate_tokens("".join(c if ord(c) < 128 else " " for c in text))
    return len(_TOKEN.findall(text))


LESSON = "lesson"
"""The kind of note under which memories keep lessons."""


@dataclass(frozen=True)
class Recollection:
    """Something remembered, with where it comes from."""

    text: str
    """As it is shown to the model."""
    world: str = ""
    """The game it happened in; empty for what belongs to no game."""
    step: int | None = None
    """The step it happened at, as the game counts."""
    kind: str = "event"
    """"fact", "plan", "lesson", "event" or "summary"; a memory may use other words."""
    score: float = 0.0
    """How well it fits what was asked; higher is better, and only comparable within one answer."""
    run: str = ""
    """The run it happened in, such as "run 3", where the memory outlives runs; empty where it does not."""


@runtime_checkable
class AgentMemory(Protocol):
    """What an agent keeps of what it lived through."""

    def remember(self, entry: HistoryEntry) -> None:
        """Take in a lived step. Cheap; never asks a model."""

    def note(self, text: str, *, kind: str = "fact", world: str = "", step: int | None = None) -> None:
        """Take in something that the agent wants to keep in its own words."""

    def recall(self, query: str, *, budget: int) -> Sequence[Recollection]:
        """Return what fits the query best, at most about `budget` tokens of it, most useful first."""

    def compact(self) -> Awaitable[None] | None:
        """Make room: summarise, forget. May ask a model, and may run beside other work."""

    def snapshot(self) -> bytes:
        """Return everything that is remembered."""

    def restore(self, data: bytes) -> None:
        """Become what the snapshot was taken of.

        Raises:
            SnapshotError: the data is damaged; nothing has changed.
        """


@runtime_checkable
class OutlivesRuns(Protocol):
    """A memory that says of what it keeps in which run it happened."""

    def begin_run(self, run: str) -> None:
        """Take everything from now on as of this run, such as "run 3"; "" for none. Not part of a snapshot."""


@runtime_checkable
class Browsable(Protocol):
    """A memory that can be looked through."""

    def browse(self, kind: str | None = None, *, most: int = 50) -> Sequence[Recollection]:
        """Return what it keeps, newest first: everything, or what is of one kind."""
