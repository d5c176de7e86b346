"""The world of a run that lives, beside the seats of the run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from wsap_core.protocol import Tick
from wsap_nexus.runs.life_log import LoggedRewind, Notes
from wsap_nexus.runs.living import Between, Life
from wsap_nexus.runs.loop import SeatLoop
from wsap_nexus.runs.replay_order import ReplayOrder
from wsap_nexus.runs.trajectory import WORLD
from wsap_nexus.runs.world_calls import WorldJournal


@dataclass
class RunLife:
    """Drives the world of a run tick by tick, and leads the seats from one to the next."""

    life: Life
    between: Between
    loops: Sequence[SeatLoop]
    count: Callable[[bool], None]
    """Told of each tick, and whether it is new, for the totals."""
    notes: Notes
    """What the world notes."""
    save: Callable[[int], Awaitable[None]]
    """Saves the state after a new tick, if that is due."""
    go_back: Callable[[bytes], Awaitable[None]]
    """Puts the world into a recorded state."""
    journal: WorldJournal
    """The calls of the world to models."""
    observers: Sequence[Callable[[Tick], None]] = field(default=())
    """Told of each new tick."""

    def __post_init__(self) -> None:
        self.life.after_tick = self._after_tick
        self.life.rewind = self._rewind

    async def play(self, episode: int, order: ReplayOrder, seats: Sequence[asyncio.Task[None]]) -> None:
        """Drive the world of an episode; at its limit, end the seats, which wait for the next tick or decide in it."""
        try:
            await self.life.play(episode)
        finally:
            order.deadlock.leave(WORLD)
        if not self.life.done:
            await self.between.reached(self.loops)
            self.between.leave(over=True)
            for seat in seats:
                seat.cancel()

    async def _after_tick(self, tick: Tick, *, new: bool) -> None:
        self.notes.reached(tick.number)
        self.count(new)
        if self.loops:
            await self.between.reached(self.loops)
        if new and not tick.done:
            await self.save(tick.number)
        self.between.leave()
        for observer in self.observers if new else ():
            observer(tick)

    async def _rewind(self, logged: LoggedRewind) -> None:
        await self.life.world.settle()
        self.life.recorder.rewound(logged.to, logged.world)
        self.notes.went_back(logged.to, logged.notes)
        self.journal.rewind()
        await self.go_back(logged.world)
