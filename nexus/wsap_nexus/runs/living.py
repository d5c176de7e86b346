"""What drives a world that lives by itself: tick after tick, recorded, controlled and resumable."""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Protocol

from wsap_core.errors import RecordMismatchError, UsageError, WorldError, WsapError
from wsap_core.protocol import Tick
from wsap_core.protocol.values import JsonValue
from wsap_core.protocol.wire import dumps
from wsap_core.worlds import World
from wsap_nexus.runs.controls import Controls
from wsap_nexus.runs.life_log import LifeEvent, LoggedInfluence, LoggedPassage, LoggedRewind, Notes
from wsap_nexus.runs.recorder import Recorder
from wsap_nexus.runs.replay_order import ReplayOrder, position_of_event
from wsap_nexus.runs.rounds import Between, Playing
from wsap_nexus.runs.tally import SeatTally
from wsap_nexus.runs.trajectory import WORLD
from wsap_nexus.runs.world_calls import WorldJournal

Inbox = Callable[[], Sequence[tuple[int, Mapping[str, JsonValue]]]]
"""Gives the influences that wait: the number of each, and its body."""


class Passages(Protocol):
    """Those who come into a world in play, and leave it."""

    async def take(self, episode: int) -> None:
        """Let in and out whoever waits for that."""
        ...

    async def again(self, logged: LoggedPassage) -> None:
        """Carry out an arrival or departure again."""
        ...

    async def restored(self, restore: Callable[[], Awaitable[None]]) -> None:
        """Open the seats of those who were there when the state was saved, have it restored, and seat them."""
        ...

    async def departed(self, seat: str) -> None:
        """Have somebody who has left let out, and return after that."""
        ...

    def failed(self, seat: str, error: WsapError) -> None:
        """Take in that an agent failed; it is about to leave."""
        ...


@dataclass
class Life:
    """A world's ticks in one run, which lead its seats from one to the next.

    `play` drives them: recorded ones first, compared with the record, then new ones. Nothing else drives the world.
    """

    world: World
    tally: SeatTally
    recorder: Recorder
    controls: Controls
    limit: int | None
    """Ticks in the whole run; None for no limit."""
    history: deque[LifeEvent]
    """What is carried out again before new ticks."""
    order: ReplayOrder | None
    """The recorded order of ticks and the acts of seats, in a run that has seats."""
    inbox: Inbox
    passages: Passages | None
    """Those who come and go, in a world that is open."""
    again: bool
    """Whether the history is that of another run, which is played again: recorded in this one, and nothing after it."""
    number: int
    """The last tick; 0 before the first."""
    between: Between
    loops: Sequence[Playing]
    notes: Notes
    journal: WorldJournal
    count: Callable[[bool], None]
    """Told of each tick, and whether it is new, for the totals."""
    save: Callable[[int], Awaitable[None]]
    """Saves the state after a new tick, if that is due."""
    go_back: Callable[[bytes], Awaitable[None]]
    """Puts the world into a recorded state."""
    observers: Sequence[Callable[[Tick], None]]
    """Told of each new tick."""
    done: bool = False
    interrupted: bool = False
    """Whether the world was stopped in the middle of a tick."""
    _taken: set[int] = field(default_factory=set)

    async def play(self, episode: int, order: ReplayOrder, seats: Sequence[asyncio.Task[None]]) -> None:
        """Drive the world of an episode until it is done, the limit is reached, or the run is stopped.

        At the limit the seats end, which wait for the next tick or decide in it.

        Raises:
            WorldError: the world fails, or counts its ticks wrongly.
            RecordMismatchError: it does not go the way that is recorded.
            StorageError: something can't be recorded.
        """
        try:
            await self._drive(episode)
        finally:
            order.deadlock.leave(WORLD)
        if not self.done:
            await self.between.reached(self.loops)
            self.between.leave(over=True)
            for seat in seats:
                seat.cancel()

    async def _drive(self, episode: int) -> None:
        last = -inf  # the first begins at once
        while self.history or not (self.again or self.done or self._used_up):
            if self.history:
                await self.controls.yield_to_loop()
                await self._repeat(episode, self.history.popleft())
                continue
            if not await self.controls.wait_until_running(last):
                return
            last = self.controls.clock.now()
            if self.passages is not None and (self.order is None or self.order.over):
                await self.passages.take(episode)
            await self._take_influences(episode)
            await self._new_tick(episode)

    @property
    def _used_up(self) -> bool:
        return self.limit is not None and self.tally.steps >= self.limit

    async def _new_tick(self, episode: int) -> None:
        after = None if self.order is None else self.recorder.latest
        tick = await self._advance()
        if self.order is not None:
            await self.order.ended(WORLD)
        self._record(episode, tick, after)
        await self._passed(tick, new=True)

    def _record(self, episode: int, tick: Tick, after: int | None) -> None:
        line = dumps(tick)
        self.recorder.tick(episode, tick.number, line, after=after)
        self.tally.add_tick(line, done=tick.done)

    async def _repeat(self, episode: int, logged: LifeEvent) -> None:
        order = self.order or ReplayOrder()
        if isinstance(logged, LoggedRewind):
            await self.world.settle()
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
                raise UsageError("Agents of a nexus came into this world in play, so only a nexus goes on with it.")
            await order.reach(made)
            await self.passages.again(logged)
            order.passed(made)
            return
        if logged.begun is not None:
            with order.deadlock.place(WORLD):
                await order.reach(logged.begun)
            order.passed(logged.begun)
        after = None if self.order is None else self.recorder.latest
        tick = await self._advance()
        await order.reach(made)
        if dumps(tick) != logged.line:
            raise RecordMismatchError(
                f"{self.world.spec.name!r} did not go the way it was recorded in tick {logged.number}, so the run "
                "can't be resumed; is it another version of the game?"
            )
        order.passed(made)
        if self.again:
            self._record(episode, tick, after)
        await self._passed(tick, new=self.again)

    async def _advance(self) -> Tick:
        self.interrupted = True
        if self.order is None:
            tick = await self.world.advance()
        else:
            with self.order.deadlock.world(WORLD):
                tick = await self.world.advance()
        self.interrupted = False
        # The first tick of a run has any number: a world may go on that began elsewhere.
        if tick.number != self.number + 1 and (self.number or tick.number < 1):
            raise WorldError(f"The game {self.world.spec.name!r} gave tick {tick.number} after tick {self.number}.")
        return tick

    async def _passed(self, tick: Tick, *, new: bool) -> None:
        self.number, self.done = tick.number, tick.done
        self.notes.reached(tick.number)
        self.count(new)
        if self.loops:
            await self.between.reached(self.loops)
        if new and not tick.done:
            await self.save(tick.number)
        self.between.leave()
        for observer in self.observers if new else ():
            observer(tick)

    async def _take_influences(self, episode: int) -> None:
        if self.order is not None and not self.order.over:
            return  # they come after what is recorded
        waiting = self.inbox()
        self._taken &= {number for number, _ in waiting}  # the others are gone from the inbox
        for number, body in waiting:
            if number in self._taken:
                continue
            self._taken.add(number)
            try:
                said = await self._influence(body)
            except WsapError as error:
                # Taken out of the inbox all the same, or it would end each attempt to go on.
                self.recorder.influence(episode, body, number, refused=str(error))
                if not isinstance(error, UsageError):
                    raise
            else:
                self.recorder.influence(episode, body, number, said=said)

    async def _influence(self, body: Mapping[str, JsonValue]) -> str:
        said = self.world.influence(body)
        return await said if inspect.isawaitable(said) else said
