"""The nexus at work: agents as tasks that visit it, enter worlds, play, and come back."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from wsap_core.context import Clock, Context, SystemClock, derive_seed
from wsap_core.errors import PluginError, SnapshotError, StorageError, UnknownNameError, WorldError, WsapError
from wsap_core.host import PluginHost
from wsap_core.models import ActionResult
from wsap_core.references import load_adapter_spec, load_agent_spec, names_object
from wsap_core.services import Services
from wsap_core.specs import AdapterSpec, AgentSpec, GameInfo, resolve
from wsap_core.version import PROTOCOL_VERSION
from wsap_core.wire import Codec
from wsap_nexus.backends.registry import Models
from wsap_nexus.hub.book import Ledger
from wsap_nexus.hub.diary import Entry as DiaryEntry
from wsap_nexus.hub.elsewhere import Elsewhere
from wsap_nexus.hub.errors import (
    GameUnavailableError,
    IncompatibleGameError,
    NotInWorldError,
    WorldFailedError,
    is_failure,
)
from wsap_nexus.hub.external import ExternalAgent, Outside
from wsap_nexus.hub.guests import EXIT_GAME
from wsap_nexus.hub.lead import lead
from wsap_nexus.hub.life import Life
from wsap_nexus.hub.lobby import Lobby
from wsap_nexus.hub.mishaps import FAILED, GAME_OFFLINE, WORLD_FAILED, bring_home, last_state, logged_deeds
from wsap_nexus.hub.place import GAME, NEXUS_SPEC, NexusPlace, Surroundings
from wsap_nexus.hub.placement import Placement, saved_on_the_way
from wsap_nexus.hub.records import EXTERNAL, AgentIdentity, SessionRecord, Terms, WorldRecord
from wsap_nexus.hub.recovery import last_good_state
from wsap_nexus.hub.standing import Standing, Standings
from wsap_nexus.hub.stay import Deeds, Stay
from wsap_nexus.hub.talk import Answer
from wsap_nexus.hub.transit import (
    Way,
    commit_enter,
    commit_leave,
    let_in,
    let_out,
    prepare_enter,
    take_back,
    way_seed,
)
from wsap_nexus.hub.venue import START, KeptVenue, record_start
from wsap_nexus.hub.waking import Waking
from wsap_nexus.hub.workers.pool import Patience
from wsap_nexus.hub.worlds import WorldFace
from wsap_nexus.runtime.controls import Controls
from wsap_nexus.runtime.loop import StepTaken
from wsap_nexus.runtime.plan import RunPlan
from wsap_nexus.runtime.recorder import Recorder
from wsap_nexus.runtime.resume import read_past
from wsap_nexus.runtime.run import Past, Run
from wsap_nexus.runtime.session import Installed
from wsap_nexus.runtime.store import Store
from wsap_nexus.runtime.venue import OwnVenue
from wsap_nexus.storage.records import NewRun, RunStatus

T = TypeVar("T")

SHUTDOWN = "shutdown"
"""Why a stay ends that goes on when the nexus is started again."""

WorldMaker = Callable[[AdapterSpec, WorldRecord], WorldFace]
StepListener = Callable[[Stay, StepTaken], None]


@dataclass(frozen=True)
class Settings:
    """How a nexus is run."""

    seed: int = 0
    """What everything that is decided by chance follows from."""
    games: tuple[str, ...] | None = None
    """The games that agents may enter; None for all that are installed."""
    pace: float | None = None
    """Most decisions a second of each agent; None for as fast as it goes."""
    snapshot_every: int = 200
    """Decisions between two saved states of a stay."""
    lobby_seconds: float = 3.0
    """How long a game of several seats waits for others, before their seats are filled."""
    max_failures: int = 3
    """Failures of a game within the window after which it is taken offline."""
    failure_window: float = 600.0
    """Seconds that a failure counts."""
    workers: int = 0
    """Most worker processes that worlds run in; 0 for worlds in this process."""
    patience: Patience = field(default_factory=Patience)
    """How long is waited for workers."""
    logs: Path | None = None
    """The folder for what games in workers print; None keeps nothing of it."""
    game_hosts: tuple[str, ...] = ()
    """Hosts besides this machine that games in other processes may be on."""


class Nexus:
    """Agents, the worlds they are in, and the place between.

    Args:
        host: where games and agents come from.
        store: the database.
        settings: how it is run.
        services: handed to games and agents; models are added.
        clock: for waiting.
        make_world: how worlds are made; in this process when None.
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
        self.ledger = Ledger(store.database)
        """Who is where and with what."""
        self.stays: dict[str, Stay] = {}
        """Open sessions that are being played, by agent."""
        self._clock = clock or SystemClock()
        self._services = services or Services()
        self.standings = Standings(self.ledger, self.settings.max_failures, self.settings.failure_window)
        """Which games may be entered, and why others may not."""
        self._placement = Placement(self.settings, self._world_context, self._world_stumbled)
        self.elsewhere = Elsewhere(self.ledger, self._clock, self.settings.game_hosts)
        """Games in other processes."""
        self._make_near = make_world or self._placement.make
        self._models: Models | None = None
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._controls: dict[str, Controls] = {}
        self._ways: dict[str, Way] = {}
        self.external = Outside()
        """Agents that somebody outside decides for, while they are in a world or in the nexus."""
        self._arriving: dict[str, asyncio.Future[Stay]] = {}
        self._leaving: dict[str, asyncio.Future[SessionRecord]] = {}
        self._tables: dict[str, asyncio.Task[None]] = {}
        """What is played in shared and own worlds, by run."""
        self._runs: dict[str, Run] = {}
        self.visits: dict[str, str] = {}
        """The runs that agents in the nexus are in, by agent."""
        self.faces: dict[str, WorldFace] = {}
        """Worlds that somebody is in, by run; for looking at."""
        self._lobbies: dict[str, Lobby] = {}
        self._listeners: list[StepListener] = []
        self._specs: dict[str, AdapterSpec] = {}
        self._stopping = False
        self._lead = lead(store.database)
        self._waking = Waking(self.ledger, self.awaken)
        self.life = Life(self, self._clock)
        """What agents perceive in the nexus, remember, say and write."""

    # --- life -----------------------------------------------------------------------------------

    async def start(self) -> None:
        """Lead the database, settle what was under way, go on with open sessions, and let agents live.

        Raises:
            NexusRunningError: another nexus leads it.
        """
        self._lead.acquire()
        if self._services.models is None:
            self._models = Models(self.host, seed=self.settings.seed)
            self._services = replace(self._services, models=self._models, parts=Installed(self.host))
        self._settle()
        with self.ledger.change() as book:
            book.note("started", agents=book.count_agents())
        self.elsewhere.start()
        self._waking.start()

    async def stop(self) -> None:
        """Let every agent finish its decision, keep everything, and stop leading."""
        self._stopping = True
        await self._waking.stop()
        for stay in list(self.stays.values()):
            stay.stop(SHUTDOWN, at_once=True)
        for run in self._runs.values():
            run.controls.stop()
        await asyncio.gather(*self._tables.values(), return_exceptions=True)
        for controls in self._controls.values():
            controls.stop()
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        await self.life.aclose()
        await self._placement.close()
        await self.elsewhere.stop()
        if self._models is not None:
            await self._models.aclose()
        with self.ledger.change() as book:
            book.note("stopped")
        self.store.writer.flush()
        self._lead.release()

    def playing(self, run_id: str) -> Run | None:
        """Return a run that is being played in a world, None if it is not."""
        return self._runs.get(run_id)

    def on_step(self, listener: StepListener) -> None:
        """Have a listener told after each decision in a world."""
        self._listeners.append(listener)

    def awaken(self, agent: AgentIdentity) -> None:
        """Let an agent live, unless somebody outside decides for it."""
        running = self._tasks.get(agent.id)
        if (running is None or running.done()) and not self._stopping:
            self._tasks[agent.id] = asyncio.create_task(self._live(agent.id), name=f"agent {agent.id}")

    def pause(self, agent_id: str) -> None:
        """Let an agent begin no further decision."""
        with self.ledger.change() as book:
            book.agent(agent_id)
            book.update_agent(agent_id, state="paused")
            book.note("agent_paused", agent=agent_id)
        if agent_id in self._controls:
            self._controls[agent_id].pause()

    def resume(self, agent_id: str) -> None:
        """Let a paused agent go on."""
        with self.ledger.change() as book:
            agent = book.agent(agent_id)
            book.update_agent(agent_id, state="active")
            book.note("agent_resumed", agent=agent_id)
        if agent_id in self._controls:
            self._controls[agent_id].resume()
        self.awaken(replace(agent, state="active"))

    def step_once(self, agent_id: str) -> None:
        """Let a paused agent make one decision."""
        if agent_id in self._controls:
            self._controls[agent_id].step_once()

    async def halt(self, agent_id: str) -> None:
        """Pause an agent, bring it back from its world or its way there, and end its task; it is in the nexus then."""
        self.pause(agent_id)
        asked = False
        while agent_id in self.stays or self._on_its_way(agent_id):
            if agent_id in self.stays and not asked:
                asked = True
                await self.exit(agent_id)
            else:
                await self._clock.sleep(0.02)
        task = self._tasks.pop(agent_id, None)
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def _on_its_way(self, agent_id: str) -> bool:
        with self.ledger.look() as book:
            return any(row.agent_id == agent_id for row in book.transfers("prepared"))

    def recall(self, agent_id: str, reason: str = "kicked") -> bool:
        """Bring an agent back from its world, safe or not; return whether it was in one."""
        stay = self.stays.get(agent_id)
        if stay is not None:
            stay.stop(reason)
        return stay is not None or self._fetch_home(agent_id, reason) is not None

    async def enter(self, agent_id: str, game: str, terms: Terms) -> Stay:
        """Send an agent that is in the nexus into a game, and return its stay once it has arrived.

        Raises:
            TransitError: it can't go there now.
            WorldError: the world didn't let it in; it is still in the nexus.
        """
        self.request_enter(agent_id, game, terms)
        arriving = self._arriving[agent_id] = asyncio.get_running_loop().create_future()
        visit = self._controls.get(agent_id)
        if visit is not None:
            visit.stop()
        with self.ledger.look() as book:
            self.awaken(book.agent(agent_id))
        stay: Stay = await arriving
        return stay

    async def exit(self, agent_id: str, reason: str = "kicked") -> SessionRecord:
        """Bring an agent back from its world, safe or not, and return the closed session.

        Raises:
            NotInWorldError: it is in no world.
        """
        stuck = self._stuck(agent_id)
        if stuck is not None:
            state = await self._last_good(stuck)
            closed = self._fetch_home(agent_id, reason, state)
            if closed is not None:
                return closed
        leaving = self.await_exit(agent_id)
        self.stays[agent_id].stop(reason)
        return await leaving

    def await_exit(self, agent_id: str) -> asyncio.Future[SessionRecord]:
        """Return where the closed session will be, once the agent has left its world.

        Raises:
            NotInWorldError: it is in no world.
        """
        if agent_id not in self.stays:
            raise NotInWorldError(f"{agent_id!r} is in no world.")
        if agent_id not in self._leaving:
            self._leaving[agent_id] = asyncio.get_running_loop().create_future()
        return self._leaving[agent_id]

    # --- what agents in the nexus ask for ---------------------------------------------------------

    def surroundings(self, agent_id: str) -> Surroundings:
        """Return what an agent in the nexus perceives."""
        return self.life.surroundings(agent_id)

    async def talk(self, agent_id: str, text: str) -> Answer:
        """Say something to an agent: in the nexus it answers, in a world it hears a whisper.

        Raises:
            UnknownNameError: there is no such agent.
            UsageError: nothing was said, or too much.
        """
        return await self.life.words.talk(agent_id, text)

    def diary(self, agent_id: str, *, before: int | None = None, limit: int = 50) -> list[DiaryEntry]:
        """Return an agent's diary, newest first, a page at a time; `before` is the number of the last entry seen."""
        return self.life.words.diary(agent_id, before=before, limit=limit)

    @property
    def services(self) -> Services:
        """What games and agents are handed."""
        return self._services

    def specs(self) -> dict[str, AdapterSpec]:
        """Return every game that can be entered, by name."""
        return {info.id: self._spec(info.id) for info in self.games()}

    def games(self) -> list[GameInfo]:
        """Return what is known of every game that can be entered."""
        active: dict[str, int] = {}
        for stay in self.stays.values():
            active[stay.session.game] = active.get(stay.session.game, 0) + 1
        found = []
        names = self.settings.games or tuple(self.host.games.names())
        for name in (*names, *(n for n in self.elsewhere.specs() if n not in names)):
            try:
                spec = self._spec(name)
            except WsapError:
                continue
            info = GameInfo.of(spec)
            found.append(replace(info, active_agents=active.get(info.id, 0), status=self.standings.of(info.id).status))
        return found

    def game_info(self, game: str) -> GameInfo:
        """Return what is known of a game.

        Raises:
            UnknownNameError: there is none of that name.
        """
        games = self.games()
        for info in games:
            if info.id == game:
                return info
        raise UnknownNameError("world", game, [g.id for g in games])

    def set_game_status(self, game: str, status: str, reason: str = "") -> Standing:
        """Say whether a game may be entered, from now on and after a restart; who is in it comes back if not.

        Args:
            game: its name.
            status: "available", "maintenance" or "offline".
            reason: told to whoever wants to enter.

        Raises:
            UnknownNameError: there is none of that name.
            UsageError: there is no such status.
        """
        self.game_info(game)
        standing = self.standings.put(game, status, reason)
        if status != "available":
            self._clear(game)
        return standing

    def request_enter(self, agent_id: str, game: str, terms: Terms) -> str:
        """Prepare an agent's way into a game."""
        info = self.game_info(game)
        if info.status != "available":
            reason = self.standings.of(info.id).reason
            raise GameUnavailableError(f"{info.name} is {info.status}{': ' if reason else ''}{reason or '.'}")
        if info.protocol_version.split(".")[0] != PROTOCOL_VERSION.split(".")[0]:
            raise IncompatibleGameError(
                f"{info.name} speaks version {info.protocol_version} of the protocol, the nexus {PROTOCOL_VERSION}."
            )
        with self.ledger.change() as book:
            self._ways[agent_id] = prepare_enter(book, agent_id, self._spec(game), terms)
        return f"You are on your way to {info.name}."

    # --- an agent's life ----------------------------------------------------------------------------

    async def _live(self, agent_id: str) -> None:
        """Go on with what was open, then visit, enter, play and come back, for as long as the nexus runs."""
        try:
            while not self._stopping:
                with self.ledger.look() as book:
                    agent = book.agent(agent_id)
                if agent.state != "active":
                    break  # it was paused, by a person or because it failed, and lives again when it is resumed
                if agent.session_id is not None:
                    await self._go_on(agent.session_id)
                    continue
                self.life.go_on(agent_id)
                way = self._ways.pop(agent_id, None) or await self._visit(agent_id)
                if way is not None:
                    await self._travel(way)
                elif not self._stopping:
                    await self._clock.sleep(1.0)
        except WsapError as error:
            self._agent_failed(agent_id, error)

    async def _visit(self, agent_id: str) -> Way | None:
        """Let an agent be in the nexus until it is on its way somewhere."""
        with self.ledger.look() as book:
            agent = book.agent(agent_id)
        seat = self.life.seat_plan(agent_id, agent, GAME, NEXUS_SPEC.default_agent)
        spec = replace(NEXUS_SPEC, factory=lambda: NexusPlace(self.life, agent_id))
        run_seed = derive_seed(self.settings.seed, "visit", agent_id, agent.lifetime_steps)
        plan = RunPlan(GAME, (seat,), run_seed)
        record = self.visits[agent_id] = self._record_run(plan, GAME)
        recorder = Recorder(self.store.writer, record)
        recorder.note("started")
        controls = self._new_controls(agent)
        agents = {agent_id: self._agent_spec(agent_id, seat.agent)}
        venue = OwnVenue(spec, run_seed, {}, self._clock, self._services)
        run = Run(
            plan,
            spec,
            agents,
            recorder=recorder,
            run_id=record,
            controls=controls,
            services=self._services,
            venue=venue,
            minds=self.life.minds(record, {agent_id: agent_id}, None, recorder),
            past=self.life.earlier_calls(agent_id, seat, record),
        )
        try:
            await self._play(run, recorder)
        finally:
            self.life.end_visit(agent_id, record)
        return self._ways.pop(agent_id, None)

    async def _travel(self, way: Way) -> None:
        """Bring an agent into a world, let it play there, and bring it back."""
        spec = self._spec(way.game)
        if spec.seats[1] == 1:
            run_id = await self._sit_down([way], spec)
        else:
            if way.game not in self._lobbies:
                self._lobbies[way.game] = Lobby(spec, self.settings.lobby_seconds, self._clock, self._sit_down)
            run_id = await self._lobbies[way.game].join(way)
        if run_id is not None:
            await asyncio.shield(self._tables[run_id])

    async def _sit_down(
        self, ways: Sequence[Way], spec: AdapterSpec, where: tuple[WorldRecord, bytes | None, bool] | None = None
    ) -> str | None:
        """Bring agents into one world, begin to play, and return the run; None if the world didn't let them in."""
        record, kept, new = where or self._world_for(ways, spec)
        face: WorldFace | None = None
        names = seat_names(ways, spec)
        try:
            face = self._make_world(spec, record)
            if kept is None:
                await face.begin(record.seed)
            arrivals = [
                await let_in(self.ledger, face, record, way, seat_name=name, kept=kept)
                for way, name in zip(ways, names, strict=False)
            ]
            world_state = await face.snapshot() if face.can_snapshot and len(names) == 1 else None
            plan = self._plan_of(ways, names, spec)
            run_id = self._record_run(plan, spec.name)
            recorder = Recorder(self.store.writer, run_id)
            recorder.note("started")
            record_start(recorder, arrivals, world_state)
            self.store.writer.flush()
            with self.ledger.change() as book:
                sessions = {a.seat_name: commit_enter(book, a, record, run_id) for a in arrivals}
                book.keep_world(record.id, run_id=run_id)
        except Exception as error:
            if face is not None:
                await face.close()
            if self._placement.must_stay_home(spec.name, error):
                return await self._sit_down(ways, spec, (record, kept, new))
            self._not_let_in(ways, record, new=new, error=error)
            return None
        venue = KeptVenue(face, seed=record.seed, seats={a.seat_name: a.seat for a in arrivals})
        self._begin_table(sessions, spec, plan, recorder, venue, {}, None)
        return run_id

    async def _go_on(self, session_id: str) -> None:
        """Go on with a stay that was open when the nexus stopped, and with all who are in that world."""
        with self.ledger.look() as book:
            session = book.session(session_id)
            record = book.world(session.world_id)
            together = [s for s in book.sessions(world_id=record.id, only_open=True) if s.run_id == session.run_id]
        if session.run_id not in self._tables:
            standing = self.standings.of(session.game)
            if standing.status != "available":
                self._bring_home(together, standing.reason or standing.status, reason=GAME_OFFLINE)
                return
            try:
                self._resume_table(session.run_id, together, record)
            except WorldError as error:
                self._world_failed(together, record.id, error)
                return
        await asyncio.shield(self._tables[session.run_id])

    def _resume_table(self, run_id: str, sessions: Sequence[SessionRecord], record: WorldRecord) -> None:
        repository = self.store.repository
        spec = self._spec(record.game)
        plan = RunPlan.from_config(repository.get_run(run_id).config)
        codec = _codec_of(spec)
        start = next(repository.read_events(run_id, kinds=(START,)))
        seats = {a["agent"]: a["seat"] for a in start.data["arrivals"]}
        by_seat = {seats[s.agent_id]: s for s in sessions}
        agents = self._agents_of(plan, {seat: s.agent_id for seat, s in by_seat.items()})
        past = read_past(repository, run_id, plan, spec, agents, codec)
        deeds: dict[str, Deeds] = {seat: Deeds() for seat in by_seat}
        last: dict[str, ActionResult] = {}
        for event in repository.read_events(run_id, kinds=("step",)):
            if event.seat in deeds:
                last[event.seat] = deeds[event.seat].count_logged(event, codec)
        recorder = Recorder(self.store.writer, run_id)
        recorder.note("resumed")
        with self.ledger.change() as book:
            for session in sessions:
                book.note("resumed", agent=session.agent_id, game=session.game, session=session.id)
        venue = KeptVenue(self._make_world(spec, record), seed=record.seed, start=start.body)
        self._begin_table(by_seat, spec, plan, recorder, venue, deeds, past, last)

    def _begin_table(
        self,
        sessions: Mapping[str, SessionRecord],
        spec: AdapterSpec,
        plan: RunPlan,
        recorder: Recorder,
        venue: KeptVenue,
        deeds: Mapping[str, Deeds],
        past: Past | None,
        last: Mapping[str, ActionResult] | None = None,
    ) -> None:
        """Play what is open in one world, by seat, in a task of its own; `last` is what the last decisions led to."""
        stays: dict[str, Stay] = {}
        with self.ledger.look() as book:
            agents = {seat: book.agent(session.agent_id) for seat, session in sessions.items()}
        for seat, session in sessions.items():
            controls = self._new_controls(agents[seat])
            stay = Stay(session, seat, deeds=deeds.get(seat) or Deeds(), controls=controls, on_step=self._tell)
            stay.take_up((last or {}).get(seat))
            stays[seat] = self.stays[session.agent_id] = stay
        alone = len(plan.seats) == 1
        run_id = next(iter(sessions.values())).run_id
        run = Run(
            plan,
            spec,
            self._agents_of(plan, {seat: agent.id for seat, agent in agents.items()}),
            recorder=recorder,
            run_id=run_id,
            past=past,
            controls=next(iter(stays.values())).controls if alone else Controls(pace=self.settings.pace),
            observers=[stay.observe for stay in stays.values()],
            services=self._services,
            venue=venue,
            seat_controls={seat: stay.controls for seat, stay in stays.items()},
            minds=self.life.minds(
                run_id, {s: agent.id for s, agent in agents.items()}, past.minds if past else None, recorder
            ),
        )
        venue.around = self.life.guests(sessions, past, recorder)
        self._runs[run_id] = run
        self.faces[run_id] = venue.face
        if self._stopping:
            # They came in while the nexus was being stopped: the stay begins when it is started again.
            run.controls.stop()
            for stay in stays.values():
                stay.stop(SHUTDOWN, at_once=True)
        self._tables[run_id] = asyncio.create_task(self._play_table(run, stays, spec, recorder, venue))
        for stay in stays.values():
            _tell_waiting(self._arriving, stay.session.agent_id, stay)

    async def _play_table(
        self, run: Run, stays: Mapping[str, Stay], spec: AdapterSpec, recorder: Recorder, venue: KeptVenue
    ) -> None:
        try:
            state: bytes | None = None
            leaving = False
            try:
                await self._play(run, recorder)
                # What is saved while agents leave has let go of what they carry, before that is written down.
                state, leaving = saved_on_the_way(venue.face), True
                for stay in stays.values():
                    reason = self._why_over(run, stay)
                    if reason != SHUTDOWN:
                        await self._leave(stay, spec, venue, run, reason)
            except StorageError:
                raise
            except Exception as error:
                await self._table_failed(run, stays, error, state if leaving else saved_on_the_way(venue.face), leaving)
        finally:
            for stay in stays.values():
                self.stays.pop(stay.session.agent_id, None)
                self.life.gone(stay.session.agent_id, str(run.run_id))
            self._tables.pop(str(run.run_id), None)
            self._runs.pop(str(run.run_id), None)
            self.faces.pop(str(run.run_id), None)
            with contextlib.suppress(WorldError):  # it has said all that matters
                await venue.face.close()

    async def _table_failed(
        self, run: Run, stays: Mapping[str, Stay], error: Exception, state: bytes | None, leaving: bool
    ) -> None:
        """See to it that nobody is stuck: pause the agent that failed, or bring all home from a world that did."""
        deeds = {stay.session.id: stay.deeds for stay in stays.values()}
        sessions = [stay.session for stay in stays.values()]
        alone = next(iter(stays.values())) if len(run.plan.seats) == 1 else None
        culprit = None if leaving else stays.get(run.failed_seat or "") or alone
        if isinstance(error, WsapError) and not isinstance(error, WorldError) and culprit:
            self._agent_failed(culprit.session.agent_id, error, culprit.session)
            if len(stays) > 1 and culprit.controls.paused:
                # It was to stand still while the others go on, and can't do even that.
                self._bring_home(sessions, str(error), reason=FAILED, deeds=deeds, seconds=run.summary().seconds)
            return
        if alone is not None:
            state = await self._last_good(alone.session) or state
        self._world_failed(
            sessions, sessions[0].world_id, error, state=state, deeds=deeds, seconds=run.summary().seconds
        )

    async def _last_good(self, session: SessionRecord) -> bytes | None:
        """Return the state of an agent's own world after its last recorded step, None where it can't be had."""
        self.store.writer.flush()
        with self.ledger.look() as book:
            record = book.world(session.world_id)
        try:
            spec = self._spec(session.game)
            codec = _codec_of(spec)
        except WsapError:
            return None
        return await last_good_state(
            lambda: self._make_world(spec, record),
            self.store.repository,
            session.run_id,
            seat=session.agent_id,
            seed=record.seed,
            codec=codec,
        )

    def _agent_failed(self, agent_id: str, error: WsapError, session: SessionRecord | None = None) -> None:
        """Pause an agent that failed, or whose model did; where it is, it goes on once it is resumed."""
        with self.ledger.change() as book:
            book.update_agent(agent_id, state="paused")
            game, stay = (session.game, session.id) if session else (None, None)
            book.note("agent_failed", agent=agent_id, game=game, session=stay, error=str(error), code=error.code)

    def _world_failed(
        self,
        sessions: Sequence[SessionRecord],
        world_id: str,
        error: Exception,
        *,
        state: bytes | None = None,
        deeds: Mapping[str, Deeds] | None = None,
        seconds: float = 0.0,
    ) -> None:
        """Bring all home from a world that failed, and hold it against the game."""
        self._bring_home(sessions, str(error), state=state, deeds=deeds, seconds=seconds)
        known = isinstance(error, SnapshotError) or (isinstance(error, WorldFailedError) and error.counted)
        if not known:
            self._world_stumbled(sessions[0].game, world_id, error)

    def _bring_home(
        self,
        sessions: Sequence[SessionRecord],
        error: str,
        *,
        reason: str = WORLD_FAILED,
        state: bytes | None = None,
        deeds: Mapping[str, Deeds] | None = None,
        seconds: float = 0.0,
    ) -> list[SessionRecord]:
        """Close sessions of one run without asking their world, and return them closed."""
        run_id, game = sessions[0].run_id, sessions[0].game
        self.store.writer.flush()
        repository = self.store.repository
        try:
            spec = self._spec(game)
        except WsapError:
            spec = AdapterSpec(game, "", "")  # it is not installed any more
        if state is None:
            state = last_state(repository, run_id)
        closed = []
        with self.ledger.change() as book:
            for session in sessions:
                if book.session(session.id).closed is not None:
                    continue
                done = (deeds or {}).get(session.id) or logged_deeds(repository, run_id, session.agent_id)
                closed.append(
                    bring_home(
                        book, session, spec, deeds=done, reason=reason, error=error, state=state, seconds=seconds
                    )
                )
                self.life.keep_mind(book, session)
        for session in closed:
            self.life.came_back(session)
            _tell_waiting(self._leaving, session.agent_id, session)
        return closed

    def _stuck(self, agent_id: str) -> SessionRecord | None:
        """Return the open session of an agent that nobody plays now, because the agent is paused."""
        if agent_id in self.stays:
            return None
        task = self._tasks.get(agent_id)
        with self.ledger.look() as book:
            session_id = book.agent(agent_id).session_id
            session = None if session_id is None else book.session(session_id)
        if session is None or session.run_id in self._tables or (task is not None and not task.done()):
            return None
        return session

    def _fetch_home(self, agent_id: str, reason: str, state: bytes | None = None) -> SessionRecord | None:
        """Bring an agent home whose world nobody plays in now; None if that is not so."""
        stuck = self._stuck(agent_id)
        return None if stuck is None else next(iter(self._bring_home([stuck], "", reason=reason, state=state)), None)

    def _world_stumbled(self, game: str, world_id: str, error: Exception) -> None:
        """Hold a failure against a game, and take it offline if that was one too many."""
        if self.standings.count(game, world_id, error):
            self._clear(game)

    def _clear(self, game: str) -> None:
        for stay in list(self.stays.values()):
            if stay.session.game == game:
                stay.stop(GAME_OFFLINE)

    async def _leave(self, stay: Stay, spec: AdapterSpec, venue: KeptVenue, run: Run, reason: str) -> None:
        """Bring an agent back into the nexus with what it may carry."""
        session, face = stay.session, venue.face
        with self.ledger.change() as book:
            transfer_id = book.prepare_leave(session)
        seat = venue.seat(stay.seat_name)
        departure = await let_out(face, session, seat, transfer_id, reason, stay.deeds, run.summary().seconds)
        self.store.writer.flush()
        departure = self.life.with_mind(departure, session, stay.seat_name)
        with self.ledger.change() as book:
            commit_leave(book, session, spec, departure, transfer_id)
            closed = book.session(session.id)
        self.life.came_back(closed)
        _tell_waiting(self._leaving, session.agent_id, closed)

    # --- parts ------------------------------------------------------------------------------------------

    async def _play(self, run: Run, recorder: Recorder) -> None:
        """Play a run to its end, or until the nexus stops, and record how it ended."""
        writer, run_id = self.store.writer, str(run.run_id)
        status = RunStatus.INTERRUPTED
        try:
            await run.play()
            status = RunStatus.INTERRUPTED if self._stopping else RunStatus.FINISHED
        except WsapError:
            status = RunStatus.FAILED
            raise
        finally:
            recorder.note("stopped", status=status.value, seconds=round(run.own_seconds(), 3))
            writer.set_status(run_id, status, run.summary().to_json())

    def _why_over(self, run: Run, stay: Stay) -> str:
        if stay.stopped is not None:
            return stay.stopped
        seat = run.seat(stay.seat_name)
        if seat.left is not None:
            return "jack_out" if self.life.exit_of(stay.session.agent_id) is None else EXIT_GAME.name
        if seat.done:
            return "finished"
        return SHUTDOWN if self._stopping else "step_limit"

    def _tell(self, stay: Stay, step: StepTaken) -> None:
        for listener in self._listeners:
            listener(stay, step)

    def _world_for(self, ways: Sequence[Way], spec: AdapterSpec) -> tuple[WorldRecord, bytes | None, bool]:
        """Return the world to go to, its kept state, and whether it is new."""
        way = ways[0]
        with self.ledger.change() as book:
            if way.avatar is not None:
                return book.world(way.avatar.world_id), book.world_snapshot(way.avatar.world_id), False
            owner = way.agent_id if spec.seats[1] == 1 else None
            record = book.add_world(spec.name, owner, way_seed(self.settings.seed, way), {})
            for each in ways:
                book.send_to(each.transfer_id, record.id)
            return record, None, True

    def _not_let_in(self, ways: Sequence[Way], record: WorldRecord, *, new: bool, error: Exception) -> None:
        with self.ledger.change() as book:
            for way in ways:
                if not self.elsewhere.doubt(book, way.transfer_id, way.agent_id, way.game, str(error)):
                    take_back(book, way.transfer_id, way.agent_id, str(error))
                book.note("world_failed", agent=way.agent_id, game=way.game, world=record.id, error=str(error))
            if new:
                book.drop_world(record.id)
        counted = isinstance(error, WorldFailedError) and error.counted
        if not counted and (is_failure(error) or not isinstance(error, WsapError)):
            self._world_stumbled(record.game, record.id, error)
        known = error if isinstance(error, WsapError) else WorldError(f"{record.game!r} failed: {error}")
        for way in ways:
            _tell_waiting(self._arriving, way.agent_id, known)

    def _settle(self) -> None:
        """Take back what was prepared and not committed when the nexus last ended."""
        with self.ledger.change() as book:
            for row in book.open_transfers():
                if row.kind == "enter":
                    why = "the nexus ended in the middle of it"
                    if not self.elsewhere.doubt(book, row.id, row.agent_id, str(row.data.get("game")), why):
                        take_back(book, row.id, row.agent_id, why)
                    if row.world_id is not None and not book.lived_in(row.world_id):
                        book.drop_world(row.world_id)
                else:
                    # The stay goes on, and ends with the same transfer.
                    book.settle(row.id, "cancelled", why="the nexus ended in the middle of it")

    def _plan_of(self, ways: Sequence[Way], names: Sequence[str], spec: AdapterSpec) -> RunPlan:
        seats = []
        with self.ledger.look() as book:
            for number, name in enumerate(names):
                agent = book.agent(ways[number].agent_id) if number < len(ways) else None
                seats.append(self.life.seat_plan(name, agent, spec.name, spec.default_agent))
        seed = way_seed(self.settings.seed, ways[0])
        return RunPlan(spec.name, tuple(seats), seed, ways[0].terms.steps, {}, self.settings.snapshot_every)

    def _agents_of(self, plan: RunPlan, agents: Mapping[str, str]) -> dict[str, AgentSpec]:
        """Return who decides in each seat; `agents` says which agent of the nexus sits there."""
        # Somebody outside may be gone for good; where others wait for it, the world's deadline holds for it, too.
        deadline = self._spec(plan.game).deadline if len(plan.seats) > 1 else None
        return {s.name: self._agent_spec(agents.get(s.name, s.name), s.agent, deadline) for s in plan.seats}

    def _agent_spec(self, agent_id: str, agent: str, deadline: float | None = None) -> AgentSpec:
        if agent != EXTERNAL.agent:
            return load_agent_spec(agent, self.host)

        def create() -> ExternalAgent:
            self.external[agent_id] = ExternalAgent(deadline)
            return self.external[agent_id]

        # Interactive: while recorded steps are gone through again, nobody is asked.
        return AgentSpec(agent, "Somebody outside decides.", create, interactive=True)

    def _record_run(self, plan: RunPlan, game: str) -> str:
        return self.store.repository.create_run(
            NewRun(game=game, agent=plan.agent_label, seed=plan.seed, step_limit=plan.steps, config=plan.to_config())
        ).id

    def _new_controls(self, agent: AgentIdentity) -> Controls:
        controls = Controls(pace=self.settings.pace)
        if agent.state == "paused":
            controls.pause()
        if self._stopping:
            controls.stop()
        self._controls[agent.id] = controls
        return controls

    def _world_context(self) -> Context:
        return Context(clock=self._clock, services=self._services)

    def _make_world(self, spec: AdapterSpec, record: WorldRecord) -> WorldFace:
        far = spec.name in self.elsewhere.specs()
        return self.elsewhere.world(spec, record) if far else self._make_near(spec, record)

    def _spec(self, game: str) -> AdapterSpec:
        if game in self.elsewhere.specs():
            return self.elsewhere.specs()[game]
        for reference in self.settings.games or ():
            # One in a file is known by its own name, too, once it has been looked at.
            if reference not in self._specs and names_object(reference):
                spec = load_adapter_spec(reference, self.host)
                self._specs[reference] = self._specs[spec.name] = spec
        if game not in self._specs:
            self._specs[game] = load_adapter_spec(game, self.host)
        return self._specs[game]


def _tell_waiting(waiting: dict[str, asyncio.Future[T]], agent_id: str, outcome: T | Exception) -> None:
    """Give whoever waits for an agent what came of it, if anybody does."""
    future = waiting.pop(agent_id, None)
    if future is None or future.done():
        return
    if isinstance(outcome, Exception):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)


def _codec_of(spec: AdapterSpec) -> Codec:
    """Return what reads a game's recorded messages.

    Raises:
        WorldFailedError: its types can't be loaded.
    """
    try:
        return Codec([resolve(reference) for reference in spec.wire_types])
    except PluginError as error:
        raise WorldFailedError(f"The game {spec.name!r} can't be loaded: {error}") from error


def seat_names(ways: Sequence[Way], spec: AdapterSpec) -> list[str]:
    """Return the seats of a world for those who come: in a world of one seat, the agent's id is its name there."""
    if spec.seats[1] == 1:
        return [ways[0].agent_id]
    return list(spec.names_of_seats(max(len(ways), spec.seats[0])))
