"""The order in which several seats did things, kept when a recorded run is gone through again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from wsap_core.seams.clock import Clock
from wsap_nexus.runs.standstill import Standstill

Mark = tuple[int, int, str]
"""A place in the recorded order; the smaller comes first."""


def mark_of_event(seq: int, seat: str) -> Mark:
    """Return where an event stands: a choice or a departure, at the moment it was handed to the world."""
    return seq, 0, seat


def mark_after_event(seq: int, seat: str) -> Mark:
    """Return where a seat stands that looked at the world when an event was the last."""
    return seq, 1, seat


class Order:
    """Has seats that are played side by side do again what is recorded in the order in which they did it.

    Where seats act upon one world without waiting for each other, a different order is a different
    game. Everything recorded has a mark; whoever comes to one waits until all before it are passed.
    What is new waits until all are. An order without marks holds nobody up.

    Args:
        marks: of everything that is recorded.
        clock: for a world that gets nowhere; the machine's own when None.
    """

    def __init__(self, marks: Iterable[Mark] = (), *, clock: Clock | None = None) -> None:
        self._ahead = sorted(marks, reverse=True)  # the next is the last
        self._waiting: dict[Mark, asyncio.Future[None]] = {}
        self._ended = asyncio.Event()
        self.standstill = Standstill(self._following, clock)
        """What the seats wait for."""
        self._see_whether_it_ended()

    async def reach(self, mark: Mark) -> None:
        """Return once everything before a mark is passed."""
        while self._ahead and self._ahead[-1] < mark:
            self._waiting[mark] = asyncio.get_running_loop().create_future()
            with self.standstill.place(mark[2]):
                await self._waiting[mark]

    def passed(self, mark: Mark) -> None:
        """Let the next one go on, as soon as the caller waits for something; it has to have reached the mark."""
        if self._ahead and self._ahead[-1] == mark:
            self._ahead.pop()
            if self._ahead and (waiting := self._waiting.pop(self._ahead[-1], None)) is not None and not waiting.done():
                waiting.set_result(None)
            self._see_whether_it_ended()

    async def ended(self, seat: str) -> None:
        """Return once everything recorded was done again; a seat has to wait for that."""
        if self._ahead:
            with self.standstill.place(seat):
                await self._ended.wait()

    def _following(self) -> str | None:
        return self._ahead[-1][2] if self._ahead else None

    def _see_whether_it_ended(self) -> None:
        if not self._ahead:
            self._ended.set()
