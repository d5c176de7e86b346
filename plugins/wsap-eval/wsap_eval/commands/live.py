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
from wsap_eval.jobs.runner import Ended, Progress, Reports
from wsap_eval.tables.digits import number
from wsap_llm.kit import Waited

EVERY = 0.5
"""Seconds between refreshes."""


class Live:
    """Shows the progress of an evaluation on standard error, and after Ctrl-C how to resume it.

    `folder` has the results; `quiet` shows nothing; `until` tells that fewer episodes may suffice; `games` that whole
    games of several entrants are played, which have no score of their own; `clock` returns seconds.
    """

    def __init__(
        self,
        folder: Path,
        *,
        quiet: bool = False,
        until: bool = False,
        games: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._until, self._games = until, games
        self._what = "games" if games else "episodes"
        self._folder, self._quiet, self._clock = folder, quiet, clock
        self._begun, self._tenth = clock(), 0
        self._line = f"Playing the first {self._what}."
        self._seconds: dict[tuple[str, str], list[float]] = {}
        """The seconds of the episodes that ended here, by game and entrant."""
        self._waited: Waited | None = None
        self._cells: dict[tuple[str, str], list[float]] = {}
        self._ended: dict[tuple[str, str], int] = {}
        self._said = ""
        """What is said in place of the progress once it stops."""
        self.reports = Reports[Ended](self, self.stopping, self.watch)
        """What an evaluation tells it."""
        self._live: Any = None  # Any: rich is imported only at a terminal

    def __enter__(self) -> Self:
        if not self._quiet and at_terminal():
            from rich.console import Console
            from rich.live import Live as Screen

            # Refreshed by a thread of its own, so that one sees a model think while nothing ends.
            self._live = Screen(
                console=Console(stderr=True), get_renderable=self._picture, refresh_per_second=1 / EVERY, transient=True
            )
            self._live.start()
        return self

    def watch(self, waited: Waited) -> None:
        """Show also what models are waited for."""
        self._waited = waited
        waited.shown = self._live is not None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
        if isinstance(error, KeyboardInterrupt):
            raise RunInterruptedError(
                f"Interrupted. Finished episodes are in {self._folder}; the same command continues."
            ) from None

    def __call__(self, so_far: Progress[Ended]) -> None:
        """Count a finished episode."""
        record, now = so_far.last, self._clock()
        cell = (record.key.game, record.key.entrant)
        self._ended[cell] = self._ended.get(cell, 0) + 1
        if record.value is not None:
            self._cells.setdefault(cell, []).append(record.value)
        self._seconds.setdefault(cell, []).append(record.seconds)
        left = self._time_left(so_far, now)
        line = f"{so_far.played} of {so_far.of} {self._what}"
        line += "" if left is None or so_far.played == so_far.of else f", about {_minutes(left)} left"
        line += so_far.more and f", {so_far.more}"
        if self._until:
            line = f"{so_far.played} of at most {so_far.of} episodes"
        self._line = line
        if self._live is None and not self._quiet and so_far.played * 10 // so_far.of > self._tenth:
            self._tenth = so_far.played * 10 // so_far.of
            click.echo(line, err=True)

    def _time_left(self, so_far: Progress[Ended], now: float) -> float | None:
        """Return the estimated seconds left, by the time that episodes of each entrant have taken; None while an
        entrant with episodes left has ended none."""
        left = {cell: number for cell, number in so_far.left.items() if number > 0}
        if not left.keys() <= self._seconds.keys():
            return None
        taken = sum(map(sum, self._seconds.values()))
        mean = taken / sum(map(len, self._seconds.values()))
        if left:
            needed = sum(number * sum(self._seconds[cell]) / len(self._seconds[cell]) for cell, number in left.items())
            mean = needed / sum(left.values())
        at_once = taken / max(now - self._begun, 1e-9)
        return (so_far.of - so_far.played) * mean / max(at_once, 1e-9)

    def stopping(self, calls: int) -> None:
        """Tell that no episode starts any more, and how many calls of models are awaited."""
        if not calls:
            return  # it stops at once
        self._said = (
            f"Stopping: {plural(calls, 'call')} in flight, which you pay for, {'is' if calls == 1 else 'are'} awaited "
            "and recorded. Press Ctrl-C again to stop at once."
        )
        if self._live is not None:
            self._live.refresh()
        elif not self._quiet:
            click.echo(self._said, err=True)

    def _picture(self) -> Any:
        from rich.table import Table
        from rich.text import Text

        waits = "" if self._waited is None else self._waited.line()
        lines = [self._said or self._line, *filter(None, [waits])]
        title = Text("\n".join(lines), style="")
        if not self._ended or self._games:
            return title
        table = Table(title=title, title_justify="left")  # a long table would hide a line below it
        for name in ("game", "entrant", "mean so far", "episodes"):
            table.add_column(name)
        for cell, count in list(self._ended.items()):
            values = self._cells.get(cell)
            mean = number(sum(values) / len(values)) if values else "-"
            table.add_row(*map(single_line, cell), mean, str(count))
        return table


def _minutes(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
