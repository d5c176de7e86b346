"""Playing in worlds: agents come in together, play in a task of their own, and are brought back."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence

from wsap_core.errors import StorageError, WorldError, WsapError
from wsap_core.protocol import ActionResult
from wsap_core.specs import AdapterSpec
from wsap_nexus.errors import DiedAsleepError, WorldFailedError, is_failure
from wsap_nexus.hub.agent_context import Life
from wsap_nexus.hub.catalog import codec_of
from wsap_nexus.hub.context import HubContext
from wsap_nexus.hub.failures import Homecoming
from wsap_nexus.hub.live_session import SHUTDOWN, Deeds, Stay
from wsap_nexus.hub.lobby import Room
from wsap_nexus.hub.seating import START, Casting, KeptVenue, record_start, seat_names
from wsap_nexus.hub.transit import Way, commit_death, commit_enter, commit_leave, let_in, let_out, take_back, way_seed
from wsap_nexus.hub.visitor_seat import EXIT_GAME
from wsap_nexus.runs.controls import Controls
from wsap_nexus.runs.plan import RunPlan
from wsap_nexus.runs.recorder import Recorder
from wsap_nexus.runs.resume import read_past
from wsap_nexus.runs.run import Past, Run
from wsap_nexus.store.entities import SessionRecord, WorldRecord
from wsap_nexus.store.events import EntryRefused, SessionResumed
from wsap_nexus.store.events.endings import GAME_OFFLINE
from wsap_nexus.store.records import NewRun, RunStatus
from wsap_nexus.worlds.placement import saved_on_the_way
from wsap_nexus.worlds.port import WorldFace


class Tables:
    """What is played in the worlds of a nexus, each world a table that agents sit at.

    Args:
        context: of the nexus.
        casting: who sits where.
        life: memories, whispers and diaries.
        homecoming: deals with failures.
        room: counts worlds that are being closed.
    """

    def __init__(
        self, context: HubContext, *, casting: Casting, life: Life, homecoming: Homecoming, room: Room
    ) -> None:
        self.tasks = context.live.run_tasks
        """What is played, by run."""
        self.runs = context.live.runs
        """Runs that are being played in a world, by their ids."""
        self._context = context
        self._casting = casting
        self._life = life
        self._homecoming = homecoming
        self._room = room

    async def sit_down(
        self, ways: Sequence[Way], spec: AdapterSpec, where: tuple[WorldRecord, bytes | None, bool] | None = None
    ) -> str | None:
        """Bring agents into one world, begin to play, and return the run; None if the world didn't let them in."""
        record, kept, new = where or self._world_for(ways, spec)
        face: WorldFace | None = None
        names = seat_names(ways, spec)
        try:
            face = self._context.make_world(spec, record)
            if kept is None:
                await face.begin(record.seed)
            arrivals = [
                await let_in(self._context.ledger, face, record, way, seat_name=name, kept=kept)
                for way, name in zip(ways, names, strict=False)
            ]
            world_state = await face.snapshot() if face.can_snapshot and len(names) == 1 else None
            plan = self._casting.plan_of(ways, names, spec)
            run_id = self.record_run(plan, spec.name)
            recorder = Recorder(self._context.store.writer, run_id)
            recorder.note("started")
            record_start(recorder, arrivals, world_state)
            self._context.store.writer.flush()
            with self._context.ledger.change() as book:
                sessions = {a.seat_name: commit_enter(book, a, record, run_id) for a in arrivals}
                book.keep_world(record.id, run_id=run_id)
        except DiedAsleepError as found:
            if face is not None:
                await face.close()
            with self._context.ledger.change() as book:
                commit_death(book, ways[0], record, found)
            self._context.live.arriving.tell(ways[0].agent_id, found)
            return None
        except Exception as error:
            if face is not None:
                await face.close()
            if self._context.placement.must_stay_home(spec.name, error):
                return await self.sit_down(ways, spec, (record, kept, new))
            self._not_let_in(ways, record, new=new, error=error)
            return None
        venue = KeptVenue(face, seed=record.seed, seats={a.seat_name: a.seat for a in arrivals})
        self._begin_table(sessions, spec, plan, recorder, venue, {}, None)
        return run_id

    async def go_on(self, session_id: str) -> None:
        """Go on with a stay that was open when the nexus stopped, and with all who are in that world."""
        with self._context.ledger.look() as book:
            session = book.session(session_id)
            record = book.world(session.world_id)
            together = [s for s in book.sessions(world_id=record.id, only_open=True) if s.run_id == session.run_id]
        if session.run_id not in self.tasks:
            standing = self._context.standings.of(session.game)
            if standing.status != "available":
                self._homecoming.bring_home(together, standing.reason or standing.status, reason=GAME_OFFLINE)
                return
            try:
                self._resume_table(session.run_id, together, record)
            except WorldError as error:
                self._homecoming.world_failed(together, record.id, error)
                return
        await self.until_home(session.run_id, session.agent_id)

    async def until_home(self, run_id: str, agent_id: str) -> None:
        """Return once an agent at a table is back, or the whole table is over, whichever comes first.

        Raises:
            WsapError: it could not be recorded how the table ended.
        """
        table, stay = self.tasks[run_id], self._context.live.stays.get(agent_id)
        if stay is None or stay.session.run_id != run_id:
            await asyncio.shield(table)
            return
        home = asyncio.create_task(stay.home.wait())
        try:
            await asyncio.wait({table, home}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            home.cancel()
        if run_id not in self.tasks:
            await asyncio.shield(table)  # the table is over, and its world is being let go

    def _resume_table(self, run_id: str, sessions: Sequence[SessionRecord], record: WorldRecord) -> None:
        repository = self._context.store.repository
        spec = self._context.catalog.spec(record.game)
        plan = RunPlan.from_config(repository.get_run(run_id).config)
        codec = codec_of(spec)
        start = next(repository.read_events(run_id, kinds=(START,)))
        seats = {a["agent"]: a["seat"] for a in start.data["arrivals"]}
        by_seat = {seats[s.agent_id]: s for s in sessions}
        agents = self._casting.agents_of(plan, {seat: s.agent_id for seat, s in by_seat.items()})
        past = read_past(repository, run_id, plan, spec, agents, codec)
        deeds: dict[str, Deeds] = {seat: Deeds() for seat in by_seat}
        last: dict[str, ActionResult] = {}
        for event in repository.read_events(run_id, kinds=("step",)):
            if event.seat in deeds:
                last[event.seat] = deeds[event.seat].count_logged(event, codec)
        recorder = Recorder(self._context.store.writer, run_id)
        recorder.note("resumed")
        with self._context.ledger.change() as book:
            for session in sessions:
                book.note(SessionResumed(agent_id=session.agent_id, game=session.game, session_id=session.id))
        venue = KeptVenue(self._context.make_world(spec, record), seed=record.seed, start=start.body)
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
        with self._context.ledger.look() as book:
            agents = {seat: book.agent(session.agent_id) for seat, session in sessions.items()}
        for seat, session in sessions.items():
            controls = self._context.new_controls(agents[seat])
            stay = Stay(
                session, seat, deeds=deeds.get(seat) or Deeds(), controls=controls, on_step=self._context.live.tell
            )
            stay.take_up((last or {}).get(seat))
            stays[seat] = self._context.live.stays[session.agent_id] = stay

        async def departed(seat: str) -> None:
            if seat in stays:
                await self._come_home(stays[seat], spec, venue, run)

        alone = len(plan.seats) == 1
        run_id = next(iter(sessions.values())).run_id
        run = Run(
            plan,
            spec,
            self._casting.agents_of(plan, {seat: agent.id for seat, agent in agents.items()}),
            recorder=recorder,
            run_id=run_id,
            past=past,
            controls=next(iter(stays.values())).controls if alone else Controls(pace=self._context.settings.pace),
            observers=[stay.observe for stay in stays.values()],
            services=self._context.services,
            venue=venue,
            seat_controls={seat: stay.controls for seat, stay in stays.items()},
            departed=departed,
            memories=self._life.memories(
                run_id, {s: agent.id for s, agent in agents.items()}, past.memories if past else None, recorder
            ),
        )
        venue.around = self._life.guests(sessions, past, recorder)
        self.runs[run_id] = run
        self._context.live.faces[run_id] = venue.face
        if self._context.live.stopping:
            # They came in while the nexus was being stopped: the stay begins when it is started again.
            run.controls.stop()
            for stay in stays.values():
                stay.stop(SHUTDOWN, at_once=True)
        self.tasks[run_id] = asyncio.create_task(self._play_table(run, stays, spec, recorder, venue))
        for stay in stays.values():
            self._context.live.arriving.tell(stay.session.agent_id, stay)

    async def _play_table(
        self, run: Run, stays: Mapping[str, Stay], spec: AdapterSpec, recorder: Recorder, venue: KeptVenue
    ) -> None:
        try:
            state: bytes | None = None
            leaving = False
            try:
                await self.play(run, recorder)
                # What is saved while agents leave has let go of what they carry, before that is written down.
                state, leaving = saved_on_the_way(venue.face), True
                for stay in stays.values():
                    reason = self._why_over(run, stay)
                    if reason != SHUTDOWN and not stay.home.is_set():
                        await self._leave(stay, spec, venue, run, reason)
            except StorageError:
                raise
            except Exception as error:
                await self._homecoming.table_failed(
                    run, stays, error, state if leaving else saved_on_the_way(venue.face), leaving
                )
        finally:
            for stay in stays.values():
                self._is_home(stay)
            self._life.over(str(run.run_id))
            self.tasks.pop(str(run.run_id), None)
            self.runs.pop(str(run.run_id), None)
            self._context.live.faces.pop(str(run.run_id), None)
            with contextlib.suppress(WorldError), self._room.closing(spec, str(run.run_id)):
                await venue.face.close()  # it has said all that matters, should it fail now

    async def _come_home(self, stay: Stay, spec: AdapterSpec, venue: KeptVenue, run: Run) -> None:
        """Bring an agent back whose seat was let go, while the others at its table play on."""
        reason = self._why_over(run, stay)
        if reason != SHUTDOWN:
            await self._leave(stay, spec, venue, run, reason, others=True)
            self._is_home(stay)

    def _is_home(self, stay: Stay) -> None:
        """Forget a stay that nobody plays any more; its agent may be elsewhere already."""
        if stay.home.is_set():
            return
        stay.home.set()
        self._context.live.stays.pop(stay.session.agent_id, None)
        self._life.gone(stay.session.agent_id)

    async def _leave(
        self, stay: Stay, spec: AdapterSpec, venue: KeptVenue, run: Run, reason: str, *, others: bool = False
    ) -> None:
        """Bring an agent back into the nexus with what it may carry; `others` says whether others play on."""
        session, face = stay.session, venue.face
        with self._context.ledger.change() as book:
            transfer_id = book.prepare_leave(session)
        seat = venue.seat(stay.seat_name)
        departure = await let_out(
            face, session, seat, transfer_id, reason, stay.deeds, run.summary().seconds, others=others
        )
        self._context.store.writer.flush()
        departure = self._life.with_memories(departure, session, stay.seat_name)
        with self._context.ledger.change() as book:
            commit_leave(book, session, spec, departure, transfer_id)
            closed = book.session(session.id)
        self._life.came_back(closed)
        self._context.live.leaving.tell(session.agent_id, closed)

    async def play(self, run: Run, recorder: Recorder) -> None:
        """Play a run to its end, or until the nexus stops, and record how it ended."""
        writer, run_id = self._context.store.writer, str(run.run_id)
        status = RunStatus.INTERRUPTED
        try:
            await run.play()
            status = RunStatus.INTERRUPTED if self._context.live.stopping else RunStatus.FINISHED
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
        if run.was_let_go(stay.seat_name):
            # It was let go before the nexus ended, and is on its way home since.
            return "step_limit" if stay.deeds.steps == run.plan.steps else "kicked"
        if seat.left is not None:
            return "jack_out" if self._life.exit_of(stay.session.agent_id) is None else EXIT_GAME.name
        if seat.done:
            return "finished"
        return SHUTDOWN if self._context.live.stopping else "step_limit"

    def _world_for(self, ways: Sequence[Way], spec: AdapterSpec) -> tuple[WorldRecord, bytes | None, bool]:
        """Return the world to go to, its kept state, and whether it is new."""
        way = ways[0]
        with self._context.ledger.change() as book:
            if way.avatar is not None:
                return book.world(way.avatar.world_id), book.world_snapshot(way.avatar.world_id), False
            owner = way.agent_id if spec.seats[1] == 1 else None
            record = book.add_world(spec.name, owner, way_seed(self._context.settings.seed, way), {})
            for each in ways:
                book.send_to(each.transfer_id, record.id)
            return record, None, True

    def _not_let_in(self, ways: Sequence[Way], record: WorldRecord, *, new: bool, error: Exception) -> None:
        with self._context.ledger.change() as book:
            for way in ways:
                if not self._context.elsewhere.doubt(book, way.transfer_id, way.agent_id, way.game, str(error)):
                    take_back(book, way.transfer_id, way.agent_id, str(error))
                book.note(EntryRefused(agent_id=way.agent_id, game=way.game, world=record.id, error=str(error)))
            if new:
                book.drop_world(record.id)
        counted = isinstance(error, WorldFailedError) and error.counted
        if not counted and (is_failure(error) or not isinstance(error, WsapError)):
            self._context.standings.count(record.game, record.id, error)
        known = error if isinstance(error, WsapError) else WorldError(f"{record.game!r} failed: {error}")
        for way in ways:
            self._context.live.arriving.tell(way.agent_id, known)

    def settle(self) -> None:
        """Take back what was prepared and not committed when the nexus last ended."""
        with self._context.ledger.change() as book:
            for row in book.open_transfers():
                if row.kind == "enter":
                    why = "the nexus ended in the middle of it"
                    if not self._context.elsewhere.doubt(book, row.id, row.agent_id, str(row.data.get("game")), why):
                        take_back(book, row.id, row.agent_id, why)
                    if row.world_id is not None and not book.lived_in(row.world_id):
                        book.drop_world(row.world_id)
                else:
                    # The stay goes on, and ends with the same transfer.
                    book.settle(row.id, "cancelled", why="the nexus ended in the middle of it")

    def record_run(self, plan: RunPlan, game: str) -> str:
        """Write down a run that begins, and return its id."""
        return self._context.store.repository.create_run(
            NewRun(game=game, agent=plan.agent_label, seed=plan.seed, step_limit=plan.steps, config=plan.to_config())
        ).id
