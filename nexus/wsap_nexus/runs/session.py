"""Starting and resuming runs: from a plan to a summary, with everything recorded in between."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypedDict, Unpack

from wsap_core.errors import AgentError, MissingServiceError, PluginError, UsageError, WsapError
from wsap_core.factories import load
from wsap_core.host import PluginHost
from wsap_core.protocol import Tick
from wsap_core.protocol.wire import Codec
from wsap_core.references import load_adapter_spec, load_agent_spec
from wsap_core.seams.model_errors import PAUSES, BackendError, BudgetReachedError
from wsap_core.seams.services import Services
from wsap_core.specs import AdapterSpec, AgentSpec, MemorySpec, ToolSpec
from wsap_llm.backends.pool import ModelPool
from wsap_llm.secrets import clean, secrets_of
from wsap_nexus.runs.memory import RunMemories
from wsap_nexus.runs.plan import RunPlan, is_irreversible
from wsap_nexus.runs.play.controls import Controls
from wsap_nexus.runs.play.observers import Observer
from wsap_nexus.runs.play.patience import CallTooLong, watched
from wsap_nexus.runs.play.recorded_agent import GONE, decides_again
from wsap_nexus.runs.record.logged import read_snapshot
from wsap_nexus.runs.record.recorder import Recorder
from wsap_nexus.runs.record.summary import RunSummary
from wsap_nexus.runs.resume import Checkpoint, read_again, read_call_events, read_memories, read_past, read_world_calls
from wsap_nexus.runs.run import Run, RunSetup
from wsap_nexus.runs.store import Store
from wsap_nexus.runs.totals import silent
from wsap_nexus.store.locks.run_lock import hold_run
from wsap_nexus.store.records import NewRun, RunStatus

MemoriesOf = Callable[[AdapterSpec, RunPlan, str, Recorder, Checkpoint | None], RunMemories]
"""Creates the memories of a run from its game, plan, id, recorder and checkpoint."""


@dataclass(frozen=True)
class ResolvedSpecs:
    """The specs behind the names of a plan."""

    game: AdapterSpec
    agents: dict[str, AgentSpec]

    def codec(self) -> Codec:
        """Return a codec that knows the game's types; imports the game."""
        return Codec([load(reference) for reference in self.game.wire_types])


class RunOptions(TypedDict, total=False):
    """Options shared by new and resumed runs."""

    controls: Controls | None
    observers: Iterable[Observer]
    """Called after each new decision."""
    services: Services | None
    """Passed to the game and the agents."""
    memories: MemoriesOf | None
    """Creates the memories of agents of the database."""
    on_tick: Callable[[Tick], None] | None
    """Called with each new tick of a world that lives."""


