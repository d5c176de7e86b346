"""Sessions of agents in runs outside the nexus: `wsap play --as luna`.

The agent brings its memories and skills, and its memories, achievements and skill gains are committed when the session
ends. Its items stay in escrow: a run's world ends with the run and can be started again from the same seed, so that
items taken into it or out of it could be lost or duplicated.

If the process is killed, the next run or nexus that needs the agent closes the session with the statistics of the log;
resuming the run opens another session.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from typing_extensions import override

from wsap_core.errors import SnapshotError, WsapError
from wsap_core.host import PluginHost
from wsap_core.seams.memory import AgentMemory
from wsap_core.seams.model_errors import PAUSES
from wsap_core.specs import AdapterSpec
from wsap_nexus.agents.identity import policies_of
from wsap_nexus.agents.memory import AgentMemories, SavedMemories, merged, options_of
from wsap_nexus.agents.metagoals import advance
from wsap_nexus.errors import AlreadyInWorldError
from wsap_nexus.hub.live_session import SessionStats
from wsap_nexus.hub.transit.leaving import close, in_any_case, learn
from wsap_nexus.runs.memory import Lessons, MemorySnapshot, kind_of
from wsap_nexus.runs.plan import RunPlan, SeatPlan, game_of
from wsap_nexus.runs.play.observers import StepTaken
from wsap_nexus.runs.record.recorder import Recorder
from wsap_nexus.runs.resume import Checkpoint
from wsap_nexus.runs.run import Run
from wsap_nexus.runs.store import Store
from wsap_nexus.store.entities import EntryRequest, SessionRecord
from wsap_nexus.store.events.endings import INTERRUPTED, RUN_FAILED
from wsap_nexus.store.events.sessions import Entered
from wsap_nexus.store.locks.run_lock import is_played
from wsap_nexus.store.nexus_store import NexusStore, Transaction
from wsap_nexus.store.records import EventRecord
from wsap_nexus.store.repository import NEXUS, Repository

Tell = Callable[[str], None]


class RunSessions(AgentMemories):
    """The agents of the database in a run outside the nexus, each with an open session.

    `tell` receives a message about each new agent. Raises AlreadyInWorldError if one of the agents is in a world.
    """

    def __init__(
        self,
        store: Store,
        spec: AdapterSpec,
        plan: RunPlan,
        run_id: str,
        recorder: Recorder,
        past: Checkpoint | None,
        tell: Tell,
    ) -> None:
        nexus_store = NexusStore(store.database)
        super().__init__(
            lambda agent: _saved(nexus_store, agent),
            plan.identities,
            past.memories if past is not None else None,
            recorder=recorder,
            run_id=run_id,
        )
        self.run: Run | None = None
        """The run, once it is created."""
        self._store = store
        self._nexus_store = nexus_store
        self._spec = spec
        self._sessions: dict[str, SessionRecord] = {}
        self._stats = {seat: SessionStats() for seat in plan.identities}
        fresh: list[str] = []
        with nexus_store.change() as tx:
            for seat in plan.seats:
                if seat.identity is None:
                    continue
                if tx.find_agent(seat.identity) is None:
                    persona = str(seat.options.get("persona") or "")
                    tx.register(
                        seat.identity,
                        persona="" if persona.startswith("@") else persona.strip(),
                        policies=policies_of(seat),
                    )
                    fresh.append(seat.identity)
                self._sessions[seat.name] = _enter(tx, seat, spec, run_id, plan.steps)
            self._skills = {seat: tx.skills(session.agent_id) for seat, session in self._sessions.items()}
        for name, session in self._sessions.items():
            recorder.write("session", {"agent": session.agent_id, "session": session.id}, seat=name)
        for agent in fresh:
            tell(f"Created the agent {agent}; show it with: wsap nexus agents show {agent}")

    def observe(self, step: StepTaken) -> None:
        """Count a step."""
        if step.seat in self._stats:
            result = step.result
            self._stats[step.seat].add(step.action.name, result.success, result.reward, result.achievements)

    @override
    def skills(self, seat: str) -> Mapping[str, float]:
        return super().skills(seat) if seat in self.begun else self._skills.get(seat, {})

    @override
    def begin(self, plan: SeatPlan, agent: object) -> None:
        new = plan.name in self.owners and plan.name not in self.begun
        super().begin(plan, agent)
        if new:
            # Claim the number once it is recorded, so that no other run gets it if this one is killed and resumed.
            self._store.writer.flush()
            owner, number = self.owners[plan.name], self.begun[plan.name].number
            with self._nexus_store.change() as tx:
                saved = SavedMemories.from_bytes(tx.memories(owner))
                tx.save_memories(owner, replace(saved, lives=max(saved.lives, number)).to_bytes())

    @override
    def first(self, plan: SeatPlan, memory: AgentMemory | None) -> MemorySnapshot | None:
        owner = self.owners[plan.name]
        kind = None if memory is None else kind_of(plan, memory)
        saved = self.read(owner)
        found = saved.of(kind or "")
        return MemorySnapshot(owner, saved.lives + 1, found.revision, found.snapshot, self._skills[plan.name])

    @override
    def keep(self, seat: str, steps: int, lessons: Lessons, error: BaseException | None = None) -> None:
        session = self._sessions.get(seat)
        if session is None:
            return
        self._store.writer.flush()  # an agent's record must never be ahead of its run's log
        stats, memories = self._stats[seat], None
        if steps and seat in self.ready:  # a run without any decision changes no memory
            memories = self._merged(seat, steps, lessons)
        seconds = 0.0 if self.run is None else self.run.own_seconds()
        reason = self._reason(seat, error)
        in_any_case(self._nexus_store, partial(_leave, session, self._spec, stats, reason, seconds, memories))
        del self._sessions[seat]

    def close(self) -> None:
        """Close the sessions of seats that were never played."""
        for seat in list(self._sessions):
            self.keep(seat, 0, {}, WsapError())

    def _merged(self, seat: str, steps: int, lessons: Lessons) -> bytes | None:
        plan, memory = self.ready[seat]
        owner, kind, begun = self.owners[seat], kind_of(plan, memory), self.begun[seat]
        saved = self.read(owner)
        before = saved.of(kind)
        world = self._spec.display_title
        try:
            snapshot = merged(before, begun, memory, lessons, run_id=self.run_id, world=world)
        except SnapshotError as error:
            logging.getLogger("wsap.memory").warning(
                "The memory of %r is damaged, so that of this run can't be added: %s", owner, error
            )
            return None
        now = before.saved(snapshot, self.run_id, options_of(plan), steps)
        return saved.having(kind, now, lives=begun.number).to_bytes()

    def _reason(self, seat: str, error: BaseException | None) -> str:
        if error is not None:
            paused = isinstance(error, PAUSES) or not isinstance(error, Exception)
            return INTERRUPTED if paused else RUN_FAILED
        assert self.run is not None, "it ended without an error"
        loop = self.run.loop(seat)
        if loop.let_go:
            return "step_limit"
        if loop.seat.left is not None:
            return "jack_out"
        if self.run.controls.stopping:
            return INTERRUPTED
        return "finished" if loop.seat.done else "step_limit"


def settle_runs(nexus_store: NexusStore, repository: Repository, host: PluginHost) -> list[SessionRecord]:
    """Close the sessions of runs outside the nexus whose process is gone, and return those still in play.

    Their statistics are taken from the log. Call it while holding the database lock.
    """
    with nexus_store.look() as tx:
        sessions = tx.run_sessions()
    played = []
    for session in sessions:
        if is_played(nexus_store.database, session.run_id):
            played.append(session)
            continue
        try:
            spec = game_of(repository.get_run(session.run_id), host)
        except (WsapError, LookupError, TypeError, ValueError):
            spec = None  # it is no longer installed, so its skills are unknown
        stats = _logged(repository, session)

        in_any_case(nexus_store, partial(_leave, session, spec, stats, INTERRUPTED, 0.0, None))
    return played


def refuse_played(sessions: Sequence[SessionRecord]) -> None:
    """Raise AlreadyInWorldError if there is any of these sessions, which are in play outside the nexus."""
    if sessions:
        first = sessions[0]
        raise AlreadyInWorldError(
            f"The agent {first.agent_id!r} is playing in the run {first.run_id!r}, outside the nexus; start the nexus "
            "when that run has ended, or stop it with Ctrl-C."
        )


def _enter(tx: Transaction, seat: SeatPlan, spec: AdapterSpec, run_id: str, steps: int | None) -> SessionRecord:
    assert seat.identity is not None, "the caller looked"
    avatar = f"{seat.name}@{spec.name}"
    session = tx.open_session(seat.identity, spec.name, run_id, avatar, run_id, EntryRequest(steps=steps))
    tx.note(
        Entered(agent_id=seat.identity, game=spec.name, session_id=session.id, world=run_id, run=run_id, avatar=avatar)
    )
    advance(tx, seat.identity)
    return session


def _leave(
    session: SessionRecord, spec: AdapterSpec | None, stats: SessionStats, reason: str, seconds: float,
    memories: bytes | None, tx: Transaction, *, bare: bool,
) -> None:  # fmt: skip
    stats = SessionStats(steps=stats.steps) if bare else stats
    learn(tx, session, (spec.skills if spec is not None else None) or {}, stats)
    close(tx, session, stats, reason, seconds, memories=memories)
    advance(tx, session.agent_id)


def _logged(repository: Repository, session: SessionRecord) -> SessionStats:
    def mine() -> Iterator[EventRecord]:
        seat = None
        for event in repository.read_events(session.run_id, kinds=("session", "step")):
            if event.kind == "session":
                own = event.data["session"] == session.id
                seat = event.seat if own else None if event.seat == seat else seat
            elif seat is not None and event.seat == seat:
                yield event

    return SessionStats.of_log(mine())


def _saved(nexus_store: NexusStore, agent: str) -> SavedMemories:
    with nexus_store.look() as tx:
        return SavedMemories.from_bytes(tx.memories(agent))


# Any, in this module: JSON.


def config_of(plan: RunPlan) -> dict[str, Any]:
    """Return the configuration of a run, marked as the nexus' own even before it has a session."""
    return {**plan.to_config(), NEXUS: True}
