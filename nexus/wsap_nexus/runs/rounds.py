"""The moments at which all seats of a run are between two decisions: between ticks, and at the end of a round."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from wsap_core.seams.clock import Clock
from wsap_nexus.runs.deadlock import TURNS, is_set_within


class Playing(Protocol):
    """A seat that is played."""

    acting: bool
    """Whether a choice is recorded, and what comes of it is not yet taken in."""
    taking_in: bool
    """Whether it is not through with a result."""
    idle: bool
    """Whether it waits for its next decision."""


class Between:
    """The moment between two ticks, which the seats of a run take part in.

    A seat passes here before it looks at the world for its next decision. So what came of a tick is taken in by all
    of them before the next begins, and whoever saves the run finds them between two decisions.
    """

    def __init__(self) -> None:
        self.over = False
        """Whether no tick comes any more."""
        self._open = asyncio.Event()
        self._open.set()
        self._moved = asyncio.Event()

    async def passed(self) -> bool:
        """Return, for a seat, whether it may look at the world: there is a next tick."""
        self.moved()
        await self._open.wait()
        return not self.over

    def moved(self) -> None:
        """Say that a seat has taken in what came of a tick, or plays no more."""
        self._moved.set()

    async def reached(self, seats: Sequence[Playing]) -> None:
        """Keep seats from deciding anew, until `leave`, and return once none takes in what came of a tick."""
        self._open.clear()
        while True:
            self._moved.clear()
            for _ in range(TURNS):
                await asyncio.sleep(0)
            if not any(seat.taking_in for seat in seats):
                return
            await self._moved.wait()

    def leave(self, *, over: bool = False) -> None:
        """Let the seats go on; after the last tick they end."""
        self.over = over
        self._open.set()


class RoundEnd:
    """Keeps seats from their next decision, once the run is to be saved, until all are through with the last round.

    Where one of them decides already, nobody waits: the end of the next round will do. Where some wait for those who
    are kept here, as in games in turns whose results are held back, it is tried again later, and ever more rarely.

    Args:
        put_off: told that this can't be done for now, and after how many more decisions to try again.
        clock: for a world elsewhere, whose results come one by one.
    """

    PATIENCE = 1.0
    """Seconds in which all results of a round have come from a world elsewhere."""

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
        """Take these seats as those that are played."""
        self._playing = list(seats)

    def out(self, seat: Playing) -> None:
        """Say that a seat is not played any more."""
        if seat in self._playing:
            self._playing.remove(seat)
        self._came.set()

    async def passed(self) -> bool:
        """Return when the seat may look at the world: always True."""
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
        """Return whether all seats are kept here; False if one decides already, None if some wait for the others."""
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
