"""Texts that a person wrote into a file, and files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from wsap_core.errors import ConfigError, UsageError

LONGEST = 200_000
"""Most bytes of such a file: more is no text that a person wrote for a prompt, and fits into none."""


def read_text(path: Path, what: str) -> str:
    """Return what a file says, its lines as they are; never more is read than is allowed, so it may be a device.

    Raises:
        ConfigError: it can't be read, is too long, or is no text in UTF-8; begins with `what`, such as "The persona".
    """
    try:
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
        raise ConfigError(f"{what} in {str(path)!r} is no text in UTF-8 (byte {error.start + 1}).") from error
    if "\0" in text:
        raise ConfigError(f"{what} in {str(path)!r} is no text: it holds zero bytes.")
    return text.replace("\r\n", "\n")


@contextlib.contextmanager
def written_to(path: Path) -> Iterator[IO[str]]:
    """Open a temporary file that replaces the named one once everything is written.

    Raises:
        UsageError: it can't be written.
    """
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
