"""The worlds that live in a nexus: each is played in its own run, with or without agents."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from wsap_core.errors import RecordMismatchError, SnapshotError, StorageError, UsageError, WorldError, WsapError
from wsap_core.seams.context import Context, derive_seed
from wsap_core.seams.model_errors import BackendError
from wsap_core.specs import AdapterSpec
from wsap_core.untrusted import single_line
from wsap_llm.secrets import redacted
from wsap_nexus.errors import GameUnavailableError, WorldFailedError, WorldInterruptedError
from wsap_nexus.http.retries import UNTIL_IT_WORKS
from wsap_nexus.hub.agents.agent_context import AgentContext
from wsap_nexus.hub.context import Entering, HubContext, ModelWait
from wsap_nexus.hub.games.catalog import codec_of
from wsap_nexus.hub.live_session import SHUTDOWN, SessionStats
from wsap_nexus.hub.living_worlds import LivingWorlds
from wsap_nexus.hub.play.failures import FailureHandler
from wsap_nexus.hub.play.passages import STATS, Past, WorldPassages
from wsap_nexus.hub.play.seating import within_reason
from wsap_nexus.hub.play.sessions import SessionRunner
from wsap_nexus.hub.settings import KeptWorld
from wsap_nexus.hub.transit.entering import PreparedEntry
from wsap_nexus.hub.transit.patience import INSISTED
from wsap_nexus.runs.memory import MemorySnapshot
from wsap_nexus.runs.open_run import OpenRun
from wsap_nexus.runs.plan import RunPlan
from wsap_nexus.runs.record.life_log import LoggedPassage
from wsap_nexus.runs.record.logged import read_snapshot
from wsap_nexus.runs.record.recorder import Recorder
from wsap_nexus.runs.resume import Checkpoint, newest_state, read_past
from wsap_nexus.runs.run import RunSetup
from wsap_nexus.runs.session import ResolvedSpecs, resolve_specs
from wsap_nexus.runs.views.arrivals import read_arrivals, read_there, took_place
from wsap_nexus.runs.views.restoring import played_to
from wsap_nexus.store.entities import WorldRecord
from wsap_nexus.store.errors import is_of_database
from wsap_nexus.store.events.endings import GAME_OFFLINE
from wsap_nexus.store.events.nexus import WorldRewound
from wsap_nexus.store.history import TickPosition, find_tick, newest_tick
from wsap_nexus.store.locks.run_lock import hold_run
from wsap_nexus.store.records import NewRun, RunRecord, RunStatus
from wsap_nexus.tasks import ended
from wsap_nexus.worlds.port import LivingPort
from wsap_nexus.worlds.workers.rebuild import AGAIN, AT_WORK

OFTEN = 2
"""Failures in a row after which a world that fails in a recorded tick goes back to the tick before."""

UNTIL_IT_ANSWERS = replace(UNTIL_IT_WORKS, longest=60.0)
"""The pauses of a world whose model fails."""

_LOGGER = logging.getLogger(__name__)


@dataclass
class Losses:
    """How often a world's worker has ended since its last tick."""

    blamed: int = 0
    at_work: int = 0
    lost: int = 0

    def count(self, to_blame: bool, at_work: bool) -> bool:
        """Count the end of a worker, and return whether the game has failed: it ended it again, in the same tick."""
        self.blamed += to_blame
        self.at_work += at_work
        self.lost += 1
        return self.blamed > 1 or self.at_work > AT_WORK or self.lost > AGAIN


def _failed(why: str, *, to_blame: bool, at_work: bool) -> WorldError:
    return WorldFailedError(f"Its process ended: {why}.")


@dataclass
class OpenWorld:
    """A world in play."""

    world: KeptWorld
    record: WorldRecord
    run_id: str
    passages: WorldPassages

    @property
    def game(self) -> str:
        """The name of its game."""
        return self.record.game

    @property
    def names_seats(self) -> bool:
        """Whether its game names its seats."""
        return bool(self.passages.spec.seat_names)

    @property
    def seats(self) -> Sequence[str]:
        """The seats that the game names, and those of agents that came as themselves."""
        passages = self.passages
        return list(dict.fromkeys([*passages.spec.seat_names, *(seat.name for seat in passages.run.plan.seats)]))

    def has_seat(self, seat: str) -> bool:
        """Return whether an agent may ask for a seat: any, if the game names none."""
        return not self.names_seats or seat in self.seats


