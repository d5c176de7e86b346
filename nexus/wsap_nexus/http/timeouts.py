"""How long a connection may take to say what it wants, and how many there may be.

uvicorn itself waits for the head of a request for ever, and takes connections until the process may open no more
files, its database's among them.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

from wsap_core.protocol.wire import dumps
from wsap_nexus.http.errors import error_body
from wsap_nexus.http.guard import HttpLimits
from wsap_nexus.http.refusals import TooManyConnectionsError

OWN_FILES = 256
"""Open files that are left to the nexus itself: its database, its workers, the games that it asks."""
MOST = 10_000
"""Connections that there are at most, however many files a process may open."""


def most_connections() -> int:
    """Return how many connections there may be, by how many files the system lets this process open."""
    try:
        import resource
    except ImportError:  # Windows, where sockets don't count as files
        return MOST
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return MOST if files == resource.RLIM_INFINITY else min(MOST, max(OWN_FILES // 4, files - OWN_FILES))


def protocol_with(limits: HttpLimits) -> type[TimeoutProtocol]:
    """Return the protocol of connections that keeps to these limits."""
    most = most_connections() if limits.connections is None else limits.connections
    return type("LimitedProtocol", (TimeoutProtocol,), {"head_seconds": limits.head_seconds, "most": most})


class TimeoutProtocol(H11Protocol):
    """HTTP/1.1 that closes connections on which no request comes, and those that are too many."""

    head_seconds = HttpLimits.head_seconds
    most = MOST
    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request; one connection too many is told so and closed."""
        super().connection_made(transport)
        if len(self.connections) > self.most:
            transport.write(_too_many())
            transport.close()
            return
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Take in what came; wait on while it is no whole head."""
        super().data_received(data)
        # h11's sentinels are told apart by name, so that h11 stays uvicorn's affair.
        if repr(self.conn.their_state) == "IDLE":
            self._wait()
        else:
            self._came()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
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
    message = "As many connections are open as may be; close some, or wait a moment."
    body = dumps(error_body(error.code, message, retry=error.retryable)).encode()
    head = (
        f"HTTP/1.1 {error.http_status} Service Unavailable\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nRetry-After: 1\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body
