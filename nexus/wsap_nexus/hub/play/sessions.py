"""Sessions in worlds: agents enter together, play in one task for each world, and return to the nexus."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wsap_core.errors import WorldError, WsapError
from wsap_core.protocol import ActionResult
from wsap_core.seams.model_errors import BackendError
from wsap_core.specs import AdapterSpec
from wsap_nexus.errors import DiedAsleepError
from wsap_nexus.hub.agents.agent_context import AgentContext
from wsap_nexus.hub.context import Entering, HubContext
from wsap_nexus.hub.games.catalog import codec_of
from wsap_nexus.hub.live_session import SHUTDOWN, LiveSession, SessionStats
from wsap_nexus.hub.lobby import Capacity
from wsap_nexus.hub.outside.run_sessions import config_of
from wsap_nexus.hub.play.failures import FailureHandler
from wsap_nexus.hub.play.seating import (
    START,
    KeptVenue,
    arrival_body,
    deciders_for,
    record_start,
    run_plan,
    seat_names,
    within_reason,
)
from wsap_nexus.hub.transit.entering import (
    PreparedEntry,
    WorldEntry,
    commit_death,
    commit_enter,
    enter_world,
    entry_seed,
)
from wsap_nexus.hub.transit.leaving import commit_exit, exit_world
from wsap_nexus.hub.transit.patience import time_for_passage, within
from wsap_nexus.runs.plan import RunPlan
from wsap_nexus.runs.play.controls import only_recorded
from wsap_nexus.runs.record.recorder import Recorder
from wsap_nexus.runs.resume import Checkpoint, read_past
from wsap_nexus.runs.run import Run, RunSetup
from wsap_nexus.runs.visitor_seat import EXIT_GAME
from wsap_nexus.store.entities import SessionRecord, WorldRecord
from wsap_nexus.store.errors import is_of_database
from wsap_nexus.store.events.endings import GAME_OFFLINE
from wsap_nexus.store.events.sessions import SessionResumed
from wsap_nexus.store.records import NewRun, RunStatus
from wsap_nexus.worlds.placement import saved_on_the_way
from wsap_nexus.worlds.port import WorldPort
from wsap_nexus.worlds.remote.remote_world import RemoteWorld

SEE_OUT_EVERY = 1.0
"""Seconds between two looks for games that hold agents that are to leave."""


@dataclass(eq=False)
class SessionRunner:
    """Runs the sessions of agents, one task for each world."""

    context: HubContext
    agent_context: AgentContext
    failures: FailureHandler
    capacity: Capacity

    def __post_init__(self) -> None:
        self.tasks = self.context.live.run_tasks
        """The tasks that play runs, by run."""
        self.runs = self.context.live.runs
        """Runs in play in a world, by id."""

    async def enter_together(
        self,
        entries: Sequence[PreparedEntry],
        spec: AdapterSpec,
        where: tuple[WorldRecord, bytes | None, bool] | None = None,
    ) -> str | None:
        """Bring agents into one world, start to play, and return the run; None if the world refused them."""
        record, kept, new = where or self._world_for(entries, spec)
        port: WorldPort | None = None
        names = seat_names(entries, spec)
        try:
            port = self.context.make_world(spec, record)
            arrivals, world_state = await self._let_in(entries, spec, record, kept, port, names)
            plan = run_plan(self.context, entries, names, spec)
            run_id = self.record_run(plan, spec.name)
            recorder = Recorder(self.context.store.writer, run_id)
            recorder.note("started")
            games = self.context.catalog.names()
            bodies = {a.seat_name: arrival_body(a, games) for a in arrivals}
            record_start(recorder, bodies, world_state)
            self.context.store.writer.flush()
            with self.context.nexus_store.change() as tx:
                sessions = {a.seat_name: commit_enter(tx, a, record, run_id) for a in arrivals}
                tx.keep_world(record.id, run_id=run_id)
        except DiedAsleepError as found:
            if port is not None:
                await port.close()
            with self.context.nexus_store.change() as tx:
                commit_death(tx, entries[0], record, found)
            self.context.live.arriving.resolve(entries[0].agent_id, found)
            return None
        except Exception as error:
            if port is not None:
                await port.close()
            if self.context.storage.is_passing(error):
                raise
            if self.context.placement.must_stay_home(spec.name, error):
                return await self.enter_together(entries, spec, (record, kept, new))
            self.failures.not_let_in(entries, record, new=new, error=error)
            return None
        seats = {a.seat_name: a.seat for a in arrivals}
        wrap_seat = self.agent_context.guests(sessions, None, recorder)
        venue = KeptVenue(port, seed=record.seed, seats=seats, arrivals=bodies, wrap_seat=wrap_seat)
        self._start_run(sessions, spec, plan, recorder, venue, {}, None)
        return run_id

    async def _let_in(
        self,
        entries: Sequence[PreparedEntry],
        spec: AdapterSpec,
        record: WorldRecord,
        kept: bytes | None,
        port: WorldPort,
        names: Sequence[str],
    ) -> tuple[list[WorldEntry], bytes | None]:
        """Bring agents into a world and return their arrivals and, in a world of one seat, its state."""

        async def enter() -> tuple[list[WorldEntry], bytes | None]:
            if kept is None:
                await port.begin(record.seed)
            arrivals = [
                await enter_world(self.context.nexus_store, port, record, prepared, seat_name=name, kept=kept)
                for prepared, name in zip(entries, names, strict=False)
            ]
            return arrivals, await port.snapshot() if port.can_snapshot and len(names) == 1 else None

        coming = self.context.live.entering
        now = time.monotonic()
        called_off = {prepared.agent_id: Entering(spec.name, now, asyncio.Event()) for prepared in entries}
        coming.update(called_off)
        who = ", ".join(map(repr, called_off))
        try:
            return await within(
                self._time_for_passage(spec),
                enter(),
                f"{spec.display_title} did not let {who} in",
                [entry.called_off for entry in called_off.values()],
            )
        finally:
            for agent_id in called_off:
                coming.pop(agent_id, None)

    def _time_for_passage(self, spec: AdapterSpec) -> float:
        remote = spec.name in self.context.remote_games.specs()
        return time_for_passage(spec, self.context.settings.timeouts.deadline, remote=remote)

    async def go_on(self, session_id: str) -> None:
        """Resume an open session with all others in its run, and return when its agent is back."""
        with self.context.nexus_store.look() as tx:
            session = tx.session(session_id)
            record = tx.world(session.world_id)
            together = [s for s in tx.sessions(world_id=record.id, only_open=True) if s.run_id == session.run_id]
        if session.run_id not in self.tasks:
            standing = self.context.breaker.of(session.game)
            if self.context.store.repository.get_run(session.run_id).config.get("open"):
                if not await self._plays_again(session, record):
                    return
            elif standing.status != "available":
                self.failures.force_close(together, standing.reason or standing.status, reason=GAME_OFFLINE)
                return
            else:
                try:
                    self._resume_run(session.run_id, together, record)
                except WorldError as error:
                    if self.context.storage.is_passing(error):
                        raise
                    self.failures.world_failed(together, record.id, error)
                    return
        await self.until_back(session.run_id, session.agent_id)

    async def _plays_again(self, session: SessionRecord, record: WorldRecord) -> bool:
        """Wait for the run of a world that lives, which goes on by itself; False if the session or the nexus ends."""
        while session.run_id not in self.tasks and not self.context.live.stopping:
            await self.context.clock.sleep(0.2)
            with self.context.nexus_store.look() as tx:
                if tx.session(session.id).closed is not None:
                    return False
            standing = self.context.breaker.of(session.game)
            if standing.status != "available":
                self.failures.force_close(
                    [session], standing.reason or standing.status, reason=GAME_OFFLINE, living=record
                )
                return False
        return not self.context.live.stopping

    async def until_back(self, run_id: str, agent_id: str) -> None:
        """Return once an agent is back from a run, or the whole run is over; WsapError if that was not recorded."""
        task, stay = self.tasks[run_id], self.context.live.sessions.get(agent_id)
        if stay is None and self.runs[run_id].plan.open:
            # It takes its seat again when the run's replay reaches its arrival.
            seated: asyncio.Future[Any] = self.context.live.arriving.wait(agent_id)
            both: set[asyncio.Future[Any]] = {task, seated}
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            stay = self.context.live.sessions.get(agent_id)
            if stay is None:
                return
        if stay is None or stay.session.run_id != run_id:
            await asyncio.shield(task)
            return
        home = asyncio.create_task(stay.home.wait())
        try:
            await asyncio.wait({task, home}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            home.cancel()
        if run_id not in self.tasks:
            await asyncio.shield(task)  # the run is over, and its world is being closed

    def _resume_run(self, run_id: str, sessions: Sequence[SessionRecord], record: WorldRecord) -> None:
        repository = self.context.store.repository
        spec = self.context.catalog.spec(record.game)
        plan = RunPlan.from_config(repository.get_run(run_id).config)
        codec = codec_of(spec)
        start = next(repository.read_events(run_id, kinds=(START,)))
        seats = {a["agent"]: a["seat"] for a in start.data["arrivals"]}
        by_seat = {seats[s.agent_id]: s for s in sessions}
        gone = set(seats.values()) - by_seat.keys()
        agents = deciders_for(self.context, plan, {seat: s.agent_id for seat, s in by_seat.items()}, gone)
        past = read_past(repository, run_id, plan, spec, agents, codec)
        stats: dict[str, SessionStats] = {}
        last: dict[str, ActionResult] = {}
        for seat in by_seat:
            stats[seat] = SessionStats.of(past.tallies[seat])
            if (newest := repository.last_event(run_id, "step", seat=seat)) is not None:
                last[seat] = SessionStats().count_logged(newest, codec)
        recorder = Recorder(self.context.store.writer, run_id)
        self.context.store.writer.set_status(run_id, RunStatus.RUNNING)
        recorder.note("resumed")
        with self.context.nexus_store.change() as tx:
            for session in sessions:
                tx.note(SessionResumed(agent_id=session.agent_id, game=session.game, session_id=session.id))
        wrap_seat = self.agent_context.guests(by_seat, past, recorder)
        port = self.context.make_world(spec, record)
        venue = KeptVenue(port, seed=record.seed, start=start.body, wrap_seat=wrap_seat)
        self._start_run(by_seat, spec, plan, recorder, venue, stats, past, last, gone)

    def _start_run(
        self,
        sessions: Mapping[str, SessionRecord],
        spec: AdapterSpec,
        plan: RunPlan,
        recorder: Recorder,
        venue: KeptVenue,
        stats: Mapping[str, SessionStats],
        past: Checkpoint | None,
        last: Mapping[str, ActionResult] | None = None,
        gone: Collection[str] = (),
    ) -> None:
        """Play the open sessions of one world in a new task.

        Args:
            last: the last recorded results, by seat.
            gone: the seats of agents that have left.
        """
        stays: dict[str, LiveSession] = {}
        with self.context.nexus_store.look() as tx:
            agents = {seat: tx.agent(session.agent_id) for seat, session in sessions.items()}
        for seat, session in sessions.items():
            controls = self.context.new_controls(agents[seat])
            stay = LiveSession(session, seat, controls, self.context.live.tell, stats.get(seat) or SessionStats())
            stay.take_up((last or {}).get(seat), repeats=past is not None)
            stays[seat] = self.context.live.sessions[session.agent_id] = stay
            recorder.agents[seat] = session.agent_id

        alone = len(plan.seats) == 1
        run_id = next(iter(sessions.values())).run_id

        async def departed(seat: str) -> None:
            if seat in stays:
                # Not `run` itself, which refers to this function: the cycle would stay in memory.
                await self._return_agent(stays[seat], spec, venue, self.runs[run_id])

        run = Run(
            plan,
            within_reason(spec, self.context.settings.thinking),
            deciders_for(self.context, plan, {seat: agent.id for seat, agent in agents.items()}, gone),
            RunSetup(
                recorder=recorder,
                run_id=run_id,
                past=past,
                controls=next(iter(stays.values())).controls if alone else self.context.run_controls(),
                observers=[stay.observe for stay in stays.values()],
                services=self.context.services,
                venue=venue,
                seat_controls={
                    **{seat: only_recorded() for seat in gone},
                    **{seat: stay.controls for seat, stay in stays.items()},
                },
                departed=departed,
                memories=self.agent_context.memories(
                    run_id, {s: agent.id for s, agent in agents.items()}, past.memories if past else None, recorder
                ),
            ),
        )
        self.runs[run_id] = run
        self.context.live.ports[run_id] = venue.port
        self.context.live.worlds[run_id] = next(iter(sessions.values())).world_id
        if self.context.live.stopping:
            # They arrived while the nexus was stopping: the session starts with the next start of the nexus.
            run.controls.stop()
            for stay in stays.values():
                stay.stop(SHUTDOWN, at_once=True)
        self.tasks[run_id] = asyncio.create_task(self._play_run(run, stays, spec, recorder, venue))
        for stay in stays.values():
            self.context.live.arriving.resolve(stay.session.agent_id, stay)

    async def _play_run(
        self, run: Run, stays: Mapping[str, LiveSession], spec: AdapterSpec, recorder: Recorder, venue: KeptVenue
    ) -> None:
        try:
            state: bytes | None = None
            leaving = False
            try:
                await self.play(run, recorder)
                # A state saved while agents leave lacks their released items before those are committed.
                state, leaving = saved_on_the_way(venue.port), True
                for stay in stays.values():
                    reason = self.why_over(run, stay)
                    if reason != SHUTDOWN and not stay.home.is_set():
                        await self._leave(stay, spec, venue, run, reason)
            except Exception as error:
                if is_of_database(error) or self.context.storage.is_passing(error):
                    raise
                await self.failures.run_failed(
                    run, stays, error, state if leaving else saved_on_the_way(venue.port), leaving
                )
        finally:
            for stay in stays.values():
                self.forget(stay)
            self.agent_context.over(str(run.run_id))
            self.tasks.pop(str(run.run_id), None)
            self.runs.pop(str(run.run_id), None)
            self.context.live.ports.pop(str(run.run_id), None)
            self.context.live.worlds.pop(str(run.run_id), None)
            with contextlib.suppress(WorldError), self.capacity.closing(spec, str(run.run_id)):
                await venue.port.close()  # a failure does not matter any more

    async def _return_agent(self, stay: LiveSession, spec: AdapterSpec, venue: KeptVenue, run: Run) -> None:
        """Bring an agent back whose seat was released, while the others play on."""
        reason = self.why_over(run, stay)
        if reason != SHUTDOWN:
            await self._leave(stay, spec, venue, run, reason, others=True)
            self.forget(stay)

    async def see_out(self) -> None:
        """For ever, end worlds that agents are to leave, but whose games have not returned from a call for long.

        The sessions of a stopping nexus stay open, and are resumed by the next.
        """
        while True:
            await asyncio.sleep(SEE_OUT_EVERY)
            for stay in list(self.context.live.sessions.values()):
                run_id = stay.session.run_id
                port = self.context.live.ports.get(run_id)
                if stay.stopped is None or not isinstance(port, RemoteWorld) or not port.is_held:
                    continue
                if stay.stopped == SHUTDOWN:
                    self.tasks[run_id].cancel()
                elif len(self.runs[run_id].plan.seats) == 1:
                    port.give_up()

    def forget(self, stay: LiveSession) -> None:
        """Forget a session that is no longer played; its agent may be elsewhere already."""
        if stay.home.is_set():
            return
        stay.home.set()
        self.context.live.sessions.pop(stay.session.agent_id, None)
        self.agent_context.gone(stay.session.agent_id)

    async def _leave(
        self, stay: LiveSession, spec: AdapterSpec, venue: KeptVenue, run: Run, reason: str, *, others: bool = False
    ) -> None:
        """Bring an agent back into the nexus with its items; `others` says whether others play on."""
        session, port = stay.session, venue.port
        with self.context.nexus_store.change() as tx:
            transfer_id = tx.prepare_leave(session)
        seat = venue.seat(stay.seat_name)
        stay.leaving_since = time.monotonic()
        world_exit = await within(
            self._time_for_passage(spec),
            exit_world(port, session, seat, transfer_id, reason, stay.stats, run.seconds, others=others),
            f"{spec.display_title} did not let {session.agent_id!r} go",
            [stay.insisted],
        )
        self.context.store.writer.flush()
        world_exit = self.agent_context.with_memories(world_exit, session, stay.seat_name)
        with self.context.nexus_store.change() as tx:
            commit_exit(tx, session, spec, world_exit, transfer_id)
            closed = tx.session(session.id)
        self.agent_context.came_back(closed)
        self.context.live.leaving.resolve(session.agent_id, closed)

    async def play(self, run: Run, recorder: Recorder) -> None:
        """Play a run to its end, or until the nexus stops, and record its status."""
        writer, run_id = self.context.store.writer, str(run.run_id)
        status = RunStatus.INTERRUPTED
        try:
            await run.play()
            status = RunStatus.INTERRUPTED if self.context.live.stopping else RunStatus.FINISHED
        except WsapError as error:
            waits = run.plan.open and isinstance(error, BackendError)  # for the world's model
            if not waits and not self.context.storage.is_passing(error):
                status = RunStatus.FAILED
            raise
        finally:
            recorder.note("stopped", status=status.value, seconds=round(run.own_seconds(), 3))
            writer.set_status(run_id, status, run.summary().to_json())

    def why_over(self, run: Run, stay: LiveSession) -> str:
        """Return the reason why a session ended."""
        if stay.stopped is not None:
            return stay.stopped
        loop = run.loop(stay.seat_name)
        if loop.let_go:
            # Its seat was released before the nexus stopped, and its exit was not committed.
            limit = stay.session.terms.steps if run.plan.open else run.plan.steps
            return "step_limit" if stay.stats.steps == limit else "kicked"
        if loop.seat.left is not None:
            return "jack_out" if self.agent_context.exit_of(stay.session.agent_id) is None else EXIT_GAME.name
        if loop.seat.done:
            return "finished"
        return SHUTDOWN if self.context.live.stopping else "step_limit"

    def _world_for(self, entries: Sequence[PreparedEntry], spec: AdapterSpec) -> tuple[WorldRecord, bytes | None, bool]:
        """Return the world to enter, its stored state, and whether it is new."""
        prepared = entries[0]
        with self.context.nexus_store.change() as tx:
            if prepared.avatar is not None:
                return tx.world(prepared.avatar.world_id), tx.world_snapshot(prepared.avatar.world_id), False
            for row in tx.open_transfers(prepared.agent_id):
                if row.world_id is not None and not tx.lived_in(row.world_id):
                    tx.drop_world(row.world_id)  # from an attempt that a fault of the machine ended
            owner = prepared.agent_id if spec.seats[1] == 1 else None
            record = tx.add_world(spec.name, owner, entry_seed(self.context.settings.seed, prepared), {})
            for each in entries:
                tx.send_to(each.transfer_id, record.id)
            return record, None, True

    def record_run(self, plan: RunPlan, game: str) -> str:
        """Create the record of a new run, and return its id."""
        return self.context.store.repository.create_run(
            NewRun(game=game, agent=plan.agent_label, seed=plan.seed, step_limit=plan.steps, config=config_of(plan))
        ).id
