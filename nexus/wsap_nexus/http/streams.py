"""Which event streams are open, and whose: clients without a token can't take them all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from fastapi import Response
from typing_extensions import override

from wsap_nexus.http.auth import Caller
from wsap_nexus.http.guard import HttpLimits, Receive, Scope, Send
from wsap_nexus.http.refusals import TooManyStreamsError


class Streams:
    """The open event streams of a nexus.

    Args:
        limits: how many there may be.
    """

    def __init__(self, limits: HttpLimits) -> None:
        self._limits = limits
        self._open: Counter[str] = Counter()

    @property
    def count(self) -> int:
        """Open streams."""
        return self._open.total()

    @contextmanager
    def hold(self, who: Caller | None) -> Iterator[None]:
        """Count a stream of a caller while it is open. All callers without a token count as one.

        Raises:
            TooManyStreamsError: the caller has as many as it may have, or all are taken.
        """
        most, name = self._limits.streams, "" if who is None else who.name
        if who is None or who.agent_id is not None:
            most -= most // 4
            if self._open[name] >= self._limits.streams_each:
                whose = "without a token" if who is None else f"of {who.agent_id!r}"
                raise TooManyStreamsError(f"{self._open[name]} streams {whose} are open already; close some of them.")
        if self.count >= most:
            raise TooManyStreamsError(f"{self.count} streams are open already; try again later.")
        self._open[name] += 1
        try:
            yield
        finally:
            self._open[name] -= 1
            self._open += Counter()  # drops the names that have none


class HeldStream(Response):
    """A streaming response that counts while it is sent.

    Args:
        stream: the response.
        streams: where it counts.
        who: the caller.
    """

    def __init__(self, stream: Response, streams: Streams, who: Caller | None) -> None:
        super().__init__()
        self._stream = stream
        self._streams = streams
        self._who = who

    @override
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._streams.hold(self._who):
            await self._stream(scope, receive, send)
