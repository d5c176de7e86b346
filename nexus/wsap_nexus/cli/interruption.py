"""Signals during a run, and the captured output of games and agents."""

from __future__ import annotations

import asyncio
import contextlib
import io
import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wsap_nexus.runs.controls import Controls


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
        """Say that it can be written to."""
        return True

    def write(self, text: str) -> int:
        """Take a text."""
        self._text += text
        if len(self._text) > 2 * self.KEPT:
            self._text = self.text
        return len(text)


class Interruption:
    """Whether a signal asked the run to stop: the first one asks, the second one ends it."""

    def __init__(self, controls: Controls) -> None:
        self.happened = False
        self._controls = controls
        self._task: asyncio.Task[Any] | None = None

    def __call__(self) -> None:
        """Ask the run to stop, or, the second time, end it in the middle of a decision."""
        if self.happened and self._task is not None:
            self._task.cancel()
        self.happened = True
        self._controls.stop()

    @contextlib.contextmanager
    def watch(self, task: asyncio.Task[Any]) -> Iterator[None]:
        """Handle SIGINT, SIGTERM and SIGHUP as requests to stop while the block runs."""
        loop = asyncio.get_running_loop()
        self._task = task
        wanted = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
        taken = []
        for number in wanted:
            # Windows has no signal handlers in its event loops; there Ctrl-C cancels the main task.
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                loop.add_signal_handler(number, self)
                taken.append(number)
        try:
            yield
        finally:
            for number in taken:
                loop.remove_signal_handler(number)
