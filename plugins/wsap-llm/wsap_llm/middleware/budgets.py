"""Limits on tokens, cost and calls, checked before a request is sent."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from wsap_core.errors import UsageError
from wsap_core.seams.agent import NO_USAGE, Usage
from wsap_core.seams.model import OnText, Price, Reply, Request, SpendingLimit
from wsap_core.seams.model_errors import BadRequestError, BudgetReachedError, NoServerError, RateLimitError
from wsap_core.untrusted import single_line
from wsap_llm.middleware import Ask
from wsap_llm.middleware.measure import UsageCounter
from wsap_llm.text.tokens import estimate_request

UNBOUNDED_REPLY = 4096
"""Tokens reserved for a reply if the request does not limit its length."""

CostOf = Callable[[int, int], float | None]
"""Tokens of prompt and of reply -> US dollars; None if the price is unknown."""

MOST_DOLLARS = 1e9
MOST_COUNTED = 10**12


@dataclass(eq=False)
class Budget:
    """A spending limit for one scope, such as a decision, a run or a day. Several backends can share it."""

    scope: str
    """The name of the scope in messages: "run", "day"."""
    tokens: int | None = None
    """Maximum number of tokens, prompts and replies together; None for no limit."""
    cost: float | None = None
    """Maximum cost in US dollars."""
    calls: int | None = None
    """Maximum number of requests."""
    spent: Usage = NO_USAGE
    """Usage so far, including that before a run was resumed."""
    _held: Usage = field(default=NO_USAGE, init=False)  # reserved for requests in flight, as far as it is priced
    _holds: int = field(default=0, init=False)
    _unpriced: int = field(default=0, init=False)

    def belongs_to(self, run_id: str) -> None:
        """Set the recorded run that sends the requests; a budget that also reads the record counts it once."""

    def reserve(self, worst: Usage) -> None:
        """Reserve the worst case of a request. Raises BudgetReachedError if it could exceed the limit, and UsageError
        if cost is limited and the model's price is unknown; nothing is reserved then."""
        total = self.spent + self._held + worst
        if self._unpriced:
            total = replace(total, cost=None)
        if self.calls is not None and total.calls > self.calls:
            raise self._reached(f"{self.calls} calls")
        if self.tokens is not None and total.prompt_tokens + total.completion_tokens > self.tokens:
            raise self._reached(f"{self.tokens} tokens")
        if self.cost is not None:
            if total.cost is None:
                raise UsageError(
                    f"A limit of ${self.cost:g} a {self.scope} can't be enforced: the model's price is unknown; "
                    "limit tokens or calls, or state the price."
                )
            if total.cost > self.cost:
                raise self._reached(f"${self.cost:g}")
        self._hold(worst, 1)

    def settle(self, worst: Usage, actual: Usage) -> None:
        """Replace the reservation of a request by its actual usage."""
        self._hold(worst, -1)
        self.spent += actual

    def _hold(self, worst: Usage, sign: int) -> None:
        # A running sum: with 500 requests in flight, adding them up each time would take longer than sending one.
        self._holds += sign
        self._unpriced += sign * (worst.cost is None)
        held = self._held
        self._held = Usage(
            held.calls + sign * worst.calls,
            held.prompt_tokens + sign * worst.prompt_tokens,
            held.completion_tokens + sign * worst.completion_tokens,
            (held.cost or 0.0) + sign * (worst.cost or 0.0),
        )
        if not self._holds:
            self._held = NO_USAGE  # removes rounding errors

    def _reached(self, limit: str) -> BudgetReachedError:
        return BudgetReachedError(
            f"The next request could exceed the limit of {limit} a {self.scope} "
            f"(spent: {self.spent.calls} calls, {self.spent.prompt_tokens + self.spent.completion_tokens} tokens); "
            "to continue, raise the limit and resume the run."
        )


def read_price(word: str) -> tuple[str, Price]:
    """Return address and price of a model from a word such as `openai/some-model=0.15/0.60`, in US dollars per million
    tokens of prompts and of replies.

    Raises UsageError if it is malformed or an amount is out of range.
    """
    address, _, amounts = word.rpartition("=")
    low, _, high = amounts.partition("/")
    try:
        price = Price(float(low), float(high))
    except ValueError:
        price = Price(-1, -1)
    if not address or not (0 <= price.prompt < MOST_DOLLARS and 0 <= price.completion < MOST_DOLLARS):
        raise UsageError(
            "--price requires ADDRESS=IN/OUT, in US dollars per million tokens of prompts and of replies, "
            f"not {single_line(word)[:80]!r}."
        )
    return address, price


def prices_for(asked: Iterable[str], price_in: float | None, price_out: float | None) -> dict[str, Price]:
    """Return address -> price of the models in `asked`, from `--price-in` and `--price-out`; empty without them. Raises
    UsageError if only one of the two was given, or an amount is out of range."""
    for option, price in (("--price-in", price_in), ("--price-out", price_out)):
        if price is not None and not 0 <= price < MOST_DOLLARS:
            span = f"from 0 to less than {MOST_DOLLARS:,.0f}"
            raise UsageError(f"{option} requires US dollars per million tokens, {span}, not {price:g}.")
    if price_in is None and price_out is None:
        return {}
    if price_in is None or price_out is None:
        raise UsageError("--price-in and --price-out must be given together.")
    return dict.fromkeys(asked, Price(price_in, price_out))


