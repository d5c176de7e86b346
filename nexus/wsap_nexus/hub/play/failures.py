"""Failures of agents and worlds: failed entries, and agents whose world does not respond."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from wsap_core.errors import (
    RecordMismatchError,
    SnapshotError,
    StorageError,
    UnknownNameError,
    WireError,
    WorldError,
    WsapError,
)
from wsap_core.protocol import Avatar, AvatarState, TransitPackage
from wsap_core.protocol.wire import Codec
from wsap_core.specs import AdapterSpec
from wsap_nexus.errors import WorldFailedError, is_failure
from wsap_nexus.hub.agents.agent_context import AgentContext
from wsap_nexus.hub.context import HubContext
from wsap_nexus.hub.games.catalog import codec_of
from wsap_nexus.hub.live_session import LiveSession, SessionStats
from wsap_nexus.hub.play.seating import START, KeptVenue
from wsap_nexus.hub.transit.entering import PreparedEntry, cancel_entry
from wsap_nexus.hub.transit.leaving import WorldExit, commit_exit, in_any_case
from wsap_nexus.hub.transit.patience import INSISTED
from wsap_nexus.runs.record.logged import read_snapshot, read_step
from wsap_nexus.runs.run import Run
from wsap_nexus.store.entities import SessionRecord, TransferRecord, WorldRecord
from wsap_nexus.store.errors import OneValueError, UnreadableError
from wsap_nexus.store.events.agents import AgentFailed
from wsap_nexus.store.events.endings import FAILED, WORLD_FAILED
from wsap_nexus.store.events.sessions import EntryRefused, SessionForceClosed, WorldCrashed
from wsap_nexus.store.nexus_store import Transaction
from wsap_nexus.store.repository import Repository
from wsap_nexus.worlds.port import WorldPort
from wsap_nexus.worlds.seats import SeatPort, leave

LAST_STATE_SECONDS = 20.0
"""Seconds to find out the last good state of a world; after that its last saved state is kept."""


def last_state(repository: Repository, run_id: str) -> bytes | None:
    """Return the newest saved state of a world from its run's log; None if there is none that can be read."""
    with contextlib.suppress(WireError, UnreadableError):  # else the state at the session's start
        saved = repository.last_event(run_id, "snapshot")
        if saved is not None:
            return read_snapshot(saved.body)[0]
    with contextlib.suppress(UnreadableError, AttributeError, TypeError, ValueError):
        for start in repository.read_events(run_id, kinds=(START,)):
            world = start.data.get("world")
            return None if world is None else base64.b64decode(world)
    return None


def seats_of(repository: Repository, run_id: str) -> dict[str, str]:
    """Return the seats of the agents that entered with a run, by agent; empty if that can't be read."""
    with contextlib.suppress(UnreadableError, AttributeError, KeyError, TypeError):
        starts = repository.read_events(run_id, kinds=(START,))
        return {arrival["agent"]: arrival["seat"] for start in starts for arrival in start.data["arrivals"]}
    return {}


def _arrival(repository: Repository, run_id: str, seat: str) -> int:
    """Return the event of the last arrival in a seat of a world that lives; 0 if it can't be read."""
    with contextlib.suppress(UnreadableError):
        came = repository.last_event(run_id, "joined", seat=seat)
        return 0 if came is None else came.seq
    return 0


