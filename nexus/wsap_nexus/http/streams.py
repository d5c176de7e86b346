"""Streams of server-sent events, limited so that clients without a token can't use up all of them."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from fastapi import Response
from typing_extensions import override

from wsap_nexus.http.access.auth import Caller
from wsap_nexus.http.access.guard import HttpLimits, Message, Receive, Scope, Send
from wsap_nexus.http.refusals import TooManyStreamsError
from wsap_nexus.tasks import ended

_LOG = logging.getLogger("wsap_nexus.server")
_RETRY = "retry: 1000\n\n"
"""Milliseconds until a client reconnects."""


class Bell:
    """Wakes streams that wait for events."""

    def __init__(self) -> None:
        self._fresh = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def fresh(self) -> asyncio.Event:
        """Return an event that the next ring sets; call this before reading, so that no ring is missed."""
        self._loop = asyncio.get_running_loop()
        return self._fresh

    def ring(self) -> None:
        """Wake all waiting streams; thread-safe."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._ring)

    def _ring(self) -> None:
        fresh, self._fresh = self._fresh, asyncio.Event()
        fresh.set()


class EventStream(Response):
    """A response of server-sent events with heartbeats, counted among the caller's open streams.

    It ends if the client reads nothing for too long; the client can continue from its last event. `later` waits for the
    next events and returns their text, None at the end; it can be cancelled while it waits, and is then called again.
    `during` is entered for as long as the stream is open.
    """

    def __init__(
        self,
        later: Callable[[], Awaitable[str | None]],
        streams: Streams,
        who: Caller | None,
        during: AbstractContextManager[object] | None = None,
    ) -> None:
        super().__init__(
            media_type="text/event-stream", headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        )
        del self.headers["content-length"]
        self._later = later
        self._streams, self._who = streams, who
        self._during = during or nullcontext()
        self._limits = streams.limits

    @override
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._streams.hold(self._who), self._during:
            await self._send(receive, send)

    async def _send(self, receive: Receive, send: Send) -> None:
        sending = asyncio.ensure_future(self._run(send))
        gone = asyncio.ensure_future(_gone(receive))
        try:
            await asyncio.wait({sending, gone}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done() and not sending.cancelled():
                sending.result()
        except (TimeoutError, OSError) as error:
            _LOG.debug("A stream of events ended: %r", error)  # the client is slow or gone
        finally:
            await ended(sending, gone)

    async def _run(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        await self._say(send, ": hello\n" + _RETRY)
        while True:
            try:
                async with asyncio.timeout(self._limits.heartbeat):
                    text = await self._later()
            except TimeoutError:
                text = ": still here\n\n"
            if text is None:
                break
            await self._say(send, text)
        await send({"type": "http.response.body", "body": b""})

    async def _say(self, send: Send, text: str) -> None:
        async with asyncio.timeout(self._limits.send_seconds):
            await send({"type": "http.response.body", "body": text.encode(), "more_body": True})


async def _gone(receive: Receive) -> None:
    message: Message = {}
    while message.get("type") != "http.disconnect":
        message = await receive()


class Streams:
    """The open event streams of a nexus."""

    def __init__(self, limits: HttpLimits) -> None:
        self.limits = limits
        self._open: Counter[str] = Counter()

    @property
    def count(self) -> int:
        """Open streams."""
        return self._open.total()

    @contextmanager
    def hold(self, who: Caller | None) -> Iterator[None]:
        """Count an open stream; all callers without a token count as one. TooManyStreamsError if a limit is reached."""
        most, name = self.limits.streams, "" if who is None else who.name
        if who is None or who.agent_id is not None:
            most -= most // 4
            if self._open[name] >= self.limits.streams_each:
                whose = "without a token" if who is None else f"of {who.agent_id!r}"
                raise TooManyStreamsError(f"{self._open[name]} streams {whose} are open; close some of them.")
        if self.count >= most:
            raise TooManyStreamsError(f"{self.count} streams are open; try again later.")
        self._open[name] += 1
        try:
            yield
        finally:
            self._open[name] -= 1
            self._open += Counter()  # drops names without streams
