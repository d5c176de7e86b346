"""Signals for a long-running command: the first one asks it to stop, the second ends it, as does a blocked loop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

INSISTED = 130
"""The exit status after a second signal, as in shells for Ctrl-C, and of a process that could not stop."""

STUCK_SECONDS = 20.0
"""Seconds without a turn of the event loop after which a process that was asked to stop is ended."""


@contextlib.contextmanager
def told_to_stop(
    asked: Callable[[], None], insisted: Callable[[], None], stuck: Callable[[], None]
) -> Iterator[asyncio.Event]:
    """Yield an event of the running loop that is set by SIGINT, SIGTERM or SIGHUP; a second one ends the process.

    `asked` is called at the first signal, `insisted` at the second, right before the end. The handlers are Python's and
    not the loop's, because these also run while a game blocks the loop. If it does so for `STUCK_SECONDS` after the
    first signal, the process ends as well, after a call of `stuck`.
    """
    loop = asyncio.get_running_loop()
    told = asyncio.Event()
    happened = False
    over = threading.Event()

    def watch() -> None:
        turned = threading.Event()
        while not over.is_set():
            turned.clear()
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(turned.set)
            if not turned.wait(STUCK_SECONDS) and not over.is_set():
                stuck()
                os._exit(INSISTED)
            over.wait(1.0)

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal happened
        if happened:
            insisted()
            os._exit(INSISTED)
        happened = True
        loop.call_soon_threadsafe(told.set)
        threading.Thread(target=watch, name="watch the stop", daemon=True).start()
        asked()

    wanted = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.signal(number, handle) for number in wanted}
    try:
        yield told
    finally:
        over.set()
        for number, handler in before.items():
            signal.signal(number, handler)
