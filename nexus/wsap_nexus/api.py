"""Play, record and read runs from a script or a notebook."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from wsap_core.errors import MissingServiceError, UsageError
from wsap_core.factories import load
from wsap_core.host import PluginHost
from wsap_core.installing import install_line
from wsap_core.loading import portable_reference
from wsap_core.protocol import Action, ActionResult
from wsap_core.protocol.wire import Codec
from wsap_core.references import load_adapter_spec, load_agent_spec
from wsap_core.seams.model import Price
from wsap_core.seams.services import Services
from wsap_core.specs import AdapterSpec, AgentSpec
from wsap_llm.middleware.budgets import BudgetLimits, Budgets
from wsap_nexus.hub.outside.play_as import resume_as, seat_agents, start_as
from wsap_nexus.models.spending import limited_models
from wsap_nexus.runs.plan import RunPlan, plan_seats
from wsap_nexus.runs.play.observers import Observer
from wsap_nexus.runs.record.logged import read_step
from wsap_nexus.runs.record.replay_order import IN_ORDER, in_order_made
from wsap_nexus.runs.record.summary import RunSummary
from wsap_nexus.runs.session import ResolvedSpecs, RunHandle, run_to_end, unrecorded
from wsap_nexus.runs.store import Store, open_database, open_store
from wsap_nexus.store.records import RunRecord
from wsap_nexus.store.repository import Repository

GameLike = str | type | AdapterSpec | Callable[..., Any]
AgentLike = str | type | AgentSpec | Callable[..., Any]
Prices = Price | tuple[float, float]


@dataclass(frozen=True)
class RecordedStep:
    """One decision of a recorded run."""

    seat: str
    episode: int
    step: int
    """The decision's number in the run, from 1."""
    action: Action
    result: ActionResult


@dataclass(frozen=True)
class RecordedRun:
    """A recorded run with its steps."""

    record: RunRecord
    """Game, agents, times, status and summary."""
    steps: tuple[RecordedStep, ...]
    """Every decision, in order."""

    def __repr__(self) -> str:
        return f"RecordedRun({self.record!r}, <{len(self.steps)} steps>)"

    @property
    def rewards(self) -> list[float]:
        """The reward of each decision."""
        return [step.result.reward for step in self.steps]


def play(
    game: GameLike,
    agent: AgentLike | None = None,
    *,
    seed: int = 0,
    steps: int | None = None,
    episodes: int | None = None,
    seats: Mapping[str, AgentLike] | None = None,
    options: Mapping[str, Any] | None = None,
    agent_options: Mapping[str, Any] | None = None,
    as_: str | Mapping[str, str] | None = None,
    record: bool = True,
    budgets: Budgets | None = None,
    prices: Mapping[str, Prices] | None = None,
    database: str | None = None,
    observers: Iterable[Observer] = (),
    host: PluginHost | None = None,
) -> RunSummary:
    """Play a game and return its summary.

    Args:
        game: a registered game, `./file.py:Name`, or your own class, factory or spec.
        agent: the same, or a model's address such as `openai/gpt-5`; None for the game's default agent.
        seed: from 0 to 2**31 - 1.
        steps: decisions per seat, over as many episodes as needed; where seats wait for each other, the last episode
            is played to its end.
        episodes: number of episodes; one if neither this nor `steps` is given. `RunSummary.cut_off` says what the step
            limit, or a seat that left, has cut off.
        seats: seat name -> agent, for games with several seats; `agent` plays the others.
        options: options of the game.
        agent_options: options of the agents.
        as_: the agent of the database that plays and remembers the run, or seat -> agent; created if new. Its own
            policy decides unless an agent is named.
        record: write the run to the database.
        budgets: limits of models; reaching one pauses the run.
        prices: model address -> US dollars per million prompt and reply tokens, such as
            `{"openai/gpt-5": (1.25, 10)}`, for models whose backend does not know its prices.
        database: path or URL of the database; None for the default.
        observers: called with a `StepTaken` after each decision.
        host: resolves names; None for all installed plugins.

    Raises:
        WsapError: the run failed.
    """
    found = host or PluginHost.discovered()
    spec = load_adapter_spec(game, found)
    agents = {seat: load_agent_spec(a, found) for seat, a in (seats or {}).items()}
    default = load_agent_spec(spec.default_agent if agent is None else agent, found)
    names = {seat: _name(a, agents[seat].name) for seat, a in (seats or {}).items()}
    plan = RunPlan(
        game=_name(game, spec.name),
        seats=plan_seats(
            spec, agent=_name(agent, default.name), seats=names, options=agent_options, game_options=options, host=found
        ),
        seed=seed,
        steps=steps,
        episodes=episodes,
        options=dict(options or {}),
    )
    spec = spec.with_options(plan.options)
    if not record:
        if as_ is not None:
            raise UsageError("A run of an agent of the database has to be recorded; leave out as_, or record the run.")
        parts = ResolvedSpecs(spec, {s.name: agents.get(s.name, default) for s in plan.seats})
        services = _limited(plan, budgets, prices, found, None)
        return _to_end(unrecorded(plan, found, parts=parts, observers=observers, services=services), services)
    with open_store(database) as store:
        if as_ is not None:
            seated = {"": as_} if isinstance(as_, str) else as_
            decided = [s.name for s in plan.seats] if agent is not None else list(agents)
            plan = replace(plan, seats=seat_agents(plan.seats, seated, store, found, game=spec.name, decided=decided))
            agents |= {s.name: load_agent_spec(s.agent, found) for s in plan.seats if s.name not in decided}
        parts = ResolvedSpecs(spec, {s.name: agents.get(s.name, default) for s in plan.seats})
        services = _limited(plan, budgets, prices, found, store)
        with start_as(plan, found, store, parts=parts, observers=observers, services=services) as session:
            return _to_end(session, services)


