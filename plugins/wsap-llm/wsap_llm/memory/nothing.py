"""The memory that keeps nothing."""

from __future__ import annotations

from collections.abc import Sequence

from wsap_core.protocol import HistoryEntry
from wsap_core.seams.context import Context
from wsap_core.seams.memory import Recollection
from wsap_llm.memory.packing import pack, unpack


class NoMemory:
    """Keeps nothing: the agent has its window of the conversation and no more."""

    def remember(self, entry: HistoryEntry) -> None:
        """Let it pass."""

    def note(self, text: str, *, kind: str = "fact", world: str = "", step: int | None = None) -> None:
        """Let it pass."""

    def recall(self, query: str, *, budget: int) -> Sequence[Recollection]:
        """Return nothing."""
        return []

    def compact(self) -> None:
        """Have nothing to do."""

    def snapshot(self) -> bytes:
        """Return a snapshot of nothing."""
        return pack("none", {})

    def restore(self, data: bytes) -> None:
        """Take the snapshot of a memory of this kind.

        Raises:
            SnapshotError: it is not one.
        """
        unpack("none", data)


def create(context: Context) -> NoMemory:
    """Return a memory that keeps nothing."""
    return NoMemory()
