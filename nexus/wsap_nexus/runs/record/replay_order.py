"""The order in which several seats acted, for showing and replaying a recorded run."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

from wsap_core.seams.clock import Clock
from wsap_nexus.runs.record.deadlock import DeadlockDetector
from wsap_nexus.store.records import EventRecord

IN_ORDER = ("chosen", "step")
"""Kinds of events that `in_order_made` needs."""

LogPosition = tuple[int, int, str]
"""A position in the recorded order; smaller ones come first."""


def position_of_event(seq: int, seat: str) -> LogPosition:
    """Return the position of a choice or removal, when the world was told."""
    return seq, 0, seat


def position_after_event(seq: int, seat: str) -> LogPosition:
    """Return the position of an observation made after an event."""
    return seq, 1, seat


def in_order_made(events: Iterable[EventRecord]) -> Iterator[EventRecord]:
    """Yield a run's steps in the order in which the seats chose.

    In a game of several seats a step is recorded with its result, which may come after the choices of others. Steps
    without a recorded choice, of a single seat, keep the order of the log.

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


def position_of_reply(seq: int) -> LogPosition:
    """Return the position from which on the world of a run had a reply of a model, by the event that tells it."""
    return seq, 0, ""


class OpenChoices:
    """Recorded choices without a step yet, by seat."""

    def __init__(self) -> None:
        self._open: dict[str, int] = {}
        self._latest = -1

    def chosen(self, seat: str, seq: int) -> None:
        """Add a choice by its event."""
        self._open[seat] = seq

    def resolved(self, seat: str) -> None:
        """Remove a seat's choice, whose step is recorded."""
        self._latest = max(self._latest, self._open.pop(seat, -1))

    def clear(self) -> None:
        """Remove all: the world went back to before they were made."""
        self._open.clear()

    @property
    def first(self) -> int | None:
        """The event of the first open choice; None if there is none."""
        return min(self._open.values(), default=None)

    @property
    def are_last(self) -> bool:
        """Whether every open choice is later than all resolved ones, so that the recorded steps are the run's first."""
        first = self.first
        return first is None or self._latest < first


class ReplayOrder:
    """Makes concurrent seats repeat a record in its order.

    If seats act on one world without waiting for each other, a different order is a different game. Everything
    recorded has a position; a seat that reaches one waits until all before it are passed, and new actions wait until
    all are. An order without positions delays nothing.

    Seats that wait for successive positions pass them in one turn of the event loop. With a turn for each, a tick could
    end before what is recorded in the middle of it.

    Args:
        marks: the positions of everything recorded.
        clock: for the detection of deadlocks; by default the system clock.
    """

    def __init__(self, marks: Iterable[LogPosition] = (), *, clock: Clock | None = None) -> None:
        self._ahead = sorted(marks, reverse=True)  # the next is the last
        self._waiting: dict[LogPosition, asyncio.Event] = {}
        self._ended = asyncio.Event()
        self._stopped = False
        self.deadlock = DeadlockDetector(self._following, clock)
        """Tracks what the seats wait for."""
        self._see_whether_it_ended()

    @property
    def over(self) -> bool:
        """Whether the whole record is replayed."""
        return not self._ahead

    async def reach(self, mark: LogPosition) -> None:
        """Return once everything before a position is passed."""
        while self._ahead and self._ahead[-1] < mark:
            waiting = self._waiting.setdefault(mark, asyncio.Event())
            with self.deadlock.place(mark[2]):
                await waiting.wait()

    def passed(self, mark: LogPosition) -> None:
        """Pass a position that the caller has reached, and wake who waits for the next ones, in order."""
        if self._ahead and self._ahead[-1] == mark:
            self._ahead.pop()
            if self._waiting:
                self._wake(next((later for later in reversed(self._ahead) if later not in self._waiting), None))
            self._see_whether_it_ended()

    async def reply_is_due(self, seq: int) -> None:
        """Return once a world may have a recorded reply of a model: when all is passed that it was told before.

        So its tick ends no sooner than in the record, though no model is waited for. What was told before the reply
        did not depend on it, so nothing waits for ever. After `stop` it returns at once.
        """
        mark = position_of_reply(seq)
        while self._ahead and self._ahead[-1] < mark and not self._stopped:
            await self._waiting.setdefault(mark, asyncio.Event()).wait()

    def stop(self) -> None:
        """Withhold no reply any longer, as nobody plays any more."""
        self._stopped = True
        self._wake(None)

    def _wake(self, until: LogPosition | None) -> None:
        for mark in sorted(self._waiting):
            if until is not None and mark > until:
                break
            self._waiting.pop(mark).set()

    async def ended(self, seat: str) -> None:
        """Return once the whole record is replayed; call it before new actions."""
        if self._ahead:
            with self.deadlock.place(seat):
                await self._ended.wait()

    def _following(self) -> str | None:
        return self._ahead[-1][2] if self._ahead else None

    def _see_whether_it_ended(self) -> None:
        if not self._ahead:
            self._ended.set()
