"""One connection to the script: hello and welcome, requests with their replies, events."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from wsap_tes3mp.engines.tes3mp.link import LineReader, Link, read_object
from wsap_tes3mp.protocol.errors import BridgeUnavailableError

SCRIPT_PROTOCOL = 1
"""The version of the protocol between connector and script."""
_LOG = logging.getLogger(__name__)
Facts = Mapping[str, JsonValue]


@dataclass(frozen=True)
class Welcome:
    """What the script answers to the greeting."""

    boot: str
    """Names this run of the server."""
    connection: int
    server: str = ""
    script: str = ""


class RefusedError(Exception):
    """The script does not want this connection."""


class ScriptError(Exception):
    """The script answered a request with an error."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Connection:
    """Requests and replies over one link, until it breaks.

    Args:
        link: the way to the script.
        on_event: is told each event.
    """

    def __init__(self, link: Link, on_event: Callable[[Facts], None]) -> None:
        self._link = link
        self._on_event = on_event
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Facts]] = {}
        self._reader = LineReader()
        self._early: list[bytes] = []
        self._closed = False
        self.welcome: Welcome | None = None
        self.malformed = 0
        """Lines that were no message of the protocol."""

    async def greet(self, token: str) -> Welcome:
        """Say hello and return the welcome.

        Raises:
            RefusedError: the token is wrong, the versions do not fit, or the script has a connection.
            OSError: the link broke.
        """
        self._link.send({"hello": {"token": token, "version": SCRIPT_PROTOCOL}})
        while not self._early:
            data = await self._link.receive()
            if not data:
                raise ConnectionError("the server closed the connection without a welcome")
            self._early += self._reader.feed(data)
        said = read_object(self._early.pop(0)) or {}
        if "refused" in said:
            raise RefusedError(str(said["refused"])[:40])
        found = said.get("welcome")
        if not isinstance(found, dict) or not isinstance(found.get("boot"), str) or not found["boot"]:
            raise ConnectionError("what listens there is no WSAP script")
        number = found.get("connection")
        self.welcome = Welcome(
            boot=str(found["boot"])[:100],
            connection=number if isinstance(number, int) else 0,
            server=str(found.get("server", ""))[:40],
            script=str(found.get("script", ""))[:40],
        )
        return self.welcome

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

    async def read(self) -> None:
        """Take replies and events until the link ends, then close."""
        try:
            for line in self._early:
                self._take(line)
            while data := await self._link.receive():
                for line in self._reader.feed(data):
                    self._take(line)
        finally:
            self.close()

    def _take(self, line: bytes) -> None:
        said = read_object(line)
        if said is None:
            self._drop("no JSON object")
            return
        if "event" in said:
            self._on_event(said)
            return
        number = said.get("re")
        reply = self._waiting.get(number) if type(number) is int else None
        if reply is None or reply.done():
            if number is None:
                self._drop("neither reply nor event")
            return  # a reply that nobody waits for any more
        problem, answer = said.get("error"), said.get("ok")
        if isinstance(answer, dict):
            reply.set_result(answer)
        elif isinstance(problem, dict):
            code, message = str(problem.get("code", "UNKNOWN"))[:60], str(problem.get("message", ""))[:300]
            reply.set_exception(ScriptError(code, message))
        else:
            self._drop("a reply without content")
            reply.set_exception(ScriptError("BAD_REPLY", "The script's reply holds neither a result nor an error."))

    def _drop(self, what: str) -> None:
        self.malformed += 1
        if self.malformed in (1, 10, 100, 1000):
            _LOG.warning(
                "The TES3MP script sent %d lines that are dropped, the last of them: %s.", self.malformed, what
            )

    def close(self) -> None:
        """End the connection; all who wait are told. Idempotent."""
        self._closed = True
        self._link.close()
        for reply in list(self._waiting.values()):
            if not reply.done():
                reply.set_exception(BridgeUnavailableError("The connection to the TES3MP server broke."))
