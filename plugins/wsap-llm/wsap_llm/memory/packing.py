"""Snapshots of memories: compressed JSON under a heading, read with limits."""

from __future__ import annotations

import json
import zlib
from typing import Any

from wsap_core.errors import SnapshotError

LIMIT = 64 * 1024 * 1024
"""Most bytes of JSON in a snapshot; no built-in memory reaches it at its default sizes."""
_MAGIC = b"WSAP memory 1\n"


def pack(kind: str, state: dict[str, Any]) -> bytes:
    """Return a snapshot: a heading, then compressed JSON. Equal states give equal bytes.

    Any: JSON-ready data.
    """
    text = json.dumps({"kind": kind, **state}, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return _MAGIC + zlib.compress(text.encode(), 6)


def unpack(kind: str, data: bytes, limit: int = LIMIT) -> dict[str, Any]:
    """Return the state in a snapshot of a kind of memory.

    Raises:
        SnapshotError: it is damaged, too large, or of another kind of memory.
    """
    if not data.startswith(_MAGIC):
        raise SnapshotError("This is no snapshot of a memory, or one of another version.")
    reader = zlib.decompressobj()
    try:
        text = reader.decompress(data[len(_MAGIC) :], limit)
    except zlib.error as error:
        raise SnapshotError(f"The memory's snapshot is damaged: {error}.") from None
    if not reader.eof or reader.unused_data:
        raise SnapshotError(
            f"The memory's snapshot is cut short, has something after its end, or exceeds {limit} bytes."
        )
    try:
        state = json.loads(text)
    except (ValueError, RecursionError):
        raise SnapshotError("The memory's snapshot does not hold JSON.") from None
    if not isinstance(state, dict) or state.get("kind") != kind:
        found = state.get("kind") if isinstance(state, dict) else None
        raise SnapshotError(f"This is the snapshot of another kind of memory than {kind!r}: {str(found)[:40]!r}.")
    return state