class RunHandle:
    """A run with its recording; created by `start`, `resume` or `unrecorded`."""

    def __init__(self, run: Run, recorder: Recorder, store: Store | None, models: ModelPool | None = None) -> None:
        self.run = run
        self._recorder = recorder
        self._store = store
        self._models = models

    def close_with(self, models: object) -> None:
        """Close these models when play ends, in the event loop that has used them."""
        if isinstance(models, ModelPool):
            self._models = models

    def committed(self) -> int:
        """Return the number of the last committed event; -1 for none."""
        if self._store is None or self.run.run_id is None:
            return -1
        return self._store.writer.committed(self.run.run_id)

    async def flushed(self) -> None:
        """Wait until everything that has been recorded is committed."""
        if self._store is not None and self.run.run_id is not None:
            await self._store.writer.flushed()

    async def play(self) -> RunSummary:
        """Play to the end or until stopped, and return the summary once everything is committed.

        Raises:
            WsapError: the error that ended the run; the recording is kept.
        """
        return (await self._play())[0]

    async def play_for_json(self) -> dict[str, Any]:
        """Like `play`, but return the summary as JSON-ready data, the same as in the database. Any: JSON."""
        summary, noted = await self._play()
        return summary.to_json() if noted is None else noted

    async def _play(self) -> tuple[RunSummary, dict[str, Any] | None]:
        try:
            summary = await self._watched()
        except BaseException as error:
            plan = self.run.plan
            clean(error, secrets_of([plan.options, *(seat.options for seat in plan.seats)], os.environ))
            # A used-up budget, or unusable replies of a model, pause the run.
            paused = isinstance(error, PAUSES) or not isinstance(error, Exception)
            self._close(RunStatus.INTERRUPTED if paused else RunStatus.FAILED, error)
            raise
        finally:
            if self._models is not None:
                await self._models.aclose()
        stopped = self.run.controls.stopping
        noted = self._note_end(RunStatus.INTERRUPTED if stopped else RunStatus.FINISHED, None, summary)
        await self.flushed()  # others in this event loop play on meanwhile
        return summary, noted

    async def _watched(self) -> RunSummary:
        try:
            with watched():
                return await self.run.play()
        except CallTooLong as error:
            raise error.as_error(self.run.spec.name) from error

    def _close(self, status: RunStatus, error: BaseException) -> None:
        try:
            self._note_end(status, error)
            if self._store is not None and self.run.run_id is not None:
                self._store.writer.flush()
        except WsapError:
            pass  # the log failed, too: do not hide the error that ended the run

    def _note_end(
        self, status: RunStatus, error: BaseException | None, ended: RunSummary | None = None
    ) -> dict[str, Any] | None:
        store, run_id = self._store, self.run.run_id
        if store is None or run_id is None:
            return None
        reason = str(error) or type(error).__name__ if isinstance(error, Exception) else None
        summary = (ended or self.run.summary(failed=status is RunStatus.FAILED, reason=reason)).to_json()
        more = {} if error is None else {"error": f"{type(error).__name__}: {error}"}
        self._recorder.note("stopped", status=status.value, seconds=round(self.run.own_seconds(), 3), **more)
        store.writer.set_status(run_id, status, summary)
        return summary


def resolve_specs(plan: RunPlan, host: PluginHost, *, gone: Collection[str] = ()) -> ResolvedSpecs:
    """Return the specs of a plan's game, with its options, and of each seat's agent.

    Args:
        gone: seats whose agents are not asked, and need not be installed.

    Raises:
        UnknownNameError: there is no such game or agent.
        UsageError: the game's options are invalid.
        PluginError: a game or agent can't be loaded.
    """
    agents = {seat.name: GONE if seat.name in gone else load_agent_spec(seat.agent, host) for seat in plan.seats}
    game = load_adapter_spec(plan.game, host).with_options(plan.options)
    return ResolvedSpecs(game, agents)


def unrecorded(
    plan: RunPlan, host: PluginHost, *, parts: ResolvedSpecs | None = None, **around: Unpack[RunOptions]
) -> RunHandle:
    """Return a run that is not recorded."""
    found = _checked(plan, parts or resolve_specs(plan, host))
    plan = plan.for_game(found.game)
    if plan.identities:
        raise UsageError("A run with an agent of the database has to be recorded; leave out the agent, or record it.")
    return _session(plan, found, host, around)


@contextmanager
def start(
    plan: RunPlan,
    host: PluginHost,
    store: Store,
    *,
    parts: ResolvedSpecs | None = None,
    past: Checkpoint | None = None,
    run_id: str | None = None,
    careful: bool = False,
    **around: Unpack[RunOptions],
) -> Iterator[RunHandle]:
    """Give a new recorded run, to be played within the block.

    For agents of the database use `wsap_nexus.hub.outside.play_as.start_as`.

    Args:
        past: the recorded run to repeat; see `replies_of`.
        run_id: the run's id; by default a new one.
        careful: whether every request to a model is committed before it is sent.
        around: further options; see `RunOptions`.

    Raises:
        WsapError: a part can't be loaded, the id is taken, or the database can't be written; nothing is recorded then.
    """
    gone = past.gone if past is not None else ()
    found = parts or resolve_specs(plan, host, gone=gone)
    found = _checked(plan, replace(found, agents={**found.agents, **dict.fromkeys(gone, GONE)}))
    plan = plan.for_game(found.game)
    again = past is not None and past.offline
    new = NewRun(
        game=found.game.name,
        agent=plan.agent_label,
        seed=plan.seed,
        step_limit=plan.steps,
        id=run_id,
        config={**plan.to_config(), **({"replay": past.replays or True} if past is not None and again else {})},
    )
    if run_id is None:
        run_id = store.repository.create_run(new).id
        store.writer.begin(run_id)
    recorder = Recorder(store.writer, run_id, careful=careful)
    with hold_run(store.database, run_id):
        if new.id is not None:
            # With its lock, nobody else makes it meanwhile; one transaction less where runs are short.
            store.repository.refuse_taken(run_id)
            store.writer.create(store.repository.columns_of(new))
        recorder.note("started")
        if past is not None and past.world is not None:
            recorder.snapshot(0, past.world, {}, tick=past.tick)
        yield _session(plan, found, host, around, store=store, run_id=run_id, past=past, recorder=recorder)


