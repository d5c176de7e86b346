"""The world that a worker is calling, in eight bytes of shared memory.

A worker that hangs or dies can't report what it was doing. So it writes the number of a world before each call into it
and 0 afterwards; the nexus reads that when the worker stops responding, to know which game to blame.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import struct
import tempfile
from collections.abc import Coroutine, Generator
from pathlib import Path
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_NUMBER = struct.Struct("=Q")
_NOBODY = _NUMBER.pack(0)


class BlameFile:
    """The eight bytes, in a memory-mapped file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        """Valid until both sides have opened it."""
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), _NUMBER.size)

    @classmethod
    def new(cls) -> BlameFile:
        """Return a new file in the system's temporary folder."""
        handle, name = tempfile.mkstemp(prefix="wsap-worker-")
        os.write(handle, _NOBODY)
        os.close(handle)
        return cls(Path(name))

    @property
    def world(self) -> int:
        """The world being called; 0 for none."""
        return int(_NUMBER.unpack_from(self._memory)[0])

    def at(self, world: int) -> None:
        """Set the world being called; 0 for none."""
        _NUMBER.pack_into(self._memory, 0, world)

    def unlink(self) -> None:
        """Delete the file if the system can delete an open one; the memory stays."""
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the memory and delete the file."""
        self._memory.close()
        self.unlink()


class Blamed(Generic[T]):
    """Awaits a coroutine, marking a world exactly while its code runs and never while it waits."""

    def __init__(self, coroutine: Coroutine[Any, Any, T], mark: BlameFile, world: int) -> None:
        self._coroutine = coroutine
        self._mark = mark
        self._world = world

    def __await__(self) -> Generator[Any, None, T]:
        steps = self._coroutine.__await__()
        error: BaseException | None = None
        while True:
            self._mark.at(self._world)
            try:
                waiting = next(steps) if error is None else steps.throw(error)
            except StopIteration as end:
                value: T = end.value
                return value
            finally:
                self._mark.at(0)
            error = None
            try:
                yield waiting
            except BaseException as caught:  # thrown by asyncio, for the coroutine
                error = caught
