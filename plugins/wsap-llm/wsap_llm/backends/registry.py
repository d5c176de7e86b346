"""`Models`: from an address such as `ollama/qwen3:8b` to a backend with its wrappers, one for each address."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wsap_core.errors import PluginError, UnknownNameError, UsageError, WsapError
from wsap_core.factories import build, load
from wsap_core.host import PluginHost
from wsap_core.seams.clock import Clock, SystemClock
from wsap_core.seams.context import Context
from wsap_core.seams.model import Backend, Listing, Price, SpendingLimit
from wsap_core.seams.options import Options, check_used
from wsap_core.seams.services import Services
from wsap_core.specs import BackendSpec
from wsap_core.untrusted import one_line
from wsap_llm.account import Account, WithinDecision
from wsap_llm.backends.meter import Meter, Metered
from wsap_llm.wrappers import Budgeted, BudgetLimits, Limited, Retrying

# Any, in this module: options have every kind of value.

ELSEWHERE: Mapping[str, str] = {"ollama": "wsap-ollama", "outlines": "wsap-outlines"}
"""Backends of our own that come in distributions of their own."""


@dataclass(frozen=True)
class Policy:
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


class Models:
    """Hands out backends by address, each with retries, limits and budgets around it, and closes them all.

    Args:
        host: where backends are registered; everything installed when None.
        options: backend name -> its options.
        policy: how models are asked.
        budgets: what may be spent, over all models together.
        prices: address -> price, for models whose backend does not know it.
        clock: what waits.
        services: what backends are given.
        seed: for the jitter of pauses.
        decision: what may be spent for one decision.
    """

    def __init__(
        self,
        host: PluginHost | None = None,
        *,
        options: Mapping[str, Mapping[str, Any]] | None = None,
        policy: Policy | None = None,
        budgets: Sequence[SpendingLimit] = (),
        prices: Mapping[str, Price] | None = None,
        clock: Clock | None = None,
        services: Services | None = None,
        seed: int = 0,
        decision: BudgetLimits | None = None,
    ) -> None:
        self._host = host or PluginHost.discovered()
        self._options = options or {}
        self._policy = policy or Policy()
        self._budgets = tuple(budgets)
        self._prices = prices or {}
        self._clock = clock or SystemClock()
        self._services = services or Services()
        self._seed = seed
        self._decision = decision or BudgetLimits()
        self._backends: dict[str, Backend] = {}
        self._own: dict[str, dict[str, Any]] = {}
        self.meter = Meter()
        """How fast the models answered."""

    def backend(self, name: str) -> Backend:
        """Return the backend of an address; the same one each time, so that limits are shared.

        Raises:
            UsageError: it is no address.
            UnknownNameError: no backend of that name is installed.
            PluginError: the backend can't be made.
        """
        name = name.strip()
        if name not in self._backends:
            spec, rest = find_backend(self._host, name)
            context = self._context(spec, rest, self._own.get(name, {}))
            made = build(spec.factory, context)
            if not isinstance(made, Backend):
                raise PluginError(f"The factory of the backend {spec.name!r} gave a {type(made).__name__}.")
            assert isinstance(context.config, Options), "_context makes it"
            check_used(f"The backend {spec.name!r}", context.config)
            self._backends[name] = self._wrapped(name, made, context)
        return self._backends[name]

    def configure(self, name: str, options: Mapping[str, Any]) -> None:
        """Set the backend's options for one address, over those for all; before it is asked for.

        Raises:
            UsageError: it was handed out with other options.
        """
        name = name.strip()
        if name in self._backends and self._own.get(name, {}) != options:
            raise UsageError(f"The model {one_line(name)[:80]} is used with two sets of options; give it one.")
        self._own[name] = dict(options)

    def price(self, name: str) -> Price | None:
        """Return what a model was said to cost; None where nothing was said."""
        return self._prices.get(name.strip())

    def knows_price(self, name: str) -> bool:
        """Return whether the price of a model was given, or its backend has prices of its own.

        Raises:
            WsapError: there is no such backend, or it can't be made.
        """
        return self.price(name) is not None or hasattr(_innermost(self.backend(name)), "cost_of")

    def for_agent(self, name: str, account: Account) -> Backend:
        """Return the backend of an address for one agent, whose decisions keep to their limits.

        Args:
            name: the address.
            account: where what the agent asks is added up.
        """
        backend = self.backend(name)
        if not self._decision:
            return backend
        return WithinDecision(backend, self._decision, account, price=self._prices.get(name.strip()))

    def belongs_to(self, run_id: str) -> None:
        """Say for which recorded run models are asked here: a day's budget counts it once."""
        for budget in self._budgets:
            budget.belongs_to(run_id)

    async def ready(self, name: str) -> Backend:
        """Return the backend of an address once it knows what its model can do.

        Raises:
            BackendError: it can't be asked; besides what `backend` raises.
        """
        backend = self.backend(name)
        if (prepare := getattr(_innermost(backend), "prepare", None)) is not None:
            await prepare()
        return backend

    async def __aenter__(self) -> Models:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close every backend that was handed out, also if one of them fails to close.

        Raises:
            PluginError: one could not be closed.
        """
        backends, self._backends = self._backends, {}
        results = await asyncio.gather(*(b.aclose() for b in backends.values()), return_exceptions=True)
        for name, result in zip(backends, results, strict=True):
            if isinstance(result, BaseException):
                raise PluginError(f"The backend of {name} could not be closed: {one_line(result)}.") from result

    def _context(self, spec: BackendSpec, rest: str, own: Mapping[str, Any]) -> Context:
        config = Options({**self._options.get(spec.name, {}), **own, "model": rest})
        config.get("model")  # which a backend of one model need not ask for
        return Context.create(
            self._seed, "backend", spec.name, rest, config=config, clock=self._clock, services=self._services
        )

    def _wrapped(self, name: str, backend: Backend, context: Context) -> Backend:
        policy, cost_of = self._policy, getattr(backend, "cost_of", None)
        backend = Metered(backend, self.meter, name)
        if self._budgets or name in self._prices:
            backend = Budgeted(backend, self._budgets, price=self._prices.get(name), cost_of=cost_of)
        if policy.concurrency is not None or policy.per_minute is not None:
            # Inside the retries, so that who pauses takes nobody's place.
            backend = Limited(backend, concurrency=policy.concurrency, per_minute=policy.per_minute, clock=self._clock)
        if policy.attempts > 1:
            backend = Retrying(
                backend,
                attempts=policy.attempts,
                longest=policy.longest_pause,
                hold=not policy.early,
                clock=self._clock,
                generator=context.random,
            )
        return backend


def _innermost(backend: Any) -> Any:
    while hasattr(backend, "inner"):
        backend = backend.inner
    return backend


def find_backend(host: PluginHost, address: str) -> tuple[BackendSpec, str]:
    """Return the spec that an address names, and the rest of the address.

    Raises:
        UsageError: it is no address.
        UnknownNameError: no backend of that name is installed; it suggests similar ones, or what to install.
    """
    names = host.backends.names()
    name, slash, rest = address.partition("/")
    if not slash or not name or not rest:
        shown = one_line(address)[:80]
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
        raise UnknownNameError("backend", one_line(name)[:80], names, hint=f"There are: {', '.join(names)}.")
    return host.backends.get(name), rest


async def list_models(
    host: PluginHost, *, options: Mapping[str, Mapping[str, Any]] | None = None, within: float = 3.0
) -> list[Listing]:
    """Return what every installed backend can reach, asked at the same time, each within so many seconds.

    What goes wrong with one becomes the reason in its listing.
    """
    specs = [entry.spec for entry in host.backends.all()]
    return list(await asyncio.gather(*(_listed(spec, (options or {}).get(spec.name, {}), within) for spec in specs)))


async def _listed(spec: BackendSpec, options: Mapping[str, Any], within: float) -> Listing:
    if spec.models is None:
        return Listing(spec.name, note=f"it lists no models. {one_line(spec.summary)}")
    try:
        async with asyncio.timeout(within):
            found = await load(spec.models)(Context.create(config=options))
    except TimeoutError:
        return Listing(spec.name, reason=f"it did not answer within {within:g} s")
    except WsapError as error:
        return Listing(spec.name, reason=one_line(error))
    except Exception as error:
        return Listing(spec.name, reason=f"{type(error).__name__}: {one_line(error)[:200]}")
    if not isinstance(found, Listing):
        return Listing(spec.name, reason=f"it gave a {type(found).__name__} where a Listing belongs")
    return found
