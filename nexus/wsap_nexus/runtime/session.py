"""Starting and going on with runs: from a plan to a summary, with everything recorded in between."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from wsap_core.errors import UsageError, WsapError
from wsap_core.host import PluginHost
from wsap_core.references import load_adapter_spec, load_agent_spec
from wsap_core.services import Services
from wsap_core.specs import AdapterSpec, AgentSpec, resolve
from wsap_core.wire import Codec
from wsap_nexus.runtime.controls import Controls
from wsap_nexus.runtime.loop import Observer
from wsap_nexus.runtime.plan import RunPlan
from wsap_nexus.runtime.recorder import Recorder
from wsap_nexus.runtime.resume import read_past
from wsap_nexus.runtime.run import Run
from wsap_nexus.runtime.store import Store, hold_run
from wsap_nexus.runtime.tally import RunSummary
from wsap_nexus.storage.records import NewRun, RunStatus


@dataclass(frozen=True)
class Parts:
    """What a plan's names stand for."""

    game: AdapterSpec
    agents: dict[str, AgentSpec]
    """The agent of each seat."""

    def codec(self) -> Codec:
        """Return a codec that knows the game's types; imports the game."""
        return Codec([resolve(reference) for reference in self.game.wire_types])


class Session:
    """A run together with where it is recorded; made by `start`, `resume` or `unrecorded`."""

    def __init__(self, run: Run, recorder: Recorder, store: Store | None) -> None:
        self.run = run
        """The run itself."""
        self._recorder = recorder
        self._store = store

    def committed(self) -> int:
        """Return the number of the last event that is safely recorded; -1 for none or no recording."""
        if self._store is None or self.run.run_id is None:
            return -1
        return self._store.writer.committed(self.run.run_id)

    async def play(self) -> RunSummary:
        """Play to the end or until stopped, and return the summary once everything is committed.

        Raises:
            WsapError: whatever ended the run; what was recorded until then is kept.
        """
        try:
            summary = await self.run.play()
        except BaseException as error:
            self._close(RunStatus.FAILED if isinstance(error, Exception) else RunStatus.INTERRUPTED, error)
            raise
        stopped = self.run.controls.stopping
        self._close(RunStatus.INTERRUPTED if stopped else RunStatus.FINISHED, None)
        return summary

    def _close(self, status: RunStatus, error: BaseException | None) -> None:
        store, run_id = self._store, self.run.run_id
        if store is None or run_id is None:
            return
        summary = self.run.summary().to_json()
        more = {} if error is None else {"error": f"{type(error).__name__}: {error}"}
        try:
            seconds = self.run.own_seconds()
            self._recorder.note("stopped", status=status.value, seconds=round(seconds, 3), **more)
            store.writer.set_status(run_id, status, summary)
            store.writer.flush()
        except WsapError:
            # The log itself failed: the error that ended the run says so, and must not be hidden.
            if error is None:
                raise


def load_parts(plan: RunPlan, host: PluginHost) -> Parts:
    """Return the game and the agent of each seat.

    Raises:
        UnknownNameError: there is no such game or agent.
        PluginError: one can't be loaded.
    """
    agents = {seat.name: load_agent_spec(seat.agent, host) for seat in plan.seats}
    return Parts(load_adapter_spec(plan.game, host), agents)


def unrecorded(
    plan: RunPlan,
    host: PluginHost,
    *,
    parts: Parts | None = None,
    controls: Controls | None = None,
    observers: Iterable[Observer] = (),
    services: Services | None = None,
) -> Session:
    """Return a run that leaves no trace."""
    found = _checked(plan, parts or load_parts(plan, host))
    recorder = Recorder(None, None)
    run = Run(
        plan, found.game, found.agents, recorder=recorder, controls=controls, observers=observers, services=services
    )
    return Session(run, recorder, None)


@contextmanager
def start(
    plan: RunPlan,
    host: PluginHost,
    store: Store,
    *,
    parts: Parts | None = None,
    controls: Controls | None = None,
    observers: Iterable[Observer] = (),
    services: Services | None = None,
) -> Iterator[Session]:
    """Give a new recorded run, ready to be played within the block.

    Raises:
        WsapError: a part can't be loaded, or the database can't be written; nothing is recorded then.
    """
    found = _checked(plan, parts or load_parts(plan, host))
    record = store.repository.create_run(
        NewRun(
            game=found.game.name,
            agent=plan.agent_label,
            seed=plan.seed,
            step_limit=plan.steps,
            config=plan.to_config(),
        )
    )
    recorder = Recorder(store.writer, record.id)
    with hold_run(store.database, record.id):
        recorder.note("started")
        run = Run(
            plan,
            found.game,
            found.agents,
            recorder=recorder,
            run_id=record.id,
            controls=controls,
            observers=observers,
            services=services,
        )
        yield Session(run, recorder, store)


@contextmanager
def resume(
    name: str,
    host: PluginHost,
    store: Store,
    *,
    controls: Controls | None = None,
    observers: Iterable[Observer] = (),
    services: Services | None = None,
) -> Iterator[Session]:
    """Give a recorded run that was stopped, ready to go on within the block.

    Args:
        name: its id, the beginning or end of it, or "last".
        host: where games and agents come from.
        store: where it is recorded.
        controls: what holds and stops it.
        observers: told after each new decision.
        services: handed to the game and the agents.

    Raises:
        UnknownNameError: there is no such run.
        UsageError: it has been played to its end.
        StorageLockedError: another process is playing it.
    """
    record = store.repository.get_run(name)
    if record.status is RunStatus.FINISHED:
        raise UsageError(f"Run {record.id!r} was played to its end; look at it with: wsap replay {record.id}")
    plan = RunPlan.from_config(record.config)
    found = _checked(plan, load_parts(plan, host))
    with hold_run(store.database, record.id):
        past = read_past(store.repository, record.id, plan, found.game, found.agents, found.codec())
        recorder = Recorder(store.writer, record.id)
        store.writer.set_status(record.id, RunStatus.RUNNING)
        recorder.note("resumed")
        run = Run(
            plan,
            found.game,
            found.agents,
            recorder=recorder,
            run_id=record.id,
            past=past,
            controls=controls,
            observers=observers,
            services=services,
        )
        yield Session(run, recorder, store)


def _checked(plan: RunPlan, parts: Parts) -> Parts:
    """Return the parts if they fit together and can be imported, before anything is recorded."""
    resolve(parts.game.factory)
    for seat in plan.seats:
        games = parts.agents[seat.name].games
        if games and parts.game.name not in games:
            raise UsageError(f"The agent {seat.agent!r} plays {', '.join(games)}, not {parts.game.name!r}.")
        resolve(parts.agents[seat.name].factory)
    return parts


def run_to_end(session: Session) -> RunSummary:
    """Play a session from a place without an event loop of its own, or from a notebook that has one."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(session.play())
    from concurrent.futures import ThreadPoolExecutor  # a notebook's loop is busy running this very cell

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, session.play()).result()