@contextmanager
def resume(
    name: str, host: PluginHost, store: Store, *, careful: bool = False, **around: Unpack[RunOptions]
) -> Iterator[RunHandle]:
    """Give a stopped run, to be resumed within the block.

    For agents of the database use `wsap_nexus.hub.outside.play_as.resume_as`.

    Args:
        name: the run's id, the start or end of it, or "last".
        careful: whether every request to a model is committed before it is sent.
        around: further options; see `RunOptions`.

    Raises:
        UnknownNameError: there is no such run.
        UsageError: it was played to its end, replays another run, or belongs to the nexus.
        StorageLockedError: another process is playing it.
    """
    record = store.repository.get_run(name)
    refuse_run_of_nexus(store, record.id)
    if record.status is RunStatus.FINISHED:
        raise UsageError(f"Run {record.id!r} was played to its end; look at it with: wsap replay {record.id}")
    if record.config.get("replay"):
        raise UsageError(
            f"Run {record.id!r} replays another run and can't be resumed; "
            "replay that one again, with: wsap play --replay and its id"
        )
    plan = RunPlan.from_config(record.config)
    found = _checked(plan, resolve_specs(plan, host))
    with hold_run(store.database, record.id):
        services = around.get("services") or Services()
        tell = services.progress or silent
        past = read_past(store.repository, record.id, plan, found.game, found.agents, found.codec(), tell=tell)
        recorder = Recorder(store.writer, record.id, careful=careful)
        store.writer.set_status(record.id, RunStatus.RUNNING)
        recorder.note("resumed")
        yield _session(plan, found, host, around, store=store, run_id=record.id, past=past, recorder=recorder)


def refuse_run_of_nexus(store: Store, run_id: str) -> None:
    """Raise UsageError if a run was played in the nexus, which resumes it itself."""
    if store.repository.is_of_nexus(run_id):
        raise UsageError(
            f"Run {run_id!r} belongs to the nexus, which resumes it when it is started with: wsap nexus start. "
            f"Look at it with: wsap replay {run_id}"
        )


def replies_of(name: str, store: Store) -> tuple[RunPlan, Checkpoint]:
    """Return the plan of a recorded run and a checkpoint to repeat it offline.

    Its recorded choices are taken and its recorded replies of models are used; a result that differs ends the replay
    with RecordMismatchError.

    Raises:
        UnknownNameError: there is no such run.
        UsageError: its world can't be rewound, or others of a nexus acted in it.
    """
    record = store.repository.get_run(name)
    if is_irreversible(record.config):
        raise UsageError(
            f"The world of run {record.id!r} can't be rewound, so the run can't be played again; "
            f"look at it with: wsap replay {record.id}"
        )
    if store.repository.is_of_nexus(record.id) and store.repository.count_events(record.id, "step"):
        raise UsageError(
            f"Run {record.id!r} was played in a nexus, where its world and its agents have a life outside the run, so "
            f"it can't be played again; look at it with: wsap replay {record.id}"
        )
    plan = RunPlan.from_config(record.config)
    calls = read_call_events(store.repository, record.id)
    past = Checkpoint(
        calls=calls,
        memories=read_memories(store.repository, record.id),
        world_calls=read_world_calls(store.repository, record.id),
        offline=True,
        again=True,
        gone=frozenset(seat.name for seat in plan.seats if not decides_again(calls.get(seat.name, ()))),
        replays=record.id,
        finished=record.status is RunStatus.FINISHED,
    )
    read_again(store.repository, record.id, plan, past)
    if plan.branched_from is not None:
        first = next(store.repository.read_events(record.id, kinds=("snapshot",)))
        past.world, past.tick = read_snapshot(first.body)[0], first.step
    return plan, past


