"""Deadlock detection for seats that replay a record.

A replay follows the recorded order, so each seat waits until everything before its next position is done. A game that
has changed since may never give the next seat its turn; then all seats wait. That is certain, without a clock, once
every seat waits for its position or, as the kernel's `Barrier` reports, for other seats. A world that does not report
what it waits for may only be slow, so it gets `WORLD_TIMEOUT`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Literal

from wsap_core.seams.clock import Clock, SystemClock
from wsap_core.worlds.waiting import TOLD_OF_WAITING
from wsap_nexus.tasks import TURNS, ended

WORLD_TIMEOUT = 180.0
"""Seconds that a world which does not report waiting for other seats may take for a recorded step; longer than the
timeout for a restarted remote game."""

State = Literal["busy", "for its place", "for the world", "for others"]


async def is_set_within(seconds: float, event: asyncio.Event, clock: Clock) -> bool:
    """Wait for an event for some seconds at most, and return whether it is set."""
    happening = asyncio.create_task(event.wait())
    late = asyncio.create_task(clock.sleep(seconds))
    try:
        await asyncio.wait({happening, late}, return_when=asyncio.FIRST_COMPLETED)
        return happening.done()
    finally:
        await ended(happening, late)


class DeadlockDetector:
    """Tracks what each seat waits for during a replay.

    Args:
        following: returns the seat whose turn it is in the recorded order; None once the replay is over.
        clock: for the timeout of the world; by default the system clock.
    """

    def __init__(self, following: Callable[[], str | None], clock: Clock | None = None) -> None:
        self._following = following
        self._clock = clock or SystemClock()
        self._states: dict[str, State] = {}
        self._moves = 0
        self._moved = asyncio.Event()

    def begin(self, seats: Iterable[str]) -> None:
        """Track these seats from now on."""
        self._states = dict.fromkeys(seats, "busy")
        self._move()

    def join(self, seat: str) -> None:
        """Track one more seat."""
        self._states[seat] = "busy"
        self._move()

    def leave(self, seat: str) -> None:
        """Stop tracking a seat."""
        self._states.pop(seat, None)
        self._move()

    @contextmanager
    def place(self, seat: str) -> Iterator[None]:
        """Mark a seat as waiting for its position in the order."""
        with self._waiting(seat, "for its place"):
            yield

    @contextmanager
    def world(self, seat: str) -> Iterator[None]:
        """Mark a seat as waiting for the world, or for other seats if the world reports that."""
        if self._following() is None:
            yield
            return
        asked = True

        def tell(waits: bool) -> None:
            if asked:
                self._set(seat, "for others" if waits else "for the world")

        told = TOLD_OF_WAITING.set(tell)
        try:
            with self._waiting(seat, "for the world"):
                yield
        finally:
            asked = False
            TOLD_OF_WAITING.reset(told)

    async def noticed(self) -> str:
        """Return, once no seat can continue, the seat whose recorded turn does not come; never return otherwise."""
        while True:
            before = self._moves
            if not self._everybody_waits:
                pass
            elif "for the world" in self._states.values():
                self._moved.clear()
                if not await is_set_within(WORLD_TIMEOUT, self._moved, self._clock):
                    break
            else:
                for _ in range(TURNS):
                    await asyncio.sleep(0)
                if self._moves == before:
                    break
            if self._moves == before:
                await self._moved.wait()
            self._moved.clear()
        following = self._following()
        assert following is not None  # otherwise no seat would wait
        return following

    @property
    def _everybody_waits(self) -> bool:
        return self._following() is not None and bool(self._states) and "busy" not in self._states.values()

    @contextmanager
    def _waiting(self, seat: str, state: State) -> Iterator[None]:
        self._set(seat, state)
        try:
            yield
        finally:
            self._set(seat, "busy")

    def _set(self, seat: str, state: State) -> None:
        if seat in self._states:
            self._states[seat] = state
            self._move()

    def _move(self) -> None:
        self._moves += 1
        self._moved.set()
