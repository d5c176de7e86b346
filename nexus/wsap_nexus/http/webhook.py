"""A webhook: messages that are posted to an address, each until it is taken, and signed.

Nothing follows a redirect, no proxy is asked, and the address, which may hold a secret, is in no message and no log.
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
"""Seconds between two looks for what is to be sent."""
TIMEOUT = 10.0
"""Seconds that an answer may take."""
GRACE = 5.0
"""Seconds that what is left is sent for at the end."""
_ANSWER = 64_000
"""Most bytes of an answer that are read."""

_LOGGERS = ("httpx2", "httpcore2.connection", "httpcore2.http11", "httpcore2.http2", "httpcore2.proxy")
_sending: ContextVar[bool] = ContextVar("_sending", default=False)


@dataclass
class Webhook:
    """Posts messages to an address, signed with the secret.

    `what` names in sentences what is sent, such as "the story"; `sender` is the User-Agent. `tell` is told in a
    sentence when sending begins to fail; `now` gives the seconds since 1970 for the signature. Raises ConfigError if
    the address can't be used, or the secret is empty.
    """

    address: str = field(repr=False)
    secret: str = field(repr=False)
    what: str
    sender: str
    tell: Callable[[str], None] = lambda sentence: None
    clock: Clock = field(default_factory=SystemClock)
    now: Callable[[], float] = time.time

    def __post_init__(self) -> None:
        # What is wrong is said without the address, which may hold a secret of its own.
        try:
            url = httpx2.URL(self.address)
        except httpx2.InvalidURL:
            raise ConfigError("The webhook's address is no URL.") from None
        if url.scheme not in ("http", "https") or not url.host or url.userinfo:
            raise ConfigError("The webhook's address must be an http or https URL without a user name in it.")
        if not self.secret:
            raise ConfigError("A webhook needs a secret to sign what is sent.")
        self._transport = httpx2.AsyncHTTPTransport()
        self._said = ""

    @contextlib.asynccontextmanager
    async def sending(self, send: Callable[[], Awaitable[object]]) -> AsyncIterator[None]:
        """Call `send` again and again beside what is done within; at the end once more, for a few seconds at most."""

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
                    await asyncio.wait_for(self._try(send), GRACE)
            finally:
                await self._transport.aclose()

    async def _try(self, send: Callable[[], Awaitable[object]]) -> None:
        try:
            await send()
        except Exception as error:  # what is wrong with sending must not stop what goes on beside it
            what = self.what[:1].upper() + self.what[1:]
            said = str(error) if isinstance(error, WsapError) else f"{what} can't be sent: {_kind(error)}."
            if said != self._said:
                self.tell(said)
            self._said = said

    async def post(self, event_id: str, content: bytes) -> None:
        """Send a message of JSON until it is taken; it may be taken twice, with the same id."""
        tries = 0
        while (problem := await self._problem(event_id, content)) is not None:
            tries += 1
            if tries == 1:
                self.tell(f"The webhook did not take a part of {self.what}: {problem}. It is sent again until it does.")
            await self.clock.sleep(UNTIL_IT_WORKS.pause(tries, 0.5))

    async def _problem(self, event_id: str, content: bytes) -> str | None:
        """Send once; return why it was not taken, without the address, or None."""
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
                # The transport alone: nothing follows a redirect, and no proxy is asked.
                response = await asyncio.wait_for(self._transport.handle_async_request(request), 2 * TIMEOUT)
                await _finish(response)
        except TimeoutError:
            return "it does not answer"
        except (httpx2.TransportError, OSError) as error:
            return f"it can't be reached ({_kind(error)})"
        if 200 <= response.status_code < 300:
            return None
        redirect = ", and redirects are not followed" if 300 <= response.status_code < 400 else ""
        return f"it answers with status {response.status_code}{redirect}"


async def _finish(response: httpx2.Response) -> None:
    """Read what little an answer may say, so that the connection can be used again."""
    try:
        size = 0
        async for part in response.aiter_raw():
            size += len(part)
            if size > _ANSWER:
                break
    finally:
        await response.aclose()


def signature(secret: bytes, when: str, content: bytes) -> str:
    """Return the signature of what was sent at a time: HMAC-SHA256 of `TIME.CONTENT`, in hexadecimal digits."""
    return hmac.new(secret, when.encode() + b"." + content, hashlib.sha256).hexdigest()


def _kind(error: BaseException) -> str:
    return type(error).__name__


def _elsewhere(record: logging.LogRecord) -> bool:
    return not _sending.get()


@contextlib.contextmanager
def _unlogged() -> Iterator[None]:
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_elsewhere)  # added once, however often
    token = _sending.set(True)
    try:
        yield
    finally:
        _sending.reset(token)
