"""Progress of an evaluation: a live table at a terminal, otherwise a line for each tenth."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import click

from wsap_core.cli.output import at_terminal
from wsap_core.errors import RunInterruptedError
from wsap_core.protocol.lines import plural
from wsap_core.untrusted import single_line
from wsap_eval.digits import number
from wsap_eval.run import Progress

EVERY = 0.5
"""Seconds between refreshes."""


class Live:
    """Shows the progress of an evaluation on standard error, and after Ctrl-C how to resume it.

    `folder` has the results; `quiet` shows nothing; `until` tells that fewer episodes may suffice; `clock` returns
    seconds.
    """

    def __init__(
        self, folder: Path, *, quiet: bool = False, until: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._until = until
        self._folder, self._quiet, self._clock = folder, quiet, clock
        self._begun, self._shown, self._first, self._tenth = clock(), -EVERY, 0, 0
        self._cells: dict[tuple[str, str], list[float]] = {}
        self._ended: dict[tuple[str, str], int] = {}
        self._said = ""
        """What is said in place of the progress once it stops."""
        self._live: Any = None  # Any: rich is imported only at a terminal

    def __enter__(self) -> Self:
        if not self._quiet and at_terminal():
            from rich.console import Console
            from rich.live import Live as Screen

            self._live = Screen(console=Console(stderr=True), auto_refresh=False, transient=True)
            self._live.start()
            self._live.update("Playing the first episodes.", refresh=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
        if isinstance(error, KeyboardInterrupt):
            raise RunInterruptedError(
                f"Interrupted. Finished episodes are in {self._folder}; the same command continues."
            ) from None

    def __call__(self, so_far: Progress) -> None:
        """Count a finished episode."""
        record, now = so_far.last, self._clock()
        cell = (record.game, record.entrant)
        self._ended[cell] = self._ended.get(cell, 0) + 1
        if record.value is not None:
            self._cells.setdefault(cell, []).append(record.value)
        self._first = self._first or so_far.played
        rate = (so_far.played - self._first + 1) / max(now - self._begun, 1e-9)
        left = (so_far.of - so_far.played) / rate
        line = f"{so_far.played} of {so_far.of} episodes, about {_minutes(left)} left"
        if self._until:
            line = f"{so_far.played} of at most {so_far.of} episodes"
        if self._live is not None:
            if now - self._shown >= EVERY or so_far.played == so_far.of:
                self._shown = now
                self._live.update(self._picture(self._said or line), refresh=True)
        elif not self._quiet and so_far.played * 10 // so_far.of > self._tenth:
            self._tenth = so_far.played * 10 // so_far.of
            click.echo(line, err=True)

    def stopping(self, calls: int) -> None:
        """Tell that no episode starts any more, and how many calls of models are awaited."""
        if not calls:
            return  # it stops at once
        self._said = (
            f"Stopping: {plural(calls, 'call')} in flight, which you pay for, {'is' if calls == 1 else 'are'} awaited "
            "and recorded. Press Ctrl-C again to stop at once."
        )
        if self._live is not None:
            self._live.update(self._picture(self._said), refresh=True)
        elif not self._quiet:
            click.echo(self._said, err=True)

    def _picture(self, line: str) -> Any:
        from rich.table import Table

        table = Table(title=line, title_justify="left")  # a long table would hide a line below it
        for name in ("game", "entrant", "mean so far", "episodes"):
            table.add_column(name)
        for cell, count in self._ended.items():
            values = self._cells.get(cell)
            mean = number(sum(values) / len(values)) if values else "-"
            table.add_row(*map(single_line, cell), mean, str(count))
        return table


def _minutes(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
