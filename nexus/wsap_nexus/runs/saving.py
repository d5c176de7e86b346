"""Records snapshots of a run: its world, its agents, and their loops."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from wsap_core.seams.game import Snapshots
from wsap_core.specs import AgentSpec
from wsap_nexus.runs.loop import SeatLoop
from wsap_nexus.runs.recorder import Recorder
from wsap_nexus.runs.replay_order import ReplayOrder
from wsap_nexus.runs.venue import Venue


@dataclass
class Saver:
    """Records a snapshot every so many decisions and ticks, if game and agents support it."""

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

    def is_due(self) -> bool:
        """Return whether a snapshot is due and supported, and the replay is over."""
        if not 0 < self.every <= self.since or not (self.order is None or self.order.over):
            return False
        able = all("snapshot" in self.agents[loop.seat.agent_id].abilities for loop in self.loops)
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

    async def save(self, episode: int, tick: int | None = None) -> None:
        """Record a snapshot now."""
        here = [loop for loop in self.loops if loop.seat.agent_id not in self.gone]
        agents = {loop.seat.agent_id: cast(Snapshots, loop.agent).snapshot() for loop in here}
        seats = {loop.seat.agent_id: loop.state() for loop in self.loops}
        self.recorder.snapshot(episode, await self.venue.port.snapshot(), agents, seats, tick)
        self.since = 0

    def put_off(self, decisions: int) -> None:
        """Postpone the next snapshot by so many decisions."""
        self.since = max(0, self.every - decisions)
