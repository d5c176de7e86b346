"""The shared state of a running nexus' services: database, games, and what is held in memory."""

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
from wsap_nexus.hub.games.catalog import Catalog, CircuitBreaker
from wsap_nexus.hub.games.remote_games import RemoteGames
from wsap_nexus.hub.live_session import LiveSession
from wsap_nexus.hub.outside.external import Outside
from wsap_nexus.hub.settings import Settings
from wsap_nexus.hub.transit.entering import PreparedEntry
from wsap_nexus.runs.play.controls import Controls, Gate
from wsap_nexus.runs.play.observers import StepTaken
from wsap_nexus.runs.run import Run
from wsap_nexus.runs.store import Store
from wsap_nexus.store.entities import AgentIdentity, SessionRecord, WorldRecord
from wsap_nexus.store.events.endings import GAME_OFFLINE
from wsap_nexus.store.nexus_store import NexusStore
from wsap_nexus.worlds.placement import Placement
from wsap_nexus.worlds.port import WorldPort

T = TypeVar("T")


class PendingFutures(Generic[T]):
    """Pending results by agent; all waiters for an agent share one future."""

    def __init__(self) -> None:
        self._waiting: dict[str, asyncio.Future[T]] = {}

    def wait(self, agent_id: str) -> asyncio.Future[T]:
        """Return the future of an agent's next result."""
        waiting = self._waiting.get(agent_id)
        if waiting is None or waiting.done():
            # A waiter may have cancelled the previous one.
            waiting = self._waiting[agent_id] = asyncio.get_running_loop().create_future()
        return waiting

    def resolve(self, agent_id: str, outcome: T | Exception) -> None:
        """Give the waiters for an agent, if any, its result."""
        future = self._waiting.pop(agent_id, None)
        if future is None or future.done():
            return
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
            future.exception()  # the waiter may be gone
        else:
            future.set_result(outcome)


class Soundness(Protocol):
    """Tells faults of the machine from failures, and waits for their end."""

    async def sound(self) -> None:
        """Return once no fault of the machine lasts, or the nexus stops."""
        ...

    def is_passing(self, error: BaseException) -> bool:
        """Return whether an error is due to a fault of the machine, so that what failed is repeated after `sound`."""
        ...


WorldMaker = Callable[[AdapterSpec, WorldRecord], WorldPort]
"""Makes a new, unstarted world."""
StepListener = Callable[[LiveSession, StepTaken], None]
"""Called after each decision in a world."""


@dataclass(frozen=True)
class Entering:
    """An entry into a world that has not let the agent in yet."""

    game: str
    since: float
    """When it began, in seconds of the monotonic clock."""
    called_off: asyncio.Event
    """Set to call it off."""


@dataclass(frozen=True)
class ModelWait:
    """A world that lives and does not go on, because a model that it asks fails."""

    why: str
    """The last error."""
    since: float
    """When it stopped, in seconds of the monotonic clock."""
    tries: int = 1
    """How often the model has failed since the world's last tick."""


