"""How long a connection may take to say what it wants: uvicorn itself waits for the head of a request for ever."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 15.0
"""Within which the head of a request has to come, from the connection or its first byte on."""


class PatientProtocol(H11Protocol):
    """HTTP/1.1 that closes connections on which no request comes."""

    head_seconds = HEAD_SECONDS
    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
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
