"""The protocols of memories, which plugins register by the hook `wsap_memories`."""

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
    """Return an upper estimate of a text's tokens: one per six letters of a word (rounded up), one per other character.
    Common tokenizers need fewer except for random text."""
    if not text.isascii():
        extra = sum(1 for c in text if ord(c) > 127)
        return extra + estimate_tokens("".join(c if ord(c) < 128 else " " for c in text))
    return len(_TOKEN.findall(text))


LESSON = "lesson"
"""The kind of a lesson's note."""


@dataclass(frozen=True)
class Recollection:
    """An entry of a memory, with its origin."""

    text: str
    """For the model."""
    world: str = ""
    """The game it happened in; empty if it belongs to no game."""
    step: int | None = None
    """The game's number of the step."""
    kind: str = "event"
    """"fact", "plan", "lesson", "event" or "summary"; a memory may use other words."""
    score: float = 0.0
    """Relevance to the query, higher is better; comparable only within one answer."""
    run: str = ""
    """The run it happened in, such as "run 3", if the memory outlives runs."""


@runtime_checkable
class AgentMemory(Protocol):
    """The memory of an agent."""

    def remember(self, entry: HistoryEntry) -> None:
        """Store an experienced step; cheap, and never calls a model."""

    def note(self, text: str, *, kind: str = "fact", world: str = "", step: int | None = None) -> None:
        """Store something in the agent's own words."""

    def recall(self, query: str, *, budget: int) -> Sequence[Recollection]:
        """Return the entries most relevant to the query, best first, of about `budget` tokens at most."""

    def compact(self) -> Awaitable[None] | None:
        """Free space by summarizing and forgetting; may call a model, and may run concurrently with other work."""

    def snapshot(self) -> bytes:
        """Return the whole memory."""

    def restore(self, data: bytes) -> None:
        """Restore a snapshot; `SnapshotError` if it is damaged, and nothing has changed."""


@runtime_checkable
class OutlivesRuns(Protocol):
    """A memory that stores the run of each entry."""

    def begin_run(self, run: str) -> None:
        """Set the run of the entries to come, such as "run 3"; "" for none. Not part of a snapshot."""


@runtime_checkable
class Browsable(Protocol):
    """A memory whose entries can be listed."""

    def browse(self, kind: str | None = None, *, most: int = 50) -> Sequence[Recollection]:
        """Return the entries, optionally of one kind, newest first."""
