"""The order in which several seats acted: how a recorded run is shown, and followed when it is played again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

from wsap_core.seams.clock import Clock
from wsap_nexus.runs.deadlock import DeadlockDetector
from wsap_nexus.store.records import EventRecord

IN_ORDER = ("chosen", "step")
"""Kinds of events from which steps are put in the order in which they were made."""

LogPosition = tuple[int, int, str]
"""A position in the recorded order; the smaller comes first."""


def position_of_event(seq: int, seat: str) -> LogPosition:
    """Return the position of a choice or removal, at the moment it was handed to the world."""
    return seq, 0, seat


def position_after_event(seq: int, seat: str) -> LogPosition:
    """Return the position of an observation that was made when an event was the last."""
    return seq, 1, seat


def in_order_made(events: Iterable[EventRecord]) -> Iterator[EventRecord]:
    """Give a run's steps in the order in which the seats made their moves.

    In a game of several seats a step is recorded when its result is there, which may be after the moves of others.
    Steps without a recorded choice (of a single seat, or of an older version) come in the order of the log.

    Args:
        events: of the kinds `IN_ORDER`, oldest first.
    """
    made: dict[tuple[str | None, int | None], EventRecord | None] = {}  # by the seat and the number of its step
    for event in events:
        key = event.seat, event.step
        if event.kind == "chosen":
            made[key] = None
        elif key not in made:
            yield event
        else:
            made[key] = event
            while made and (step := next(iter(made.values()))) is not None:
                del made[step.seat, step.step]
                yield step
    yield from (step for step in made.values() if step is not None)


class OpenChoices:
    """The recorded choices of seats that have not led to a step yet."""

    def __init__(self) -> None:
        self._open: dict[str, int] = {}
        self._latest = -1

    def chosen(self, seat: str, seq: int) -> None:
        """Take in the event of a choice."""
        self._open[seat] = seq

    def resolved(self, seat: str) -> None:
        """Take in that a step of a seat is recorded."""
        self._latest = max(self._latest, self._open.pop(seat, -1))

    @property
    def first(self) -> int | None:
        """The event of the first of them; None if there is none."""
        return min(self._open.values(), default=None)

    @property
    def are_last(self) -> bool:
        """Whether all were made after every choice that led to a step, so that those steps are the run's first."""
        first = self.first
        return first is None or self._latest < first


class ReplayOrder:
    """Makes seats that are played side by side repeat the record in the order in which they made it.

    Where seats act on one world without waiting for each other, a different order is a different game. Everything
    recorded has a position; a seat that reaches one waits until all before it are passed. New actions wait until all
    are. An order without positions delays nobody.

    Args:
        marks: of everything that is recorded.
        clock: for a world that gets nowhere; the machine's own when None.
    """

    def __init__(self, marks: Iterable[LogPosition] = (), *, clock: Clock | None = None) -> None:
        self._ahead = sorted(marks, reverse=True)  # the next is the last
        self._waiting: dict[LogPosition, asyncio.Future[None]] = {}
        self._ended = asyncio.Event()
        self.deadlock = DeadlockDetector(self._following, clock)
        """What the seats wait for."""
        self._see_whether_it_ended()

    @property
    def over(self) -> bool:
        """Whether the whole record is replayed."""
        return not self._ahead

    async def reach(self, mark: LogPosition) -> None:
        """Return once everything before a position is passed."""
        while self._ahead and self._ahead[-1] < mark:
            self._waiting[mark] = asyncio.get_running_loop().create_future()
            with self.deadlock.place(mark[2]):
                await self._waiting[mark]

    def passed(self, mark: LogPosition) -> None:
        """Release the next position, as soon as the caller waits; the caller must have reached this one."""
        if self._ahead and self._ahead[-1] == mark:
            self._ahead.pop()
            if self._ahead and (waiting := self._waiting.pop(self._ahead[-1], None)) is not None and not waiting.done():
                waiting.set_result(None)
            self._see_whether_it_ended()

    async def ended(self, seat: str) -> None:
        """Return once the whole record is replayed; new actions wait for that."""
        if self._ahead:
            with self.deadlock.place(seat):
                await self._ended.wait()

    def _following(self) -> str | None:
        return self._ahead[-1][2] if self._ahead else None

    def _see_whether_it_ended(self) -> None:
        if not self._ahead:
            self._ended.set()
