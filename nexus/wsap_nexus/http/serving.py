"""Serves an application on a socket in the caller's event loop.

uvicorn itself waits for the head of a request without limit, and accepts connections until the process can't open
files any more, not even its database. Here a `Door` counts connections before it accepts them, and one on which no
request has come gives way to a newer one. Open requests are ended when the server stops, so that clients do not delay
it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import sys
import time
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any

import uvicorn
from typing_extensions import override
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from wsap_core.errors import WsapError
from wsap_core.protocol.wire import dumps
from wsap_nexus.http.access.guard import App, HttpLimits, Message
from wsap_nexus.http.errors import error_body, of_error
from wsap_nexus.http.listening import url_of
from wsap_nexus.http.refusals import NexusStoppingError, TooManyConnectionsError
from wsap_nexus.tasks import ended

_LOG = logging.getLogger("wsap_nexus.server")


class _Server(uvicorn.Server):
    """Accepts connections through a `Door`, and reports when it is ready and when it shuts down."""

    def __init__(
        self,
        config: uvicorn.Config,
        door: Door,
        ready: Callable[[], None],
        over: Callable[[], None],
        *,
        signals: bool,
    ) -> None:
        super().__init__(config)
        self._door = door
        self._accepting: list[asyncio.Task[None]] = []
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
        await super().startup([])  # it would accept by itself
        kind: Any = self.config.http_protocol_class  # Any: the class given as `http`, which uvicorn types loosely
        make = partial(kind, config=self.config, server_state=self.server_state, app_state=self.lifespan.state)
        for listening in sockets or []:
            self._accepting.append(asyncio.create_task(self._door.accept(listening, make), name="accepting"))
        self._ready()

    @override
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._over()
        await ended(*self._accepting)
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
        door = Door(most_connections() if limits.connections is None else limits.connections)
        config = uvicorn.Config(
            app if until is None else end_requests(app, until, stopping),
            http=protocol_with(limits, door),
            ws="none",
            log_level="warning",
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=2,
            server_header=False,
        )
        self._server = _Server(config, door, lambda: ready(url) if ready is not None else None, over, signals=signals)

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
FILES = 65_536
"""The limit of open files that a server asks the system for, if the system allows so many."""
_TOGETHER = 64
# The most connections accepted between two turns of the event loop.
_SPARE = 16
# The most connections beyond the limit, on which only a refusal is sent.


def raise_file_limit() -> None:
    """Raise this process' limit of open files to what the system allows it, up to `FILES`; it is inherited."""
    try:
        import resource
    except ImportError:  # Windows, where sockets do not count as files
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if hard == resource.RLIM_INFINITY else min(hard, FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(ValueError, OSError):  # some systems allow less than they say
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def most_connections() -> int:
    """Return the limit of connections that follows from this process' limit of open files."""
    try:
        import resource
    except ImportError:  # Windows, where sockets do not count as files
        return MOST
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if files == resource.RLIM_INFINITY:
        return MOST
    return min(MOST, max(min(OWN_FILES // 4, files // 4), files - OWN_FILES))


class Door:
    """Accepts connections, so that at most `most` are open, and few more on which a refusal is being sent.

    At the limit, the oldest connection without a whole request on it is closed for a new one: one on which nothing was
    sent, part of a head, or, without a token, part of a body. So whoever holds connections keeps nobody out who asks.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._open = 0
        self._idle: dict[TimeoutProtocol, None] = {}  # in the order in which they became idle
        self._closed = asyncio.Event()
        self._opening: set[asyncio.Task[None]] = set()

    async def accept(self, listening: socket.socket, make: Callable[[], asyncio.Protocol]) -> None:
        """Accept connections until cancelled."""
        listening.setblocking(False)
        together = max(1, min(_TOGETHER, self.most // 4))
        accepted = 0
        while True:
            while self._open >= self.most + min(_SPARE, self.most):
                self._closed.clear()
                await self._closed.wait()
            try:
                connection = await _accepted(listening)
            except OSError as error:  # the client is gone, or files are lacking in spite of the limit
                _LOG.debug("A connection was not accepted: %s", error)
                await asyncio.sleep(0.1)
                continue
            self._open += 1
            opening = asyncio.create_task(self._let_in(connection, make))
            self._opening.add(opening)
            opening.add_done_callback(self._opening.discard)
            accepted += 1
            if accepted % together == 0:
                await asyncio.sleep(0)  # others have their turn

    async def _let_in(self, connection: socket.socket, make: Callable[[], asyncio.Protocol]) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(make, connection)
        except OSError:  # it is gone
            connection.close()
            self.left(None)

    def entered(self, protocol: TimeoutProtocol) -> bool:
        """Make room for a new connection; return False if there is none, so that it must be refused."""
        if self._open > self.most:
            oldest = next(iter(self._idle), None)
            if oldest is None:
                return False
            oldest.give_way()
        self._idle[protocol] = None
        return True

    def idles(self, protocol: TimeoutProtocol, idle: bool) -> None:
        """Note whether a connection waits for a request."""
        if not idle:
            self._idle.pop(protocol, None)
        elif not protocol.transport.is_closing():
            self._idle.setdefault(protocol)

    def left(self, protocol: TimeoutProtocol | None) -> None:
        """Note that a connection is closed."""
        if protocol is not None:
            self._idle.pop(protocol, None)
        self._open -= 1
        self._closed.set()


def protocol_with(limits: HttpLimits, door: Door) -> type[TimeoutProtocol]:
    """Return a protocol class for uvicorn with these limits."""
    return type("LimitedProtocol", (TimeoutProtocol,), {"head_seconds": limits.head_seconds, "door": door})


class TimeoutProtocol(H11Protocol):
    """HTTP/1.1 that closes connections without a request and connections beyond the limit."""

    head_seconds = HttpLimits.head_seconds
    door: Door
    _late: asyncio.TimerHandle | None = None

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.timeout_keep_alive = KEEP_ALIVE
        if not self.door.entered(self):
            self._refuse()
            return
        self._wait()

    def give_way(self) -> None:
        """Close the connection for a newer one."""
        self.door.idles(self, idle=False)
        if self._cycle is None:
            self._refuse()
        else:  # it waits for another request, and its client expects it to be closed
            self.transport.abort()

    def _refuse(self) -> None:
        self.transport.write(_too_many(int(time.time())))
        self.transport.close()

    @property
    def _cycle(self) -> RequestResponseCycle | None:
        return self.cycle  # None before the first request, contrary to its type

    @property
    def _idle(self) -> bool:
        cycle = self._cycle
        if cycle is None or cycle.response_complete:
            return True
        return cycle.more_body and not any(name == b"authorization" for name, _ in cycle.scope["headers"])

    @override
    def on_response_complete(self) -> None:
        super().on_response_complete()
        self.door.idles(self, self._idle)

    @override
    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self.door.idles(self, self._idle)
        # Comparing h11's sentinels by name avoids importing h11.
        if repr(self.conn.their_state) == "IDLE":
            self._wait()
        else:
            self._came()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._came()
        super().connection_lost(exc)
        self.door.left(self)

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


async def _accepted(listening: socket.socket) -> socket.socket:
    """Return the next connection. `loop.sock_accept` loses one that comes in the moment in which it is cancelled: its
    client waits for an answer."""
    loop = asyncio.get_running_loop()
    if sys.platform == "win32":  # its loop tells of no readers
        return (await loop.sock_accept(listening))[0]
    while True:
        try:
            return listening.accept()[0]
        except BlockingIOError:
            pass
        came = asyncio.Event()
        loop.add_reader(listening, came.set)
        try:
            await came.wait()
        finally:
            loop.remove_reader(listening)


@lru_cache(maxsize=1)
def _too_many(second: int) -> bytes:
    """Return the refusal of a connection, made once a second: many may be refused at once."""
    error = TooManyConnectionsError
    message = "The maximum number of connections is open; close some, or wait a moment."
    body = dumps(error_body(error.code, message, retry=error.retryable)).encode()
    head = (
        f"HTTP/1.1 {error.http_status} Service Unavailable\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nRetry-After: 1\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body
