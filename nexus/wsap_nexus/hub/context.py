"""What the services of a running nexus share: the database, the games, and what is held in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from wsap_core.host import PluginHost
from wsap_core.seams.clock import Clock
from wsap_core.seams.services import Services
from wsap_core.specs import AdapterSpec
from wsap_nexus.agents.messages import Wakeups
from wsap_nexus.hub.catalog import Catalog, CircuitBreaker
from wsap_nexus.hub.entering import PreparedEntry
from wsap_nexus.hub.external import Outside
from wsap_nexus.hub.live_session import LiveSession
from wsap_nexus.hub.remote_games import RemoteGames
from wsap_nexus.hub.settings import Settings
from wsap_nexus.runs.controls import Controls, Gate
from wsap_nexus.runs.observers import StepTaken
from wsap_nexus.runs.run import Run
from wsap_nexus.runs.store import Store
from wsap_nexus.store.entities import AgentIdentity, SessionRecord, WorldRecord
from wsap_nexus.store.nexus_store import NexusStore
from wsap_nexus.worlds.placement import Placement
from wsap_nexus.worlds.port import WorldPort

T = TypeVar("T")


class PendingFutures(Generic[T]):
    """What is waited for, by agent; all who wait for the same get the same."""

    def __init__(self) -> None:
        self._waiting: dict[str, asyncio.Future[T]] = {}

    def wait(self, agent_id: str) -> asyncio.Future[T]:
        """Return where it will be."""
        waiting = self._waiting.get(agent_id)
        if waiting is None or waiting.done():
            # Whoever waited may have given it up.
            waiting = self._waiting[agent_id] = asyncio.get_running_loop().create_future()
        return waiting

    def resolve(self, agent_id: str, outcome: T | Exception) -> None:
        """Give whoever waits for an agent what came of it, if anybody does."""
        future = self._waiting.pop(agent_id, None)
        if future is None or future.done():
            return
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
            future.exception()  # whoever waited may have given up
        else:
            future.set_result(outcome)


class Room(Protocol):
    """Says when there is room on the disk."""

    async def room(self) -> None:
        """Return once there is room to write."""
        ...


WorldMaker = Callable[[AdapterSpec, WorldRecord], WorldPort]
"""Makes a new, unstarted world."""
StepListener = Callable[[LiveSession, StepTaken], None]
"""Called after each decision in a world."""


@dataclass
class LiveState:
    """What a running nexus holds in memory, and loses when it ends."""

    sessions: dict[str, LiveSession] = field(default_factory=dict)
    """Open sessions that are being played, by agent."""
    entries: dict[str, PreparedEntry] = field(default_factory=dict)
    """Prepared ways into worlds, by agent, until they are taken."""
    external: Outside = field(default_factory=Outside)
    """Agents that somebody outside decides for, while they are in a world or in the nexus."""
    arriving: PendingFutures[LiveSession] = field(default_factory=PendingFutures)
    """Who waits for an agent to be in a world."""
    leaving: PendingFutures[SessionRecord] = field(default_factory=PendingFutures)
    """Who waits for an agent to be back."""
    visits: dict[str, str] = field(default_factory=dict)
    """The runs that agents in the nexus are in, by agent."""
    ports: dict[str, WorldPort] = field(default_factory=dict)
    """Worlds that somebody is in, by run; for looking at."""
    runs: dict[str, Run] = field(default_factory=dict)
    """Runs that are being played in a world, by their ids."""
    run_tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    """The tasks that play them, by run."""
    agent_tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    """The tasks of agents, by agent; some may be done."""
    controls: dict[str, Controls] = field(default_factory=dict)
    """What pauses and stops each agent, by agent."""
    listeners: list[StepListener] = field(default_factory=list)
    gate: Gate = field(default_factory=Gate)
    """Closed while the nexus is starting its agents, so that none decides: a few hundred who play would take all the
    time there is, and the last of thousands would come to life after minutes."""
    stopping: bool = False
    """Whether the nexus is being stopped: nothing begins any more."""
    full: str = ""
    """Why nothing can be written and agents are held; empty while there is room."""

    def is_active(self, agent_id: str) -> bool:
        """Return whether an agent's task is running."""
        task = self.agent_tasks.get(agent_id)
        return task is not None and not task.done()

    def tell(self, stay: LiveSession, step: StepTaken) -> None:
        """Call the listeners after a decision in a world."""
        for listener in self.listeners:
            listener(stay, step)

    def stop_game(self, game: str, reason: str) -> None:
        """End all open sessions in a game before their next decision."""
        for stay in list(self.sessions.values()):
            if stay.session.game == game:
                stay.stop(reason)


@dataclass(frozen=True)
class HubContext:
    """What the services of a nexus work with."""

    host: PluginHost
    store: Store
    nexus_store: NexusStore
    """Who is where and with what."""
    settings: Settings
    clock: Clock
    services: Services
    breaker: CircuitBreaker
    """Which games may be entered, and why others may not."""
    placement: Placement
    remote_games: RemoteGames
    catalog: Catalog
    wakeups: Wakeups
    """Wakes agents that wait in the nexus."""
    live: LiveState
    storage: Room
    """Where agents wait while the disk is full."""
    make_near: WorldMaker
    """Makes worlds of games that are installed here."""

    def make_world(self, spec: AdapterSpec, record: WorldRecord) -> WorldPort:
        """Return a new, unstarted world, in this process or another one.

        Raises:
            WorldFailedError: the game can't be loaded or made.
        """
        far = spec.name in self.remote_games.specs()
        return self.remote_games.world(spec, record) if far else self.make_near(spec, record)

    def new_controls(self, agent: AgentIdentity) -> Controls:
        """Return new controls of an agent: paused if it is paused, stopped if the nexus is being stopped."""
        controls = Controls(pace=self.settings.pace, gate=self.live.gate)
        if agent.state == "paused":
            controls.pause()
        if self.live.full:
            controls.hold()
        if self.live.stopping:
            controls.stop()
        self.live.controls[agent.id] = controls
        return controls
