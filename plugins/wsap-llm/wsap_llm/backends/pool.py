"""`ModelPool`: creates one backend with its middleware for each address, such as `ollama/qwen3:8b`, and its options."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from wsap_core.errors import PluginError, UnknownNameError, UsageError, WsapError
from wsap_core.factories import build, load
from wsap_core.host import PluginHost
from wsap_core.installing import install_line
from wsap_core.seams.clock import Clock, SystemClock
from wsap_core.seams.context import Context
from wsap_core.seams.listing import Listing
from wsap_core.seams.model import Backend, Price, SpendingLimit
from wsap_core.seams.options import Options, check_used, with_prefix
from wsap_core.seams.services import Services
from wsap_core.specs import BackendSpec
from wsap_core.untrusted import error_line, single_line
from wsap_llm.journal import CallJournal
from wsap_llm.middleware import Middleware, Model, backend_blamed
from wsap_llm.middleware.budgets import BudgetLimits, Budgets, CheckBudgets, CheckDecision, CostOf
from wsap_llm.middleware.drain import Drain
from wsap_llm.middleware.measure import Count, Measure, Meter, UsageCounter
from wsap_llm.middleware.record import Record, Replayed
from wsap_llm.middleware.retry import RateLimit, Retry
from wsap_llm.middleware.show import Show, Waited
from wsap_llm.middleware.slots import InTurn, Slots
from wsap_llm.secrets import with_secrets
from wsap_llm.starting import until_started

# Any, in this module: options have values of any type.

ELSEWHERE: Mapping[str, str] = {"ollama": "wsap-ollama", "outlines": "wsap-outlines"}
"""WSAP's backends in separate distributions."""


@dataclass(frozen=True)
class RequestPolicy:
    """How requests are sent, for all models."""

    attempts: int = 5
    """Maximum number of calls for one request, if retries can help."""
    longest_pause: float = 60.0
    """Maximum pause between two calls in seconds."""
    concurrency: int | None = None
    """Maximum concurrent requests to one server; None for as many as the backend's options or its server say."""
    per_minute: int | None = None
    """Maximum requests to one model in any minute; None for no limit."""


