"""The runtime's services for commands of plugins: playing games, and reading runs back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from wsap_core.errors import UsageError
from wsap_core.host import PluginHost
from wsap_core.references import load_adapter_spec
from wsap_core.seams.model import Price, SpendingLimit
from wsap_core.seams.services import Player, Services
from wsap_llm.backends.pool import ModelPool
from wsap_llm.secrets import is_reference
from wsap_nexus.cli.notices import Notices
from wsap_nexus.runs.controls import Controls
from wsap_nexus.runs.plan import RunPlan, SeatPlan, plan_seats
from wsap_nexus.runs.session import InstalledSpecs, resolve_specs, resume, start
from wsap_nexus.runs.store import Store, open_store
from wsap_nexus.store.export import RecordedRuns
from wsap_nexus.store.records import RunStatus

__all__ = ["StoreRunner", "opened"]


@contextmanager
def opened(
    database: str | None = None, *, budgets: Sequence[SpendingLimit] = (), prices: Mapping[str, Price] | None = None
) -> Iterator[Services]:
    """Give services that record into a database; see `wsap_core.seams.services.runtime_services`.

    Args:
        database: path or URL; the default one when None.
        budgets: limits of models for all runs together.
        prices: address -> price, for models whose backend does not know it.

    Raises:
        StorageError: the database can't be used; the message says why.
    """
    host = PluginHost.discovered()
    models = ModelPool(host, budgets=budgets, prices=prices)
    with open_store(database) as store:
        runner = StoreRunner(host, store, models)
        yield Services(runner=runner, runs=RecordedRuns(store.repository), parts=InstalledSpecs(host), models=models)


class StoreRunner:
    """Plays games and records them: the kernel's `Runner`. Several runs can be played at once in one event loop.

    Args:
        host: has the games, agents and backends.
        store: records the runs.
        models: shared by all runs; the caller closes them.
    """

    def __init__(self, host: PluginHost, store: Store, models: ModelPool) -> None:
        self._host = host
        self._store = store
        self._around = Services(models=models, progress=Notices())

    async def play(
        self,
        game: str,
        seats: Mapping[str, Player],
        *,
        seed: int = 0,
        options: Mapping[str, Any] | None = None,
        run: str | None = None,
        begun: Callable[[str], None] | None = None,
    ) -> Mapping[str, Any]:
        """Play one episode to its end and return its summary; see `wsap_core.seams.services.Runner`.

        Raises:
            UsageError: an unknown seat, a person in a seat, or an API key in the options.
            WsapError: the error that ended the run; it can be resumed.
        """
        if run is not None:
            record = self._store.repository.get_run(run)
            if record.status is RunStatus.FINISHED:
                return record.summary or {}
            with resume(run, self._host, self._store, controls=_controls(), services=self._around) as session:
                return (await session.play()).to_json()
        plan = self._plan(game, seats, seed, options)
        parts = resolve_specs(plan, self._host)
        for seat in plan.seats:
            if parts.agents[seat.name].interactive:
                raise UsageError(f"Seat {seat.name!r} would be played by a person; that takes wsap play.")
        with start(plan, self._host, self._store, parts=parts, controls=_controls(), services=self._around) as session:
            if begun is not None and session.run.run_id is not None:
                begun(session.run.run_id)
            return (await session.play()).to_json()

    def _plan(self, game: str, seats: Mapping[str, Player], seed: int, options: Mapping[str, Any] | None) -> RunPlan:
        return RunPlan(game, self._seats(game, seats, options), seed, None, dict(options or {}))

    def _seats(self, game: str, seats: Mapping[str, Player], options: Mapping[str, Any] | None) -> tuple[SeatPlan, ...]:
        for given in (options or {}, *(player.options for player in seats.values())):
            key = given.get("model.api_key")
            if key is not None and not (isinstance(key, str) and is_reference(key)):
                raise UsageError(
                    "A run's options are recorded, so no key may be among them; set it in the environment, "
                    "and name the variable if it is not the usual one: api_key=env:NAME."
                )
        spec = load_adapter_spec(game, self._host)
        agents = {name: player.agent for name, player in seats.items()}
        planned = plan_seats(spec, seats=agents, game_options=options)
        return tuple(SeatPlan(s.name, s.agent, dict(seats[s.name].options) if s.name in seats else {}) for s in planned)


def _controls() -> Controls:
    # A tournament goes on with a model that can't be understood, and counts what was forced.
    return Controls(pauses_when_forced=False)
