"""Limits in tokens, money and calls, checked before a request is sent."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from wsap_core.errors import UsageError
from wsap_core.seams.agent import NO_USAGE, Usage
from wsap_core.seams.model import Backend, Chunk, Finish, Price, Request, SpendingLimit
from wsap_core.seams.model_errors import BadRequestError, BudgetReachedError, NoServerError, RateLimitError
from wsap_llm.tokens import estimate_request
from wsap_llm.wrappers.base import Wrapper

UNBOUNDED_REPLY = 4096
"""Tokens reserved for a reply whose length the request does not bound."""


class Budget:
    """What may be spent in some scope: a decision, a run, a day. Several backends can share one.

    Args:
        scope: what it is for, as it is named in the message: "run", "day".
        tokens: most tokens, prompts and replies together; None for no limit.
        cost: most US dollars; None for no limit.
        calls: most requests; None for no limit.
        spent: what was spent before, for a run that is gone on with.
    """

    def __init__(
        self,
        scope: str,
        *,
        tokens: int | None = None,
        cost: float | None = None,
        calls: int | None = None,
        spent: Usage = NO_USAGE,
    ) -> None:
        self.scope = scope
        self.tokens = tokens
        self.cost = cost
        self.calls = calls
        self.spent = spent
        """What was spent so far."""
        self._held = NO_USAGE  # what requests on their way may take, as far as it is priced
        self._holds = 0
        self._unpriced = 0

    def belongs_to(self, run_id: str) -> None:
        """Say for which recorded run requests are sent here; a budget that also reads the record counts it once."""

    def reserve(self, worst: Usage) -> None:
        """Hold what a request may take at worst.

        Raises:
            BudgetReachedError: the limit could be passed; nothing is held.
            UsageError: a limit in money is set, and the model's price is not known.
        """
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


class Budgeted(Wrapper):
    """Refuses a request that could pass a limit at its worst: all of its prompt, the longest reply.

    Args:
        inner: the backend.
        budgets: each is asked.
        price: what the model costs; None where it is not known.
    """

    def __init__(self, inner: Backend, budgets: Sequence[SpendingLimit], *, price: Price | None = None) -> None:
        super().__init__(inner)
        self._budgets = tuple(budgets)
        self._price = price

    async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        """Give the reply, if it fits every budget.

        Raises:
            BudgetReachedError: before anything is sent.
        """
        worst = self._worst(request)
        reserved: list[SpendingLimit] = []
        actual: Usage | None = None
        sent = False
        try:
            for budget in self._budgets:
                budget.reserve(worst)
                reserved.append(budget)
            sent = True
            async with aclosing(self.inner.stream(request)) as chunks:
                async for chunk in chunks:
                    if isinstance(chunk, Finish):
                        actual = self._priced(chunk.usage)
                        yield Finish(chunk.reason, chunk.stop_sequence, actual)
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

    def _worst(self, request: Request) -> Usage:
        prompt = estimate_request(request)
        reply = request.sampling.max_tokens or UNBOUNDED_REPLY
        return Usage(1, prompt, reply, None if self._price is None else self._price.of(prompt, reply))

    def _priced(self, usage: Usage) -> Usage:
        if usage.cost is not None or self._price is None:
            return usage
        cost = self._price.of(usage.prompt_tokens, usage.completion_tokens)
        return Usage(usage.calls, usage.prompt_tokens, usage.completion_tokens, cost)


@dataclass(frozen=True)
class Limits:
    """Most of each that may be spent in some scope; None for no limit."""

    calls: int | None = None
    tokens: int | None = None
    """Of prompts and replies together."""
    cost: float | None = None
    """In US dollars."""

    def __bool__(self) -> bool:
        return not self.calls is self.tokens is self.cost is None

    def budget(self, scope: str, spent: Usage = NO_USAGE) -> Budget:
        """Return a budget with these limits of which so much is spent."""
        return Budget(scope, tokens=self.tokens, cost=self.cost, calls=self.calls, spent=spent)
