"""Serves an application on a socket in the caller's event loop.

uvicorn itself waits for the head of a request without limit, and accepts connections until the process can't open
files any more, not even its database. Open requests are ended when the server stops, so that clients do not delay it.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn
from typing_extensions import override
from uvicorn.protocols.http.h11_impl import H11Protocol

from wsap_core.errors import WsapError
from wsap_core.protocol.wire import dumps
from wsap_nexus.http.errors import error_body, of_error
from wsap_nexus.http.guard import App, HttpLimits, Message
from wsap_nexus.http.listening import url_of
from wsap_nexus.http.refusals import NexusStoppingError, TooManyConnectionsError


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
        # uvicorn raises the signals again at the end.
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
    """Serves an application on a socket.

    Args:
        app: the ASGI application, behind a `Guard`.
        listening: from `wsap_nexus.http.listening.listen`; the caller closes it.
        until: set to stop and end open requests; None to serve until `end` or cancellation.
        ready: called with the URL once requests are served.
        over: called at the start of the shutdown, to release waiting requests.
        stopping: the error for requests still open a second later; see `end_requests`.
        signals: whether Ctrl-C and SIGTERM stop it, and are then raised again; otherwise the caller handles them.
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
        """Stop, giving open requests two seconds."""
        self._server.should_exit = True

    async def run(self) -> None:
        """Serve until stopped."""
        ending = None if self._until is None else asyncio.create_task(self._end_when_set(self._until))
        try:
            await self._server.serve(sockets=[self._listening])
        finally:
            if ending is not None:
                ending.cancel()

    async def _end_when_set(self, until: asyncio.Event) -> None:
        await until.wait()
        self.end()


GRACE = 1.0
"""Seconds for open requests once the nexus stops."""


def end_requests(app: App, until: asyncio.Event, stopping: WsapError | None = None) -> App:
    """Return an application whose requests end once `until` is set.

    GET requests see a disconnected client, so that open streams end properly and almost complete replies are still
    sent. A request without a reply a second later gets the error `stopping`, by default that the nexus is stopping.
    """
    stopping = stopping or NexusStoppingError(
        "The nexus is stopping; repeat the request later, with the same idempotency key if it has one."
    )
    waiting: set[asyncio.Timeout] = set()
    ending: asyncio.Task[None] | None = None

    async def end() -> None:
        await until.wait()
        for limit in waiting:
            limit.reschedule(asyncio.get_running_loop().time() + GRACE)

    async def wrapped(scope: Any, receive: Any, send: Any) -> None:
        nonlocal ending
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        ending = ending or asyncio.ensure_future(end())
        started = complete = False

        async def receiving() -> Message:
            stopping, received = asyncio.ensure_future(until.wait()), asyncio.ensure_future(receive())
            try:
                await asyncio.wait({stopping, received}, return_when=asyncio.FIRST_COMPLETED)
                return received.result() if received.done() else {"type": "http.disconnect"}
            finally:
                stopping.cancel()
                received.cancel()

        async def sending(message: Message) -> None:
            nonlocal started, complete
            await send(message)
            started = True
            complete = message["type"] == "http.response.body" and not message.get("more_body", False)

        limit = asyncio.timeout(GRACE if until.is_set() else None)
        waiting.add(limit)
        try:
            async with limit:
                await app(scope, receiving if scope["method"] == "GET" else receive, sending)
        except TimeoutError:
            if not limit.expired():
                raise
        finally:
            waiting.discard(limit)
        if not started and limit.expired():
            await of_error(stopping)(scope, receive, send)
        elif started and not complete and until.is_set():
            await send({"type": "http.response.body", "body": b""})

    return wrapped


OWN_FILES = 256
"""Open files reserved for the nexus itself: its database, its workers, remote games."""
KEEP_ALIVE = 30
"""Seconds until an idle connection is closed: well over the 5 s of clients, or requests would sometimes meet a closing
connection."""
MOST = 10_000
"""The maximum number of connections, regardless of the limit of open files."""


def most_connections() -> int:
    """Return the limit of connections that follows from this process' limit of open files."""
    try:
        import resource
    except ImportError:  # Windows, where sockets do not count as files
        return MOST
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return MOST if files == resource.RLIM_INFINITY else min(MOST, max(OWN_FILES // 4, files - OWN_FILES))


def protocol_with(limits: HttpLimits) -> type[TimeoutProtocol]:
    """Return a protocol class for uvicorn with these limits."""
    most = most_connections() if limits.connections is None else limits.connections
    return type("LimitedProtocol", (TimeoutProtocol,), {"head_seconds": limits.head_seconds, "most": most})


class TimeoutProtocol(H11Protocol):
    """HTTP/1.1 that closes connections without a request and connections beyond the limit."""

    head_seconds = HttpLimits.head_seconds
    most = MOST
    _late: asyncio.TimerHandle | None = None

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.timeout_keep_alive = KEEP_ALIVE
        if len(self.connections) > self.most:
            transport.write(_too_many())
            transport.close()
            return
        self._wait()

    @override
    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        # Comparing h11's sentinels by name avoids importing h11.
        if repr(self.conn.their_state) == "IDLE":
            self._wait()
        else:
            self._came()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._came()
        super().connection_lost(exc)

    def _wait(self) -> None:
        if self._late is None:
            self._late = self.loop.call_later(self.head_seconds, self._give_up)

    def _came(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _give_up(self) -> None:
        self._late = None
        if repr(self.conn.their_state) == "IDLE" and not self.transport.is_closing():
            self.transport.close()


def _too_many() -> bytes:
    error = TooManyConnectionsError
    message = "The maximum number of connections is open; close some, or wait a moment."
    body = dumps(error_body(error.code, message, retry=error.retryable)).encode()
    head = (
        f"HTTP/1.1 {error.http_status} Service Unavailable\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nRetry-After: 1\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body
