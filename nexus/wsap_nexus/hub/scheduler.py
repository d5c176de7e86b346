"""The tasks of agents: when each starts, and what it does until the nexus stops."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from wsap_core.errors import StorageDamagedError, WsapError
from wsap_core.seams.context import derive_seed
from wsap_core.specs import AdapterSpec
from wsap_nexus.agents.identity import seat_plan
from wsap_nexus.http.retries import Retries
from wsap_nexus.hub.agents.agent_context import AgentContext
from wsap_nexus.hub.agents.desk import NexusAdapter
from wsap_nexus.hub.agents.place import GAME, NEXUS_SPEC
from wsap_nexus.hub.context import HubContext
from wsap_nexus.hub.lobby import Capacity, Entrance, Lobby
from wsap_nexus.hub.play.failures import FailureHandler
from wsap_nexus.hub.play.kept import KeptWorlds
from wsap_nexus.hub.play.seating import decider
from wsap_nexus.hub.play.sessions import SessionRunner
from wsap_nexus.hub.transit.entering import PreparedEntry
from wsap_nexus.runs.plan import RunPlan
from wsap_nexus.runs.play.controls import Gate
from wsap_nexus.runs.record.recorder import Recorder
from wsap_nexus.runs.run import Run, RunSetup
from wsap_nexus.runs.venue import OwnVenue
from wsap_nexus.store.entities import AgentIdentity
from wsap_nexus.store.nexus_store import NexusStore
from wsap_nexus.tasks import ended

_LOG = logging.getLogger(__name__)

AT_ONCE = 50
"""Agents started immediately when a nexus starts; the others follow in groups."""
PAGE = 200
"""Agents per database query."""
TOGETHER = 10
"""Agents in a group; requests are answered between groups."""
LASTED = 60.0
"""Seconds of play after which an agent that meets another fault of the machine is repeated without a pause."""
AFTER_A_FAULT = Retries(first=1.0, longest=30.0, jitter=0.0)
"""Pauses of an agent that meets such faults again and again."""
WAIT_MOST = 60.0
"""Seconds after which agents decide even if others have not been started yet."""


class Scheduler:
    """Starts the agents of a nexus in groups, those in worlds first; meanwhile, up to `WAIT_MOST`, `gate` is closed."""

    def __init__(self, nexus_store: NexusStore, start_agent: Callable[[AgentIdentity], None], gate: Gate) -> None:
        self._nexus_store = nexus_store
        self._start_agent = start_agent
        self._gate = gate
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the first agents, and the others in the background."""
        agents = self._sleeping()
        for number, agent in enumerate(agents, start=1):
            self._start_agent(agent)
            if number == AT_ONCE:
                self._gate.close()
                self._task = asyncio.create_task(self._follow(agents), name="starting agents")
                return

    async def stop(self) -> None:
        """Start no more agents."""
        await ended(self._task)

    async def _follow(self, agents: Iterator[AgentIdentity]) -> None:
        opening = asyncio.get_running_loop().call_later(WAIT_MOST, self._gate.open)
        for number, agent in enumerate(agents):
            if number % TOGETHER == 0:
                await self._let_them_begin()
            self._start_agent(agent)
        await self._let_them_begin()
        opening.cancel()
        self._gate.open()

    async def _let_them_begin(self) -> None:
        for _ in range(3):  # turns of the loop in which the agents started so far reach their first decision
            await asyncio.sleep(0)

    def _sleeping(self) -> Iterator[AgentIdentity]:
        for place in ("world", "nexus"):
            last = ""
            while True:
                with self._nexus_store.look() as tx:
                    page = tx.agents(state="active", place=place, after=last, limit=PAGE)
                yield from page
                if len(page) < PAGE:
                    break
                last = page[-1].id


