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
        """Return True."""
        return True

    def write(self, text: str) -> int:
        """Append a text."""
        self._text += text
        if len(self._text) > 2 * self.KEPT:
            self._text = self.text
        return len(text)


class Interruption:
    """Whether a signal requested the end of the run: the first one stops it after a decision, the second at once."""

    def __init__(self, controls: Controls) -> None:
        self.happened = False
        self._controls = controls
        self._task: asyncio.Task[Any] | None = None

    def __call__(self) -> None:
        """Stop the run after the current decision or, the second time, at once."""
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
            # Event loops on Windows have no signal handlers; there Ctrl-C cancels the main task.
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                loop.add_signal_handler(number, self)
                taken.append(number)
        try:
            yield
        finally:
            for number in taken:
                loop.remove_signal_handler(number)
