"""Reads short text files written by people, and writes files atomically."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from wsap_core.errors import ConfigError, UsageError

_PIPES = ("/dev/", "/proc/")
# Where shells put the pipes that they open themselves, as for @/dev/stdin and @<(command).

LONGEST = 200_000
"""Largest such file in bytes; longer texts fit into no prompt."""


def read_text(path: Path, what: str) -> str:
    """Return the text of a UTF-8 file, which may be a device: no more than `LONGEST` bytes are read.

    Raises:
        ConfigError: it can't be read, is too long or not UTF-8; starts with `what`, such as "The persona".
    """
    try:
        refuse_pipe(path)
        with path.open("rb") as file:
            data = file.read(LONGEST + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"{what} can't be read from {str(path)!r}: {why}.") from error
    if len(data) > LONGEST:
        raise ConfigError(f"{what} in {str(path)!r} is longer than {LONGEST // 1000} kB; make it shorter.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{what} in {str(path)!r} is not UTF-8 text (byte {error.start + 1}).") from error
    if "\0" in text:
        raise ConfigError(f"{what} in {str(path)!r} is not text: it contains zero bytes.")
    return text.replace("\r\n", "\n")


def refuse_pipe(path: Path) -> None:
    """Raise OSError if a path is a named pipe: opening it would wait for a writer, perhaps for ever."""
    if stat.S_ISFIFO(path.stat().st_mode) and not str(path).startswith(_PIPES):
        raise OSError(errno.EINVAL, "it is a pipe, not a file")


@contextlib.contextmanager
def written_to(path: Path) -> Iterator[IO[str]]:
    """Open a temporary file that replaces `path` at the end of the block; `UsageError` if it can't be written."""
    partial = path.parent / f".{path.name[:40]}.{secrets.token_hex(4)}.part"
    try:
        with partial.open("x", encoding="utf-8", newline="\n") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        raise UsageError(f"{str(path)!r} can't be written: {error.strerror or error}; choose another place.") from error
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
