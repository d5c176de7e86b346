"""The runtime's services for commands of plugins: playing games and reading recorded runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from wsap_core.errors import UsageError
from wsap_core.host import PluginHost
from wsap_core.protocol import Tick
from wsap_core.protocol.values import JsonValue
from wsap_core.references import load_adapter_spec, load_agent_spec
from wsap_core.seams.memory import AgentMemory
from wsap_core.seams.model import Price, SpendingLimit
from wsap_core.seams.services import InPlay, Player, Services
from wsap_core.specs import AdapterSpec, AgentSpec
from wsap_llm.backends.pool import ModelPool
from wsap_nexus.cli.common import Notices
from wsap_nexus.cli.model_options import refuse_key
from wsap_nexus.runs.memory import Prepare, PreparedMemories
from wsap_nexus.runs.plan import RunPlan, SeatPlan, game_of, plan_seats
from wsap_nexus.runs.play.controls import Controls
from wsap_nexus.runs.record.recorder import Recorder
from wsap_nexus.runs.resume import Checkpoint
from wsap_nexus.runs.run import Run
from wsap_nexus.runs.session import InstalledSpecs, MemoriesOf, ResolvedSpecs, resolve_specs, resume, start
from wsap_nexus.runs.store import Store, open_store
from wsap_nexus.runs.views.restoring import Runs, restored
from wsap_nexus.store.history import find_tick
from wsap_nexus.store.locks.run_lock import hold_run
from wsap_nexus.store.records import NewRun, RunRecord, RunStatus
from wsap_nexus.worlds.port import LocalWorld

__all__ = ["StoreRunner", "opened"]


@contextmanager
def opened(
    database: str | None = None, *, budgets: Sequence[SpendingLimit] = (), prices: Mapping[str, Price] | None = None
) -> Iterator[Services]:
    """Yield services that record into a database; see `wsap_core.seams.services.runtime_services`.

    Args:
        database: path or URL; None for the default.
        budgets: limits of models for all runs together.
        prices: address -> price, for models whose backend does not know it.

    Raises:
        StorageError: the database can't be used.
    """
    host = PluginHost.discovered()
    models = ModelPool(host, budgets=budgets, prices=prices)
    with open_store(database) as store:
        runner = StoreRunner(host, store, models)
        yield Services(runner=runner, runs=Runs(host, store.repository), parts=InstalledSpecs(host), models=models)


class StoreRunner:
    """Plays and records games, also several at once in one event loop: the kernel's `Runner`.

    The models are shared by all runs; the caller closes them. A game or agent in a file is read once, so that all
    episodes are of the same, even if the file is edited meanwhile.
    """

    def __init__(self, host: PluginHost, store: Store, models: ModelPool) -> None:
        self._host = host
        self._store = store
        self._around = Services(models=models, progress=Notices())
        self._games: dict[str, AdapterSpec] = {}
        self._agents: dict[str, AgentSpec] = {}

    async def play(
        self,
        game: str,
        seats: Mapping[str, Player],
        *,
        seed: int = 0,
        options: Mapping[str, Any] | None = None,
        run: str | None = None,
        begun: Callable[[str], None] | None = None,
        steps: int | None = None,
        on_tick: Callable[[Tick], bool | None] | None = None,
        pace: float | None = None,
        snapshot_every: int | None = None,
        prepare: Callable[[str, AgentMemory], None] | None = None,
        before: Callable[[InPlay], None] | None = None,
    ) -> Mapping[str, Any]:
        """Play one episode to its end and return its summary; see `wsap_core.seams.services.Runner`.

        Raises:
            UsageError: an unknown seat, a person in a seat, or an API key in the options.
            WsapError: the error that ended the run; it can be resumed.
        """
        if steps is not None and steps < 0:
            raise UsageError(f"The number of steps must be a whole number of at least 0, not {steps!r}.")
        # A tournament continues if a model's replies can't be parsed, and counts forced decisions.
        controls = Controls(pace=pace, pauses_when_forced=False)
        memories = None if prepare is None else _prepared(prepare)
        repository = self._store.repository
        record = repository.find_run(run) if run is not None and repository.has_run(run) else None
        if record is not None:
            if record.status is RunStatus.FINISHED:
                return record.summary or {}
            told = _until(controls, steps if record.config.get("lives") else None, on_tick)
            with resume(
                record.id, self._host, self._store, controls=controls, services=self._around, on_tick=told,
                memories=memories, careful=True,
            ) as session:  # fmt: skip
                _watch(controls, session.run, before)
                return await session.play_for_json()
        plan = RunPlan(game, self._seats(game, seats, options), seed, None, dict(options or {}), episodes=1)
        if snapshot_every is not None:
            plan = replace(plan, snapshot_every=snapshot_every)
        agents = {seat.name: self._agent(seat.agent) for seat in plan.seats}
        parts = ResolvedSpecs(self._game(game).with_options(plan.options), agents)
        lives = "lives" in parts.game.abilities
        plan = plan if lives else replace(plan, steps=steps)
        told = _until(controls, steps if lives else None, on_tick)
        for seat in plan.seats:
            if parts.agents[seat.name].interactive:
                raise UsageError(f"Seat {seat.name!r} would be played by a person, which only wsap play supports.")
        with start(
            plan, self._host, self._store, parts=parts, controls=controls, services=self._around, on_tick=told,
            run_id=run, memories=memories, careful=True,
        ) as session:  # fmt: skip
            if begun is not None and session.run.run_id is not None:
                self._store.writer.flush()
                begun(session.run.run_id)
            _watch(controls, session.run, before)
            return await session.play_for_json()

    def influence(self, run: str, body: Mapping[str, JsonValue]) -> None:
        """Add an influence to the inbox of a run; see `wsap_core.seams.services.Runner`.

        Raises:
            UnknownNameError: there is no such run.
            UsageError: its world takes no influence, or it is finished.
        """
        record = self._store.repository.get_run(run)
        if "influence" not in game_of(record, self._host).abilities:
            raise UsageError(f"The world of run {record.id!r}, {record.game!r}, takes no influence from outside.")
        if record.status is RunStatus.FINISHED:
            raise UsageError(f"Run {record.id!r} is finished and takes no influence; rewind or branch it first.")
        self._store.repository.add_to_inbox(record.id, body)

    async def rewind(self, run: str, step: int) -> None:
        """Set a run back to an earlier tick; see `wsap_core.seams.services.Runner`.

        Raises:
            UsageError: it has no such tick, or it has seats.
            StorageLockedError: another process plays it.
        """
        record = self._store.repository.get_run(run)
        plan = RunPlan.from_config(record.config)
        if plan.seats or plan.open:
            raise UsageError(
                f"Run {record.id!r} has agents, whose state at an earlier tick is not recorded, so it can't be "
                "rewound; branch it instead: there the world continues without them."
            )
        with hold_run(self._store.database, record.id):
            world, step = await self._world_at(record, step)
            writer, recorder = self._store.writer, Recorder(self._store.writer, record.id)
            with writer.together():
                recorder.rewound(step, world)
                if record.status is not RunStatus.RUNNING:  # killed, its summary is that of an earlier stop
                    writer.set_status(record.id, RunStatus.INTERRUPTED)
            writer.flush()

    async def branch(self, run: str, step: int, name: str) -> None:
        """Start a run from a tick of another; see `wsap_core.seams.services.Runner`.

        The new run has no agents, because their state at a tick is not recorded.

        Raises:
            UsageError: the run has no such tick, its world needs its seats, or the name is taken.
        """
        repository, writer = self._store.repository, self._store.writer
        record = repository.get_run(run)
        plan = RunPlan.from_config(record.config)
        if (plan.seats or plan.open) and game_of(record, self._host).seats[0]:
            raise UsageError(
                f"The world of run {record.id!r} can't continue without its agents, so it can't be branched."
            )
        alone = replace(plan, seats=(), open=False)
        world, step = await self._world_at(record, step, vacated=True)
        last = repository.last_event(record.id)
        seq = 0 if last is None else last.seq + 1
        config = {key: value for key, value in record.config.items() if key != "open"} | alone.to_config()
        config["branched_from"] = {"run": record.id, "step": step, "seq": seq}
        made = repository.create_run(
            NewRun(game=record.game, agent=alone.agent_label, seed=record.seed, config=config, id=name)
        )
        recorder = Recorder(writer, made.id)
        with writer.together():
            recorder.note("started")
            recorder.episode(0, record.seed)
            recorder.snapshot(0, world, {}, tick=step)
            writer.set_status(made.id, RunStatus.INTERRUPTED)
        writer.flush()

    async def _world_at(self, record: RunRecord, step: int, *, vacated: bool = False) -> tuple[bytes, int]:
        """Return the state of a run's world after a tick, without its seats if `vacated`, and the tick's number."""
        plan = RunPlan.from_config(record.config)
        specs = resolve_specs(replace(plan, seats=()), self._host)  # nobody decides
        position = find_tick(self._store.repository, record, step)
        world = await restored(self._store.repository, record, specs, position)
        state = await LocalWorld.of(world).vacated() if vacated else world.snapshot()
        return state, position.step

    def _game(self, name: str) -> AdapterSpec:
        if name not in self._games:
            self._games[name] = load_adapter_spec(name, self._host)
        return self._games[name]

    def _agent(self, name: str) -> AgentSpec:
        if name not in self._agents:
            self._agents[name] = load_agent_spec(name, self._host)
        return self._agents[name]

    def _seats(self, game: str, seats: Mapping[str, Player], options: Mapping[str, Any] | None) -> tuple[SeatPlan, ...]:
        for given in (options or {}, *(player.options for player in seats.values())):
            refuse_key(given, "api_key")
        spec = self._game(game)
        agents = {name: player.agent for name, player in seats.items()}
        planned = plan_seats(spec, seats=agents, game_options=options, host=self._host)
        return tuple(
            replace(s, options={**(seats[s.name].options if s.name in seats else {}), **s.options}) for s in planned
        )


def _prepared(prepare: Prepare) -> MemoriesOf:
    def made(
        spec: AdapterSpec, plan: RunPlan, run_id: str, recorder: Recorder, past: Checkpoint | None
    ) -> PreparedMemories:
        return PreparedMemories(prepare, [s.name for s in plan.seats], past.memories if past else None, recorder)

    return made


def _watch(controls: Controls, run: Run, before: Callable[[InPlay], None] | None) -> None:
    if before is not None:
        controls.before = lambda: before(run)


def _until(
    controls: Controls, steps: int | None, on_tick: Callable[[Tick], bool | None] | None
) -> Callable[[Tick], None]:
    """Return a callback for ticks that stops the run after `steps` of them, or when `on_tick` returns False."""
    left = steps
    if left == 0:
        controls.stop()

    def told(tick: Tick) -> None:
        nonlocal left
        left = None if left is None else left - 1
        goes_on = on_tick is None or on_tick(tick) is not False
        if not tick.done and (left == 0 or not goes_on):
            controls.stop()

    return told
