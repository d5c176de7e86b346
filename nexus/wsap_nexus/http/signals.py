"""Signals for a command that runs until it is stopped: the first one asks it to stop, the second ends it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from types import FrameType

INSISTED = 130
"""The exit status after a second signal, as shells have it for Ctrl-C."""


@contextlib.contextmanager
def told_to_stop(asked: Callable[[], None], insisted: Callable[[], None]) -> Iterator[asyncio.Event]:
    """Give an event of the running loop that is set by SIGINT, SIGTERM or SIGHUP; a second one ends the process.

    Python's own handlers are used and not the loop's: they are run between any two instructions, also
    while a game keeps the loop from turning.

    Args:
        asked: called at the first signal.
        insisted: called at the second, right before the process ends.
    """
    loop = asyncio.get_running_loop()
    told = asyncio.Event()
    happened = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal happened
        if happened:
            insisted()
            os._exit(INSISTED)
        happened = True
        loop.call_soon_threadsafe(told.set)
        asked()

    wanted = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.signal(number, handle) for number in wanted}
    try:
        yield told
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
