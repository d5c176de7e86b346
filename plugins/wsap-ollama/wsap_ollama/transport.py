"""The connections below Ollama's client: as many as are asked for, with a limit on what an answer may hold."""

from __future__ import annotations

import codecs
from collections.abc import AsyncIterator

import httpx


class TooLongError(Exception):
    """The server sent more than an answer may hold."""


class Guard(httpx.AsyncBaseTransport):
    """Passes requests on, and refuses answers that are too long or not UTF-8.

    httpx replaces bytes that it can't decode when lines are read, so that a spoiled reply would go
    unnoticed.

    Args:
        most: bytes that an answer may hold.
    """

    def __init__(self, most: int) -> None:
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
        self._inner = httpx.AsyncHTTPTransport(limits=limits)
        self._most = most

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Return the answer, its body guarded."""
        response = await self._inner.handle_async_request(request)
        assert isinstance(response.stream, httpx.AsyncByteStream)
        response.stream = _Guarded(response.stream, self._most)
        return response

    async def aclose(self) -> None:
        """Close all connections."""
        await self._inner.aclose()


class _Guarded(httpx.AsyncByteStream):
    def __init__(self, inner: httpx.AsyncByteStream, most: int) -> None:
        self._inner = inner
        self._most = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        decoder = codecs.getincrementaldecoder("utf-8")()
        async for piece in self._inner:
            size += len(piece)
            if size > self._most:
                raise TooLongError
            decoder.decode(piece)
            yield piece
        decoder.decode(b"", final=True)

    async def aclose(self) -> None:
        await self._inner.aclose()
