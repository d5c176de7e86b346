"""`ModelPool`: from an address such as `ollama/qwen3:8b` to a backend with its middlewares, one for each set
of options."""

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
from wsap_core.seams.clock import Clock, SystemClock
from wsap_core.seams.context import Context
from wsap_core.seams.listing import Listing
from wsap_core.seams.model import Backend, Price, SpendingLimit
from wsap_core.seams.options import Options, check_used, with_prefix
from wsap_core.seams.services import Services
from wsap_core.specs import BackendSpec
from wsap_core.untrusted import error_line, single_line
from wsap_llm.journal import CallJournal
from wsap_llm.middleware import Middleware, Model
from wsap_llm.middleware.budgets import BudgetLimits, Budgets, CheckBudgets, CheckDecision, CostOf
from wsap_llm.middleware.measure import Count, Measure, Meter, UsageCounter
from wsap_llm.middleware.record import Record, Replayed
from wsap_llm.middleware.retry import RateLimit, Retry
from wsap_llm.secrets import with_secrets

# Any, in this module: options have every kind of value.

ELSEWHERE: Mapping[str, str] = {"ollama": "wsap-ollama", "outlines": "wsap-outlines"}
"""Backends of our own that come in distributions of their own."""


@dataclass(frozen=True)
class RequestPolicy:
    """How models are asked, whichever they are."""

    attempts: int = 5
    """Calls in all for one request, where trying again can help."""
    longest_pause: float = 60.0
    """Most seconds between two of them."""
    concurrency: int | None = None
    """Requests to one model at the same time; None for any number."""
    per_minute: int | None = None
    """Requests to one model in any minute; None for any number."""
    early: bool = False
    """Pass pieces of a reply on as they come; one that breaks off can't be asked for again then."""


