"""Records snapshots of a run: its world, its agents, and their loops."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from wsap_core.seams.game import Snapshots
from wsap_core.specs import AgentSpec
from wsap_nexus.runs.play.loop import SeatLoop
from wsap_nexus.runs.record.recorder import Recorder
from wsap_nexus.runs.record.replay_order import ReplayOrder
from wsap_nexus.runs.resume import can_be_saved
from wsap_nexus.runs.venue import Venue
from wsap_nexus.worlds.port import alone_in

SHARE = 20
"""A state is kept again after this many times the time that it took: at most a twentieth of the time is spent on it."""
PAUSE = 0.25
"""Minimum seconds between two kept states."""


@dataclass
class Saver:
    """Records a snapshot every so many decisions and ticks, if game and agents support it.

    Of a world that lives, the state after a tick is also kept every now and then in place of the one kept before, so
    that a resumed run repeats only moments, however long it is and whoever is in it.
    """

    every: int
    """0 for never."""
    recorder: Recorder
    venue: Venue
    agents: Mapping[str, AgentSpec]
    loops: Sequence[SeatLoop]
    gone: Collection[str]
    """Seats that have left."""
    since: int
    """Decisions and ticks since the last snapshot."""
    order: ReplayOrder | None = None
    open: bool = False
    """Whether seats are closed in play; until then a seat that has ended prevents a snapshot."""
    clock: Callable[[], float] = time.monotonic
    _due: float = 0.0
    """When to keep a state again."""
    _kept: int = -1
    """The last event in the kept state."""

    def is_due(self) -> bool:
        """Return whether a snapshot is due and supported, and the replay is over."""
        if not 0 < self.every <= self.since or not (self.order is None or self.order.over):
            return False
        able = all(can_be_saved(self.agents[loop.seat.agent_id]) for loop in self.loops)
        return able and self.venue.port.can_snapshot

    async def save_if_due(self, episode: int, tick: int | None = None) -> None:
        """Record a snapshot if it is due and, after a `tick`, no seat is deciding."""
        deciding = tick is not None and not all(
            loop.idle or (not self.open and (loop.seat.done or loop.let_go)) for loop in self.loops
        )
        if self.is_due() and not deciding:
            await self.save(episode, tick)

    async def save_at_stop(self, episode: int, tick: int) -> None:
        """Record a snapshot of a world without seats that is stopped, if there is anything new."""
        if self.every and self.since and self.venue.port.can_snapshot:
            await self.save(episode, tick)

    async def keep_after_tick(self, tick: int, *, now: bool = False) -> None:
        """Keep the state after a tick if some time has passed since the last time, or `now`.

        An agent that is deciding, or whose state can't be saved, is left out; then the state serves to go back to, not
        to resume from.
        """
        began = self.clock()
        if not self.every or self.recorder.latest == self._kept or not (now or began >= self._due):
            return
        if not self.venue.port.can_snapshot or not (self.order is None or self.order.over):
            return
        async with alone_in(self.venue.port):
            here = [loop for loop in self.loops if loop.seat.agent_id not in self.gone]
            settled = {loop.seat.agent_id: loop for loop in here if loop.at_rest or self._decides_elsewhere(loop)}
            agents = {name: _state(loop) for name, loop in settled.items() if can_be_saved(self.agents[name])}
            seats = {loop.seat.agent_id: loop.state() for loop in self.loops}
            world = await self.venue.port.snapshot()
            self.recorder.keep_state(tick, world, agents, seats, whole=len(agents) == len(here))
        self._kept = self.recorder.latest
        after = self.clock()
        self._due = after + max(PAUSE, SHARE * (after - began))

    def _decides_elsewhere(self, loop: SeatLoop) -> bool:
        return self.agents[loop.seat.agent_id].interactive and not loop.acting and not loop.taking_in

    async def save(self, episode: int, tick: int | None = None) -> None:
        """Record a snapshot now."""
        async with alone_in(self.venue.port):
            here = [loop for loop in self.loops if loop.seat.agent_id not in self.gone]
            agents = {loop.seat.agent_id: _state(loop) for loop in here}
            seats = {loop.seat.agent_id: loop.state() for loop in self.loops}
            self.recorder.snapshot(episode, await self.venue.port.snapshot(), agents, seats, tick)
        self.since = 0

    def put_off(self, decisions: int) -> None:
        """Postpone the next snapshot by so many decisions."""
        self.since = max(0, self.every - decisions)


def _state(loop: SeatLoop) -> bytes:
    return loop.agent.snapshot() if isinstance(loop.agent, Snapshots) else b""
