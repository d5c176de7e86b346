"""An append-only file of lines, for work that must not be repeated, and the lock of its folder."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from wsap_core.errors import StorageError, StorageLockedError, UsageError, WireError
from wsap_core.textfile import refuse_pipe, written_to

if TYPE_CHECKING:
    from filelock import BaseFileLock

T = TypeVar("T")


def locked(folder: Path, busy: str) -> BaseFileLock:
    """Create a folder if it is missing, and return its lock, which is held.

    Raises UsageError if it can't be written; StorageLockedError with the sentence `busy` if another process holds it.
    """
    from filelock import FileLock, Timeout  # deferred for weight

    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / ".lock")
        lock.acquire(blocking=False)
    except Timeout:
        raise StorageLockedError(busy) from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"Results can't be written to {str(folder)!r}: {why}; choose another with --out.") from error
    return lock


def read_lines(path: Path, read: Callable[[bytes], T]) -> tuple[list[T], int]:
    """Return what the lines of a file hold, and the bytes of an incomplete last one, which is left out.

    `read` reads a line; it raises WireError with a sentence. Raises UsageError if the file can't be read; WireError
    that names the line if one is damaged.
    """
    try:
        refuse_pipe(path)
        *lines, rest = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return [], 0
    except OSError as error:
        raise UsageError(f"{str(path)!r} can't be read: {error.strerror or error}.") from error
    found = []
    for number, line in enumerate(lines, start=1):
        try:
            found.append(read(line))
        except WireError as error:
            raise WireError(
                f"Line {number} of {str(path)!r} is damaged: {error} Delete it; the command that wrote it repeats it."
            ) from error
    return found, len(rest)


class Journal(Generic[T]):
    """An open file of lines, created if it is missing. Each line is one write; an incomplete last one is removed.

    `read` and errors are those of `read_lines`. If it is `synced`, a line survives also a crash of the machine.
    """

    def __init__(self, path: Path, read: Callable[[bytes], T], *, synced: bool = False) -> None:
        self._path, self._synced = path, synced
        self.rows, self.cut = read_lines(path, read)
        """What was in it, oldest first; and the bytes of an incomplete line that were removed."""
        try:
            if self.cut:
                os.truncate(path, path.stat().st_size - self.cut)
            self._file = path.open("ab", buffering=0)
        except OSError as error:
            raise UsageError(f"{str(path)!r} can't be written: {error.strerror or error}.") from error

    def add(self, line: str) -> None:
        """Append a line. Raises StorageError if it can't be written."""
        data = line.encode() + b"\n"
        try:
            if self._file.write(data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if self._synced:
                os.fsync(self._file.fileno())
        except OSError as error:
            raise StorageError(f"{str(self._path)!r} can't be written: {error.strerror or error}.") from error

    def rewrite(self, lines: Iterable[str]) -> None:
        """Replace all lines. Raises UsageError if the file can't be written."""
        self._file.close()
        with written_to(self._path) as file:
            file.writelines(line + "\n" for line in lines)
        self._file = self._path.open("ab", buffering=0)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
