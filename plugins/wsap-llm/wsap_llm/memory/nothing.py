"""The memory that stores nothing."""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import override

from wsap_core.protocol import HistoryEntry
from wsap_core.seams.context import Context
from wsap_core.seams.memory import AgentMemory, Recollection
from wsap_llm.memory.cells import pack, unpack


class NoMemory(AgentMemory):
    """Stores nothing: the agent has only the window of its conversation."""

    @override
    def remember(self, entry: HistoryEntry) -> None:
        pass

    @override
    def note(self, text: str, *, kind: str = "fact", world: str = "", step: int | None = None) -> None:
        pass

    @override
    def recall(self, query: str, *, budget: int) -> Sequence[Recollection]:
        return []

    @override
    def compact(self) -> None:
        pass

    @override
    def snapshot(self) -> bytes:
        return pack("none", {})

    @override
    def restore(self, data: bytes) -> None:
        unpack("none", data)


def create(context: Context) -> NoMemory:
    """Return a memory that stores nothing."""
    return NoMemory()