@dataclass(frozen=True)
class InstalledSpecs:
    """Looks up installed memories and tools for agents."""

    host: PluginHost

    def memory(self, name: str) -> MemorySpec:
        """Return a kind of memory by name."""
        return self.host.memories.get(name)

    def tool(self, name: str) -> ToolSpec:
        """Return a tool by name."""
        return self.host.tools.get(name)


def _session(
    plan: RunPlan,
    parts: ResolvedSpecs,
    host: PluginHost,
    around: RunOptions,
    *,
    store: Store | None = None,
    run_id: str | None = None,
    past: Checkpoint | None = None,
    recorder: Recorder | None = None,
) -> RunHandle:
    """Compose a run, with models for its agents unless the services have some."""
    recorder = recorder or Recorder(None, None)
    services = around.get("services") or Services()
    models = None
    if services.models is None:
        models = ModelPool(host, seed=plan.seed)
        services = replace(services, models=models)
    if run_id is not None and isinstance(services.models, ModelPool):
        services.models.belongs_to(run_id)
    services = replace(services, run=run_id or "", identities=plan.identities)
    if services.parts is None:
        services = replace(services, parts=InstalledSpecs(host))
    again = past is not None and past.offline
    made = around.get("memories")
    if (plan.identities or made is not None) and not again and run_id is not None:
        assert made is not None, "agents of the database are given by start_as and resume_as"
        memories = made(parts.game, plan, run_id, recorder, past)
    else:
        memories = RunMemories(plan.identities, past.memories if past else None, recorder=recorder, again=again)
    run = Run(
        plan,
        parts.game,
        parts.agents,
        RunSetup(
            recorder=recorder,
            run_id=run_id,
            past=past,
            controls=around.get("controls"),
            observers=around.get("observers", ()),
            services=services,
            memories=memories,
            inbox=tuple if store is None or run_id is None else partial(store.repository.inbox, run_id),
            on_tick=around.get("on_tick"),
        ),
    )
    return RunHandle(run, recorder, store, models)


def came_to_nothing(run: Run, error: WsapError) -> bool:
    """Return whether a run failed before its first step and first model reply, by a cause outside its play.

    Such as a game that can't be created, an invalid option, or an unreachable model or tool server: there is nothing
    to resume or to list. A reached limit is no such cause.
    """
    from wsap_llm.mcp.connection import ToolServerError

    outside = UsageError | BackendError | MissingServiceError | ToolServerError | PluginError
    if isinstance(error, BudgetReachedError | AgentError) or not isinstance(error, outside):
        return False
    return not any(tally.steps for tally in run.summary().all_tallies) and not run.meter.calls


def _checked(plan: RunPlan, parts: ResolvedSpecs) -> ResolvedSpecs:
    """Check that the specs fit together and can be imported, before anything is recorded, and return them."""
    load(parts.game.factory)
    for seat in plan.seats:
        if not (spec := parts.agents[seat.name]).plays(parts.game.name):
            raise UsageError(f"The agent {seat.agent!r} plays {', '.join(spec.games)}, not {parts.game.name!r}.")
        load(parts.agents[seat.name].factory)
    return parts


def run_to_end(session: RunHandle) -> RunSummary:
    """Play a run synchronously, even in a notebook with a running event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(session.play())
    from concurrent.futures import ThreadPoolExecutor  # the notebook's loop is busy with the calling cell

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, session.play()).result()