class ModelPool:
    """Provides models by address, each with retries, limits and budgets, and closes them.

    Args:
        host: the registered backends; everything installed if None.
        options: backend name -> its options.
        budgets: spending limits over all models.
        prices: address -> price, which counts instead of the one that the backend knows or reports.
        services: the services of backends.
        seed: seed of the jitter of pauses.
        decision: spending limits of one decision of an agent.
    """

    def __init__(
        self,
        host: PluginHost | None = None,
        *,
        options: Mapping[str, Mapping[str, Any]] | None = None,
        policy: RequestPolicy | None = None,
        budgets: Sequence[SpendingLimit] = (),
        prices: Mapping[str, Price] | None = None,
        clock: Clock | None = None,
        services: Services | None = None,
        seed: int = 0,
        decision: BudgetLimits | None = None,
    ) -> None:
        self._host = host or PluginHost.discovered()
        self._options = options or {}
        self._policy = policy or RequestPolicy()
        self._budgets = tuple(budgets)
        self._prices = prices or {}
        self._clock = clock or SystemClock()
        services = services or Services()
        self._tell = services.progress or logging.getLogger("wsap.llm").warning
        self._services = replace(services, progress=self._tell)
        self._seed = seed
        self.decision = decision or BudgetLimits()
        """Spending limits of one decision."""
        self._models: dict[tuple[str, str], Model] = {}
        self._rates: dict[str, RateLimit] = {}
        self._slots: dict[str, Slots] = {}
        self._queued: set[str] = set()
        self.meter = Meter()
        """The speed of the models."""
        self.waited = Waited()
        """The requests that have no reply yet."""
        self._drain = Drain()

    def backend(self, name: str, own: Mapping[str, Any] | None = None) -> Model:
        """Return the model of an address with its own options, which override those of the backend; the same object for
        equal arguments. Request limits apply to a model with all its options together.

        Raises UsageError for an invalid address, UnknownNameError if the backend is not installed, and PluginError if
        the backend can't be created.
        """
        name, own = name.strip(), own or {}
        key = name, json.dumps(own, sort_keys=True, default=repr)
        if key not in self._models:
            spec, rest = find_backend(self._host, name)
            context = self._context(spec, rest, own)
            made = build(spec.factory, context)
            if not isinstance(made, Backend):
                raise PluginError(f"The factory of the backend {spec.name!r} returned a {type(made).__name__}.")
            assert isinstance(context.config, Options), "_context makes it"
            check_used(f"The backend {spec.name!r}", context.config)
            self._models[key] = Model(made, self._shared(name, made, context))
        return self._models[key]

    def _shared(self, name: str, backend: Backend, context: Context) -> list[Middleware]:
        # An agent's middleware wraps these: see `AgentModels`.
        policy, price = self._policy, self._prices.get(name)
        found: list[Middleware] = [Show(self.waited, "", name, self._clock.now)]
        if policy.attempts > 1:
            retry = Retry(
                attempts=policy.attempts,
                longest=policy.longest_pause,
                clock=self._clock,
                generator=context.random,
                tell=self._tell,
                meter=self.meter,
            )
            found.append(retry)
        # Inside the retries, so that a pausing request does not count as concurrent.
        if policy.per_minute is not None:
            found.append(self._rates.setdefault(name, RateLimit(policy.per_minute, clock=self._clock)))
        if (limited := self._in_turn(name, backend)) is not None:
            found.append(limited)
        found.append(self._drain)  # inside the retries, whose pauses need not be awaited
        if self._budgets or price is not None:
            found.append(CheckBudgets(self._budgets, self.cost_of(name, backend), price is not None))
        found.append(Measure(self.meter, name, self._tell))
        return found

    def _in_turn(self, name: str, backend: Backend) -> InTurn | None:
        server, policy = str(getattr(backend, "server", name)), self._policy
        slots = self._slots.setdefault(server, Slots())
        if policy.concurrency is not None:
            return InTurn(slots, lambda: policy.concurrency)
        if not hasattr(backend, "most_in_flight"):
            return None

        def tell(most: int) -> None:
            if server not in self._queued:
                self._queued.add(server)
                at_once = "one request" if most == 1 else f"{most} requests"
                self._tell(
                    f"{server} is sent {at_once} at a time, and others wait; if it can do more, say so with "
                    "--model-option concurrency=N."
                )

        return InTurn(slots, lambda: backend.most_in_flight, tell)

    def cost_of(self, name: str, backend: Backend) -> CostOf | None:
        """Return the function for the cost of a model's tokens, by the stated price or else by its backend; None if it
        is unknown."""
        price = self._prices.get(name.strip())
        own: CostOf | None = getattr(backend, "cost_of", None)
        if price is not None or own is None:
            return None if price is None else price.of
        backends = own

        def cost(prompt_tokens: int, completion_tokens: int) -> float | None:
            with backend_blamed(backend):
                return backends(prompt_tokens, completion_tokens)

        return cost

    def run_limits(self, words: Sequence[str], asked: Iterable[str], stated_by: str) -> BudgetLimits:
        """Return the limits of a run from the values of `--limit`; `stated_by` names the option that states a price.

        Raises UsageError if a limit is malformed, or if it limits cost and the price of one of the models in `asked` is
        neither stated nor known to the backend; and WsapError if a backend does not exist or can't be created.
        """
        limits = Budgets.parse(words, scopes=("run",)).run
        for address in asked if limits.cost is not None else ():
            if self.cost_of(address, self.backend(address).backend) is None:
                raise UsageError(
                    f"--limit cost can't be enforced: the price of {address} is unknown; state it with "
                    f"{stated_by.format(address=address)}, or limit calls or tokens."
                )
        return limits

    def belongs_to(self, run_id: str) -> None:
        """Set the recorded run that uses the models, so that daily budgets count it once."""
        for budget in self._budgets:
            budget.belongs_to(run_id)

    async def ready(self, name: str, own: Mapping[str, Any] | None = None) -> Model:
        """Return the model of an address with these options, with its abilities known, once its server has loaded it.
        Raises BackendError if the server can't be reached, and the errors of `backend`."""
        model = self.backend(name, own)
        if (prepare := getattr(model.backend, "prepare", None)) is not None:
            with backend_blamed(model.backend):
                await until_started(prepare, self._clock, self._tell)
        return model

    async def open(self, name: str, options: Mapping[str, Any] | None = None) -> Model:
        """Return the model of an address, with its abilities known, for commands and games.

        Options of an agent or a game that start with `model.` are passed to the backend. Raises ConfigError if an
        option refers to an unset environment variable, and WsapError if the backend does not exist or can't be reached.
        """
        own = with_prefix(options or {}, "model.")
        return await self.ready(name, {key[6:]: value for key, value in with_secrets(own, os.environ).items()})

    @property
    def in_flight(self) -> int:
        """The number of requests that were sent and have no complete reply yet."""
        return self._drain.in_flight

    async def drained(self) -> None:
        """Send no further request, and return when those in flight have their replies; later ones raise
        BudgetReachedError then."""
        await self._drain.drained()

    async def __aenter__(self) -> ModelPool:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close all backends; raise PluginError afterwards if one could not be closed."""
        models, self._models = self._models, {}
        results = await asyncio.gather(*(model.aclose() for model in models.values()), return_exceptions=True)
        for (name, _), result in zip(models, results, strict=True):
            if isinstance(result, BaseException):
                raise PluginError(f"The backend of {name} could not be closed: {single_line(result)}.") from result

    def _context(self, spec: BackendSpec, rest: str, own: Mapping[str, Any]) -> Context:
        config = Options({**self._options.get(spec.name, {}), **own, "model": rest})
        config.get("model")  # counts as used even if a backend with a single model ignores it
        return Context.create(
            self._seed, "backend", spec.name, rest, config=config, clock=self._clock, services=self._services
        )


@dataclass(frozen=True)
class AgentModels:
    """The models of one agent and of its memory, which gets this as the service `models`."""

    pool: ModelPool
    address: str
    """The address of the agent's model."""
    own: Mapping[str, Any] = field(default_factory=dict)
    """Options for all the agent's models of the same backend."""
    journal: CallJournal | None = None
    """Records calls; None for no recording."""
    counter: UsageCounter = field(default_factory=UsageCounter)
    """Usage since the last decision."""
    show: Callable[[str], Middleware] | None = None
    """Returns what shows the memory's requests to the model of an address; those for decisions are shown outside."""

    def decider(self) -> Model:
        """Return the model for the agent's decisions, recorded or replayed, with its limits."""
        return self._recorded(self.address, self._limited)

    def backend(self, name: str) -> Model:
        """Return the model of an address for the agent's memory, counted, and recorded or replayed."""
        own = self.own if name.partition("/")[0] == self.address.partition("/")[0] else None
        model = self._recorded(name, lambda: self.pool.backend(name, own), failures=True)
        return Model(model, [*([] if self.show is None else [self.show(name)]), Count(self.counter)])

    def _limited(self) -> Model:
        # Inside the recording: replayed replies do not count against the limits.
        model, limits = self.pool.backend(self.address, self.own), self.pool.decision
        cost_of = self.pool.cost_of(self.address, model.backend)
        return Model(model, [CheckDecision(limits, self.counter, cost_of)]) if limits else model

    def _recorded(self, name: str, open_model: Callable[[], Model], *, failures: bool = False) -> Model:
        journal = self.journal
        if journal is None:
            return open_model()
        model: Backend = Replayed(name, journal.abilities(name)) if journal.offline else open_model()
        return Model(model, [Record(journal, model.model, failures)])


