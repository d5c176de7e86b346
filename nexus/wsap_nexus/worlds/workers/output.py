"""What games in a worker print, kept in a file that does not grow beyond a limit."""

from __future__ import annotations

import contextlib
from pathlib import Path

LONGEST = 1_000_000
"""Bytes of one file; there is at most one older one beside it."""


class OutputLog:
    """Appends to a file, and begins a new one when it is full: the last `limit` bytes at least are kept.

    Args:
        path: the file; None keeps nothing.
        limit: bytes.
    """

    def __init__(self, path: Path | None, limit: int = LONGEST) -> None:
        self.path = path
        """The file."""
        self._limit = limit
        self._size = 0
        if path is not None:
            with contextlib.suppress(OSError):
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._size = path.stat().st_size if path.exists() else 0

    def write(self, data: bytes) -> None:
        """Append; a disk that is full or read-only loses it, and nothing else."""
        if self.path is None or not data:
            return
        data = data[-self._limit :]
        with contextlib.suppress(OSError):
            if self._size + len(data) > self._limit:
                self.path.replace(self.path.with_name(self.path.name + ".1"))
                self._size = 0
            with self.path.open("ab") as file:
                file.write(data)
            self._size += len(data)
