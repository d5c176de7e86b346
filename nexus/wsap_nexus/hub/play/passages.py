"""Agents entering and leaving a world that lives, between its ticks.

An arrival is admitted by the world, recorded in its run (`joined`), committed in the nexus, and then recorded as
`arrived`; a departure releases the agent's items, is recorded (`departed`), and then committed. If the nexus is killed
in between, the next start records what became of an arrival (`arrived` or `withdrawn`), and a departure is committed
when the run's replay reaches it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from wsap_core.errors import WsapError
from wsap_core.protocol import AvatarState
from wsap_core.protocol.values import JsonValue
from wsap_core.specs import AdapterSpec
from wsap_llm.secrets import redacted
from wsap_nexus.agents.identity import seat_plan
from wsap_nexus.agents.memory import AgentMemories
from wsap_nexus.errors import AgentPausedError, AlreadyInWorldError, GameUnavailableError
from wsap_nexus.hub.agents.agent_context import AgentContext
from wsap_nexus.hub.context import HubContext
from wsap_nexus.hub.live_session import LiveSession, SessionStats
from wsap_nexus.hub.play.failures import FailureHandler
from wsap_nexus.hub.play.seating import arrival_body, decider, patience_with
from wsap_nexus.hub.play.sessions import SessionRunner
from wsap_nexus.hub.transit.entering import PreparedEntry, WorldEntry, commit_enter, enter_world
from wsap_nexus.hub.transit.leaving import commit_exit, exit_world, in_any_case, recount
from wsap_nexus.hub.transit.patience import INSISTED
from wsap_nexus.runs.memory import MemorySnapshot
from wsap_nexus.runs.open_run import OpenRun
from wsap_nexus.runs.plan import SeatPlan
from wsap_nexus.runs.play.controls import Controls, only_recorded
from wsap_nexus.runs.play.recorded_agent import GONE
from wsap_nexus.runs.record.life_log import ARRIVED, WITHDRAWN, LoggedPassage
from wsap_nexus.runs.record.recorder import Recorder
from wsap_nexus.runs.views.arrivals import ARRIVAL, Arrivals
from wsap_nexus.runs.visitor_seat import Hearing
from wsap_nexus.store.entities import AvatarRecord, SessionRecord, WorldRecord
from wsap_nexus.store.nexus_store import Transaction
from wsap_nexus.tasks import ended
from wsap_nexus.worlds.port import LivingPort, let_in_again
from wsap_nexus.worlds.seats import SeatPort

LOOK = 1.0
"""Seconds between two looks whether a world lets an agent go that a person wants back."""

_LOG = logging.getLogger(__name__)

STATS = "stats"
"""Where the state of a seat has the statistics of its agent's session."""


@dataclass
class Visit:
    """An agent in the world."""

    session: SessionRecord
    """The open session; for the replay of a closed one, a stand-in."""
    seat_port: SeatPort
    plays: bool = True
    """Whether the agent got to play; False for an arrival that the nexus refused, which is undone at once."""
    stats: Callable[[], SessionStats] | None = None
    """Returns the statistics that the log has, for an agent that has left; None for any other."""


@dataclass
class Past:
    """The agents in the log of a resumed run."""

    there: Sequence[LoggedPassage]
    """The arrivals of the agents present when the state was saved."""
    later: Arrivals
    """The arrivals and departures since."""
    minds: list[tuple[int, str, MemorySnapshot]]
    """Memories of agents at their arrival, with the event's number and the seat."""
    whispered: Mapping[str, Mapping[int, Mapping[int, str]]]
    """Whispers by seat and decision."""
    counted: Callable[[LoggedPassage, bool], tuple[SessionStats, Any]]
    """Returns the statistics since an arrival, and the result of the last step; the other argument is whether the agent
    was there when the state was saved."""