def find_backend(host: PluginHost, address: str) -> tuple[BackendSpec, str]:
    """Return the backend's spec and the model name of an address. Raises UsageError for an invalid address, and
    UnknownNameError with suggestions if the backend is not installed."""
    names = host.backends.names()
    name, slash, rest = address.partition("/")
    if not slash or not name or not rest:
        shown = single_line(address)[:80]
        guess = f" Did you mean ollama/{shown}?" if ":" in shown and "ollama" in names and not slash else ""
        raise UsageError(
            f"Invalid model {shown!r}; expected BACKEND/MODEL, such as openai/qwen3:8b.{guess} "
            f"Backends: {', '.join(names)}."
        )
    if name in ELSEWHERE and name not in names and not host.backends.duplicates().get(name):
        raise UnknownNameError(
            "backend", name, (), hint=f"It is in a separate package: {install_line(ELSEWHERE[name])}"
        )
    if name not in names and name not in host.backends.duplicates():
        raise UnknownNameError("backend", single_line(name)[:80], names, hint=f"There are: {', '.join(names)}.")
    return host.backends.get(name), rest


async def list_models(
    host: PluginHost, *, options: Mapping[str, Mapping[str, Any]] | None = None, within: float = 3.0
) -> list[Listing]:
    """Return the models of all installed backends, queried concurrently with a timeout of `within` seconds each. If one
    fails, its listing has the reason."""
    specs = [entry.spec for entry in host.backends.all()]
    for spec in specs:
        # Imports are slow on some machines and must not count towards a provider's timeout.
        if spec.models is not None:
            with suppress(Exception):  # reported below
                load(spec.models)
    return list(await asyncio.gather(*(_listed(spec, (options or {}).get(spec.name, {}), within) for spec in specs)))


async def _listed(spec: BackendSpec, options: Mapping[str, Any], within: float) -> Listing:
    if spec.models is None:
        return Listing(spec.name, note=f"lists no models. {single_line(spec.summary)}")
    try:
        async with asyncio.timeout(within):
            found = await load(spec.models)(Context.create(config=options))
    except TimeoutError:
        return Listing(spec.name, reason=f"no response within {within:g} s")
    except WsapError as error:
        return Listing(spec.name, reason=single_line(error))
    except Exception as error:
        return Listing(spec.name, reason=error_line(error, 200, kind=True))
    if not isinstance(found, Listing):
        return Listing(spec.name, reason=f"it returned a {type(found).__name__} instead of a Listing")
    return found
