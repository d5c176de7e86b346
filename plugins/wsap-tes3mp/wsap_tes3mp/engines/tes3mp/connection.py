"""The connection to the script in the server: JSON lines over TCP or through a folder, with requests and events."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import logging
import math
import os
import re
import secrets
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from pydantic import JsonValue

from wsap_core.seams.clock import Clock
from wsap_tes3mp.protocol.errors import BridgeUnavailableError

SCRIPT_PROTOCOL = 1
"""The version of the protocol between connector and script."""
LONGEST = 256 * 1024
"""Maximum bytes of a line; longer ones are dropped."""
UNREAD = 1024 * 1024
"""Maximum bytes queued for a server that does not read."""
_UNREAD_FILES = 64
_BEAT = 0.05
_STALE = 3600.0
_BAD_REPLY = {"code": "BAD_REPLY", "message": "The script's reply holds neither a result nor an error."}
_LOG = logging.getLogger(__name__)
Facts = Mapping[str, JsonValue]


class LineReader:
    """Splits bytes into lines; drops lines that are too long, and never buffers more than the longest line."""

    def __init__(self, longest: int = LONGEST) -> None:
        self._longest = longest
        self._rest: bytearray | None = bytearray()  # None while skipping a line that is too long

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines now complete, without their line breaks."""
        found: list[bytes] = []
        for index, piece in enumerate(data.split(b"\n")):
            if index:
                found += [] if self._rest is None else [bytes(self._rest)]
                self._rest = bytearray()
            if self._rest is not None and len(self._rest) + len(piece) <= self._longest:
                self._rest += piece
            else:
                self._rest = None
        return found


def read_object(line: bytes) -> dict[str, JsonValue] | None:
    """Return the JSON object in a line; None if there is none. Non-finite numbers become None."""

    def finite(text: str) -> float | None:
        return value if math.isfinite(value := float(text)) else None

    try:
        found = json.loads(line.decode("utf-8", "replace"), parse_constant=lambda _: None, parse_float=finite)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


class TcpLink:
    """A connection to the script's port; made by `open_link`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    def send(self, line: Facts) -> None:
        """Send a line, once; after an `OSError` it was certainly not sent."""
        if self._writer.is_closing() or self._reader.at_eof():
            raise ConnectionError("the connection is closed")
        if self._writer.transport.get_write_buffer_size() > UNREAD:
            raise ConnectionError("the server does not read what it is sent")
        self._writer.write(_encode(line))

    async def receive(self) -> bytes:
        """Wait for bytes from the script; b"" at the end, `OSError` if the link is broken."""
        return await self._reader.read(65536)

    def close(self) -> None:
        """Close it; idempotent."""
        with contextlib.suppress(RuntimeError):  # the loop may already be closed
            self._writer.transport.abort()


class MailboxLink:
    """A link through a folder. Its name is in the file `hello`, its bytes in `NAME.in.1`, `NAME.in.2`, ..., the
    script's in `NAME.out.1`, ...; an empty file is the end. Files appear by renaming, and their reader deletes them.
    """

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder, self._clock = folder, clock
        self._name = secrets.token_hex(8)
        self._sent, self._read = 0, 0
        self._closed = False
        for path in folder.glob("*.*.*"):
            old = re.fullmatch(r"[0-9a-f]{16}\.(in|out|new)\.\d+", path.name)
            if old and time.time() - path.stat().st_mtime > _STALE:
                path.unlink(missing_ok=True)  # of an interrupted connection
        self._put("hello", self._name.encode())

    def _put(self, name: str, data: bytes) -> None:
        new = self._folder / f"{self._name}.new.0"
        new.unlink(missing_ok=True)
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o660), "wb") as file:
            file.write(data)
        if os.name == "posix":
            new.chmod(0o660)  # whatever the umask: the server may run as another user of the folder's group
        new.replace(self._folder / name)

    def send(self, line: Facts) -> None:
        """Write a line, once; after an `OSError` it was certainly not written."""
        if self._closed:
            raise ConnectionError("the connection is closed")
        if (self._folder / f"{self._name}.in.{self._sent - _UNREAD_FILES}").exists():
            raise ConnectionError("the server does not read what it is sent")
        self._put(f"{self._name}.in.{self._sent + 1}", _encode(line))
        self._sent += 1

    async def receive(self) -> bytes:
        """Wait for the script's next file."""
        path = self._folder / f"{self._name}.out.{self._read + 1}"
        while not path.exists():
            await self._clock.sleep(_BEAT)
        data = path.read_bytes()
        path.unlink()
        self._read += 1
        return data

    def close(self) -> None:
        """Write the end, or take everything back if the server has not noticed; idempotent."""
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(OSError):
            if self._is_unnoticed():
                for number in range(1, self._sent + 1):
                    (self._folder / f"{self._name}.in.{number}").unlink(missing_ok=True)
            else:
                self._put(f"{self._name}.in.{self._sent + 1}", b"")

    def _is_unnoticed(self) -> bool:
        """Whether the hello still lies there; it is taken back then, so that the token in the first line does not stay
        behind while the server is down."""
        hello = self._folder / "hello"
        if self._read or not hello.exists() or hello.read_bytes() != self._name.encode():
            return False
        hello.unlink()
        return True


