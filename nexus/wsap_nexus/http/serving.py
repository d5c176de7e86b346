"""Runs an application on a socket in the event loop of the caller, until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator

import uvicorn
from typing_extensions import override

from wsap_core.errors import WsapError
from wsap_nexus.http.guard import App, HttpLimits
from wsap_nexus.http.listening import url_of
from wsap_nexus.http.shutdown import end_requests
from wsap_nexus.http.timeouts import protocol_with


class _Server(uvicorn.Server):
    """Reports when it is ready and when it shuts down."""

    def __init__(
        self, config: uvicorn.Config, ready: Callable[[], None], over: Callable[[], None], *, signals: bool
    ) -> None:
        super().__init__(config)
        self._ready = ready
        self._over = over
        self._signals = signals

    @contextlib.contextmanager
    @override
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the caller unless they are to stop it; uvicorn raises them again at the end."""
        with super().capture_signals() if self._signals else contextlib.nullcontext():
            yield

    @override
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    @override
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._over()
        await super().shutdown(sockets)


class HttpServer:
    """An application that answers requests on a socket.

    Args:
        app: the ASGI application, behind a `Guard`.
        listening: from `wsap_nexus.http.listening.listen`; the caller closes it.
        until: set to stop: open requests are then ended; None to go on until `end`, or the task is cancelled.
        ready: called with the URL once requests are answered.
        over: called when it begins to shut down, to let go of whoever waits.
        stopping: what requests are answered that are open for a second more; see `end_requests`.
        signals: whether Ctrl-C and SIGTERM stop it, and are raised again then; else they are the caller's.
    """

    def __init__(
        self,
        app: App,
        listening: socket.socket,
        limits: HttpLimits,
        *,
        until: asyncio.Event | None = None,
        ready: Callable[[str], None] | None = None,
        over: Callable[[], None] = lambda: None,
        stopping: WsapError | None = None,
        signals: bool = False,
    ) -> None:
        self._listening = listening
        self._until = until
        url = url_of(*listening.getsockname()[:2])
        config = uvicorn.Config(
            app if until is None else end_requests(app, until, stopping),
            http=protocol_with(limits),
            ws="none",
            log_level="warning",
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=2,
            server_header=False,
        )
        self._server = _Server(config, lambda: ready(url) if ready is not None else None, over, signals=signals)

    def end(self) -> None:
        """Stop soon: requests that are being answered get two seconds."""
        self._server.should_exit = True

    async def run(self) -> None:
        """Answer requests until it is stopped."""
        ending = None if self._until is None else asyncio.create_task(self._end_when_set(self._until))
        try:
            await self._server.serve(sockets=[self._listening])
        finally:
            if ending is not None:
                ending.cancel()

    async def _end_when_set(self, until: asyncio.Event) -> None:
        await until.wait()
        self.end()
