"""`Nexus`: a running nexus, composed of its services."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import replace

from wsap_core.errors import StorageDamagedError, StorageError, UsageError
from wsap_core.host import PluginHost
from wsap_core.protocol.lines import plural
from wsap_core.seams.clock import Clock, SystemClock
from wsap_core.seams.context import Context
from wsap_core.seams.services import Services
from wsap_llm.backends.pool import ModelPool
from wsap_nexus.agents.messages import Wakeups
from wsap_nexus.agents.portable import forget_unfinished
from wsap_nexus.errors import LockLostError, NotInWorldError
from wsap_nexus.hub.agents.agent_context import AgentContext
from wsap_nexus.hub.context import HubContext, LiveState, StepListener, WorldMaker
from wsap_nexus.hub.games.catalog import Catalog, CircuitBreaker
from wsap_nexus.hub.games.remote_games import RemoteGames
from wsap_nexus.hub.listeners import PluginListeners
from wsap_nexus.hub.live_session import SHUTDOWN, LiveSession
from wsap_nexus.hub.living_worlds import LivingWorlds
from wsap_nexus.hub.lobby import Capacity, Entrance
from wsap_nexus.hub.outside.run_sessions import refuse_played, settle_runs
from wsap_nexus.hub.play.failures import FailureHandler
from wsap_nexus.hub.play.kept import KeptWorlds, OpenWorld
from wsap_nexus.hub.play.sessions import SessionRunner
from wsap_nexus.hub.scheduler import AgentTasks, Scheduler
from wsap_nexus.hub.settings import Settings as Settings
from wsap_nexus.hub.upkeep.storage import StorageWatch
from wsap_nexus.hub.waiting.model_waits import ModelWaits
from wsap_nexus.hub.waiting.thinking import Thoughts
from wsap_nexus.models.spending import limited_models
from wsap_nexus.runs.record.world_calls import journalled
from wsap_nexus.runs.run import Run
from wsap_nexus.runs.session import InstalledSpecs
from wsap_nexus.runs.store import Store
from wsap_nexus.store.entities import AgentIdentity, EntryRequest, SessionRecord
from wsap_nexus.store.errors import is_passing
from wsap_nexus.store.events.agents import AgentPaused, AgentResumed
from wsap_nexus.store.events.nexus import NexusStarted, NexusStopped
from wsap_nexus.store.locks.nexus_lock import EVERY, instance_lock
from wsap_nexus.store.nexus_store import NexusStore
from wsap_nexus.tasks import ended
from wsap_nexus.worlds.placement import Placement
from wsap_nexus.worlds.workers.pool import WorkerPool

_LOG = logging.getLogger(__name__)
_LOOK_AGAIN = 0.5
"""Seconds between two looks whether an agent that is called back is still played."""

_LOOKS = 20
"""Looks for the world of an agent whose run is just beginning again or ending, before it counts as in none."""


class Nexus:
    """Runs agents, their worlds, and the place between.

    Args:
        services: passed to games and agents; models are added if missing.
        make_world: makes worlds of installed games; by default in this process or in workers, as `settings` say.
    """

    def __init__(
        self,
        host: PluginHost,
        store: Store,
        settings: Settings | None = None,
        *,
        services: Services | None = None,
        clock: Clock | None = None,
        make_world: WorldMaker | None = None,
    ) -> None:
        self.host = host
        self.store = store
        self.settings = settings or Settings()
        self.nexus_store = NexusStore(store.database)
        self.clock = clock or SystemClock()
        services = services or Services()
        self._models: ModelPool | None = None
        if services.models is None:
            self._models = limited_models(
                host, self.settings.limits, store.repository, in_nexus=True, seed=self.settings.seed
            )
            services = replace(services, models=self._models, parts=InstalledSpecs(host))
        self.live = LiveState()
        """The state held in memory."""
        self.thoughts = Thoughts(self.live)
        """What agents' models are asked and are writing now."""
        services = self.services = replace(services, views=services.views or self.thoughts)
        self.breaker = CircuitBreaker(self.nexus_store, self.settings.max_failures, on_close=self.live.stop_game)
        """The availability of games."""
        workers = self.settings.machines or self.settings.workers
        timeouts, logs = self.settings.timeouts, self.settings.logs
        self.placement = Placement(
            WorkerPool(workers, timeouts, logs=logs) if workers else None,
            lambda: Context(clock=self.clock, services=journalled(self.services)),
            self.breaker.count,
            living=self.settings.living_in_workers,
        )
        self.remote_games = RemoteGames(self.nexus_store, host, self.settings.game_hosts, self.breaker.count)
        kept = [world.game for world in self.settings.worlds]
        self.catalog = Catalog(host, self.settings.games, self.remote_games, self.breaker, kept=kept)
        self.storage = StorageWatch(store, self.nexus_store, self.live, self.settings.keep_bytes)
        """Holds agents during a fault of the machine, and measures the database."""
        wakeups = Wakeups(self.clock)
        self.nexus_store.listen(wakeups.heard)
        context = self.context = HubContext(
            host=host,
            store=store,
            nexus_store=self.nexus_store,
            settings=self.settings,
            clock=self.clock,
            services=services,
            breaker=self.breaker,
            placement=self.placement,
            remote_games=self.remote_games,
            catalog=self.catalog,
            wakeups=wakeups,
            live=self.live,
            storage=self.storage,
            make_near=make_world or self.placement.make,
        )
        self.capacity = Capacity(context)
        """The free worlds of games."""
        worlds = LivingWorlds[OpenWorld](self.live.models)
        self.entrance = Entrance(context, self.capacity, worlds)
        """Lists games and prepares entries."""
        self.agent_context = AgentContext(context, self.entrance)
        """Memories, talk, whispers and diaries of agents."""
        self._model_waits = ModelWaits(self.nexus_store, self.clock, self.resume)
        self.failures = FailureHandler(context, self.agent_context, self._model_waits.failed)
        """Handles failures of agents and worlds."""
        self.sessions = SessionRunner(context, self.agent_context, self.failures, self.capacity)
        """Runs sessions in worlds."""
        self.kept = KeptWorlds(context, self.agent_context, self.failures, self.sessions, worlds)
        """The worlds that live in this nexus."""
        self.agent_tasks = AgentTasks(
            context, self.sessions, self.capacity, self.entrance, self.agent_context, self.failures, self.kept
        )
        """The running tasks of agents."""
        self._listeners = PluginListeners(self.nexus_store, host)
        self._lock = instance_lock(store.database)
        self._watching_lock: asyncio.Task[None] | None = None
        self._seeing_out: asyncio.Task[None] | None = None
        self._lost: asyncio.Future[StorageError] | None = None
        self._scheduler = Scheduler(self.nexus_store, self.start_agent, self.live.gate)

    # --- life -----------------------------------------------------------------------------------

    async def start(self) -> None:
        """Lock the database, settle unfinished transfers, resume open sessions, and start the agents.

        Raises:
            NexusRunningError: another nexus has locked the database.
            AlreadyInWorldError: one of its agents plays in a run outside the nexus.
        """
        self._lock.acquire()
        try:
            refuse_played(settle_runs(self.nexus_store, self.store.repository, self.host))
        except BaseException:
            self._lock.release()
            raise
        loop = asyncio.get_running_loop()
        self._lost = loop.create_future()

        def damaged(error: StorageDamagedError) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._stop_for, error)

        self.store.database.on_damage = damaged
        self.store.database.mark(in_use=True)
        self.storage.start()
        self._watching_lock = asyncio.create_task(self._watch_lock(self._lost), name="leading")
        forget_unfinished(self.nexus_store)
        self.failures.settle()
        self.store.repository.settle_cut_off()
        self.kept.start()
        self.agent_context.start()
        self._listeners.start()
        self._seeing_out = asyncio.create_task(self.sessions.see_out(), name="see out")
        with self.nexus_store.change() as tx:
            tx.note(NexusStarted(agents=tx.count_agents(state="active")))
        self.remote_games.start()
        self._scheduler.start()
        self._model_waits.start()

    async def until_lost(self) -> StorageError:
        """Wait until another nexus takes over the database, or its file is replaced or turns out to be damaged, and
        return the error.

        Call it after `start`.
        """
        if self._lost is None:
            raise UsageError("The nexus is not running; start it first.")
        return await asyncio.shield(self._lost)

    def _stop_for(self, error: StorageDamagedError) -> None:
        """Let no agent decide any more, as what it does could not be kept; whoever waits for `until_lost` stops."""
        if self.live.damaged or self._lost is None:
            return
        self.live.damaged = "The database is damaged; restore a backup, or recover what is readable."
        for controls in self.live.controls.values():
            controls.hold()
        if not self._lost.done():
            self._lost.set_result(error)

    async def _watch_lock(self, lost: asyncio.Future[StorageError]) -> None:
        # Files can be replaced at any time, whatever clock the agents live by.
        sleep = asyncio.sleep if self.store.database.is_sqlite else self.clock.sleep
        while not lost.done():
            await sleep(EVERY)
            try:
                await asyncio.to_thread(self._lock.check)
            except LockLostError as error:
                lost.set_result(error)

    async def stop(self) -> None:
        """Let every agent finish its decision, store everything, and release the lock.

        If another nexus has taken over, or the database is damaged, nothing is stored.
        """
        self.live.stopping = True
        await self.storage.stop()
        await self._model_waits.stop()
        await self._scheduler.stop()
        await self.kept.stop()
        for stay in list(self.live.sessions.values()):
            stay.stop(SHUTDOWN, at_once=True)
        for run in self.sessions.runs.values():
            run.controls.stop()
        await asyncio.gather(*self.sessions.tasks.values(), return_exceptions=True)
        for controls in self.live.controls.values():
            controls.stop()
        await self.agent_tasks.end()
        await self.agent_context.aclose()
        await self.placement.close()
        await self.remote_games.stop()
        if self._models is not None:
            await self._models.aclose()
        await ended(self._watching_lock, self._seeing_out)
        try:
            self.failures.settle()
            with self.nexus_store.change() as tx:
                tx.note(NexusStopped())
            self.store.writer.flush()
            self.store.database.mark(in_use=False)
        except (LockLostError, StorageDamagedError):
            # Another nexus owns the database and its log now, or nobody can write it; pending log entries are refused
            # for the same reason, some only when the writer tries them again.
            with suppress(StorageError):
                await asyncio.to_thread(self.store.writer.close)
        except StorageError as error:
            if not is_passing(error):
                raise
            with suppress(StorageError):  # a last try
                await asyncio.to_thread(self.store.writer.close)
            _LOG.warning("The nexus stopped during a fault; the next start continues from what is recorded. %s", error)
        finally:
            self.store.database.on_damage = None
            await self._listeners.aclose()
            self._lock.release()

    def cannot_act(self) -> tuple[str, bool]:
        """Return why no agent can act now, in words for everyone, and whether that can pass; empty if they can."""
        if self.live.damaged:
            return self.live.damaged, False
        if self._lost is not None and self._lost.done():
            return "Another nexus leads this database; this one is stopping.", False
        if self.live.held:
            return self.live.held, True
        if self.live.stopping:
            return "The nexus is stopping.", False
        tasks = self.live.agent_tasks
        broken = {name for name, task in tasks.items() if task.done() and not task.cancelled() and task.exception()}
        if (broken or self.live.failed) and not any(map(self.live.is_active, tasks)):
            failed = plural(len(broken | self.live.failed.keys()), "agent")
            return f"The nexus failed {failed}, and no other can act; its log says why.", False
        return "", False

    def playing(self, run_id: str) -> Run | None:
        """Return a run in play in a world; None if it is not in play."""
        return self.sessions.runs.get(run_id)

    def on_step(self, listener: StepListener) -> None:
        """Call a listener after each decision in a world."""
        self.live.listeners.append(listener)

    def start_agent(self, agent: AgentIdentity) -> None:
        """Start an agent's task, unless it runs or the nexus is stopping."""
        if not self.live.stopping:
            self.agent_tasks.begin(agent.id)

    def pause(self, agent_id: str) -> None:
        """Pause an agent before its next decision."""
        with self.nexus_store.change() as tx:
            tx.agent(agent_id)
            tx.update_agent(agent_id, state="paused")
            tx.note(AgentPaused(agent_id=agent_id))
        if agent_id in self.live.controls:
            self.live.controls[agent_id].pause()

    def resume(self, agent_id: str) -> None:
        """Resume a paused agent."""
        with self.nexus_store.change() as tx:
            agent = tx.agent(agent_id)
            tx.update_agent(agent_id, state="active")
            tx.note(AgentResumed(agent_id=agent_id))
        self.live.failed.pop(agent_id, None)
        if agent_id in self.live.controls:
            self.live.controls[agent_id].resume()
        self.start_agent(replace(agent, state="active"))

    def step_once(self, agent_id: str) -> None:
        """Let a paused agent make one decision."""
        if agent_id in self.live.controls:
            self.live.controls[agent_id].step_once()

    async def halt(self, agent_id: str) -> None:
        """Pause an agent, bring it back to the nexus from its world or transit, and end its task."""
        self.pause(agent_id)
        asked = False
        while agent_id in self.live.sessions or self._on_its_way(agent_id):
            if agent_id in self.live.sessions and not asked:
                asked = True
                await self.exit(agent_id)
            else:
                self.recall(agent_id)
                await self.clock.sleep(0.02)
        await self.agent_tasks.end([agent_id])

    def _on_its_way(self, agent_id: str) -> bool:
        with self.nexus_store.look() as tx:
            return bool(tx.open_transfers(agent_id))

    def recall(self, agent_id: str) -> bool:
        """Make an agent leave its world, safe or not; return whether it was in one or about to enter one.

        Its world has some seconds to let it out with its items; after that it comes home without the world's help.
        """
        stay = self.live.sessions.get(agent_id)
        if stay is not None:
            stay.stop("kicked")
            stay.insisted.set()
        elif agent_id in self.live.entering:
            self.live.entering[agent_id].called_off.set()
            return True
        return stay is not None or self.failures.recall(agent_id) is not None

    async def enter(self, agent_id: str, game: str, terms: EntryRequest) -> LiveSession:
        """Send an agent from the nexus into a game, and return its session once it has arrived.

        Raises:
            TransitError: it can't enter now.
            WorldError: the world refused it; it is still in the nexus.
        """
        self.entrance.request_enter(agent_id, game, terms)
        arriving = self.live.arriving.wait(agent_id)
        visit = self.live.controls.get(agent_id)
        if visit is not None:
            visit.stop()
        with self.nexus_store.look() as tx:
            self.start_agent(tx.agent(agent_id))
        return await arriving

    async def exit(self, agent_id: str) -> SessionRecord:
        """Bring an agent back from its world, safe or not, and return its closed session; NotInWorldError if none.

        If nothing plays the session, because the agent is paused or its leaving failed, it is closed without its world.
        """
        leaving: asyncio.Future[SessionRecord] | None = None
        looks = 0
        while leaving is None or not leaving.done():
            if (stuck := self.failures.stuck(agent_id)) is not None:
                state = await self.failures.last_good(stuck)
                if (closed := self.failures.recall(agent_id, state)) is not None:
                    return closed
            if leaving is None and looks < _LOOKS and self._is_between(agent_id):
                looks += 1
                await asyncio.sleep(_LOOK_AGAIN)
                continue
            if leaving is None:
                leaving = self.await_exit(agent_id)
                self.recall(agent_id)
            await asyncio.wait({leaving}, timeout=_LOOK_AGAIN)
        return leaving.result()

    def _is_between(self, agent_id: str) -> bool:
        """Return whether an agent's session is open, but its run is just beginning again or ending."""
        with self.nexus_store.look() as tx:
            return agent_id not in self.live.sessions and tx.agent(agent_id).session_id is not None

    def await_exit(self, agent_id: str) -> asyncio.Future[SessionRecord]:
        """Return a future of the agent's closed session; NotInWorldError if it is in no world, or UnknownNameError."""
        if agent_id not in self.live.sessions:
            with self.nexus_store.look() as tx:
                tx.agent(agent_id)
            raise NotInWorldError(f"{agent_id!r} is in no world.")
        return self.live.leaving.wait(agent_id)

    def set_game_status(self, game: str, status: str, reason: str = "") -> None:
        """Set a game's status, which survives restarts; unless it is available, its agents return.

        Args:
            status: "available", "maintenance" or "offline".
            reason: shown to agents that try to enter.

        Raises:
            UnknownNameError: there is no such game.
            UsageError: there is no such status.
        """
        self.entrance.game_info(game)
        self.breaker.put(game, status, reason)
