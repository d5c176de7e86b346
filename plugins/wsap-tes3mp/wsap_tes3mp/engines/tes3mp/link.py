"""Lines to and from the script in the server: over TCP, or through a folder that both can write."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import re
import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from pydantic import JsonValue
from typing_extensions import override

from wsap_core.seams.clock import Clock

LONGEST = 256 * 1024
"""Most bytes of a line; a longer one is dropped."""
UNREAD = 1024 * 1024
"""Most bytes that may wait for a server that does not read."""
_UNREAD_FILES = 64
_BEAT = 0.05
_STALE = 3600.0


class LineReader:
    """Cuts bytes into lines; drops lines that are too long, and holds no more than one such line."""

    def __init__(self, longest: int = LONGEST) -> None:
        self._longest = longest
        self._rest = bytearray()
        self._skipping = False

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
        """Hand a line over, once; after an `OSError` it was certainly not sent."""

    async def receive(self) -> bytes:
        """Wait for bytes from the script; none at its end, `OSError` if the link is broken."""

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


class MailboxLink(Link):
    """A folder that the script reads, too: a new one is named in `hello`, its bytes are `NAME.in.1`, `NAME.in.2`, ...,
    the script's `NAME.out.1`, ...; an empty file is the end. Files appear by renaming; who reads them removes them.
    """

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder, self._clock = folder, clock
        self._name = secrets.token_hex(8)
        self._sent, self._read = 0, 0
        self._closed = False
        for path in folder.glob("*.*.*"):
            old = re.fullmatch(r"[0-9a-f]{16}\.(in|out|new)\.\d+", path.name)
            if old and time.time() - path.stat().st_mtime > _STALE:
                path.unlink(missing_ok=True)  # of a connection that met no script, or was cut short
        self._put("hello", self._name.encode())

    def _put(self, name: str, data: bytes) -> None:
        new = self._folder / f"{self._name}.new.0"
        new.write_bytes(data)
        new.replace(self._folder / name)

    @override
    def send(self, line: Mapping[str, JsonValue]) -> None:
        if self._closed:
            raise ConnectionError("the connection is closed")
        if (self._folder / f"{self._name}.in.{self._sent - _UNREAD_FILES}").exists():
            raise ConnectionError("the server does not read what it is sent")
        self._put(f"{self._name}.in.{self._sent + 1}", _encode(line))
        self._sent += 1

    @override
    async def receive(self) -> bytes:
        path = self._folder / f"{self._name}.out.{self._read + 1}"
        while not path.exists():
            await self._clock.sleep(_BEAT)
        data = path.read_bytes()
        path.unlink()
        self._read += 1
        return data

    @override
    def close(self) -> None:
        if not self._closed:
            self._closed = True
            with contextlib.suppress(OSError):
                self._put(f"{self._name}.in.{self._sent + 1}", b"")


def _encode(line: Mapping[str, JsonValue]) -> bytes:
    return json.dumps(line, separators=(",", ":"), allow_nan=False).encode() + b"\n"


async def open_link(address: str, clock: Clock) -> Link:
    """Return a link to `HOST:PORT`, or through a folder: an address with a slash or a backslash is one."""
    if "/" in address or "\\" in address:
        return MailboxLink(Path(address), clock)
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    return TcpLink(reader, writer)