@dataclass(eq=False)
class WorldPassages:
    """Lets agents into and out of one world in play; `past` is that of a resumed run."""

    context: HubContext
    agent_context: AgentContext
    failures: FailureHandler
    sessions: SessionRunner
    spec: AdapterSpec
    record: WorldRecord
    recorder: Recorder
    past: Past | None
    run: OpenRun = field(init=False)
    """The run; set before it is played."""
    memories: AgentMemories = field(init=False)
    """The memories of the agents present; set before the run is played."""
    stays: dict[str, LiveSession] = field(default_factory=dict)
    """Open sessions, by seat."""
    controls: dict[str, Controls] = field(default_factory=dict)
    """By seat."""
    waiting: deque[Callable[[int], Awaitable[None]]] = field(default_factory=deque)
    """Arrivals and departures to carry out before the next tick."""

    def __post_init__(self) -> None:
        self._visits: dict[str, Visit] = {}
        self._going: dict[str, asyncio.Future[None]] = {}
        self._goes = asyncio.Event()
        self._seeing_home: set[asyncio.Task[None]] = set()

    # --- for the run --------------------------------------------------------------------------------

    def opened(self) -> None:
        """Let viewers and waiting clients find the world."""
        self.context.live.ports[str(self.run.run_id)] = self._port

    async def take(self, episode: int) -> None:
        """Carry out the waiting arrivals and departures."""
        while self.waiting:
            await self.waiting.popleft()(episode)

    async def again(self, logged: LoggedPassage) -> None:
        """Replay an arrival or departure."""
        if logged.arrives:
            await self._arrive_again(logged)
            return
        while logged.seat not in self._going and logged.seat in self._visits and self._visits[logged.seat].plays:
            self._goes.clear()
            await self._goes.wait()
        if logged.seat in self._visits:
            await self._let_out(logged.seat, 0, logged.body)

    async def restored(self, restore: Callable[[], Awaitable[None]]) -> None:
        """Open the seats of the agents present when the state was saved, restore it, and seat them."""
        there = self.past.there if self.past is not None else ()
        seat_ports = [await self._port.open_seat(logged.seat) for logged in there]
        await restore()
        for logged, seat_port in zip(there, seat_ports, strict=True):
            await self._sit_again(logged, seat_port, resting=True)

    async def departed(self, seat: str) -> None:
        """Let the agent of a seat out, and return afterwards."""
        self._going[seat] = out = asyncio.get_running_loop().create_future()
        self._goes.set()
        if self.run.world_ended:
            await self._let_out(seat, 0, None)
            return

        async def let_out(episode: int) -> None:
            if self._going.get(seat) is out:  # else a recorded departure has let it out
                await self._let_out(seat, episode, None)

        self.waiting.append(let_out)
        await out

    def failed(self, seat: str, error: WsapError) -> None:
        """Pause a seat's agent that failed; it is about to leave. A fault of the machine is raised again instead."""
        if self.context.storage.is_passing(error):
            raise error
        if (stay := self.stays.get(seat)) is not None:
            self.failures.agent_failed(stay.session.agent_id, error, stay.session)

    def decides_elsewhere(self, seat: str) -> bool:
        """Return whether an external client decides for a seat."""
        return seat in self.stays and self.stays[seat].session.agent_id in self.context.live.external

    # --- coming ---------------------------------------------------------------------------------------

    async def arrive(self, prepared: PreparedEntry, episode: int) -> None:
        """Let an agent in; WsapError if the world or the nexus refuses it."""
        name = prepared.terms.seat or prepared.agent_id
        if name in self._going:
            await self._let_out(name, episode, None)  # who sat here before goes first
        if name in self._visits and name not in self.stays:  # of a stay that is closed already
            raise GameUnavailableError(
                f"The seat {name!r} of the world {self.record.id!r} is not free yet; it is after the current tick."
            )
        prepared = replace(prepared, avatar=self._body_of(name, prepared.agent_id))
        arrived = await enter_world(
            self.context.nexus_store, self._port, self.record, prepared, seat_name=name, kept=None
        )
        with self.context.nexus_store.look() as tx:
            agent, state = tx.agent(prepared.agent_id), tx.transfer_state(prepared.transfer_id)
        plan = seat_plan(name, agent, self.spec.name, self.spec.default_agent)
        limit = prepared.terms.steps
        limit = None if limit is None else self.run.steps_of(name) + limit
        arrival = self._record_arrival(arrived, plan, limit, episode)
        try:
            if agent.state != "active":
                raise AgentPausedError(f"{agent.id!r} was paused on its way.")
            if agent.place != "nexus" or state != "prepared":
                raise AlreadyInWorldError(f"{agent.id!r} is in a world already, or was called back.")
            with self.context.nexus_store.change() as tx:
                session = commit_enter(tx, arrived, self.record, str(self.run.run_id))
        except BaseException as error:
            if self.context.storage.is_passing(error):
                # Nobody knows whether it was committed. The world goes on from its log, and then the database tells.
                raise
            # Undo the recorded arrival; for the nexus the agent never left.
            await self._take_out(name, self._pseudo(prepared.agent_id, arrived.avatar.avatar_id), arrived.seat,
                                 prepared.transfer_id, episode)  # fmt: skip
            raise
        self.recorder.write(ARRIVED, {"transfer": arrival.transfer}, seat=name, episode=episode)
        await self._sit(plan, session, arrived.seat, arrival)

    def _body_of(self, seat: str, agent_id: str) -> AvatarRecord | None:
        """Return the dormant body that an agent left in a seat; one of another agent becomes the newcomer's."""
        found = None
        with self.context.nexus_store.change() as tx:
            for body in tx.bodies(self.record.id, f"{seat}@{self.spec.name}"):
                if body.agent_id == agent_id and body.avatar.state is AvatarState.DORMANT:
                    found = body
                else:
                    tx.forget_avatar(self.record.id, body.avatar.avatar_id)
        return found

    def _record_arrival(self, arrived: WorldEntry, plan: SeatPlan, limit: int | None, episode: int) -> LoggedPassage:
        run_id = str(self.run.run_id)
        others = tuple(seat for seat in self.run.plan.seats if seat.name != plan.name)
        self.context.store.repository.set_config(run_id, replace(self.run.plan, seats=(*others, plan)).to_config())
        body = {
            **arrival_body(arrived, self.context.catalog.names()),
            "decider": plan.agent,
            "options": redacted(plan.options),
            "limit": limit,
        }
        self.recorder.write("joined", body, seat=plan.name, episode=episode)
        logged = LoggedPassage(self.recorder.latest, plan.name, True, body)
        self.context.store.writer.flush()
        return logged

    async def _arrive_again(self, logged: LoggedPassage) -> None:
        assert self.past is not None, "it is in the log"
        if self.past.later.outcome(logged) == WITHDRAWN:
            return
        seat_port = await let_in_again(self._port, logged.seat, logged.body)
        await self._sit_again(logged, seat_port, plays=self.past.later.plays(logged))

    async def _sit_again(
        self, logged: LoggedPassage, seat_port: SeatPort, *, plays: bool = True, resting: bool = False
    ) -> None:
        assert self.past is not None, "it is in the log"
        body = logged.body
        agent_id = str(body["agent"])
        plan = SeatPlan(logged.seat, str(body["decider"]), body["options"])
        with self.context.nexus_store.look() as tx:
            sessions = tx.sessions(agent_id=agent_id, world_id=self.record.id, only_open=True)
        # An agent is in one place, so an open session belongs to its last arrival.
        later = self.past.later
        mine = sessions if later.is_last(logged) and not later.refused(logged) else []
        session = mine[0] if mine else self._pseudo(agent_id, str(body["avatar"]))
        await self._sit(plan, session, seat_port, logged, present=bool(mine), plays=plays, again=True, resting=resting)

    def _pseudo(self, agent_id: str, avatar: str) -> SessionRecord:
        """Return a stand-in for a closed session, sufficient to leave the world."""
        run_id, record = str(self.run.run_id), self.record
        return SessionRecord("", agent_id, self.spec.name, record.id, avatar, run_id, "")

    async def _sit(
        self,
        plan: SeatPlan,
        session: SessionRecord,
        seat_port: SeatPort,
        arrival: LoggedPassage,
        *,
        present: bool = True,
        plays: bool = True,
        again: bool = False,
        resting: bool = False,
    ) -> None:
        """Seat the agent of an arrival.

        Args:
            present: whether it is still in the world; the decisions of one that has left are only repeated.
            plays: whether it gets to play before it leaves.
            again: whether its arrival is replayed.
            resting: whether its seat is part of the restored state.
        """
        name, run = plan.name, self.run
        if present:
            self._open_stay(name, session, arrival, again=again, resting=resting)
        if not plays:
            self._visits[name] = Visit(session, seat_port, plays=False)
            return
        guest = self.agent_context.guest(
            seat_port,
            arrival.body,
            self.recorder,
            present=present,
            hearing=Hearing(
                decision=run.next_decision(name),
                fresh=run.steps_of(name),
                unheard=run.decided(name),
                whispered=self.past.whispered.get(name, {}) if self.past is not None and again else {},
            ),
        )
        self.memories.owners[name] = session.agent_id
        self.memories.begun.pop(name, None)
        self.memories.ready.pop(name, None)
        if again and (mind := self._mind(arrival)) is not None:
            self.memories.begun[name] = mind
        self._visits[name] = visit = Visit(session, guest)
        if not present:
            self.controls[name] = only_recorded()
            if (past := self.past) is not None and past.later.is_last(arrival):
                visit.stats = lambda: past.counted(arrival, resting)[0]
        limit = arrival.body["limit"]
        deadline = patience_with(
            self.context.catalog.spec(self.spec.name, self.record.options), self.context.settings.patience
        )
        stay = self.stays.get(name)

        def more_state() -> Mapping[str, Any]:
            return {ARRIVAL: arrival.seq, **({} if stay is None else {STATS: stay.stats.to_json()})}

        around: dict[str, Any] = {"limit": limit, "resting": resting, "more_state": more_state}
        try:
            spec = decider(self.context, session.agent_id, plan.agent, deadline) if present else GONE
            await run.join(plan, spec, guest, **around)
        except WsapError as error:
            self.failed(name, error)
            if again:
                # What it did is recorded, and is repeated without it before it leaves.
                self.controls[name].finish()
                await run.join(plan, GONE, guest, **around)
            else:
                await self._let_out(name, 0, None)
            self.context.live.arriving.resolve(session.agent_id, error)
            return
        if present:
            self.context.live.arriving.resolve(session.agent_id, self.stays[name])

    def _mind(self, logged: LoggedPassage) -> MemorySnapshot | None:
        minds = self.past.minds if self.past is not None else []
        return next((mind for seq, seat, mind in minds if seq > logged.seq and seat == logged.seat), None)

    def _open_stay(
        self, name: str, session: SessionRecord, arrival: LoggedPassage, *, again: bool, resting: bool
    ) -> None:
        live = self.context.live
        with self.context.nexus_store.look() as tx:
            controls = self.context.new_controls(tx.agent(session.agent_id))
        stats, last = SessionStats(), None
        if again and self.past is not None:
            stats, last = self.past.counted(arrival, resting)
        stay = LiveSession(session, name, controls, live.tell, stats)
        stay.take_up(last, repeats=self.run.repeats)
        self.controls[name] = controls
        self.recorder.agents[name] = session.agent_id
        self.stays[name] = live.sessions[session.agent_id] = stay
        if (reason := live.to_leave.pop(session.id, None)) is not None:
            stay.stop(reason)
        self._seeing_home.add(task := asyncio.create_task(self._see_home(stay, arrival), name=f"see home {name}"))
        task.add_done_callback(self._seeing_home.discard)

    async def _see_home(self, stay: LiveSession, arrival: LoggedPassage) -> None:
        """Bring an agent home that a person wants back, without the world, if that waits for nobody and lets it not go.

        The world is told later, if it ever goes on.
        """
        ends = [asyncio.create_task(event.wait()) for event in (stay.insisted, stay.home)]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        await ended(*ends)
        still, live, run = 0.0, self.context.live, self.run
        while not (stay.home.is_set() or live.stopping):
            if still >= INSISTED:
                self._take_home(stay, arrival)
                return
            await self.context.clock.sleep(LOOK)
            still = 0.0 if live.held or run.waits_for_somebody else still + LOOK

    def _take_home(self, stay: LiveSession, arrival: LoggedPassage) -> None:
        name, repository, run_id = stay.seat_name, self.context.store.repository, str(self.run.run_id)

        def counted() -> SessionStats:
            steps = repository.read_events(run_id, from_seq=arrival.seq, kinds=("step",), seat=name)
            return SessionStats.of_log(steps)

        reason, stats = stay.stopped or "kicked", {stay.session.id: stay.stats}
        self.failures.force_close([stay.session], "", reason=reason, stats=stats, living=self.record)
        _LOG.warning("%r came home from %r, which did not let it go.", stay.session.agent_id, self.record.id)
        if name in self._visits:
            self._visits[name].stats = counted  # what came of its last choice may come yet
        self.stays.pop(name, None)
        self.sessions.forget(stay)

    # --- leaving ----------------------------------------------------------------------------------------

    async def _let_out(self, name: str, episode: int, recorded: Mapping[str, JsonValue] | None) -> None:
        """Let an agent out with the items it may carry; `recorded` is its departure in a replay."""
        out = self._going.pop(name, None)
        visit = self._visits.pop(name, None)
        if visit is None:
            return
        stay = self.stays.get(name)
        transfer = reason = ""
        if recorded is None and visit.stats is not None:
            self._recount(visit.session.agent_id, visit.stats)
        if recorded is not None:
            transfer, reason = str(recorded["transfer"]), str(recorded["reason"])
        elif stay is not None:
            reason = self.sessions.why_over(self.run, stay) if out is not None else "failed"
        if stay is not None:
            with self.context.nexus_store.change() as tx:
                transfer = tx.prepare_leave(visit.session)
        await self._take_out(name, visit.session, visit.seat_port, transfer or f"{name}-{self.recorder.latest}",
                             episode, stay=stay, reason=reason, record=recorded is None)  # fmt: skip
        if out is not None and not out.done():
            out.set_result(None)

    def _recount(self, agent_id: str, stats: Callable[[], SessionStats]) -> None:
        """Count in an agent's last session here what came of its last choice after it was taken home."""
        self.context.store.writer.flush()
        with self.context.nexus_store.look() as tx:
            mine = tx.sessions(agent_id=agent_id, world_id=self.record.id, limit=1)
        found = stats()
        for session in mine:
            if session.closed is not None and session.steps != found.steps:

                def count(tx: Transaction, *, bare: bool, session: SessionRecord = session) -> None:
                    recount(tx, session, SessionStats(steps=found.steps) if bare else found)

                in_any_case(self.context.nexus_store, count)

    async def _take_out(
        self,
        name: str,
        session: SessionRecord,
        seat_port: SeatPort,
        transfer: str,
        episode: int,
        *,
        stay: LiveSession | None = None,
        reason: str = "",
        record: bool = True,
    ) -> None:
        stats = stay.stats if stay is not None else SessionStats()
        seconds = 0.0 if stay is None else time.monotonic() - stay.began
        left = await exit_world(
            self._port, session, seat_port, transfer, reason, stats, seconds, others=True, lives_on=True
        )
        if record:
            departure = {"agent": session.agent_id, "transfer": transfer, "reason": reason}
            self.recorder.write("departed", departure, seat=name, episode=episode)
            self.recorder.agents.pop(name, None)
            self.context.store.writer.flush()
        await self.run.close_seat(name)
        self.controls.pop(name, None)
        if stay is None:
            return
        left = self.agent_context.with_memories(left, session, name)
        with self.context.nexus_store.change() as tx:
            commit_exit(tx, session, self.spec, left, transfer, lives_on=True)
            closed = tx.session(session.id)
        self.agent_context.came_back(closed)
        self.context.live.leaving.resolve(session.agent_id, closed)
        del self.stays[name]
        self.sessions.forget(stay)

    async def let_all_out(self) -> None:
        """Let all agents out because the world has ended."""
        for name in list(self._visits):
            self._going.setdefault(name, asyncio.get_running_loop().create_future())
            await self._let_out(name, 0, None)

    @property
    def _port(self) -> LivingPort:
        return self.run.living