def force_close(
    tx: Transaction,
    session: SessionRecord,
    spec: AdapterSpec,
    *,
    stats: SessionStats,
    reason: str,
    error: str = "",
    state: bytes | None = None,
    seconds: float = 0.0,
    lives_on: bool = False,
) -> SessionRecord:
    """Close an open session without its world, put its agent back into the nexus, and return the closed session.

    `state` is the world's last saved state; None if it no longer exists, or `lives_on`: then the body stays in it.
    """
    # The transfer of the exit that failed, or a new one.
    own = (row.id for row in tx.open_transfers(session.agent_id) if row.kind == "leave")
    transfer_id = str(next(own, None) or tx.prepare_leave(session))
    if state is None:
        for record in tx.items(session.agent_id, place="world", place_id=session.world_id):
            tx.move_items(
                session.agent_id,
                [record.item.item_id],
                from_place="world",
                from_id=session.world_id,
                to_place="escrow",
                note="it left its world without its help" if lives_on else "its world failed and no longer exists",
            )
    if error:
        kind = WorldCrashed if reason == WORLD_FAILED else SessionForceClosed
        tx.note(
            kind(
                agent_id=session.agent_id,
                game=session.game,
                session_id=session.id,
                world=session.world_id,
                run=session.run_id,
                reason=reason,
                error=error,
                kept=lives_on or state is not None,
            )
        )
    left = AvatarState.SUSPENDED if state is not None else AvatarState.DESTROYED
    world_exit = WorldExit(
        reason,
        TransitPackage(transfer_id),
        _body(tx, session, AvatarState.DORMANT if lives_on else left),
        stats,
        details={"error": error} if error else {},
        seconds=seconds,
        world_state=state,
    )
    commit_exit(tx, session, spec, world_exit, transfer_id, lives_on=lives_on)
    return tx.session(session.id)


def _body(tx: Transaction, session: SessionRecord, left: AvatarState) -> Avatar:
    for record in tx.avatars(session.agent_id, session.game):
        if record.world_id == session.world_id and record.avatar.avatar_id == session.avatar_id:
            body = record.avatar
            if body.state is not AvatarState.BOUND:
                return body
            return replace(body, state=left, bound_agent=None)
    return Avatar(session.avatar_id, session.game, None, left)


async def _go_through(port: WorldPort, player: SeatPort, repository: Repository, run_id: str, codec: Codec) -> None:
    after = 0
    saved = repository.last_event(run_id, "snapshot")
    if saved is not None:
        await port.restore(read_snapshot(saved.body)[0])
        after = saved.seq
    for event in repository.read_events(run_id, from_seq=after, kinds=("step",)):
        if event.seq <= after:
            continue
        step = read_step(event.seq, event.episode, event.step or 0, event.body, codec)
        await player.observe()
        outcome = await player.step(step.action)
        if not step.is_repeated_by(outcome.action, outcome.result):
            raise WorldError(f"{port.spec.name!r} diverged from its recording.")


