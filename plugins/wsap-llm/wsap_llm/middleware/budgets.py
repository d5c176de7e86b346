"""Limits on tokens, money and calls, checked before a request is sent."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

from wsap_core.errors import UsageError
from wsap_core.seams.agent import NO_USAGE, Usage
from wsap_core.seams.model import Chunk, Finish, Price, Request, SpendingLimit
from wsap_core.seams.model_errors import BadRequestError, BudgetReachedError, NoServerError, RateLimitError
from wsap_core.untrusted import single_line
from wsap_llm.middleware import Ask
from wsap_llm.middleware.measure import UsageCounter
from wsap_llm.tokens import estimate_request

UNBOUNDED_REPLY = 4096
"""Tokens reserved for a reply whose length the request does not bound."""

CostOf = Callable[[int, int], float | None]
"""Tokens of prompt and of reply -> US dollars; None where the price is not known."""

MOST_DOLLARS = 1e9
MOST_COUNTED = 10**12


@dataclass(eq=False)
class Budget:
    """What may be spent in some scope: a decision, a run, a day. Several backends can share one."""

    scope: str
    """What it is for, as it is named in messages: "run", "day"."""
    tokens: int | None = None
    """Most tokens, prompts and replies together; None for no limit."""
    cost: float | None = None
    """Most US dollars."""
    calls: int | None = None
    """Most requests."""
    spent: Usage = NO_USAGE
    """What was spent so far, also before, of a run that is gone on with."""
    _held: Usage = field(default=NO_USAGE, init=False)  # what requests on their way may take, as far as it is priced
    _holds: int = field(default=0, init=False)
    _unpriced: int = field(default=0, init=False)

    def belongs_to(self, run_id: str) -> None:
        """Say for which recorded run requests are sent here; a budget that also reads the record counts it once."""

    def reserve(self, worst: Usage) -> None:
        """Hold what a request may take at worst. Raises BudgetReachedError if the limit could be passed, and UsageError
        if a limit in money is set and the model's price is not known; nothing is held then."""
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
                    f"A limit of ${self.cost:g} a {self.scope} can't be kept: the model's price is not known; "
                    "set a limit in tokens or calls, or state the price."
                )
            if total.cost > self.cost:
                raise self._reached(f"${self.cost:g}")
        self._hold(worst, 1)

    def settle(self, worst: Usage, actual: Usage) -> None:
        """Put what a request really took in place of what was held for it."""
        self._hold(worst, -1)
        self.spent += actual

    def _hold(self, worst: Usage, sign: int) -> None:
        # Kept as a sum: with 500 requests on their way, adding them up for each would take longer than sending it.
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
            self._held = NO_USAGE  # what rounding has left

    def _reached(self, limit: str) -> BudgetReachedError:
        return BudgetReachedError(
            f"The next request could pass the limit of {limit} a {self.scope} "
            f"(spent: {self.spent.calls} calls, {self.spent.prompt_tokens + self.spent.completion_tokens} tokens); "
            "raise the limit and resume the run to go on."
        )


def read_price(word: str) -> tuple[str, Price]:
    """Return a model's address and its price from a word such as `openai/some-model=0.15/0.60`: US dollars for a
    million tokens of prompts and of replies.

    Raises UsageError if it has another form, or an amount is out of range.
    """
    address, _, amounts = word.rpartition("=")
    low, _, high = amounts.partition("/")
    try:
        price = Price(float(low), float(high))
    except ValueError:
        price = Price(-1, -1)
    if not address or not (0 <= price.prompt < MOST_DOLLARS and 0 <= price.completion < MOST_DOLLARS):
        raise UsageError(
            "--price takes ADDRESS=IN/OUT, US dollars for a million tokens of prompts and of replies, "
            f"not {single_line(word)[:80]!r}."
        )
    return address, price


def prices_for(asked: Iterable[str], price_in: float | None, price_out: float | None) -> dict[str, Price]:
    """Return address -> price of the models that are asked, from `--price-in` and `--price-out`; empty without them.

    Raises UsageError if only one of the two was given, or an amount is out of range.
    """
    for option, price in (("--price-in", price_in), ("--price-out", price_out)):
        if price is not None and not 0 <= price < MOST_DOLLARS:
            raise UsageError(f"{option} takes US dollars per million tokens, at least 0, not {price:g}.")
    if price_in is None and price_out is None:
        return {}
    if price_in is None or price_out is None:
        raise UsageError("--price-in and --price-out belong together; give both.")
    return dict.fromkeys(asked, Price(price_in, price_out))


@dataclass(frozen=True)
class BudgetLimits:
    """The most that may be spent in one scope; None for no limit."""

    calls: int | None = None
    tokens: int | None = None
    """Prompts and replies together."""
    cost: float | None = None
    """In US dollars."""

    def __bool__(self) -> bool:
        return not self.calls is self.tokens is self.cost is None

    def budget(self, scope: str, spent: Usage = NO_USAGE) -> Budget:
        """Return a budget with these limits, of which `spent` is used up."""
        return Budget(scope, self.tokens, self.cost, self.calls, spent)


