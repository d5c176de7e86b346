"""What was asked of models on behalf of one agent, until a decision takes it over."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from wsap_core.seams.agent import NO_USAGE, Usage
from wsap_core.seams.model import Backend, Chunk, Finish, Price, Request
from wsap_llm.wrappers.base import Wrapper
from wsap_llm.wrappers.budget import Budgeted, BudgetLimits


class Account:
    """Adds up what an agent, its memory and whatever else works for it ask models for.

    One account for all of them is why nothing is left out of the sums: a decision takes over what
    was asked since the one before, a summary by the memory included.
    """

    def __init__(self) -> None:
        self.pending = NO_USAGE
        """What no decision has taken over yet."""

    def add(self, usage: Usage) -> None:
        """Put down what a reply took."""
        self.pending += usage

    def take(self) -> Usage:
        """Return what is pending, and begin again at nothing."""
        taken, self.pending = self.pending, NO_USAGE
        return taken


class Counted(Wrapper):
    """Puts down what every reply took, also one that is had from a record.

    Args:
        inner: the backend.
        account: where it is put down.
    """

    def __init__(self, inner: Backend, account: Account) -> None:
        super().__init__(inner)
        self._account = account

    async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        """Give the reply."""
        async with aclosing(self.inner.stream(request)) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, Finish):
                    self._account.add(chunk.usage)
                yield chunk


class WithinDecision(Budgeted):
    """Refuses a request with which a decision could pass its limits.

    What was had from a record counts: going on with a run in the middle of a decision does not
    begin to count anew.

    Args:
        inner: the backend.
        limits: of one decision.
        account: what the decision has asked so far.
        price: what the model costs; None where it is not known.
    """

    def __init__(self, inner: Backend, limits: BudgetLimits, account: Account, *, price: Price | None = None) -> None:
        super().__init__(inner, (), price=price)
        self._limits = limits
        self._account = account

    async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        """Give the reply, if it fits.

        Raises:
            BudgetReachedError: before anything is sent.
        """
        self._limits.budget("decision", self._account.pending).reserve(self._worst(request))
        async with aclosing(super().stream(request)) as chunks:
            async for chunk in chunks:
                yield chunk
