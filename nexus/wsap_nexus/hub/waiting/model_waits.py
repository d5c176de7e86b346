"""Agents that wait for their model: their provider was away, and they are resumed after growing pauses."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from wsap_core.errors import WsapError
from wsap_core.seams.clock import Clock
from wsap_core.seams.model_errors import TransientError
from wsap_nexus.agents.chronicle import waits_for_model
from wsap_nexus.store.nexus_store import NexusStore
from wsap_nexus.tasks import ended

FIRST, LONGEST = 30.0, 900.0
"""Seconds before an agent is resumed the first time, and at most; each pause is twice as long as the one before."""
LASTED = 600.0
"""Seconds after a resumption, after which a failure is a new one."""
_LOG = logging.getLogger(__name__)


class ModelWaits:
    """Resumes agents that a passing failure of their model paused; a person can resume or pause them meanwhile."""

    def __init__(self, nexus_store: NexusStore, clock: Clock, resume: Callable[[str], None]) -> None:
        self._nexus_store = nexus_store
        self._clock = clock
        self._resume = resume
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._tried: dict[str, tuple[int, float]] = {}  # agent -> resumptions in a row, and the time of the last one

    def start(self) -> None:
        """Wait with the agents that waited when the nexus stopped."""
        with self._nexus_store.look() as tx:
            waiting = [agent.id for agent in tx.agents(state="paused") if waits_for_model(tx, agent.id)]
        for agent_id in waiting:
            self._begin(agent_id)

    def failed(self, agent_id: str, error: WsapError) -> None:
        """Resume an agent later if this failure of it can pass."""
        if isinstance(error, TransientError):
            self._begin(agent_id)

    async def stop(self) -> None:
        """Resume no more agents."""
        await ended(*self._tasks.values())

    def _begin(self, agent_id: str) -> None:
        if (task := self._tasks.get(agent_id)) is None or task.done():
            self._tasks[agent_id] = asyncio.create_task(self._wait(agent_id), name=f"model of {agent_id}")

    async def _wait(self, agent_id: str) -> None:
        times, last = self._tried.get(agent_id, (0, float("-inf")))
        if self._clock.now() - last > LASTED + LONGEST:
            times = 0
        pause = min(FIRST * 2**times, LONGEST)
        _LOG.info("%s waits for its model, and tries again in %g s.", agent_id, pause)
        await self._clock.sleep(pause)
        self._tried[agent_id] = times + 1, self._clock.now()
        with self._nexus_store.look() as tx:
            waits = tx.agent(agent_id).state == "paused" and waits_for_model(tx, agent_id)
        if waits:
            # The next failure begins a wait of its own, maybe before this task is done.
            del self._tasks[agent_id]
            self._resume(agent_id)