@dataclass(frozen=True)
class BudgetLimits:
    """The spending limits of one scope; None for no limit."""

    calls: int | None = None
    tokens: int | None = None
    """Prompts and replies together."""
    cost: float | None = None
    """In US dollars."""

    def __bool__(self) -> bool:
        return not self.calls is self.tokens is self.cost is None

    def budget(self, scope: str, spent: Usage = NO_USAGE) -> Budget:
        """Return a budget with these limits, `spent` of it used."""
        return Budget(scope, self.tokens, self.cost, self.calls, spent)


@dataclass(frozen=True)
class Budgets:
    """The limits of each scope, all checked for the worst case before a request is sent."""

    run: BudgetLimits = BudgetLimits()
    """The whole run, before and after it was resumed."""
    decision: BudgetLimits = BudgetLimits()
    """One decision with the plan before it, without later requests of the memory."""
    day: BudgetLimits = BudgetLimits()
    """All runs of the database in one day (UTC), except replayed ones."""

    @classmethod
    def parse(cls, words: Iterable[str], *, scopes: Collection[str] = ("run", "decision", "day")) -> Budgets:
        """Return the limits given as `[SCOPE.]calls|tokens|cost=N`, such as `day.tokens=500000`; the default scope is
        `run`.

        Raises UsageError if a word is malformed, has a scope not in `scopes`, is given twice, or is out of range.
        """
        found: dict[str, dict[str, Any]] = {}
        for word in words:
            name, equals, amount = word.strip().partition("=")
            scope, _, kind = name.rpartition(".") if "." in name else ("run", ".", name)
            if not equals or scope not in scopes or kind not in ("calls", "tokens", "cost"):
                prefix = f"[{'|'.join(scopes)}]." if len(scopes) > 1 else ""
                raise UsageError(
                    f"--limit requires {prefix}[calls|tokens|cost]=N, such as cost=2 or tokens=500000, "
                    f"not {single_line(word)[:80]!r}."
                )
            if kind in found.setdefault(scope, {}):
                raise UsageError(f"--limit sets {scope}.{kind} twice.")
            found[scope][kind] = _amount(f"{scope}.{kind}", amount)
        return cls(**{scope: BudgetLimits(**limits) for scope, limits in found.items()})


def _amount(name: str, word: str) -> float:
    try:
        number = float(word)
    except ValueError:
        number = math.nan
    if name.endswith(".cost"):
        if not 0 < number < MOST_DOLLARS:
            raise UsageError(f"--limit {name} must be an amount of US dollars above 0, not {single_line(word)[:20]}.")
        return number
    if not 1 <= number <= MOST_COUNTED or number != int(number):
        raise UsageError(f"--limit {name} must be a whole number from 1 to 10^12, not {single_line(word)[:20]}.")
    return int(number)


@dataclass(frozen=True)
class CheckBudgets:
    """Refuses a request whose worst case, its prompt and the longest reply, could exceed a limit."""

    budgets: Sequence[SpendingLimit]
    cost_of: CostOf | None = None
    """The cost of tokens, if the backend does not report it with a reply."""
    stated: bool = False
    """Whether it is a price that the user stated, which counts instead of what the backend reports."""

    async def __call__(self, request: Request, on_text: OnText | None, ask: Ask) -> Reply:
        """Return the reply; raise BudgetReachedError, without sending the request, if it exceeds a budget."""
        worst = worst_case(request, self.cost_of)
        reserved: list[SpendingLimit] = []
        actual: Usage | None = None
        sent = False
        try:
            for budget in self.budgets:
                budget.reserve(worst)
                reserved.append(budget)
            sent = True
            reply = await ask(request, on_text)
            actual = self._priced(reply.usage)
            return replace(reply, finish=replace(reply.finish, usage=actual))
        except (BadRequestError, NoServerError, RateLimitError):
            sent = False  # refused before a token was generated
            raise
        finally:
            # A failed request may have been charged in full, so that is assumed.
            spent = actual if actual is not None else worst if sent else NO_USAGE
            for budget in reserved:
                budget.settle(worst, spent)

    def _priced(self, usage: Usage) -> Usage:
        if self.cost_of is None or (usage.cost is not None and not self.stated):
            return usage
        return replace(usage, cost=self.cost_of(usage.prompt_tokens, usage.completion_tokens))


@dataclass(frozen=True)
class CheckDecision:
    """Refuses a request that could exceed the limits of a decision. Replayed replies count, so that resuming a run
    within a decision does not reset its usage."""

    limits: BudgetLimits
    counter: UsageCounter
    cost_of: CostOf | None = None

    async def __call__(self, request: Request, on_text: OnText | None, ask: Ask) -> Reply:
        """Return the reply; raise BudgetReachedError, without sending the request, if it exceeds the limits."""
        self.limits.budget("decision", self.counter.pending).reserve(worst_case(request, self.cost_of))
        return await ask(request, on_text)


def worst_case(request: Request, cost_of: CostOf | None) -> Usage:
    """Return the maximum usage of a request: its prompt and the longest reply."""
    prompt = estimate_request(request)
    reply = request.sampling.max_tokens or UNBOUNDED_REPLY
    return Usage(1, prompt, reply, None if cost_of is None else cost_of(prompt, reply))
