"""Reading a connection now and then rather than at every byte: what comes in between waits in the system."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    import aiohttp


class Pauses:
    """Pauses in the reading of one response. Leaving the context ends them.

    To be woken for every packet is what costs most in taking a reply in pieces; with hundreds of replies at
    the same time it is all that a process gets done.

    Args:
        answer: whose connection it is.
        seconds: how long a pause is.
    """

    def __init__(self, answer: aiohttp.ClientResponse, seconds: float) -> None:
        self._answer = answer
        self._seconds = seconds
        self._transport: asyncio.Transport | None = None
        self._end: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Read nothing for a while; nothing happens if all of the response is here."""
        connection = self._answer.connection
        transport = connection.transport if connection is not None else None
        if not isinstance(transport, asyncio.Transport) or transport.is_closing() or not transport.is_reading():
            return
        transport.pause_reading()
        self._transport = transport
        self._end = asyncio.get_running_loop().call_later(self._seconds, self._resume)

    def _resume(self) -> None:
        transport, self._transport, self._end = self._transport, None, None
        if transport is not None and not transport.is_closing():
            transport.resume_reading()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._end is not None:
            self._end.cancel()
            self._resume()
