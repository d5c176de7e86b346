"""Middleware between an agent and a backend; `Model` wraps a backend with it.

Count         adds up an agent's usage
Record        records replies, and replays recorded ones; `Replayed` replaces a model that may not be asked
CheckDecision, CheckBudgets   refuse requests that could exceed a limit in tokens, cost or calls
Retry         retries after transient errors
RateLimit     limits requests a minute
InTurn        limits the requests in flight to a server
Drain         stops sending while requests in flight are awaited
Measure       measures tokens and seconds by model
Show          shows an agent's replies while they are written

`wsap_llm.backends.pool` defines the order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import partial
from typing import Protocol, TypeAlias

from wsap_core.errors import WsapError
from wsap_core.seams.model import Abilities, Backend, OnText, Reply, Request
from wsap_core.seams.model_errors import BackendError, BackendTimeoutError, ServerFailedError
from wsap_core.untrusted import error_line, raised_at

Ask: TypeAlias = Callable[[Request, OnText | None], Awaitable[Reply]]
"""Passes a request on and returns the reply, as `Backend.complete` does."""


class Middleware(Protocol):
    """A step in the processing of each request between an agent and a backend."""

    async def __call__(self, request: Request, on_text: OnText | None, ask: Ask) -> Reply:
        """Return the reply. `ask` passes a request on and may be called any number of times."""


class Model:
    """A backend wrapped in middleware, the outermost first; if it is a `Model`, outside its own middleware."""

    def __init__(self, backend: Backend, middlewares: Iterable[Middleware]) -> None:
        own = backend.middlewares if isinstance(backend, Model) else ()
        self.backend: Backend = backend.backend if isinstance(backend, Model) else backend
        """The innermost backend."""
        self.middlewares: tuple[Middleware, ...] = (*middlewares, *own)
        """The outermost first."""
        ask: Ask = self._complete
        for middleware in reversed(self.middlewares):
            ask = partial(middleware, ask=ask)
        self._ask = ask

    @property
    def model(self) -> str:
        """The backend's address."""
        return self.backend.model

    @property
    def abilities(self) -> Abilities:
        """The backend's abilities."""
        with backend_blamed(self.backend):
            return self.backend.abilities

    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Return the reply, through all middleware."""
        return await self._ask(request, on_text)

    async def aclose(self) -> None:
        """Close the backend."""
        await self.backend.aclose()

    async def _complete(self, request: Request, on_text: OnText | None) -> Reply:
        async with _SENDING.get()():
            with backend_blamed(self.backend):
                reply: object = await self.backend.complete(request, on_text if _STREAMED.get() else None)
        if not isinstance(reply, Reply):
            raise BackendError(f"The backend of {self.backend.model} returned a {type(reply).__name__}, not a Reply.")
        return reply


_SENDING: ContextVar[Callable[[], AbstractAsyncContextManager[None]]] = ContextVar("sending", default=nullcontext)


@contextmanager
def each_sent(within: Callable[[], AbstractAsyncContextManager[None]]) -> Iterator[None]:
    """Have each request of a `Model` in the block, at each of its tries, sent within a context: entered when its turn
    has come and no limit keeps it back, and left with the reply."""
    before = _SENDING.set(within)
    try:
        yield
    finally:
        _SENDING.reset(before)


_STREAMED: ContextVar[bool] = ContextVar("streamed", default=True)


@contextmanager
def streamed(wanted: bool) -> Iterator[None]:
    """Have replies of a `Model` in the block shown while they are written only if `wanted`; why a request waits is
    always shown."""
    before = _STREAMED.set(wanted)
    try:
        yield
    finally:
        _STREAMED.reset(before)


@contextmanager
def backend_blamed(backend: Backend) -> Iterator[None]:
    """Turn any exception of a backend within the block that is no WsapError into a BackendError that names its model.

    Otherwise it would be taken for a failure of the agent or game that asks the model.
    """
    try:
        yield
    except WsapError:
        raise
    except TimeoutError as error:
        raise BackendTimeoutError(_raised(backend, error)) from error
    except ConnectionError as error:
        raise ServerFailedError(_raised(backend, error)) from error
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise BackendError(_raised(backend, error)) from error  # something of its own was cancelled
    except (Exception, SystemExit) as error:
        raise BackendError(_raised(backend, error)) from error


def _raised(backend: Backend, error: BaseException) -> str:
    return f"The backend of {backend.model} raised {error_line(error, kind=True)}{raised_at(error)}"
