"""The lives of agents while a nexus runs: each in a task that visits it, enters worlds, and comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from wsap_core.errors import WsapError
from wsap_core.seams.context import derive_seed
from wsap_nexus.hub.lobby import Lobby
from wsap_nexus.hub.place import GAME, NEXUS_SPEC, NexusPlace
from wsap_nexus.hub.transit import Way
from wsap_nexus.runs.plan import RunPlan
from wsap_nexus.runs.recorder import Recorder
from wsap_nexus.runs.run import Run
from wsap_nexus.runs.venue import OwnVenue

if TYPE_CHECKING:
    from wsap_nexus.hub.hub import Nexus


class Lives:
    """The agents of a nexus that live now.

    Args:
        nexus: whose agents they are.
    """

    def __init__(self, nexus: Nexus) -> None:
        self.tasks: dict[str, asyncio.Task[None]] = {}
        """Their lives, by agent; some may be over."""
        self._nexus = nexus
        self._lobbies: dict[str, Lobby] = {}

    def begin(self, agent_id: str) -> None:
        """Let an agent live, if it doesn't."""
        if not self.going_on(agent_id):
            self.tasks[agent_id] = asyncio.create_task(self._live(agent_id), name=f"agent {agent_id}")

    def going_on(self, agent_id: str) -> bool:
        """Return whether an agent lives now."""
        task = self.tasks.get(agent_id)
        return task is not None and not task.done()

    async def end(self, agents: Iterable[str] | None = None) -> None:
        """End the lives of some agents, or of all, wherever they are."""
        names = list(self.tasks if agents is None else agents)
        ending = [task for name in names if (task := self.tasks.pop(name, None)) is not None]
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)

    async def _live(self, agent_id: str) -> None:
        """Go on with what was open, then visit, enter, play and come back, for as long as the nexus runs."""
        try:
            while not self._nexus.stopping:
                with self._nexus.ledger.look() as book:
                    agent = book.agent(agent_id)
                if agent.state != "active":
                    break  # it was paused, by a person or because it failed, and lives again when it is resumed
                if agent.session_id is not None:
                    await self._nexus.tables.go_on(agent.session_id)
                    continue
                self._nexus.life.go_on(agent_id)
                way = self._nexus.ways.pop(agent_id, None) or await self._visit(agent_id)
                if way is not None:
                    await self._travel(way)
                elif not self._nexus.stopping:
                    await self._nexus.clock.sleep(1.0)
        except WsapError as error:
            self._nexus.homecoming.agent_failed(agent_id, error)

    async def _visit(self, agent_id: str) -> Way | None:
        """Let an agent be in the nexus until it is on its way somewhere."""
        with self._nexus.ledger.look() as book:
            agent = book.agent(agent_id)
        seat = self._nexus.life.seat_plan(agent_id, agent, GAME, NEXUS_SPEC.default_agent)
        spec = replace(NEXUS_SPEC, factory=lambda: NexusPlace(self._nexus.life, agent_id))
        run_seed = derive_seed(self._nexus.settings.seed, "visit", agent_id, agent.lifetime_steps)
        plan = RunPlan(GAME, (seat,), run_seed)
        record = self._nexus.visits[agent_id] = self._nexus.tables.record_run(plan, GAME)
        recorder = Recorder(self._nexus.store.writer, record)
        recorder.note("started")
        controls = self._nexus.new_controls(agent)
        agents = {agent_id: self._nexus.casting.agent_spec(agent_id, seat.agent)}
        venue = OwnVenue(spec, run_seed, {}, self._nexus.clock, self._nexus.services)
        run = Run(
            plan,
            spec,
            agents,
            recorder=recorder,
            run_id=record,
            controls=controls,
            services=self._nexus.services,
            venue=venue,
            minds=self._nexus.life.minds(record, {agent_id: agent_id}, None, recorder),
            past=self._nexus.life.earlier_calls(agent_id, seat, record),
        )
        try:
            await self._nexus.tables.play(run, recorder)
        finally:
            self._nexus.life.end_visit(agent_id, record)
        return self._nexus.ways.pop(agent_id, None)

    async def _travel(self, way: Way) -> None:
        """Bring an agent into a world, let it play there, and bring it back."""
        spec = self._nexus.catalog.spec(way.game)
        if spec.seats[1] == 1:
            run_id = await self._nexus.room.sit_down([way], spec)
        else:
            if way.game not in self._lobbies:
                self._lobbies[way.game] = Lobby(
                    spec, self._nexus.settings.lobby_seconds, self._nexus.clock, self._nexus.room.sit_down
                )
            run_id = await self._lobbies[way.game].join(way)
        if run_id is not None:
            await self._nexus.tables.until_home(run_id, way.agent_id)