class FailureHandler:
    """Returns agents to the nexus without their world, and counts failures of games.

    Args:
        on_agent: called with each agent that failed.
    """

    def __init__(
        self, context: HubContext, agent_context: AgentContext, on_agent: Callable[[str, WsapError], None]
    ) -> None:
        self._context = context
        self._agent_context = agent_context
        self._on_agent = on_agent

    def not_let_in(
        self, entries: Sequence[PreparedEntry], record: WorldRecord | None, *, new: bool, error: Exception
    ) -> None:
        """Cancel the entries of agents that a world did not admit, and report the error to their waiters."""
        with self._context.nexus_store.change() as tx:
            for prepared in entries:
                if not self._context.remote_games.doubt(
                    tx, prepared.transfer_id, prepared.agent_id, prepared.game, str(error)
                ):
                    cancel_entry(tx, prepared.transfer_id, prepared.agent_id, str(error))
                world = record.id if record is not None else ""
                tx.note(EntryRefused(agent_id=prepared.agent_id, game=prepared.game, world=world, error=str(error)))
            if new and record is not None:
                tx.drop_world(record.id)
        counted = isinstance(error, WorldFailedError) and error.counted
        if record is not None and not counted and (is_failure(error) or not isinstance(error, WsapError)):
            self._context.breaker.count(record.game, record.id, error)
        known = error if isinstance(error, WsapError) else WorldError(f"{entries[0].game!r} failed: {error}")
        for prepared in entries:
            self._context.live.arriving.resolve(prepared.agent_id, known)

    def settle(self, agent_id: str | None = None) -> None:
        """Cancel uncommitted transfers: all when the nexus starts or stops, or one agent's after a fault."""
        why = "the nexus stopped before it was committed" if agent_id is None else "a fault of the machine"
        with self._context.nexus_store.look() as tx:
            if not self._unsettled(tx, agent_id):
                return
        with self._context.nexus_store.change() as tx:
            for row in self._unsettled(tx, agent_id):
                if row.kind == "enter":
                    if not self._context.remote_games.doubt(tx, row.id, row.agent_id, str(row.data.get("game")), why):
                        cancel_entry(tx, row.id, row.agent_id, why)
                    if row.world_id is not None and not tx.lived_in(row.world_id):
                        tx.drop_world(row.world_id)
                else:
                    # The session goes on, and ends with the same transfer.
                    tx.settle(row.id, "cancelled", why=why)

    def _unsettled(self, tx: Transaction, agent_id: str | None) -> list[TransferRecord]:
        if agent_id is None:
            return tx.open_transfers()
        # An entry that is still to be made is not cancelled.
        coming = self._context.live.entries.get(agent_id)
        return [row for row in tx.open_transfers(agent_id) if coming is None or row.id != coming.transfer_id]

    async def run_failed(
        self, run: Run, stays: Mapping[str, LiveSession], error: Exception, state: bytes | None, leaving: bool
    ) -> None:
        """Pause the agent whose failure ended a run, or bring all agents back from a failed world."""
        stats = {stay.session.id: stay.stats for stay in stays.values()}
        sessions = [stay.session for stay in stays.values()]
        alone = next(iter(stays.values())) if len(run.plan.seats) == 1 else None
        culprit = None if leaving else stays.get(run.failed_seat or "") or alone
        if isinstance(error, WsapError) and not isinstance(error, WorldError | OneValueError) and culprit:
            self.agent_failed(culprit.session.agent_id, error, culprit.session)
            if len(stays) > 1 and culprit.controls.paused:
                # Its failure was meant to pause it alone, but the run has ended for the others too.
                self.force_close(sessions, str(error), reason=FAILED, stats=stats, seconds=run.seconds)
            return
        if alone is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(INSISTED if alone.insisted.is_set() else LAST_STATE_SECONDS):
                    state = await self.last_good(alone.session) or state
            if isinstance(error, WorldFailedError) and error.given_up and alone.stopped is not None:
                # It was to leave anyway.
                reason, seconds = alone.stopped, run.seconds
                self.force_close(sessions, "", reason=reason, state=state, stats=stats, seconds=seconds)
                return
        self.world_failed(sessions, sessions[0].world_id, error, state=state, stats=stats, seconds=run.seconds)

    def agent_failed(self, agent_id: str, error: WsapError, session: SessionRecord | None = None) -> None:
        """Pause an agent that failed, or whose model did; it continues where it is once resumed."""
        if isinstance(error, StorageError):
            self._context.live.failed[agent_id] = error.code
        with self._context.nexus_store.change() as tx:
            tx.update_agent(agent_id, state="paused")
            game, session_id = (session.game, session.id) if session else (None, None)
            tx.note(AgentFailed(agent_id=agent_id, game=game, session_id=session_id, error=str(error), code=error.code))
        self._on_agent(agent_id, error)

    def world_failed(
        self,
        sessions: Sequence[SessionRecord],
        world_id: str,
        error: Exception,
        *,
        state: bytes | None = None,
        stats: Mapping[str, SessionStats] | None = None,
        seconds: float = 0.0,
    ) -> None:
        """Bring all agents back from a failed world, and count the failure against its game."""
        self.force_close(sessions, str(error), state=state, stats=stats, seconds=seconds)
        # A record that can't be repeated is no failure of the game.
        known = isinstance(error, SnapshotError | RecordMismatchError)
        known |= isinstance(error, WorldFailedError) and error.counted
        if not known:
            self._context.breaker.count(sessions[0].game, world_id, error)

    def force_close(
        self,
        sessions: Sequence[SessionRecord],
        error: str,
        *,
        reason: str = WORLD_FAILED,
        state: bytes | None = None,
        stats: Mapping[str, SessionStats] | None = None,
        seconds: float = 0.0,
        living: WorldRecord | None = None,
    ) -> list[SessionRecord]:
        """Close sessions of one run without their world, and return them closed.

        `living` is the world if it lives; its saved state is then not kept for these agents.
        """
        run_id, game = sessions[0].run_id, sessions[0].game
        self._context.store.writer.flush()
        repository = self._context.store.repository
        try:
            spec = self._context.catalog.spec(game, None if living is None else living.options)
        except WsapError:
            spec = AdapterSpec(game, "", "")  # it is no longer installed
        if state is None and living is None:
            state = last_state(repository, run_id)
        seats, counted = seats_of(repository, run_id), dict(stats or {})
        for session in sessions:
            if session.id not in counted:
                seat = seats.get(session.agent_id, session.agent_id)
                since = 0 if living is None else _arrival(repository, run_id, seat)
                done = SessionStats.of_log(repository.read_events(run_id, from_seq=since, kinds=("step",), seat=seat))
                steps = repository.count_events(run_id, "step", from_seq=since, seat=seat)
                counted[session.id] = replace(done, steps=steps)

        def close(tx: Transaction, *, bare: bool) -> list[SessionRecord]:
            closed = []
            for session in sessions:
                if tx.session(session.id).closed is not None:
                    continue
                done, game = counted[session.id], spec
                if bare:
                    done, game = SessionStats(steps=done.steps), AdapterSpec(spec.name, "", "")
                how: dict[str, Any] = {"reason": reason, "error": error, "state": state, "seconds": seconds}
                closed.append(force_close(tx, session, game, stats=done, lives_on=living is not None, **how))
                if not bare:
                    self._agent_context.save_memories(tx, session)
            return closed

        closed = in_any_case(self._context.nexus_store, close)
        for session in closed:
            self._agent_context.came_back(session)
            self._context.live.leaving.resolve(session.agent_id, session)
        return closed

    async def last_good(self, session: SessionRecord) -> bytes | None:
        """Return the state of an agent's own world after its last recorded step, with its body suspended.

        A new world replays the recorded steps; the step at which the old one failed was not recorded. Return None if
        the world has no snapshots, or the replay fails.
        """
        self._context.store.writer.flush()
        with self._context.nexus_store.look() as tx:
            record = tx.world(session.world_id)
        with self._context.breaker.repeating(record.id):  # if it fails again, that is the same failure
            return await self._played_again(session, record)

    async def _played_again(self, session: SessionRecord, record: WorldRecord) -> bytes | None:
        repository, run_id, seat = self._context.store.repository, session.run_id, session.agent_id
        port: WorldPort | None = None
        try:
            start = next(iter(repository.read_events(run_id, kinds=(START,))), None)
            if start is None or start.data.get("world") is None:
                return None
            spec = self._context.catalog.spec(session.game)
            codec = codec_of(spec)
            port = self._context.make_world(spec, record)
            venue = KeptVenue(port, seed=record.seed, start=start.body)
            async with asyncio.timeout(LAST_STATE_SECONDS):
                player = (await venue.open([seat], record.seed))[seat]
                await _go_through(port, player, repository, run_id, codec)
                if player.left is None:
                    await leave(player, "suspend")
                return await port.snapshot()
        except Exception:  # of the game, whose code runs here, or of a damaged log
            return None
        finally:
            if port is not None:
                with contextlib.suppress(WorldError):
                    await port.close()

    def stuck(self, agent_id: str) -> SessionRecord | None:
        """Return the agent's open session if nothing plays it, because the agent is paused or its world does not go on;
        None otherwise."""
        if agent_id in self._context.live.sessions:
            return None
        with self._context.nexus_store.look() as tx:
            session_id = tx.agent(agent_id).session_id
            session = None if session_id is None else tx.session(session_id)
        if session is None or session.run_id in self._context.live.run_tasks:
            return None
        return session if self._lives(session) or not self._context.live.is_active(agent_id) else None

    def _lives(self, session: SessionRecord) -> bool:
        with contextlib.suppress(UnknownNameError):
            return bool(self._context.store.repository.get_run(session.run_id).config.get("lives"))
        return False

    def recall(self, agent_id: str, state: bytes | None = None) -> SessionRecord | None:
        """Close an agent's session if nothing plays it, and return it closed; None otherwise."""
        stuck = self.stuck(agent_id)
        if stuck is None:
            return None
        living = None
        with contextlib.suppress(UnknownNameError), self._context.nexus_store.look() as tx:
            if self._lives(stuck):
                living = tx.world(stuck.world_id)  # it goes on in its own run, or will
        closed = self.force_close([stuck], "", reason="kicked", state=None if living else state, living=living)
        return next(iter(closed), None)
