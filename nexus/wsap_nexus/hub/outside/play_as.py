"""Playing outside the nexus as an agent of the database: `wsap play --as luna`.

Such a run is a session of the agent, which is in no other world meanwhile. It can only start while no nexus has locked
the database, and no nexus starts before the session is over.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any

from wsap_core.errors import StorageError, UsageError, WsapError
from wsap_core.host import PluginHost
from wsap_core.specs import AdapterSpec
from wsap_nexus.agents.identity import WITH_PERSONA, seat_plan
from wsap_nexus.agents.memory import SavedMemories
from wsap_nexus.errors import AgentPausedError, AlreadyInWorldError, NexusRunningError
from wsap_nexus.hub.outside.run_sessions import RunSessions, Tell, settle_runs
from wsap_nexus.runs.plan import RunPlan, SeatPlan
from wsap_nexus.runs.record.recorder import Recorder
from wsap_nexus.runs.resume import Checkpoint
from wsap_nexus.runs.session import RunHandle, resume, start
from wsap_nexus.runs.store import Store
from wsap_nexus.store.entities import AgentIdentity
from wsap_nexus.store.locks.nexus_lock import instance_lock
from wsap_nexus.store.nexus_store import NexusStore, Transaction
from wsap_nexus.store.repositories.agents import check_agent_id

MEMORY = "fulltext"
"""The memory of a model that plays as an agent without one, unless `--memory` names another."""


def start_as(
    plan: RunPlan, host: PluginHost, store: Store, *, tell: Tell | None = None, **around: Any
) -> AbstractContextManager[RunHandle]:
    """Give a new recorded run, as `start` does, with agents of the database in the seats that have an identity.

    Args:
        tell: receives messages about new agents.
        around: further arguments of `start`.

    Raises:
        TransitError: one of the agents is in a world; nothing is recorded then.
        NexusRunningError: a nexus has locked the database; likewise.
        WsapError: as `start`.
    """
    past: Checkpoint | None = around.get("past")
    if not plan.identities or (past is not None and past.offline):
        return start(plan, host, store, **around)
    return _playing_as(plan, host, store, tell, lambda made: start(plan, host, store, memories=made, **around))


def resume_as(
    name: str, host: PluginHost, store: Store, *, tell: Tell | None = None, **around: Any
) -> AbstractContextManager[RunHandle]:
    """Give a resumed run, as `resume` does, with its agents of the database in their seats; errors as in `start_as`."""
    record = store.repository.get_run(name)
    plan = RunPlan.from_config(record.config)
    if not plan.identities or record.config.get("replay"):
        return resume(record.id, host, store, **around)
    return _playing_as(plan, host, store, tell, lambda made: resume(record.id, host, store, memories=made, **around))


@contextmanager
def _playing_as(
    plan: RunPlan, host: PluginHost, store: Store, tell: Tell | None, begin: Callable[[Any], Any]
) -> Iterator[RunHandle]:
    # Any: what `start` and `resume` take and give.
    told = tell or _logged_only
    playing: list[RunSessions] = []

    admitted = partial(admission, store, host, plan.identities.values())

    def made(spec: AdapterSpec, plan: RunPlan, run_id: str, recorder: Recorder, past: Checkpoint | None) -> RunSessions:
        try:
            with admitted():
                playing.append(RunSessions(store, spec, plan, run_id, recorder, past, told))
        except WsapError:
            if past is None:  # another run took an agent in the meantime
                store.writer.flush()
                store.repository.delete_run(run_id)
            raise
        return playing[0]

    with admitted():
        pass  # checked first, so that a refusal leaves no run behind; reading a long past would hold the lock too long
    with ExitStack() as stack:
        try:
            session: RunHandle = stack.enter_context(begin(made))
            playing[0].run = session.run
            session.run.observe(playing[0].observe)
            yield session
        finally:
            for one in playing:
                with suppress(StorageError):  # the next run or nexus that needs the agent closes its session
                    one.close()


@contextmanager
def admission(store: Store, host: PluginHost, agents: Iterable[str]) -> Iterator[None]:
    """Check that agents are free to play, and let no nexus and no other run start within the block.

    Sessions of killed processes are closed first.

    Raises:
        NexusRunningError: a nexus has locked the database.
        UsageError: an agent's name is invalid or given twice.
        AlreadyInWorldError: an agent is in a world.
        AgentPausedError: an agent is paused.
    """
    names = [check_agent_id(name) for name in agents]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"The agent {name!r} can't be in two seats at once.")
    lock = instance_lock(store.database)
    try:
        lock.acquire()
    except NexusRunningError:
        first = names[0]
        raise NexusRunningError(
            f"A nexus runs on the database {store.database.where}, which {first!r} belongs to; send it into the game "
            f"with: wsap nexus agents send {first} GAME, or stop the nexus first with: wsap nexus stop"
        ) from None
    try:
        nexus_store = NexusStore(store.database)
        settle_runs(nexus_store, store.repository, host)
        for name in names:
            with nexus_store.look() as tx:
                _check_free(tx, name)
        yield
    finally:
        lock.release()


def seat_agents(
    seats: Sequence[SeatPlan],
    given: Mapping[str, str],
    store: Store,
    host: PluginHost,
    *,
    game: str,
    decided: Collection[str] = (),
) -> tuple[SeatPlan, ...]:
    """Return the seats with agents of the database in them.

    Each agent's policy decides unless the user has chosen a decider. A model that plays as an agent gets the agent's
    memory and persona, unless the seat's options give others.

    Args:
        given: seat -> agent; "" stands for the only seat.
        decided: the seats whose decider the user has chosen.

    Raises:
        UsageError: no such seat; a seat has to be named; an invalid agent's name; a memory with a file of its own.
        TransitError: one of the agents is in a world.
        NexusRunningError: a nexus has locked the database.
    """
    names = [seat.name for seat in seats]
    chosen: dict[str, str] = {}
    for wanted, name in given.items():
        if not wanted and len(names) > 1:
            raise UsageError(f"Say which seat {name!r} takes, such as --as {names[0]}={name}.")
        if wanted and wanted not in names:
            raise UsageError(f"There is no seat {wanted!r} for {name!r}; there are: {', '.join(names[:20])}.")
        chosen[wanted or names[0]] = check_agent_id(name)
    with admission(store, host, chosen.values()):
        pass
    found = []
    with NexusStore(store.database).look() as tx:
        for seat in seats:
            if seat.name not in chosen:
                found.append(seat)
                continue
            agent = tx.find_agent(chosen[seat.name])
            saved = SavedMemories.from_bytes(tx.memories(agent.id) if agent is not None else None)
            own = _with_policy(seat, agent, game) if seat.name not in decided else seat
            if "memory.path" in own.options:
                raise UsageError("An agent's memory is in the database; leave out memory.path or --as.")
            found.append(replace(_equipped(own, agent, saved, host, game), identity=chosen[seat.name]))
    return tuple(found)


def _with_policy(seat: SeatPlan, agent: AgentIdentity | None, game: str) -> SeatPlan:
    policy = None if agent is None else agent.policy(game)
    if policy is None or policy.external:
        return seat
    own = seat_plan(seat.name, agent, game, seat.agent)
    return replace(own, options={**own.options, **seat.options})


def _equipped(
    seat: SeatPlan, agent: AgentIdentity | None, saved: SavedMemories, host: PluginHost, game: str
) -> SeatPlan:
    if seat.agent not in WITH_PERSONA:
        return seat
    options = dict(seat.options)
    if "memory" not in options:
        policy = None if agent is None else agent.policy(game)
        known = sorted(kind for kind in saved.memories if kind in host.memories.names())
        if policy is not None and policy.agent in WITH_PERSONA and "memory" in policy.options:
            own = {n: v for n, v in policy.options.items() if n == "memory" or n.startswith("memory.")}
        elif known:
            kind = MEMORY if MEMORY in known else known[0]
            own = {"memory": kind, **{f"memory.{n}": v for n, v in saved.of(kind).options.items()}}
        else:
            own = {"memory": MEMORY}
        options = {**own, **options}
    if agent is not None and agent.persona and "persona" not in options:
        options["persona"] = f" {agent.persona}" if agent.persona.startswith("@") else agent.persona
    return replace(seat, options=options)


def _check_free(tx: Transaction, name: str) -> None:
    agent = tx.find_agent(name)
    if agent is None:
        return
    if agent.state == "removed":
        raise UsageError(f"The agent {name!r} was removed; choose another id.")
    if agent.state == "paused":
        raise AgentPausedError(f"{name!r} is paused; resume it with: wsap nexus agents resume {name}")
    if agent.session_id is not None:
        session = tx.session(agent.session_id)
        if session.world_id == session.run_id:
            raise AlreadyInWorldError(f"{name!r} is playing in the run {session.run_id!r}; wait for its end.")
        raise AlreadyInWorldError(
            f"{name!r} is in {session.game}, in a world of the nexus; bring it back first with: wsap nexus start, "
            f"then: wsap nexus agents recall {name}"
        )
    if tx.open_transfers(name):
        raise AlreadyInWorldError(
            f"{name!r} is on its way into a world of the nexus; start the nexus with: wsap nexus start"
        )


def _logged_only(text: str) -> None:
    logging.getLogger("wsap.memory").info(text)
