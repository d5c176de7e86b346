"""The transport of Ollama's client: unlimited connections, and a limit on the size of answers."""

from __future__ import annotations

import codecs
from collections.abc import AsyncIterator

import httpx


class TooLongError(Exception):
    """An answer exceeds the limit."""


class Guard(httpx.AsyncBaseTransport):
    """Refuses answers of more than `most` bytes, and those that are not UTF-8, whose errors httpx would hide."""

    def __init__(self, most: int) -> None:
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
        self._inner = httpx.AsyncHTTPTransport(limits=limits)
        self._most = most

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Return the answer with a guarded body."""
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