@dataclass(frozen=True)
class Budgets:
    """The limits of each scope. All are checked before a request is sent, at its worst case."""

    run: BudgetLimits = BudgetLimits()
    """The whole run, before and after it was resumed."""
    decision: BudgetLimits = BudgetLimits()
    """One decision: everything the agent asks for it, the plan before it included. What its memory
    asks afterwards is not limited."""
    day: BudgetLimits = BudgetLimits()
    """All runs of the database in one day, in UTC; replayed runs take nothing."""

    @classmethod
    def parse(cls, words: Iterable[str], *, scopes: Collection[str] = ("run", "decision", "day")) -> Budgets:
        """Return the limits given as `[SCOPE.]calls|tokens|cost=N`, such as `day.tokens=500000`; the scope is `run` by
        default.

        Raises UsageError if a word has another form or a scope without a meaning here, is given twice, or its number is
        out of range.
        """
        found: dict[str, dict[str, Any]] = {}
        for word in words:
            name, equals, amount = word.strip().partition("=")
            scope, _, kind = name.rpartition(".") if "." in name else ("run", ".", name)
            if not equals or scope not in scopes or kind not in ("calls", "tokens", "cost"):
                prefix = f"[{'|'.join(scopes)}]." if len(scopes) > 1 else ""
                raise UsageError(
                    f"--limit takes {prefix}[calls|tokens|cost]=N, such as cost=2 or tokens=500000, "
                    f"not {single_line(word)[:80]!r}."
                )
            if kind in found.setdefault(scope, {}):
                raise UsageError(f"--limit gives {scope}.{kind} twice.")
            found[scope][kind] = _amount(f"{scope}.{kind}", amount)
        return cls(**{scope: BudgetLimits(**limits) for scope, limits in found.items()})


def _amount(name: str, word: str) -> float:
    try:
        number = float(word)
    except ValueError:
        number = math.nan
    if name.endswith(".cost"):
        if not 0 < number < MOST_DOLLARS:
            raise UsageError(f"--limit {name} is an amount of US dollars above 0, not {single_line(word)[:20]}.")
        return number
    if not 1 <= number <= MOST_COUNTED or number != int(number):
        raise UsageError(f"--limit {name} is a whole number from 1 to 10^12, not {single_line(word)[:20]}.")
    return int(number)


@dataclass(frozen=True)
class CheckBudgets:
    """Refuses a request that could pass a limit at its worst: all of its prompt, the longest reply."""

    budgets: Sequence[SpendingLimit]
    cost_of: CostOf | None = None
    """What tokens cost, where the backend does not say it of a reply."""

    async def stream(self, request: Request, ask: Ask) -> AsyncGenerator[Chunk, None]:
        """Give the reply, if it fits every budget.

        Raises:
            BudgetReachedError: before anything is sent.
        """
        worst = worst_case(request, self.cost_of)
        reserved: list[SpendingLimit] = []
        actual: Usage | None = None
        sent = False
        try:
            for budget in self.budgets:
                budget.reserve(worst)
                reserved.append(budget)
            sent = True
            async with aclosing(ask(request)) as chunks:
                async for chunk in chunks:
                    if isinstance(chunk, Finish):
                        actual = self._priced(chunk.usage)
                        yield replace(chunk, usage=actual)
                    else:
                        yield chunk
        except (BadRequestError, NoServerError, RateLimitError):
            sent = False  # turned away before a token was made
            raise
        finally:
            # A request that broke off may have been charged in full; that is what is assumed.
            spent = actual if actual is not None else worst if sent else NO_USAGE
            for budget in reserved:
                budget.settle(worst, spent)

    def _priced(self, usage: Usage) -> Usage:
        if usage.cost is not None or self.cost_of is None:
            return usage
        return replace(usage, cost=self.cost_of(usage.prompt_tokens, usage.completion_tokens))


@dataclass(frozen=True)
class CheckDecision:
    """Refuses a request with which a decision could pass its limits.

    Replayed replies count: a run that is resumed in the middle of a decision does not start to count anew.
    """

    limits: BudgetLimits
    counter: UsageCounter
    cost_of: CostOf | None = None

    def stream(self, request: Request, ask: Ask) -> AsyncGenerator[Chunk, None]:
        """Give the reply, if it fits.

        Raises:
            BudgetReachedError: before anything is sent.
        """
        self.limits.budget("decision", self.counter.pending).reserve(worst_case(request, self.cost_of))
        return ask(request)


def worst_case(request: Request, cost_of: CostOf | None) -> Usage:
    """Return the most that a request may take: all of its prompt, the longest reply."""
    prompt = estimate_request(request)
    reply = request.sampling.max_tokens or UNBOUNDED_REPLY
    return Usage(1, prompt, reply, None if cost_of is None else cost_of(prompt, reply))