def must_live(spec: AdapterSpec) -> None:
    """Raise `UsageError` if the worlds of a game do not live."""
    if "lives" not in spec.abilities:
        raise UsageError(f"{spec.display_title} does not live, so it can't be a world of the nexus.")


def refuse_other(record: WorldRecord, world: KeptWorld, spec: AdapterSpec) -> None:
    """Raise `UsageError` if a world exists already with another game or other options than are given now."""
    if record.game != spec.name:
        raise UsageError(
            f"The world {world.name!r} is one of {record.game!r}, and --world gives it to {spec.name!r}; choose "
            "another name for the new world."
        )
    defaults = {option.name: option.default for option in spec.options}
    made = {**defaults, **record.options}
    given = redacted(world.options)
    others = [name for name, value in given.items() if str(made.get(name)) != str(value)]
    if others:
        before = ", ".join(f"{name}={made[name]}" if made.get(name) is not None else f"no {name}" for name in others)
        now = ", ".join(f"{name}={given[name]}" for name in others)
        raise UsageError(
            f"The world {world.name!r} was made with {before}, and --world gives {now}. A world keeps the options with "
            "which it was made: give those or none, or choose another name for a new world."
        )


@dataclass(eq=False)
class KeptWorlds:
    """Plays the worlds that live in a nexus, and admits agents to them."""

    context: HubContext
    agent_context: AgentContext
    failures: FailureHandler
    sessions: SessionRunner
    worlds: LivingWorlds[OpenWorld]
    _losses: dict[str, Losses] = field(default_factory=dict)
    """What ended the workers of each world since its last tick."""
    _failed: dict[str, int] = field(default_factory=dict)
    """Failures of each world since its last tick."""
    _interrupted: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    """By world, the task that goes on with it after a fault of the machine; it may be done."""

    @property
    def open(self) -> Sequence[OpenWorld]:
        """The worlds in play."""
        return tuple(self.worlds.in_play.values())

    def start(self) -> None:
        """Start or resume the worlds of the settings and those that agents are in.

        When one fails, now or later, its error is logged, its agents return, and it is retried with a growing delay
        of one second to five minutes.
        """
        wanted = {world.name: world for world in self.context.settings.worlds}
        with self.context.nexus_store.look() as tx:
            for world_id in {session.world_id for session in tx.sessions(only_open=True, limit=1_000_000)}:
                if tx.has_world(world_id) and (record := tx.world(world_id)).run_id and self._is_open(record):
                    wanted.setdefault(world_id, KeptWorld(world_id, record.game, record.options))
        for world in wanted.values():
            self._try(world)

    async def stop(self) -> None:
        """Stop retrying failed worlds."""
        await ended(*self.worlds.again)

    def _try(self, world: KeptWorld) -> None:
        self.worlds.games[world.name] = world.game
        try:
            self._begin(world)
        except WsapError as error:
            passing = self.context.storage.is_passing(error)
            level = logging.WARNING if passing else logging.ERROR
            _LOGGER.log(level, "The world %r can't be played: %s", world.name, error)
            if not passing and not is_of_database(error):
                self._bring_back(world.name, error)
            self._try_later(world, passing=passing)

    def _try_later(self, world: KeptWorld, *, passing: bool = False, model: bool = False) -> None:
        """Play a world again after a pause, or once the fault of the machine or of its model that ended it is over."""
        tries = self._failed.get(world.name, 0) + (not passing and not model)
        self._failed[world.name] = tries
        pause = 1.0 if passing else UNTIL_IT_WORKS.pause(tries, 0.5)
        if model:
            pause = UNTIL_IT_ANSWERS.pause(self.context.live.models[world.name].tries, 0.5)

        async def again() -> None:
            if passing:
                await self.context.storage.sound()
            await self.context.clock.sleep(pause)
            if not self.context.live.stopping:
                self._try(world)

        task = asyncio.create_task(again(), name=f"again {world.name}")
        self.worlds.again[task] = world.name
        task.add_done_callback(self.worlds.again.pop)
        self._interrupted.pop(world.name, None)
        if passing:
            self._interrupted[world.name] = task

    async def join(self, prepared: PreparedEntry) -> str | None:
        """Bring an agent into a world in play before its next tick, and return the run.

        None if it is refused, or called back before.
        """
        entering = Entering(prepared.game, time.monotonic(), asyncio.Event())
        called_off = asyncio.create_task(entering.called_off.wait())
        self.context.live.entering[prepared.agent_id] = entering
        try:
            return await self._join(prepared, called_off)
        finally:
            self.context.live.entering.pop(prepared.agent_id, None)
            await ended(called_off)

    async def _join(self, prepared: PreparedEntry, called_off: asyncio.Task[Any]) -> str | None:
        kept = await self._in_play(prepared, called_off)
        if kept is None:
            error = GameUnavailableError(f"No world of {prepared.game} is in play.")
            self.failures.not_let_in([prepared], None, new=False, error=error)
            return None
        done: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()

        async def arrive(episode: int) -> None:
            outcome = None
            try:
                await kept.passages.arrive(prepared, episode)
                outcome = kept.run_id
            except Exception as error:
                if isinstance(error, StorageError) or self.context.storage.is_passing(error):
                    if not done.done():
                        done.set_exception(error)
                    raise
                if not done.done():  # else it was called back
                    self.failures.not_let_in([prepared], kept.record, new=False, error=error)
            finally:
                if not done.done():
                    done.set_result(outcome)

        waiting = kept.passages.waiting
        waiting.append(arrive)
        playing = self.context.live.run_tasks[kept.run_id]
        both: set[asyncio.Future[Any]] = {done, playing}
        await asyncio.wait({*both, called_off}, return_when=asyncio.FIRST_COMPLETED)
        if not (done.done() or playing.done()) and arrive not in waiting:
            # The world is letting it in.
            await asyncio.wait(both, timeout=INSISTED, return_when=asyncio.FIRST_COMPLETED)
        if done.done():
            return done.result()
        if playing.done():
            # The world stopped before the agent's turn to arrive.
            fault = None if playing.cancelled() else playing.exception()
            if fault is not None and self.context.storage.is_passing(fault):
                raise fault
            why = f"The world {kept.record.id!r} stopped before {prepared.agent_id!r} was let in."
        else:
            why = f"{prepared.agent_id!r} was called back before the world {kept.record.id!r} had let it in."
            done.set_result(None)
            with contextlib.suppress(ValueError):
                waiting.remove(arrive)
        self.failures.not_let_in([prepared], kept.record, new=False, error=GameUnavailableError(why))
        return None

    async def _in_play(self, prepared: PreparedEntry, called_off: asyncio.Task[Any]) -> OpenWorld | None:
        """Return the world to enter, once it goes on after a fault of the machine; None if there is none, or the entry
        was called off."""
        while (kept := self._kept_for(prepared)) is None:
            wanted = prepared.terms.world
            interrupted = [
                task
                for name, task in self._interrupted.items()
                if not task.done() and self.worlds.games.get(name) == prepared.game and wanted in (None, name)
            ]
            if not interrupted or called_off.done():
                return None
            await asyncio.wait({*interrupted, called_off}, return_when=asyncio.FIRST_COMPLETED)
        return kept

    def _kept_for(self, prepared: PreparedEntry) -> OpenWorld | None:
        wanted, seat = prepared.terms.world, prepared.terms.seat
        found = [kept for name, kept in self.worlds.entered(prepared.game).items() if wanted in (None, name)]
        if seat is None:
            return next(iter(found), None)
        fitting = [kept for kept in found if kept.has_seat(seat)]
        free = (kept for kept in fitting if seat not in kept.passages.stays)
        return next(free, next(iter(fitting or found), None))

    def _is_open(self, record: WorldRecord) -> bool:
        return bool(self.context.store.repository.get_run(str(record.run_id)).config.get("open"))

    # --- playing --------------------------------------------------------------------------------------

    def _begin(self, world: KeptWorld) -> None:
        context = self.context
        spec = within_reason(context.catalog.spec(world.game, world.options), context.settings.thinking)
        must_live(spec)
        record = self._record_of(world, spec)
        run_id = record.run_id or self._new_run(record, spec)
        repository = context.store.repository
        plan = RunPlan.from_config(repository.get_run(run_id).config)
        again = repository.last_event(run_id, "run") is not None
        recorder = Recorder(context.store.writer, run_id)
        checkpoint = read_past(repository, run_id, plan, spec, {}, codec_of(spec)) if again else None
        past = None if checkpoint is None else self._past(run_id, checkpoint, spec, recorder)
        passages = WorldPassages(
            context, self.agent_context, self.failures, self.sessions, spec, record, recorder, past
        )
        passages.memories = self.agent_context.memories(run_id, {}, None, recorder)
        passages.run = OpenRun(
            plan,
            spec,
            {},
            RunSetup(
                recorder=recorder,
                run_id=run_id,
                past=checkpoint,
                controls=context.run_controls(),
                services=context.services,
                memories=passages.memories,
                seat_controls=passages.controls,
                passages=passages,
                inbox=partial(repository.inbox, run_id),
                make_world=partial(self._make, passages, world, spec, record),
                observers=[
                    lambda step: passages.stays[step.seat].observe(step) if step.seat in passages.stays else None
                ],
            ),
        )
        passages.run.observe_ticks(lambda tick: self._has_ticked(world))
        kept = OpenWorld(world, record, run_id, passages)
        self.worlds.in_play[record.id] = kept
        context.live.runs[run_id], context.live.worlds[run_id] = passages.run, record.id
        context.live.run_tasks[run_id] = task = asyncio.create_task(self._play(kept, recorder, again=again))
        # A fault of the machine ends it with an error that the log told already, and arrivals may hear.
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        context.wakeups.ring_all()  # agents may wait until the game opens

    def _has_ticked(self, world: KeptWorld) -> None:
        self._losses.pop(world.name, None)
        self.context.live.models.pop(world.name, None)

    def _waits_for_model(self, world: KeptWorld, error: BackendError) -> None:
        """Note that a world does not go on because its model fails: the fault of neither the game nor its agents."""
        waits, why = self.context.live.models, single_line(error).rstrip(".")
        before = waits.get(world.name)
        waits[world.name] = (
            ModelWait(why, time.monotonic()) if before is None else replace(before, why=why, tries=before.tries + 1)
        )
        _LOGGER.warning("The world %r waits for its model: %s", world.name, why)

    def _make(
        self, passages: WorldPassages, world: KeptWorld, spec: AdapterSpec, record: WorldRecord, context: Context
    ) -> LivingPort:
        def on_loss(why: str, *, to_blame: bool, at_work: bool) -> WorldError:
            losses = self._losses.setdefault(world.name, Losses())
            if losses.count(to_blame, at_work):
                return WorldFailedError(f"The game {record.game!r} failed: {why}.")
            return WorldInterruptedError(f"The process of the world {record.id!r} ended: {why}.")

        async def quiet(waiting: Collection[str]) -> None:
            passages.run.replays_no_more()
            # The replies that agents wait for are to be in the log; a client is asked again at no cost.
            await passages.run.until_decided(lambda seat: seat not in waiting and not passages.decides_elsewhere(seat))

        return self.context.placement.make_living(spec, record, context, on_loss, quiet)

    def _record_of(self, world: KeptWorld, spec: AdapterSpec) -> WorldRecord:
        with self.context.nexus_store.change() as tx:
            if tx.has_world(world.name):
                record = tx.world(world.name)
                refuse_other(record, world, spec)
                return record
            seed = derive_seed(self.context.settings.seed, "world", world.name)
            return tx.add_world(spec.name, None, seed, world.options, world_id=world.name)

    def _new_run(self, record: WorldRecord, spec: AdapterSpec) -> str:
        repository, run_id = self.context.store.repository, f"nexus-{record.id}"
        plan = RunPlan(
            spec.name, (), record.seed, options=record.options, snapshot_every=self.context.settings.snapshot_every,
            lives=True, open=True,
        )  # fmt: skip
        new = NewRun(game=spec.name, agent=plan.agent_label, seed=plan.seed, config=plan.to_config(), id=run_id)
        with contextlib.suppress(UsageError):  # it exists if the nexus was killed before the commit below
            repository.create_run(new)
        with self.context.nexus_store.change() as tx:
            tx.keep_world(record.id, run_id=run_id)
        return run_id

    def _past(self, run_id: str, checkpoint: Checkpoint, spec: AdapterSpec, recorder: Recorder) -> Past:
        repository, codec = self.context.store.repository, codec_of(spec)
        there = read_there(repository, run_id, checkpoint.seats)
        later = read_arrivals(repository, run_id, there=there, from_seq=checkpoint.saved + 1)
        if later.unsettled:
            with self.context.nexus_store.look() as tx:
                settled = later.settled(lambda arrival: took_place(tx, repository, run_id, arrival))
            for arrival in later.unsettled:
                recorder.write(str(settled.outcome(arrival)), {"transfer": arrival.transfer}, seat=arrival.seat)
            self.context.store.writer.flush()
            later = settled
        minds = [
            (event.seq, event.seat or "", MemorySnapshot.from_json(event.data))
            for event in repository.read_events(run_id, kinds=("mind",))
        ]

        def counted(arrival: LoggedPassage, resting: bool) -> tuple[SessionStats, Any]:
            seat, since, stats, last = arrival.seat, arrival.seq, SessionStats(), None
            if resting and (saved := checkpoint.seats[seat].get(STATS)) is not None:
                stats, since = SessionStats.from_json(saved), checkpoint.saved + 1
                newest = repository.last_event(run_id, "step", seat=seat, before=since)
                if newest is not None and newest.seq > arrival.seq:
                    last = SessionStats().count_logged(newest, codec)
            for event in repository.read_events(run_id, from_seq=since, kinds=("step",), seat=seat):
                last = stats.count_logged(event, codec)
            return stats, last

        return Past(there, later, minds, self.agent_context.whispered(run_id), counted)

    async def _play(self, kept: OpenWorld, recorder: Recorder, *, again: bool) -> None:
        live, run, passages = self.context.live, kept.passages.run, kept.passages
        begun, failed, passing, model = 0, True, False, False
        try:
            begun = self._ticks(kept.run_id)
            with hold_run(self.context.store.database, kept.run_id):
                self.context.store.writer.set_status(kept.run_id, RunStatus.RUNNING)
                recorder.note("resumed" if again else "started")
                await self.sessions.play(run, recorder)
                if not live.stopping:
                    await passages.let_all_out()
        except Exception as error:
            if (interrupted := self._interruption(kept, error)) is not None:
                model = isinstance(error, BackendError)
                passing = not model
                self._send_home(kept, at_once=model)
                raise interrupted from error
            passing = self.context.storage.is_passing(error)
            if passing or is_of_database(error):
                raise
            _LOGGER.error("The world %r has failed: %s", kept.record.id, error)
            self._bring_back(kept.record.id, error)
            diverged = isinstance(error, RecordMismatchError)
            # A game that fails where it did not fail before has changed, too; it may recover, so it is tried again.
            often = run.repeats and isinstance(error, WorldError) and self._failed.get(kept.world.name, 0) >= OFTEN
            if diverged or often:
                await self._go_back(kept, recorder, error)
            if not diverged:
                self.context.breaker.count(kept.record.game, kept.record.id, error)
        else:
            failed = False
        finally:
            self.worlds.in_play.pop(kept.record.id, None)
            for stay in list(passages.stays.values()):
                self.sessions.forget(stay)
            self.agent_context.over(kept.run_id)
            for held in (live.run_tasks, live.runs, live.ports, live.worlds):
                held.pop(kept.run_id, None)
            with contextlib.suppress(WorldError):  # a failure does not matter any more
                await run.close_world()
            if failed and not live.stopping:
                with contextlib.suppress(StorageError):
                    if self._ticks(kept.run_id) > begun:
                        self._failed.pop(kept.world.name, None)
                self._try_later(kept.world, passing=passing, model=model)

    def _send_home(self, kept: OpenWorld, *, at_once: bool) -> None:
        """Bring home the agents that were about to leave an interrupted world: at once, or when they are back in it."""
        live, standing = self.context.live, self.context.breaker.of(kept.record.game)
        for stay in list(kept.passages.stays.values()):
            reason = stay.stopped or (GAME_OFFLINE if standing.status != "available" else None)
            if reason is None or reason == SHUTDOWN:
                continue
            if at_once:
                stats = {stay.session.id: stay.stats}
                self.failures.force_close([stay.session], "", reason=reason, stats=stats, living=kept.record)
            else:
                live.to_leave[stay.session.id] = reason

    def _interruption(self, kept: OpenWorld, error: Exception) -> WorldInterruptedError | None:
        """Return the error after which a world goes on by itself from its log: in another process, or once its model
        answers; None for any other error."""
        if isinstance(error, WorldInterruptedError):
            _LOGGER.warning("%s It goes on from its log.", error)
            return WorldInterruptedError(str(error))
        if isinstance(error, BackendError) and not self.context.storage.is_passing(error):
            self._waits_for_model(kept.world, error)
            return WorldInterruptedError(f"The world {kept.record.id!r} waits for its model: {error}")
        if self.context.placement.must_stay_home(kept.record.game, error):
            return WorldInterruptedError(f"The world {kept.record.id!r} can't be played in a worker: {error}")
        return None

    async def _go_back(self, kept: OpenWorld, recorder: Recorder, error: Exception) -> None:
        """Set a world that can't be repeated back to its last whole tick; what comes after it stays in the log.

        That is the last tick that was repeated, or a later one of which the state was kept. The agents of that tick
        are replaced by ones that leave. Influences since then are applied again.
        """
        repository, writer, run_id = self.context.store.repository, self.context.store.writer, kept.run_id
        writer.flush()
        if isinstance(error, SnapshotError):
            repository.drop_kept_states(run_id)
        state, reached = newest_state(repository, run_id, whole=False), kept.passages.run.tick
        record = repository.get_run(run_id)
        before = newest_tick(repository, record)
        try:
            if state is None or (state.step or 0) < reached:
                position = find_tick(repository, record, reached)
                specs = resolve_specs(replace(RunPlan.from_config(record.config), seats=()), self.context.host)
                world = await self._vacated(kept, record, specs, position)
                to, after, agents, seats = reached, position.end, dict[str, bytes](), dict[str, Any]()
            else:
                world, agents, seats = read_snapshot(state.body)
                to, after = state.step or 0, state.seq
        except WsapError as why:
            _LOGGER.error("The world %r can't go back to tick %d: %s", kept.record.id, reached, why)
            if state is None:
                return
            world, agents, seats = read_snapshot(state.body)
            to, after = state.step or 0, state.seq
        lost = list(repository.read_events(run_id, from_seq=after + 1, kinds=("influence",)))
        with writer.together():
            recorder.rewound(to, world, {seat: agents.get(seat, b"") for seat in seats}, seats, why=str(error))
        writer.flush()
        for influence in lost:
            if "refused" not in influence.data:
                repository.add_to_inbox(run_id, influence.data["body"])
        with self.context.nexus_store.change() as tx:
            name, game = kept.record.id, kept.record.game
            tx.note(WorldRewound(game=game, world=name, tick=to, before=before, error=str(error)[:500]))
        _LOGGER.warning("The world %r went back from tick %d to tick %d.", kept.record.id, before, to)

    async def _vacated(self, kept: OpenWorld, record: RunRecord, specs: ResolvedSpecs, position: TickPosition) -> bytes:
        def make(context: Context) -> LivingPort:
            return self.context.placement.make_living(specs.game, kept.record, context, _failed, offline=True)

        run = await played_to(self.context.store.repository, record, specs, position, make)
        try:
            return await run.living.vacated()
        finally:
            await run.close_world()

    def _ticks(self, run_id: str) -> int:
        newest = self.context.store.repository.last_event(run_id, "tick")
        return 0 if newest is None else newest.step or 0

    def _bring_back(self, world_id: str, error: Exception) -> None:
        """Bring all agents back from a world that can't be played; their items there return to them."""
        self.context.live.models.pop(world_id, None)
        with self.context.nexus_store.look() as tx:
            sessions = tx.sessions(world_id=world_id, only_open=True)
            record = tx.world(world_id) if sessions else None
        if record is not None:
            kept = self.worlds.in_play.get(world_id)
            stats = {} if kept is None else {s.session.id: s.stats for s in kept.passages.stays.values()}
            self.failures.force_close(sessions, str(error), stats=stats, living=record)
