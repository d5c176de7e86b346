"""Plays a world that lives: tick after tick, recorded, controlled and resumable."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Protocol

from wsap_core.errors import RecordMismatchError, UsageError, WorldError, WsapError
from wsap_core.protocol import Tick
from wsap_core.protocol.values import JsonValue
from wsap_core.protocol.wire import dumps
from wsap_core.seams.model_errors import BackendError
from wsap_nexus.runs.play.controls import Controls
from wsap_nexus.runs.play.rounds import Between, Playing
from wsap_nexus.runs.record.life_log import LifeEvent, LoggedInfluence, LoggedPassage, LoggedRewind, Notes
from wsap_nexus.runs.record.recorder import Recorder
from wsap_nexus.runs.record.replay_order import ReplayOrder, position_of_event
from wsap_nexus.runs.record.tally import SeatTally
from wsap_nexus.runs.record.trajectory import WORLD
from wsap_nexus.runs.record.world_calls import WorldJournal
from wsap_nexus.worlds.port import LivingPort, alone_in

Inbox = Callable[[], Sequence[tuple[int, Mapping[str, JsonValue]]]]
"""Returns the waiting influences, each with its number and body."""


class Passages(Protocol):
    """Lets agents into and out of a world in play."""

    def opened(self) -> None:
        """Take notice that the world is there, before anything is restored or repeated."""
        ...

    async def take(self, episode: int) -> None:
        """Carry out the waiting arrivals and departures."""
        ...

    async def again(self, logged: LoggedPassage) -> None:
        """Replay an arrival or departure."""
        ...

    async def restored(self, restore: Callable[[], Awaitable[None]]) -> None:
        """Open the seats of the agents present when the state was saved, restore it, and seat them."""
        ...

    async def departed(self, seat: str) -> None:
        """Let the agent of a seat out, and return afterwards."""
        ...

    def failed(self, seat: str, error: WsapError) -> None:
        """Handle the failure of an agent, which is about to leave."""
        ...

    def decides_elsewhere(self, seat: str) -> bool:
        """Return whether an external client decides for a seat."""
        ...


@dataclass
class Life:
    """The ticks of a world in one run. Only `play` advances it: it verifies recorded ticks, then makes new ones."""

    port: LivingPort
    tally: SeatTally
    recorder: Recorder
    controls: Controls
    limit: int | None
    """Ticks in the whole run; None for no limit."""
    history: deque[LifeEvent]
    """Recorded events to replay before new ticks."""
    order: ReplayOrder | None
    """The recorded order of ticks and decisions, in a run with seats."""
    inbox: Inbox
    passages: Passages | None
    """Arrivals and departures, in an open world."""
    again: bool
    """Whether the history is another run's: it is replayed and recorded in this run, with nothing after it."""
    number: int
    """The last tick; 0 before the first."""
    between: Between
    loops: Sequence[Playing]
    notes: Notes
    journal: WorldJournal
    all_decided: Callable[[], Awaitable[None]]
    """Waits until no agent is deciding, other than those of clients."""
    count: Callable[[bool], None]
    """Counts a tick in the totals, given whether it is new."""
    save: Callable[[int], Awaitable[None]]
    """Saves the state after a new tick, if that is due."""
    go_back: Callable[[bytes], Awaitable[None]]
    """Restores the world to a recorded state."""
    observers: Sequence[Callable[[Tick], None]]
    """Called with each new tick."""
    done: bool = False
    interrupted: bool = False
    """Whether the world was stopped in the middle of a tick."""
    passing: bool = False
    """Whether agents are being let in or out, so that world and seats don't match; also if that was interrupted."""
    ticking_since: float | None = None
    """When the current tick began, in seconds of the monotonic clock; None between two ticks."""
    _taken: set[int] = field(default_factory=set)

    async def play(self, episode: int, order: ReplayOrder, seats: Sequence[asyncio.Task[None]]) -> None:
        """Play ticks until the world is done, the limit is reached, or the run is stopped.

        At the limit, seats that wait for the next tick, or decide in it, end.

        Raises:
            WorldError: the world fails, or numbers its ticks wrongly.
            RecordMismatchError: it diverges from the recording.
            StorageError: an event can't be recorded.
        """
        try:
            await self._drive(episode)
        finally:
            order.deadlock.leave(WORLD)
        if self.again and self.order is not None:
            await self.order.ended(WORLD)  # seats may have acted after the last recorded tick
        if not self.done:
            self.between.close()
            await self.port.rest()
            await self.between.reached(self.loops)
            self.between.leave(over=True)
            for seat in seats:
                seat.cancel()

    async def _drive(self, episode: int) -> None:
        last = -inf  # the first starts immediately
        while self.history or not (self.again or self.done or self._used_up):
            if self.history:
                await self.controls.yield_to_loop()
                await self._repeat(episode, self.history.popleft())
                continue
            if not await self.controls.wait_until_running(last):
                return
            last = self.controls.clock.now()
            async with alone_in(self.port):
                if self.passages is not None and (self.order is None or self.order.over):
                    self.passing = True
                    await self.passages.take(episode)
                    self.passing = False
                await self._take_influences(episode)
            await self._new_tick(episode)

    @property
    def _used_up(self) -> bool:
        return self.limit is not None and self.tally.steps >= self.limit

    async def _new_tick(self, episode: int) -> None:
        try:
            tick, after = await self._advance()
        except BackendError:
            # Other calls are in flight, and agents decide: what is paid for them is to be in the log first.
            await self.all_decided()
            await self.journal.all_landed()
            raise
        if self.order is not None:
            await self.order.ended(WORLD)
        self._record(episode, tick, after)
        await self._passed(tick, new=True)

    def _record(self, episode: int, tick: Tick, after: int | None) -> None:
        self.journal.ends()
        line = dumps(tick)
        self.recorder.tick(episode, tick.number, line, after=after)
        self.tally.add_tick(line, done=tick.done)

    async def _repeat(self, episode: int, logged: LifeEvent) -> None:
        order = self.order or ReplayOrder()
        if isinstance(logged, LoggedRewind):
            await self.port.settle()
            self.recorder.rewound(logged.to, logged.world)
            self.notes.went_back(logged.to, logged.notes)
            self.journal.rewind()
            await self.go_back(logged.world)
            self.number, self.done = logged.to, False
            return
        made = position_of_event(logged.seq, WORLD)
        if isinstance(logged, LoggedInfluence):
            await order.reach(made)
            said = await self._influence(logged.body)
            if self.again:
                self.recorder.influence(episode, logged.body, None, said=said)
            order.passed(made)
            return
        if isinstance(logged, LoggedPassage):
            if self.passages is None:
                raise UsageError("Agents of a nexus entered this world in play, so only a nexus can resume it.")
            await order.reach(made)
            with order.deadlock.world(WORLD):  # a departure waits for the seat
                await self.passages.again(logged)
            order.passed(made)
            return
        if logged.begun is not None:
            with order.deadlock.place(WORLD):
                await order.reach(logged.begun)
            order.passed(logged.begun)
        tick, after = await self._advance()
        await order.reach(made)
        if dumps(tick) != logged.line:
            raise RecordMismatchError(
                f"{self.port.spec.name!r} diverged from the recording in tick {logged.number}, so the run can't be "
                f"{'repeated' if self.again else 'resumed'}. Has the game changed?"
            )
        order.passed(made)
        if self.again:
            self._record(episode, tick, after)
        await self._passed(tick, new=self.again)

    async def _advance(self) -> tuple[Tick, int | None]:
        """Return the next tick and, in a run with seats, the last event before it started."""
        after = -1

        def begun() -> None:
            nonlocal after
            after = self.recorder.latest

        self.interrupted, self.ticking_since = True, time.monotonic()
        try:
            if self.order is None:
                tick = await self.port.advance(begun)
            else:
                with self.order.deadlock.world(WORLD):
                    tick = await self.port.advance(begun)
        finally:
            self.ticking_since = None
        self.interrupted = False
        # A run's first tick may have any number: the world may have started in another run.
        if tick.number != self.number + 1 and (self.number or tick.number < 1):
            raise WorldError(f"The game {self.port.spec.name!r} gave tick {tick.number} after tick {self.number}.")
        return tick, None if self.order is None else after

    async def _passed(self, tick: Tick, *, new: bool) -> None:
        self.number, self.done = tick.number, tick.done
        self.notes.reached(tick.number)
        self.journal.passed(tick.number)
        self.count(new)
        if self.loops:
            self.between.close()
            await self.port.rest()
            await self.between.reached(self.loops)
        if new and not tick.done:
            await self.save(tick.number)
        self.between.leave()
        for observer in self.observers if new else ():
            observer(tick)

    async def _take_influences(self, episode: int) -> None:
        if self.order is not None and not self.order.over:
            return  # new influences come after the replay
        waiting = self.inbox()
        self._taken &= {number for number, _ in waiting}  # the others have left the inbox
        for number, body in waiting:
            if number in self._taken:
                continue
            self._taken.add(number)
            try:
                said = await self._influence(body)
            except WsapError as error:
                # Take it out of the inbox all the same, or it would end each attempt to resume.
                self.recorder.influence(episode, body, number, refused=str(error))
                if not isinstance(error, UsageError):
                    raise
            else:
                self.recorder.influence(episode, body, number, said=said)

    async def _influence(self, body: Mapping[str, JsonValue]) -> str:
        return await self.port.influence(body)
