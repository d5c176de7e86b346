"""One connection to the script: hello and welcome, requests with their replies, events."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Mapping

from pydantic import JsonValue

from wsap_tes3mp.engines.tes3mp.link import LineReader, Link, read_object
from wsap_tes3mp.protocol.errors import BridgeUnavailableError

SCRIPT_PROTOCOL = 1
"""The version of the protocol between connector and script."""
_LOG = logging.getLogger(__name__)
Facts = Mapping[str, JsonValue]


class RefusedError(Exception):
    """The script does not want this connection; the text is its reason: token, version or busy."""


class ScriptError(Exception):
    """The script answered a request with an error."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Connection:
    """Requests and replies over one link, until it breaks; made within an event loop. `on_event` is told each event."""

    def __init__(self, link: Link, on_event: Callable[[Facts], None]) -> None:
        self._link = link
        self._on_event = on_event
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Facts]] = {}
        self._closed = False
        self._malformed = 0
        self.boot = ""
        """Names this run of the server, once the script has welcomed the connection."""
        self.welcomed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Raises `RefusedError` if the script refuses, `ConnectionError` if no script answers."""

    async def read(self, token: str) -> None:
        """Say hello, take welcome, replies and events until the link ends or breaks (`OSError`), then close."""
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

        The future raises `ScriptError` for an error in reply, `BridgeUnavailableError` if the link breaks first.

        Raises:
            BridgeUnavailableError: it certainly was not sent.
        """
        number = next(self._numbers)
        try:
            if self._closed:
                raise ConnectionError("the connection is closed")
            self._link.send({"id": number, "op": op, **(fields or {})})
        except OSError as error:
            raise BridgeUnavailableError(f"Nothing was sent to the TES3MP server: {error}.") from error
        reply: asyncio.Future[Facts] = asyncio.get_running_loop().create_future()
        reply.add_done_callback(lambda done: self._forget(number, done))
        self._waiting[number] = reply
        return reply

    def _forget(self, number: int, reply: asyncio.Future[Facts]) -> None:
        self._waiting.pop(number, None)
        if not reply.cancelled():
            reply.exception()  # whoever asked may be gone: no complaint about an error that nobody took

    def _take(self, line: bytes) -> None:
        said = read_object(line)
        if not self.welcomed.done():
            self._welcome(said or {})
        elif said is None:
            self._drop("no JSON object")
        elif "event" in said:
            self._on_event(said)
        elif type(number := said.get("re")) is not int:
            self._drop("neither reply nor event")
        elif (reply := self._waiting.get(number)) is not None and not reply.done():
            problem, answer = said.get("error"), said.get("ok")
            if isinstance(answer, dict):
                reply.set_result(answer)
            elif isinstance(problem, dict):
                code, message = str(problem.get("code", "UNKNOWN"))[:60], str(problem.get("message", ""))[:300]
                reply.set_exception(ScriptError(code, message))
            else:
                reply.set_exception(ScriptError("BAD_REPLY", "The script's reply holds neither a result nor an error."))

    def _welcome(self, said: Facts) -> None:
        found = said.get("welcome")
        boot = found.get("boot") if isinstance(found, dict) else None
        if "refused" in said:
            self.welcomed.set_exception(RefusedError(str(said["refused"])[:40]))
        elif isinstance(boot, str) and boot:
            self.boot = boot[:100]
            self.welcomed.set_result(None)
        else:
            self.welcomed.set_exception(ConnectionError("what listens there is no WSAP script"))

    def _drop(self, what: str) -> None:
        self._malformed += 1
        if self._malformed in (1, 10, 100, 1000):
            _LOG.warning("The TES3MP script sent %d lines that are dropped; the last is %s.", self._malformed, what)

    def close(self) -> None:
        """End the connection; all who wait are told. Idempotent."""
        self._closed = True
        self._link.close()
        if not self.welcomed.done():
            self.welcomed.set_exception(ConnectionError("the server closed the connection without a welcome"))
        for reply in list(self._waiting.values()):
            if not reply.done():
                reply.set_exception(BridgeUnavailableError("The connection to the TES3MP server broke."))
