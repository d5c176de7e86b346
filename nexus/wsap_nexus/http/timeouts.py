"""Connection timeouts and limits.

uvicorn itself waits for the head of a request without limit, and accepts connections until the process can open no
more files, not even its database.
"""

from __future__ import annotations

import asyncio

from typing_extensions import override
from uvicorn.protocols.http.h11_impl import H11Protocol

from wsap_core.protocol.wire import dumps
from wsap_nexus.http.errors import error_body
from wsap_nexus.http.guard import HttpLimits
from wsap_nexus.http.refusals import TooManyConnectionsError

OWN_FILES = 256
"""Open files reserved for the nexus itself: its database, its workers, remote games."""
KEEP_ALIVE = 30
"""Seconds until an idle connection is closed: well over the 5 s for which clients keep theirs, or a request would now
and then meet the end of its connection."""
MOST = 10_000
"""Most connections, however many files a process may open."""


def most_connections() -> int:
    """Return the limit of connections, by the number of files that this process may open."""
    try:
        import resource
    except ImportError:  # Windows, where sockets do not count as files
        return MOST
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return MOST if files == resource.RLIM_INFINITY else min(MOST, max(OWN_FILES // 4, files - OWN_FILES))


def protocol_with(limits: HttpLimits) -> type[TimeoutProtocol]:
    """Return a protocol class for uvicorn that enforces these limits."""
    most = most_connections() if limits.connections is None else limits.connections
    return type("LimitedProtocol", (TimeoutProtocol,), {"head_seconds": limits.head_seconds, "most": most})


class TimeoutProtocol(H11Protocol):
    """HTTP/1.1 that closes connections without a request, and those beyond the limit."""

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
    message = "As many connections are open as may be; close some, or wait a moment."
    body = dumps(error_body(error.code, message, retry=error.retryable)).encode()
    head = (
        f"HTTP/1.1 {error.http_status} Service Unavailable\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nRetry-After: 1\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body