class ModelPool:
    """Hands out models by address, each with retries, limits and budgets around it, and closes them all.

    Args:
        host: where backends are registered; everything installed when None.
        options: backend name -> its options.
        policy: how models are asked.
        budgets: what may be spent, over all models together.
        prices: address -> price, for models whose backend does not know it.
        clock: what waits.
        services: what backends are given.
        seed: for the jitter of pauses.
        decision: what may be spent for one decision of an agent.
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
        """What may be spent for one decision."""
        self._models: dict[tuple[str, str], Model] = {}
        self._rates: dict[str, RateLimit] = {}
        self.meter = Meter()
        """How fast the models answered."""

    def backend(self, name: str, own: Mapping[str, Any] | None = None) -> Model:
        """Return the model of an address with options of its own, which come before those for all of its backend; the
        same one each time. Limits on requests to a model hold for all its options together.

        Raises UsageError if it is no address, UnknownNameError if no backend of that name is installed, and PluginError
        if the backend can't be made.
        """
        name, own = name.strip(), own or {}
        key = name, json.dumps(own, sort_keys=True, default=repr)
        if key not in self._models:
            spec, rest = find_backend(self._host, name)
            context = self._context(spec, rest, own)
            made = build(spec.factory, context)
            if not isinstance(made, Backend):
                raise PluginError(f"The factory of the backend {spec.name!r} gave a {type(made).__name__}.")
            assert isinstance(context.config, Options), "_context makes it"
            check_used(f"The backend {spec.name!r}", context.config)
            self._models[key] = Model(made, self._shared(name, made, context))
        return self._models[key]

    def _shared(self, name: str, backend: Backend, context: Context) -> list[Middleware]:
        # Those of an agent go around these: see `AgentModels`.
        policy, price = self._policy, self._prices.get(name)
        found: list[Middleware] = []
        if policy.attempts > 1:
            retry = Retry(
                attempts=policy.attempts,
                longest=policy.longest_pause,
                hold=not policy.early,
                clock=self._clock,
                generator=context.random,
                tell=self._tell,
                meter=self.meter,
            )
            found.append(retry)
        if policy.concurrency is not None or policy.per_minute is not None:
            # Inside the retries, so that a request that pauses takes nobody's place.
            limit = RateLimit(concurrency=policy.concurrency, per_minute=policy.per_minute, clock=self._clock)
            found.append(self._rates.setdefault(name, limit))
        if self._budgets or price is not None:
            found.append(CheckBudgets(self._budgets, self.cost_of(name, backend)))
        found.append(Measure(self.meter, name, self._tell))
        return found

    def cost_of(self, name: str, backend: Backend) -> CostOf | None:
        """Return what tells the cost of tokens of a model: its stated price, or its backend; None where neither can."""
        price = self._prices.get(name.strip())
        return price.of if price is not None else getattr(backend, "cost_of", None)

    def run_limits(self, words: Sequence[str], asked: Iterable[str], stated_by: str) -> BudgetLimits:
        """Return what `--limit` allows a run that asks these models; `stated_by` says which option states a price.

        Raises UsageError if a limit has another form, or one of cost can't be kept because a price was neither given
        nor is known to the backend; and WsapError if there is no such backend, or it can't be made.
        """
        limits = Budgets.parse(words, scopes=("run",)).run
        for address in asked if limits.cost is not None else ():
            if self.cost_of(address, self.backend(address).backend) is None:
                raise UsageError(
                    f"--limit cost can't be kept: the price of {address} is not known; state it with "
                    f"{stated_by.format(address=address)}, or limit calls or tokens."
                )
        return limits

    def belongs_to(self, run_id: str) -> None:
        """Say for which recorded run models are asked here: a day's budget counts it once."""
        for budget in self._budgets:
            budget.belongs_to(run_id)

    async def ready(self, name: str, own: Mapping[str, Any] | None = None) -> Model:
        """Return the model of an address with these options once its backend knows what it can do. Raises
        BackendError if it can't be asked; besides what `backend` raises."""
        model = self.backend(name, own)
        if (prepare := getattr(model.backend, "prepare", None)) is not None:
            await prepare()
        return model

    async def open(self, name: str, options: Mapping[str, Any] | None = None) -> Model:
        """Return the model of an address once its backend knows what it can do; for commands and games.

        Of an agent's or a game's `options`, those that begin with `model.` are the backend's. Raises ConfigError if an
        option names an environment variable that is not set, and WsapError if there is no such backend, or it can't be
        asked.
        """
        own = with_prefix(options or {}, "model.")
        return await self.ready(name, {key[6:]: value for key, value in with_secrets(own, os.environ).items()})

    async def __aenter__(self) -> ModelPool:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close every backend that was handed out, also if one of them fails to close. Raises PluginError if one could
        not be closed."""
        models, self._models = self._models, {}
        results = await asyncio.gather(*(model.aclose() for model in models.values()), return_exceptions=True)
        for (name, _), result in zip(models, results, strict=True):
            if isinstance(result, BaseException):
                raise PluginError(f"The backend of {name} could not be closed: {single_line(result)}.") from result

    def _context(self, spec: BackendSpec, rest: str, own: Mapping[str, Any]) -> Context:
        config = Options({**self._options.get(spec.name, {}), **own, "model": rest})
        config.get("model")  # which a backend of one model need not ask for
        return Context.create(
            self._seed, "backend", spec.name, rest, config=config, clock=self._clock, services=self._services
        )


@dataclass(frozen=True)
class AgentModels:
    """The models that one agent asks: its own, and those of its memory, for which it is the service `models`."""

    pool: ModelPool
    address: str
    """Of its own model."""
    own: Mapping[str, Any] = field(default_factory=dict)
    """The options of that, which hold for every model of the same backend."""
    journal: CallJournal | None = None
    """Where calls are kept; None where nothing is recorded."""
    counter: UsageCounter = field(default_factory=UsageCounter)
    """What is asked, until a decision takes it over."""

    def decider(self) -> Model:
        """Return the model for the agent's decisions: recorded, or replayed, and within limits."""
        return self._recorded(self.address, self._limited)

    def backend(self, name: str) -> Model:
        """Return the model of an address for the agent's memory: counted, recorded, or replayed."""
        own = self.own if name.partition("/")[0] == self.address.partition("/")[0] else None
        model = self._recorded(name, lambda: self.pool.backend(name, own), failures=True)
        return Model(model, [Count(self.counter)])

    def _limited(self) -> Model:
        # Inside the record: what is kept is not asked, so that it can't pass a limit.
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
    """Return the spec that an address names, and the rest of the address. Raises UsageError if it is no address, and
    UnknownNameError, with suggestions, if no backend of that name is installed."""
    names = host.backends.names()
    name, slash, rest = address.partition("/")
    if not slash or not name or not rest:
        shown = single_line(address)[:80]
        guess = f" Did you mean ollama/{shown}?" if ":" in shown and "ollama" in names and not slash else ""
        raise UsageError(
            f"A model is named BACKEND/MODEL, such as openai/qwen3:8b, not {shown!r}.{guess} "
            f"Backends: {', '.join(names)}."
        )
    if name in ELSEWHERE and name not in names and not host.backends.duplicates().get(name):
        raise UnknownNameError(
            "backend", name, (), hint=f"It comes in a package of its own: pip install {ELSEWHERE[name]}"
        )
    if name not in names and name not in host.backends.duplicates():
        raise UnknownNameError("backend", single_line(name)[:80], names, hint=f"There are: {', '.join(names)}.")
    return host.backends.get(name), rest


async def list_models(
    host: PluginHost, *, options: Mapping[str, Mapping[str, Any]] | None = None, within: float = 3.0
) -> list[Listing]:
    """Return what every installed backend can reach, asked at the same time, each within so many seconds.

    What goes wrong with one becomes the reason in its listing.
    """
    specs = [entry.spec for entry in host.backends.all()]
    for spec in specs:
        # Importing takes what it takes on this machine: no provider's time, and none of its fellows'.
        if spec.models is not None:
            with suppress(Exception):  # it is told of below
                load(spec.models)
    return list(await asyncio.gather(*(_listed(spec, (options or {}).get(spec.name, {}), within) for spec in specs)))


async def _listed(spec: BackendSpec, options: Mapping[str, Any], within: float) -> Listing:
    if spec.models is None:
        return Listing(spec.name, note=f"it lists no models. {single_line(spec.summary)}")
    try:
        async with asyncio.timeout(within):
            found = await load(spec.models)(Context.create(config=options))
    except TimeoutError:
        return Listing(spec.name, reason=f"it did not answer within {within:g} s")
    except WsapError as error:
        return Listing(spec.name, reason=single_line(error))
    except Exception as error:
        return Listing(spec.name, reason=error_line(error, 200, kind=True))
    if not isinstance(found, Listing):
        return Listing(spec.name, reason=f"it gave a {type(found).__name__} where a Listing belongs")
    return found
