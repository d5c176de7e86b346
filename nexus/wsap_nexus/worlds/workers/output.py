"""The output of games in a worker, in a file of limited size."""

from __future__ import annotations

import contextlib
from pathlib import Path

LONGEST = 1_000_000
"""Bytes of one file; one older file is kept beside it."""


class OutputLog:
    """Appends to a file, and starts a new one when it is full: at least the last `limit` bytes are kept.

    Args:
        path: the file; None discards the output.
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
        """Append bytes; an error of the disk is ignored."""
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