@dataclass
class LiveState:
    """The state of a running nexus that is held in memory only."""

    sessions: dict[str, LiveSession] = field(default_factory=dict)
    """Open sessions in play, by agent."""
    entries: dict[str, PreparedEntry] = field(default_factory=dict)
    """Prepared entries into worlds, by agent, until they are used."""
    entering: dict[str, Entering] = field(default_factory=dict)
    """The entries that wait for a world, by agent."""
    worlds: dict[str, str] = field(default_factory=dict)
    """The worlds of runs in play, by run."""
    external: Outside = field(default_factory=Outside)
    """The seats of externally controlled agents, in worlds or in the nexus."""
    arriving: PendingFutures[LiveSession] = field(default_factory=PendingFutures)
    """Waiters for an agent's arrival in a world."""
    leaving: PendingFutures[SessionRecord] = field(default_factory=PendingFutures)
    """Waiters for an agent's return."""
    visits: dict[str, str] = field(default_factory=dict)
    """The runs of visits in the nexus, by agent."""
    ports: dict[str, WorldPort] = field(default_factory=dict)
    """Worlds in play, by run, for viewers."""
    runs: dict[str, Run] = field(default_factory=dict)
    """Runs in play in a world, by id."""
    run_tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    """The tasks that play them, by run."""
    agent_tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    """By agent; some may be done."""
    controls: dict[str, Controls] = field(default_factory=dict)
    """By agent."""
    listeners: list[StepListener] = field(default_factory=list)
    gate: Gate = field(default_factory=Gate)
    """Closed while the nexus starts its agents, so that none decides: a few hundred playing agents would use all CPU
    time, and the last of thousands would start minutes later."""
    stopping: bool = False
    """Whether the nexus is stopping: nothing new starts."""
    failed: dict[str, str] = field(default_factory=dict)
    """Agents that can't act because the database failed them with an error that does not pass, and its code."""
    held: str = ""
    """The fault of the machine because of which agents are held; empty if there is none."""
    damaged: str = ""
    """Why nothing can be read or written any more, if the database is damaged; the nexus is then about to stop."""
    to_leave: dict[str, str] = field(default_factory=dict)
    """Why agents leave that were about to when their world was interrupted, by session."""
    models: dict[str, ModelWait] = field(default_factory=dict)
    """The worlds whose models fail, by world, until they go on."""
    undeleted: str = ""
    """Why nothing is deleted by age although it should be; empty if it is."""

    def is_active(self, agent_id: str) -> bool:
        """Return whether an agent's task is running."""
        task = self.agent_tasks.get(agent_id)
        return task is not None and not task.done()

    def hold(self, why: str) -> None:
        """Hold all decisions and ticks until `release`."""
        self.held = why
        for controls in self._all_controls():
            controls.hold()

    def release(self) -> None:
        """End a `hold`."""
        self.held = ""
        for controls in self._all_controls():
            controls.release()

    def _all_controls(self) -> list[Controls]:
        return [*self.controls.values(), *(run.controls for run in self.runs.values())]

    def tell(self, stay: LiveSession, step: StepTaken) -> None:
        """Call the listeners after a decision in a world."""
        for listener in self.listeners:
            listener(stay, step)

    def stop_game(self, game: str) -> None:
        """End all open sessions in a game that goes offline, before their next decision, and call off its entries."""
        for stay in list(self.sessions.values()):
            if stay.session.game == game:
                stay.stop(GAME_OFFLINE)
                stay.insisted.set()
        for entry in list(self.entering.values()):
            if entry.game == game:
                entry.called_off.set()


@dataclass(frozen=True)
class HubContext:
    """The shared objects of a nexus' services."""

    host: PluginHost
    store: Store
    nexus_store: NexusStore
    """Where agents and items are."""
    settings: Settings
    clock: Clock
    services: Services
    breaker: CircuitBreaker
    """The availability of games."""
    placement: Placement
    remote_games: RemoteGames
    catalog: Catalog
    wakeups: Wakeups
    """Wakes agents that wait in the nexus."""
    live: LiveState
    storage: Soundness
    """Agents wait here during a fault of the machine."""
    make_near: WorldMaker
    """Makes worlds of games installed here."""

    def make_world(self, spec: AdapterSpec, record: WorldRecord) -> WorldPort:
        """Return a new, unstarted world, in this process or another; WorldFailedError if it can't be made."""
        far = spec.name in self.remote_games.specs()
        return self.remote_games.world(spec, record) if far else self.make_near(spec, record)

    def run_controls(self) -> Controls:
        """Return new controls for a run of several seats, or of a world that lives."""
        controls = Controls(pace=self.settings.pace)
        if self.live.held:
            controls.hold()
        return controls

    def new_controls(self, agent: AgentIdentity) -> Controls:
        """Return new controls for an agent: paused if it is paused, stopped if the nexus is stopping."""
        controls = Controls(pace=self.settings.pace, gate=self.live.gate)
        if agent.state == "paused":
            controls.pause()
        if self.live.held or self.live.damaged:
            controls.hold()
        if self.live.stopping:
            controls.stop()
        self.live.controls[agent.id] = controls
        return controls
