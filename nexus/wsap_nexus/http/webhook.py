"""A webhook: posts signed messages to an address, each until it is accepted.

It follows no redirects and uses no proxy. The address can contain a secret, so it appears in no message and no log.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field

import httpx2

from wsap_core.errors import ConfigError, WsapError
from wsap_core.seams.clock import Clock, SystemClock
from wsap_nexus.http.retries import UNTIL_IT_WORKS
from wsap_nexus.tasks import ended

EVERY = 1.0
"""Seconds between checks for messages to send."""
TIMEOUT = 10.0
"""Seconds to wait for a response."""
GRACE = 5.0
"""Seconds to send the remaining messages at the end."""
_ANSWER = 64_000
"""The maximum bytes of a response to read."""

_LOGGERS = ("httpx2", "httpcore2.connection", "httpcore2.http11", "httpcore2.http2", "httpcore2.proxy")
_sending: ContextVar[bool] = ContextVar("_sending", default=False)


@dataclass
class Webhook:
    """Posts messages to an address, signed with a secret; ConfigError if the address is invalid or the secret empty.

    `what` describes the messages, such as "the story"; `sender` is the User-Agent. `tell` gets a sentence when sending
    starts to fail; `now` returns the seconds since 1970 for the signature.
    """

    address: str = field(repr=False)
    secret: str = field(repr=False)
    what: str
    sender: str
    tell: Callable[[str], None] = lambda sentence: None
    clock: Clock = field(default_factory=SystemClock)
    now: Callable[[], float] = time.time

    def __post_init__(self) -> None:
        # Errors omit the address, which can contain a secret.
        try:
            url = httpx2.URL(self.address)
        except httpx2.InvalidURL:
            raise ConfigError("The webhook's address is not a valid URL.") from None
        if url.scheme not in ("http", "https") or not url.host or url.userinfo:
            raise ConfigError("The webhook's address must be an http or https URL without a user name.")
        if not self.secret:
            raise ConfigError("A webhook needs a secret to sign its messages.")
        self._transport = httpx2.AsyncHTTPTransport()
        self._said = ""

    @contextlib.asynccontextmanager
    async def sending(self, send: Callable[[], Awaitable[object]]) -> AsyncIterator[None]:
        """Call `send` every `EVERY` seconds during the block, and once more at the end for up to `GRACE` seconds."""

        async def go_on() -> None:
            while True:
                await self._try(send)
                await self.clock.sleep(EVERY)

        task = asyncio.create_task(go_on())
        try:
            yield
        finally:
            await ended(task)
            try:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(GRACE):
                        await self._try(send)
            finally:
                await self._transport.aclose()

    async def _try(self, send: Callable[[], Awaitable[object]]) -> None:
        try:
            await send()
        except Exception as error:  # a failure must not stop the block
            what = self.what[:1].upper() + self.what[1:]
            said = str(error) if isinstance(error, WsapError) else f"{what} can't be sent: {_kind(error)}."
            if said != self._said:
                self.tell(said)
            self._said = said

    async def post(self, event_id: str, content: bytes) -> None:
        """Send a JSON message until it is accepted; the receiver can get it twice, with the same id."""
        tries = 0
        while (problem := await self._problem(event_id, content)) is not None:
            tries += 1
            if tries == 1:
                self.tell(f"The webhook did not accept a part of {self.what}: {problem}. It is resent until accepted.")
            await self.clock.sleep(UNTIL_IT_WORKS.pause(tries, 0.5))

    async def _problem(self, event_id: str, content: bytes) -> str | None:
        # Sends once; returns why it was not accepted, without the address, or None.
        when = str(int(self.now()))
        headers = {
            "Content-Type": "application/json",
            "User-Agent": self.sender,
            "WSAP-Event": event_id,
            "WSAP-Signature": f"t={when},v1={signature(self.secret.encode(), when, content)}",
        }
        timeout = httpx2.Timeout(TIMEOUT).as_dict()
        request = httpx2.Request(
            "POST", self.address, headers=headers, content=content, extensions={"timeout": timeout}
        )
        try:
            with _unlogged():
                # Only the transport: it follows no redirects and uses no proxy.
                async with asyncio.timeout(2 * TIMEOUT):
                    response = await self._transport.handle_async_request(request)
                await _finish(response)
        except TimeoutError:
            return "it does not respond"
        except (httpx2.TransportError, OSError) as error:
            return f"it can't be reached ({_kind(error)})"
        if 200 <= response.status_code < 300:
            return None
        redirect = ", and redirects are not followed" if 300 <= response.status_code < 400 else ""
        return f"it responds with status {response.status_code}{redirect}"


async def _finish(response: httpx2.Response) -> None:
    # Reads the response up to a limit, so that the connection can be reused.
    try:
        size = 0
        async for part in response.aiter_raw():
            size += len(part)
            if size > _ANSWER:
                break
    finally:
        await response.aclose()


def signature(secret: bytes, when: str, content: bytes) -> str:
    """Return the signature of a message: the HMAC-SHA256 of `TIME.CONTENT` in hexadecimal."""
    return hmac.new(secret, when.encode() + b"." + content, hashlib.sha256).hexdigest()


def _kind(error: BaseException) -> str:
    return type(error).__name__


def _elsewhere(record: logging.LogRecord) -> bool:
    return not _sending.get()


@contextlib.contextmanager
def _unlogged() -> Iterator[None]:
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_elsewhere)  # idempotent
    token = _sending.set(True)
    try:
        yield
    finally:
        _sending.reset(token)
