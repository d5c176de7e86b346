"""Synchronization of a run's seats between two decisions: between ticks, and at the end of a round."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from wsap_core.seams.clock import Clock
from wsap_nexus.runs.record.deadlock import is_set_within
from wsap_nexus.tasks import TURNS


class Playing(Protocol):
    """A seat in play; see `SeatLoop` for the attributes."""

    acting: bool
    taking_in: bool
    idle: bool


class Between:
    """A barrier between two ticks, which each seat passes before it observes for its next decision.

    So all seats have processed the results of a tick before the next starts, and a snapshot finds them between two
    decisions.

    Args:
        waited_for: whether a tick waits for the seats, so that its end is also when they learn what came of it.
    """

    AHEAD = 3
    """Turns of the event loop by which such seats may learn of a tick before it is returned; they wait until it is."""

    def __init__(self, *, waited_for: bool = True) -> None:
        self._waited_for = waited_for
        self.over = False
        """Whether there are no more ticks."""
        self._open = asyncio.Event()
        self._open.set()
        self._moved = asyncio.Event()

    async def passed(self) -> bool:
        """Wait until a seat may observe; return False if there is no next tick."""
        self.moved()
        for _ in range(self.AHEAD if self._waited_for else 0):
            await asyncio.sleep(0)
        await self._open.wait()
        return not self.over

    def moved(self) -> None:
        """Report that a seat has processed its result, or has ended."""
        self._moved.set()

    def close(self) -> None:
        """Let no seat pass until `leave`."""
        self._open.clear()

    async def reached(self, seats: Sequence[Playing]) -> None:
        """Close the barrier until `leave`, and return once no seat is processing a result."""
        self._open.clear()
        while True:
            self._moved.clear()
            for _ in range(TURNS):
                await asyncio.sleep(0)
            if not any(seat.taking_in for seat in seats):
                return
            await self._moved.wait()

    def leave(self, *, over: bool = False) -> None:
        """Open the barrier; with `over`, the seats end."""
        self.over = over
        self._open.set()


class RoundEnd:
    """Holds seats before their next decision, when a snapshot is due, until all have finished the round; then saves.

    If a seat is already deciding, none waits, and the end of the next round is used. If some wait for the seats held
    here, as in turn-based games that hold back results, the snapshot is postponed, for longer each time.

    Args:
        put_off: postpones the snapshot by a number of decisions.
        clock: for worlds in other processes, whose results arrive one by one.
    """

    PATIENCE = 1.0
    """Seconds in which all results of a round arrive from a world in another process."""

    def __init__(
        self, due: Callable[[], bool], save: Callable[[], Awaitable[None]], put_off: Callable[[int], None], clock: Clock
    ) -> None:
        self.elsewhere = False
        """Whether the world is in another process."""
        self._due, self._save, self._put_off = due, save, put_off
        self._clock = clock
        self._playing: list[Playing] = []
        self._here, self._later = 0, 1
        self._came = asyncio.Event()
        self._open: asyncio.Event | None = None

    def begin(self, seats: Sequence[Playing]) -> None:
        """Set the seats in play."""
        self._playing = list(seats)

    def out(self, seat: Playing) -> None:
        """Remove a seat that has ended."""
        if seat in self._playing:
            self._playing.remove(seat)
        self._came.set()

    async def passed(self) -> bool:
        """Wait until a seat may observe; always True."""
        if not self._due():
            return True
        self._here += 1
        self._came.set()
        try:
            if self._open is not None:
                await self._open.wait()
                return True
            opens = self._open = asyncio.Event()
            try:
                if (all_here := await self._all_here()) is not None:
                    if all_here:
                        await self._save()
                        self._later = 1
                else:
                    self._put_off(self._later)
                    self._later *= 2
            finally:
                self._open = None
                opens.set()
        finally:
            self._here -= 1
        return True

    async def _all_here(self) -> bool | None:
        """Return True once all seats are held here; False if one is deciding, None if some wait for the others."""
        while self._here < len(self._playing):
            idle = sum(seat.idle for seat in self._playing)
            if idle > self._here or not all(s.idle or s.acting or s.taking_in for s in self._playing):
                return False
            self._came.clear()
            if not await self._somebody_comes():
                return None
        return True

    async def _somebody_comes(self) -> bool:
        for _ in range(TURNS):
            if self._came.is_set():
                return True
            await asyncio.sleep(0)
        if self.elsewhere and not self._taking_in:
            await is_set_within(self.PATIENCE, self._came, self._clock)
        if self._taking_in:
            await self._came.wait()
        return self._came.is_set()

    @property
    def _taking_in(self) -> bool:
        return any(seat.taking_in for seat in self._playing)