@dataclass(eq=False)
class AgentTasks:
    """The running tasks of a nexus' agents."""

    context: HubContext
    sessions: SessionRunner
    capacity: Capacity
    entrance: Entrance
    agent_context: AgentContext
    failures: FailureHandler
    kept: KeptWorlds
    _lobbies: dict[str, Lobby] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.tasks = self.context.live.agent_tasks
        """By agent; some may be done."""

    def begin(self, agent_id: str) -> None:
        """Start an agent's task, unless it runs."""
        if not self.context.live.is_active(agent_id):
            self.tasks[agent_id] = asyncio.create_task(self._live(agent_id), name=f"agent {agent_id}")

    async def end(self, agents: Iterable[str] | None = None) -> None:
        """Cancel the tasks of some agents, or of all."""
        names = list(self.tasks if agents is None else agents)
        await ended(*[self.tasks.pop(name, None) for name in names])

    async def _live(self, agent_id: str) -> None:
        """Run an agent until it is paused or the nexus stops; after a fault of the machine, resume from the log."""
        held = 0
        while not self.context.live.stopping:
            since = self.context.clock.now()
            try:
                if held:
                    self.failures.settle(agent_id)
                await self._live_on(agent_id)
                return
            except StorageDamagedError:
                return  # the nexus stops; it is not the agent's failure, and could not be recorded
            except Exception as error:
                if not self.context.storage.is_passing(error):
                    if isinstance(error, WsapError):
                        raise  # the database is another's now, or damaged, and the nexus ends
                    # A defect of the nexus itself: it pauses one agent, and never in silence.
                    _LOG.exception("The nexus itself failed while it played the agent %r.", agent_id)
                    what = f"{type(error).__name__}: {error}"
                    self.failures.agent_failed(agent_id, WsapError(f"The nexus itself failed ({what})."))
                    return
                # After a fault that does not hold all agents, this one does not fail again and again at once.
                held = held + 1 if self.context.clock.now() - since < LASTED else 1
                await self.context.storage.sound()
                if held > 1 and not self.context.live.stopping:
                    await self.context.clock.sleep(AFTER_A_FAULT.pause(held - 1, 0.5))

    async def _live_on(self, agent_id: str) -> None:
        """Resume an open session; then visit the nexus, enter a world, play and return, until the nexus stops."""
        try:
            while not self.context.live.stopping:
                with self.context.nexus_store.look() as tx:
                    agent = tx.agent(agent_id)
                if agent.state != "active":
                    break  # it was paused, by a person or a failure, and starts again when it is resumed
                if agent.session_id is not None:
                    await self.sessions.go_on(agent.session_id)
                    continue
                self.agent_context.go_on(agent_id)
                prepared = self._coming(agent_id) or await self._visit(agent)
                if prepared is not None:
                    await self._travel(prepared)
                elif not self.context.live.stopping:
                    await self.context.clock.sleep(1.0)
        except StorageDamagedError:
            raise
        except WsapError as error:
            if self.context.storage.is_passing(error):
                raise
            self.failures.agent_failed(agent_id, error)

    def _coming(self, agent_id: str) -> PreparedEntry | None:
        """Return the entry that a fault interrupted; None if it has taken place, though nobody was told."""
        entries = self.context.live.entries
        prepared = entries.get(agent_id)
        if prepared is None:
            return None
        with self.context.nexus_store.look() as tx:
            state = tx.transfer_state(prepared.transfer_id)
        del entries[agent_id]
        return prepared if state == "prepared" else None

    async def _visit(self, agent: AgentIdentity) -> PreparedEntry | None:
        """Play an agent's visit in the nexus, and return its prepared entry; None if it has none."""
        agent_id = agent.id
        seat = seat_plan(agent_id, agent, GAME, NEXUS_SPEC.default_agent)
        spec = replace(NEXUS_SPEC, factory=lambda: NexusAdapter(self.context, self.entrance, agent_id))
        run_seed = derive_seed(self.context.settings.seed, "visit", agent_id, agent.lifetime_steps)
        plan = RunPlan(GAME, (seat,), run_seed)
        record = self.context.live.visits[agent_id] = self.sessions.record_run(plan, GAME)
        recorder = Recorder(self.context.store.writer, record)
        recorder.note("started")
        controls = self.context.new_controls(agent)
        agents = {agent_id: decider(self.context, agent_id, seat.agent)}
        venue = OwnVenue(spec, run_seed, {}, self.context.clock, self.context.services)
        run = Run(
            plan,
            spec,
            agents,
            RunSetup(
                recorder=recorder,
                run_id=record,
                controls=controls,
                services=self.context.services,
                venue=venue,
                memories=self.agent_context.memories(record, {agent_id: agent_id}, None, recorder),
                past=self.agent_context.earlier_calls(agent_id, seat, record),
            ),
        )
        try:
            await self.sessions.play(run, recorder)
        finally:
            self.agent_context.end_visit(agent_id, record)
        return self.context.live.entries.pop(agent_id, None)

    async def _travel(self, prepared: PreparedEntry) -> None:
        try:
            run_id = await self._arrive(prepared)
        except WsapError as error:
            if not self.context.storage.is_passing(error):
                raise
            live = self.context.live
            if prepared.game in self.context.remote_games.specs():
                live.arriving.resolve(prepared.agent_id, error)  # the transfer is reconciled with the game
            else:
                live.entries[prepared.agent_id] = prepared
            raise
        if run_id is not None:
            await self.sessions.until_back(run_id, prepared.agent_id)

    async def _arrive(self, prepared: PreparedEntry) -> str | None:
        spec = self.context.catalog.spec(prepared.game)
        if "lives" in spec.abilities:
            return await self.kept.join(prepared)
        if spec.seats[1] == 1:
            return await self._enter_together([prepared], spec)
        if prepared.game not in self._lobbies:
            self._lobbies[prepared.game] = Lobby(
                spec, self.context.settings.lobby_seconds, self.context.clock, self._enter_together
            )
        return await self._lobbies[prepared.game].join(prepared)

    async def _enter_together(self, entries: Sequence[PreparedEntry], spec: AdapterSpec) -> str | None:
        return await self.capacity.enter_together(entries, spec, self.sessions.enter_together)
