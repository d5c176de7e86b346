"""Which world a worker is at, in eight bytes that both processes see.

A worker that hangs or dies can't say what it was doing. So it writes the number of the world it is
about to ask before it asks it, and nothing when it is through; the nexus reads that when the worker
no longer answers, and knows which game to hold it against.
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
    """The eight bytes, in a file that is mapped into memory.

    Args:
        path: the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        """Where it is, until both sides have opened it."""
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), _NUMBER.size)

    @classmethod
    def new(cls) -> BlameFile:
        """Return one in a new file of the system's temporary folder."""
        handle, name = tempfile.mkstemp(prefix="wsap-worker-")
        os.write(handle, _NOBODY)
        os.close(handle)
        return cls(Path(name))

    @property
    def world(self) -> int:
        """The world that is being asked; 0 for none."""
        return int(_NUMBER.unpack_from(self._memory)[0])

    def at(self, world: int) -> None:
        """Say which world is asked now; 0 for none."""
        _NUMBER.pack_into(self._memory, 0, world)

    def unlink(self) -> None:
        """Take the file away, where a file that is open can be; the memory stays."""
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Let go of it."""
        self._memory.close()
        self.unlink()


class Blamed(Generic[T]):
    """Awaits a coroutine so that the mark stands at a world exactly while its code runs, never while it waits.

    Args:
        coroutine: what is awaited. Any: what a coroutine takes and gives in between is asyncio's.
        mark: where it is said.
        world: what is said.
    """

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
            except BaseException as caught:  # thrown in by asyncio, and passed on
                error = caught
