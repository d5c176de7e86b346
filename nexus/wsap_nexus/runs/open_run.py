"""A run of an open world, which agents enter and leave between ticks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from typing_extensions import override

from wsap_core.errors import StorageError, WorldError, WsapError
from wsap_core.seams.context import derive_seed
from wsap_core.seams.game import Snapshots
from wsap_core.seams.options import Options, check_used
from wsap_core.specs import AgentSpec
from wsap_nexus.runs.plan import SeatPlan
from wsap_nexus.runs.play.living import Life
from wsap_nexus.runs.play.loop import SeatLoop
from wsap_nexus.runs.play.stopping import play_until_stopped
from wsap_nexus.runs.record.replay_order import ReplayOrder
from wsap_nexus.runs.run import Run
from wsap_nexus.worlds.seats import SeatPort


class OpenRun(Run):
    """A run of a world that lives, with an `open` plan."""

    def steps_of(self, seat: str) -> int:
        """Return the number of recorded steps of a seat, over all its agents."""
        return self._tallies[seat].steps if seat in self._tallies else 0

    def next_decision(self, seat: str) -> int:
        """Return the number, from 0, of a seat's next decision: the next one to replay, if any."""
        return self._past.next_decision(seat, self.steps_of(seat))

    def decided(self, seat: str) -> int:
        """Return the number of recorded decisions of a seat, including one without a step."""
        return self._past.decided(seat) if self._past.history.get(seat) else self.steps_of(seat)

    @property
    def tick(self) -> int:
        """The number of the last tick so far, new or repeated; 0 before the first."""
        return 0 if self._life is None else self._life.number

    @property
    def repeats(self) -> bool:
        """Whether anything recorded is still to be replayed."""
        return not (self._order is None or self._order.over)

    @property
    def waits_for_somebody(self) -> bool:
        """Whether the world may be waiting for an agent or a model, or repeats what is recorded."""
        return self.repeats or self.world_journal.asks or bool(self.deciding())

    def replays_no_more(self) -> None:
        """Withhold no recorded reply from the world any longer, because it has ended in the middle of a replay."""
        if self._order is not None:
            self._order.stop()

    async def join(
        self,
        plan: SeatPlan,
        spec: AgentSpec,
        seat: SeatPort,
        *,
        limit: int | None = None,
        resting: bool = False,
        more_state: Callable[[], Mapping[str, Any]] | None = None,
    ) -> None:
        """Let an agent play in an open seat from now on; call it between two ticks.

        Args:
            limit: the number of decisions of the seat at which the agent leaves.
            resting: the seat is part of the restored state, and resumes from it.
            more_state: returns what else to save with the seat. Any: JSON.

        Raises:
            WsapError: the agent can't be created.
        """
        name, seed = plan.name, derive_seed(self.plan.seed, self._episode)
        if name not in self._tallies:
            self._tallies[name] = self.plan.tally(plan)
            self._tallies[name].begin_episode(self._episode, seed)
        self._tallies[name].agent, self._tallies[name].done = plan.agent, False
        others = tuple(seat for seat in self.plan.seats if seat.name != name)
        self.plan = replace(self.plan, seats=(*others, plan))
        given: list[Options] = []
        loop = self._loop(plan, spec, seat, given, limit)
        loop.more_state = more_state
        check_used(f"The agent {plan.agent!r}", *given)
        await loop.initialize()
        self._memories.begin(plan, loop.agent)
        if resting:
            loop.restore(self._past.seats[name])
            if name in self._past.agents and isinstance(loop.agent, Snapshots):
                loop.agent.restore(self._past.agents[name])
        self._loops.append(loop)
        self._saver.agents = {**self._saver.agents, name: spec}
        if self._tasks:
            self._begin(loop)

    def _begin(self, loop: SeatLoop) -> None:
        order = self._order or ReplayOrder()
        order.deadlock.join(loop.seat.agent_id)
        self._tasks.append(asyncio.create_task(self._play_seat(loop, order)))
        self._more.set()

    @override
    async def _restore(self, world: bytes) -> None:
        assert self._passages is not None, "the plan is open"
        await self._passages.restored(lambda: self._venue.port.restore(world))

    @property
    def world_ended(self) -> bool:
        """Whether the world has ended, so that there is no next tick to wait for."""
        return self._life is not None and self._life.done

    @override
    async def _live(self, life: Life, order: ReplayOrder, seats: list[asyncio.Task[None]]) -> None:
        await super()._live(life, order, seats)
        if life.done and self._passages is not None:
            await self._passages.take(self._episode)

    @override
    async def _play_out(self, loop: SeatLoop) -> None:
        """Play a seat until its agent leaves, is done, fails or is stopped; then let it out."""
        name = loop.seat.agent_id
        assert self._passages is not None, "the plan is open"
        try:
            await play_until_stopped(loop, self._episode, self._seat_controls.get(name), self.controls)
        except (WorldError, StorageError):
            raise
        except WsapError as error:
            self._passages.failed(name, error)
        if self.controls.stopping:
            return
        if not loop.is_over:
            await loop.leave(self._episode)
        loop.taking_in = loop.idle = False
        self._between.moved()
        await self._finish(loop)
        if self._order is not None:
            self._order.deadlock.leave(name)  # it waits to be let out, and nothing recorded waits for it
        await self._passages.departed(name)

    async def close_seat(self, seat: str) -> None:
        """Close the seat of an agent that has left, in the world and here: what is saved from now on is without it."""
        await self.living.close_seat(seat)
        self._loops[:] = [loop for loop in self._loops if loop.seat.agent_id != seat]
