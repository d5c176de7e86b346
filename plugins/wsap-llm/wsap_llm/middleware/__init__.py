"""Middlewares between an agent and a backend, each with one concern; `Model` puts them around a backend.

Count         adds up what an agent's parts ask
Record        keeps every reply and sends nothing that is kept; `Replayed` stands for a model that is not asked
CheckDecision, CheckBudgets   refuse before a limit in tokens, money or calls could be passed
Retry         tries again after errors that may be over in a moment
RateLimit     so many requests at once, so many a minute
Measure       tokens and seconds by model

`wsap_llm.backends.pool` says in which order an agent's models have them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable
from functools import partial
from typing import Protocol, TypeAlias

from wsap_core.seams.model import Abilities, Backend, Chunk, Request

Ask: TypeAlias = Callable[[Request], AsyncGenerator[Chunk, None]]
"""Sends a request on and gives the reply as it comes."""


class Middleware(Protocol):
    """What happens to each request and its reply between an agent and a backend; one concern each."""

    def stream(self, request: Request, ask: Ask) -> AsyncGenerator[Chunk, None]:
        """Give the reply. `ask` sends a request on; it may be called several times, or not at all. Close what it
        returns (`contextlib.aclosing`)."""


class Model:
    """A backend with middlewares, the outermost first, around it: itself a backend. Around a `Model` they go around its
    own."""

    def __init__(self, backend: Backend, middlewares: Iterable[Middleware]) -> None:
        own = backend.middlewares if isinstance(backend, Model) else ()
        self.backend: Backend = backend.backend if isinstance(backend, Model) else backend
        """The innermost backend."""
        self.middlewares: tuple[Middleware, ...] = (*middlewares, *own)
        """The outermost first."""
        ask: Ask = self.backend.stream
        for middleware in reversed(self.middlewares):
            ask = partial(middleware.stream, ask=ask)
        self._ask = ask

    @property
    def model(self) -> str:
        """The backend's address."""
        return self.backend.model

    @property
    def abilities(self) -> Abilities:
        """The backend's abilities."""
        return self.backend.abilities

    def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        """Give the reply, through all middlewares."""
        return self._ask(request)

    async def aclose(self) -> None:
        """Close the backend."""
        await self.backend.aclose()