Link = TcpLink | MailboxLink
"""A connection to the script."""


def _encode(line: Facts) -> bytes:
    return json.dumps(line, separators=(",", ":"), allow_nan=False).encode() + b"\n"


async def open_link(address: str, clock: Clock) -> Link:
    """Return a link to `HOST:PORT`, or through a folder if the address has a slash or a backslash."""
    if "/" in address or "\\" in address:
        return MailboxLink(Path(address), clock)
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    return TcpLink(reader, writer)


class RefusedError(Exception):
    """The script refuses the connection; the text is its reason: token, version or busy."""


class ScriptError(Exception):
    """The script answered a request with an error."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Connection:
    """Requests and replies over one link, until it breaks; needs a running event loop. `on_event` gets each event."""

    def __init__(self, link: Link, on_event: Callable[[Facts], None]) -> None:
        self._link = link
        self._on_event = on_event
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Facts]] = {}
        self._closed = False
        self._malformed = 0
        self.boot = ""
        """Identifies this run of the server, once the script has welcomed the connection."""
        self.welcomed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Raises `RefusedError` if the script refuses, `ConnectionError` if no script answers."""

    async def read(self, token: str) -> None:
        """Say hello and handle welcome, replies and events until the link ends or breaks (`OSError`), then close."""
        reader = LineReader()
        try:
            self._link.send({"hello": {"token": token, "version": SCRIPT_PROTOCOL}})
            while data := await self._link.receive():
                for line in reader.feed(data):
                    self._take(line)
        finally:
            self.close()

    def request(self, op: str, fields: Facts | None = None) -> asyncio.Future[Facts]:
        """Send a request, once, before this returns; the future gets the reply.

        The future raises `ScriptError` if the reply is an error, `BridgeUnavailableError` if the link breaks first.

        Raises:
            BridgeUnavailableError: it was certainly not sent.
        """
        number = next(self._numbers)
        try:
            if self._closed:
                raise ConnectionError("the connection is closed")
            self._link.send({"id": number, "op": op, **(fields or {})})
        except OSError as error:
            raise BridgeUnavailableError(f"Nothing was sent to the TES3MP server: {error}.") from error
        reply = self._waiting[number] = asyncio.get_running_loop().create_future()

        def forget(done: asyncio.Future[Facts]) -> None:
            self._waiting.pop(number, None)
            if not done.cancelled():
                done.exception()  # marks it as retrieved: the requester may be gone

        reply.add_done_callback(forget)
        return reply

    def _take(self, line: bytes) -> None:
        said = read_object(line)
        if not self.welcomed.done():
            self._welcome(said or {})
        elif said is None:
            self._drop("not a JSON object")
        elif "event" in said:
            self._on_event(said)
        elif type(number := said.get("re")) is not int:
            self._drop("neither reply nor event")
        elif (reply := self._waiting.get(number)) is not None and not reply.done():
            if isinstance(answer := said.get("ok"), dict):
                reply.set_result(answer)
            else:
                told = said.get("error")
                problem = told if isinstance(told, dict) else _BAD_REPLY
                code, message = str(problem.get("code", "UNKNOWN"))[:60], str(problem.get("message", ""))[:300]
                reply.set_exception(ScriptError(code, message))

    def _welcome(self, said: Facts) -> None:
        found = said.get("welcome")
        boot = found.get("boot") if isinstance(found, dict) else None
        if "refused" in said:
            self.welcomed.set_exception(RefusedError(str(said["refused"])[:40]))
        elif isinstance(boot, str) and boot:
            self.boot = boot[:100]
            self.welcomed.set_result(None)
        else:
            self.welcomed.set_exception(ConnectionError("the server there is not a WSAP script"))

    def _drop(self, what: str) -> None:
        self._malformed += 1
        if self._malformed in (1, 10, 100, 1000):
            _LOG.warning("Dropped %d lines of the TES3MP script; the last one is %s.", self._malformed, what)

    def close(self) -> None:
        """End the connection and fail all pending requests; idempotent."""
        self._closed = True
        self._link.close()
        if not self.welcomed.done():
            self.welcomed.set_exception(ConnectionError("the server closed the connection without a welcome"))
        for reply in list(self._waiting.values()):
            if not reply.done():
                reply.set_exception(BridgeUnavailableError("The connection to the TES3MP server broke."))
