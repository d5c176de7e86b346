"""Reserves a process's standard pipes, so that no code it loads can read from or write to them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


def take_pipes() -> tuple[int, int]:
    """Return new binary descriptors of standard input and output; all other code in the process then reads an empty
    input, and prints to standard error."""
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115  # for as long as the process lives
    if sys.platform == "win32":
        import msvcrt

        msvcrt.setmode(incoming, os.O_BINARY)
        msvcrt.setmode(outgoing, os.O_BINARY)
    return incoming, outgoing


@contextmanager
def output_to_stderr() -> Iterator[None]:
    """Send what other code prints to standard error within the block, also from threads and new processes, so that
    standard output has only what a command itself prints after it."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
