"""What was asked of models on behalf of one agent, until a decision takes it over."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from wsap_core.decisions import NO_USAGE, Usage
from wsap_core.llm.backend import Backend
from wsap_core.llm.types import Chunk, Finish, Request
from wsap_core.llm.wrappers.base import Wrapper


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
