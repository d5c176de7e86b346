"""Signals for a long-running command: the first one asks it to stop, the second ends it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from types import FrameType

INSISTED = 130
"""The exit status after a second signal, as in shells for Ctrl-C."""


@contextlib.contextmanager
def told_to_stop(asked: Callable[[], None], insisted: Callable[[], None]) -> Iterator[asyncio.Event]:
    """Yield an event of the running loop that is set by SIGINT, SIGTERM or SIGHUP; a second one ends the process.

    `asked` is called at the first signal, `insisted` at the second, right before the end. The handlers are Python's and
    not the loop's, because these also run while a game blocks the loop.
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
