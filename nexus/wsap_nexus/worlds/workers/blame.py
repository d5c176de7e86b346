"""What is known of a worker after its death, in shared memory.

A worker that hangs or dies can't report what it was doing. So it writes the number of a world before each call into it
and 0 afterwards; the nexus reads that when the worker stops responding, to know which world was at work. Its keeper
writes beside it the id of the worker's process, and the memory or the number of processes for which it ended it.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import struct
from collections.abc import Coroutine, Generator
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")

_NUMBER = struct.Struct("=Q")
_WORLD, _PROCESS, _EXCESS, _CROWD, _SIZE = 0, 8, 16, 24, 32


class Mark(Protocol):
    """What is known of a worker without its help."""

    @property
    def world(self) -> int:
        """The world being called; 0 for none."""
        ...

    @property
    def excess(self) -> int:
        """The bytes in use for which the keeper ended the worker; 0 if it did not."""
        ...

    @property
    def crowd(self) -> int:
        """The number of processes for which the keeper ended the worker; 0 if it did not."""
        ...


class BlameFile:
    """Four numbers in a memory-mapped file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        """Valid until both sides have opened it."""
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), _SIZE)

    @classmethod
    def new(cls) -> BlameFile:
        """Return a new file in the system's temporary folder."""
        import tempfile  # not needed by the keeper, which is to stay small

        handle, name = tempfile.mkstemp(prefix="wsap-worker-")
        os.write(handle, bytes(_SIZE))
        os.close(handle)
        return cls(Path(name))

    @property
    def world(self) -> int:
        """The world being called; 0 for none."""
        return self._read(_WORLD)

    def at(self, world: int) -> None:
        """Set the world being called; 0 for none."""
        _NUMBER.pack_into(self._memory, _WORLD, world)

    @property
    def process(self) -> int:
        """The id of the worker's process; 0 if the keeper has not started it, or there is no keeper."""
        return self._read(_PROCESS)

    @process.setter
    def process(self, process: int) -> None:
        _NUMBER.pack_into(self._memory, _PROCESS, process)

    @property
    def excess(self) -> int:
        """The bytes in use for which the keeper ended the worker; 0 if it did not."""
        return self._read(_EXCESS)

    @excess.setter
    def excess(self, used: int) -> None:
        _NUMBER.pack_into(self._memory, _EXCESS, used)

    @property
    def crowd(self) -> int:
        """The number of processes for which the keeper ended the worker; 0 if it did not."""
        return self._read(_CROWD)

    @crowd.setter
    def crowd(self, number: int) -> None:
        _NUMBER.pack_into(self._memory, _CROWD, number)

    def _read(self, offset: int) -> int:
        return int(_NUMBER.unpack_from(self._memory, offset)[0])

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