def resume_run(
    run: str = "last",
    *,
    budgets: Budgets | None = None,
    prices: Mapping[str, Prices] | None = None,
    database: str | None = None,
    observers: Iterable[Observer] = (),
    host: PluginHost | None = None,
) -> RunSummary:
    """Resume a run and return its summary.

    Args:
        run: its id, the beginning or end of it, or "last".
        budgets: limits of models; the run's earlier usage counts.
        prices: as for `play`.
        database: path or URL of the database; None for the default.
        observers: called with a `StepTaken` after each new decision.
        host: resolves names; None for all installed plugins.

    Raises:
        WsapError: there is no such run, it is finished, or it can't be resumed.
    """
    found = host or PluginHost.discovered()
    with open_store(database) as store:
        record = store.repository.get_run(run)
        services = _limited(RunPlan.from_config(record.config), budgets, prices, found, store, run_id=record.id)
        with resume_as(run, found, store, observers=observers, services=services) as session:
            return _to_end(session, services)


def read_run(run: str = "last", *, database: str | None = None, host: PluginHost | None = None) -> RecordedRun:
    """Return a recorded run with all its steps; WsapError if there is none or it can't be read."""
    found = host or PluginHost.discovered()
    with open_database(database, read_only=True) as opened:
        repository = Repository(opened)
        record = repository.get_run(run)
        return RecordedRun(record, tuple(_steps(repository, record, found)))


def list_runs(*, limit: int | None = None, database: str | None = None) -> list[RunRecord]:
    """Return the recorded runs, newest first."""
    with open_database(database, read_only=True) as opened:
        return Repository(opened).list_runs(limit=limit)


def _limited(
    plan: RunPlan, budgets: Budgets | None, prices: Mapping[str, Prices] | None, host: PluginHost,
    store: Store | None, *, run_id: str | None = None,
) -> Services | None:  # fmt: skip
    if budgets is None and not prices:
        return None
    priced = {address: _price(address, price, plan.addresses) for address, price in (prices or {}).items()}
    repository = None if store is None else store.repository
    return Services(models=limited_models(host, budgets or Budgets(), repository, run_id=run_id, prices=priced))


def _price(address: str, given: Prices, asked: Sequence[str]) -> Price:
    price = given if isinstance(given, Price) else Price(*given)
    if address not in asked:
        raise UsageError(f"There is a price for {address!r}, but the run's models are: {', '.join(asked) or 'none'}.")
    if not (0 <= price.prompt < math.inf and 0 <= price.completion < math.inf):
        raise UsageError(f"The price of {address!r} must be at least 0 US dollars per million tokens, not {given!r}.")
    return price


def _to_end(session: RunHandle, services: Services | None) -> RunSummary:
    if services is not None:
        session.close_with(services.models)
    return run_to_end(session)


def evaluate(*args: Any, **options: Any) -> Any:
    """Call `wsap_eval.evaluate`: play entrants and games on the same seeds and return data frames.

        found = wsap_nexus.evaluate(games=["minigrid"], entrants=["random", "minigrid-finder"])
        found.table()

    Raises:
        MissingServiceError: wsap-eval is not installed.
    """
    try:
        package = importlib.import_module("wsap_eval")  # by name: it is in a layer above this package
    except ModuleNotFoundError:
        raise MissingServiceError(
            f"Evaluations need wsap-eval, which is not installed; install it with: {install_line('wsap-eval')}"
        ) from None
    return package.evaluate(*args, **options)


def _name(given: object, fallback: str) -> str:
    # The name as given, or the reference of the caller's own class.
    return portable_reference(given) or fallback


def _steps(repository: Repository, record: RunRecord, host: PluginHost) -> Iterator[RecordedStep]:
    codec = Codec()
    if record.game.partition(":")[0] in host.games.names():
        codec = Codec([load(reference) for reference in host.games.get(record.game).wire_types])
    for event in in_order_made(repository.read_events(record.id, kinds=IN_ORDER)):
        step = read_step(event.seq, event.episode, event.step or 0, event.body, codec)
        yield RecordedStep(step.seat, step.episode, step.step + 1, step.action, step.result)


__all__ = [
    "BudgetLimits",
    "Budgets",
    "Price",
    "RecordedRun",
    "RecordedStep",
    "RunSummary",
    "evaluate",
    "list_runs",
    "play",
    "read_run",
    "resume_run",
]
