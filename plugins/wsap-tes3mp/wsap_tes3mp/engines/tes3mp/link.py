"""Lines to and from the script in the server: over TCP, or through a folder that both can write."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
from collections.abc import Mapping
from typing import Protocol

from pydantic import JsonValue
from typing_extensions import override

LONGEST = 256 * 1024
"""Most bytes of a line; a longer one is dropped."""
UNREAD = 1024 * 1024
"""Most bytes that may wait for a server that does not read."""


class LineReader:
    """Cuts bytes into lines; drops lines that are too long, and holds no more than one such line."""

    def __init__(self, longest: int = LONGEST) -> None:
        self._longest = longest
        self._rest = bytearray()
        self._skipping = False
        self.dropped = 0
        """Lines that were too long."""

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that are whole now, without their ends."""
        found: list[bytes] = []
        *whole, rest = data.split(b"\n")
        for piece in whole:
            self._take(piece)
            if not self._skipping:
                found.append(bytes(self._rest))
            self._rest.clear()
            self._skipping = False
        self._take(rest)
        return found

    def _take(self, piece: bytes) -> None:
        if not self._skipping and len(self._rest) + len(piece) > self._longest:
            self._skipping = True
            self.dropped += 1
            self._rest.clear()
        if not self._skipping:
            self._rest += piece


def read_object(line: bytes) -> dict[str, JsonValue] | None:
    """Return the JSON object in a line; None if there is none. Numbers that are not finite become None."""
    try:
        found = json.loads(line.decode("utf-8", "replace"), parse_constant=lambda _: None, parse_float=_finite)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _finite(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


class Link(Protocol):
    """A way to the script and back."""

    def send(self, line: Mapping[str, JsonValue]) -> None:
        """Hand a line over, once.

        Raises:
            OSError: it was certainly not sent.
        """

    async def receive(self) -> bytes:
        """Wait for bytes from the script; none at its end.

        Raises:
            OSError: the link is broken.
        """

    def close(self) -> None:
        """Let go of it; idempotent."""


class TcpLink(Link):
    """A connection to the script's port; made by `open_link`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @override
    def send(self, line: Mapping[str, JsonValue]) -> None:
        if self._writer.is_closing() or self._reader.at_eof():
            raise ConnectionError("the connection is closed")
        if self._writer.transport.get_write_buffer_size() > UNREAD:
            raise ConnectionError("the server does not read what it is sent")
        self._writer.write(_encode(line))

    @override
    async def receive(self) -> bytes:
        return await self._reader.read(65536)

    @override
    def close(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop may be closed already
            self._writer.transport.abort()


def _encode(line: Mapping[str, JsonValue]) -> bytes:
    return json.dumps(line, separators=(",", ":"), allow_nan=False).encode() + b"\n"


async def open_link(address: str) -> Link:
    """Return a link to `HOST:PORT`.

    Raises:
        OSError: nobody listens there.
    """
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    return TcpLink(reader, writer)
