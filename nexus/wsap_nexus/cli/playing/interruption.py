"""Signals during a run, and the captured output of games and agents."""

from __future__ import annotations

import asyncio
import contextlib
import io
import signal
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wsap_nexus.runs.play.controls import Controls


class Tail(io.TextIOBase):
    """Keeps the last part of what is written to it."""

    KEPT = 4000
    """Minimum number of characters that are kept; at most twice as many."""

    def __init__(self) -> None:
        self._text = ""

    @property
    def text(self) -> str:
        """The last part of what was written."""
        return self._text[-self.KEPT :]

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, text: str) -> int:
        """Append a text."""
        self._text += text
        if len(self._text) > 2 * self.KEPT:
            self._text = self.text
        return len(text)


class Interruption:
    """Whether a signal requested the end of the run: the first one stops it after a decision, the second at once.

    A call of a game or agent that does not return keeps the event loop from stopping anything. It is ended by
    KeyboardInterrupt, some seconds after the first signal or at the next one.
    """

    GRACE = 3.0
    """Seconds in which the event loop has to notice a signal."""

    def __init__(self, controls: Controls) -> None:
        self.happened = False
        self._controls = controls
        self._task: asyncio.Task[Any] | None = None
        self._unnoticed = False

    def __call__(self) -> None:
        """Stop the run after the current decision or, the second time, at once."""
        self._unnoticed = False
        if self.happened and self._task is not None:
            self._task.cancel()
        self.happened = True
        self._controls.stop()

    @contextlib.contextmanager
    def watch(self, task: asyncio.Task[Any]) -> Iterator[None]:
        """Handle SIGINT, SIGTERM and SIGHUP as requests to stop while the block runs.

        The handlers are Python's and not the loop's, because these also run while a game blocks the loop.
        """
        self._task = task
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop, timed = asyncio.get_running_loop(), hasattr(signal, "setitimer")

        def signalled(number: int, frame: object) -> None:
            if self._unnoticed:
                raise KeyboardInterrupt
            self._unnoticed = True
            loop.call_soon_threadsafe(self)
            if timed:
                signal.setitimer(signal.ITIMER_REAL, self.GRACE, self.GRACE)

        def late(number: int, frame: object) -> None:
            if self._unnoticed:
                raise KeyboardInterrupt
            signal.setitimer(signal.ITIMER_REAL, 0)

        handlers: dict[int, Callable[[int, object], None]] = {
            getattr(signal, name): signalled for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
        }
        if timed:
            handlers[signal.SIGALRM] = late
        before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        try:
            yield
        finally:
            if timed:
                signal.setitimer(signal.ITIMER_REAL, 0)
            for number, handler in before.items():
                signal.signal(number, handler)
