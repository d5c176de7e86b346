"""Sends a story to an address as it is told: each part at least once, in order, and signed.

What is to be sent is read from the run's log, which the ticks are written into, and how far it was sent is kept in a
file: so nothing is lost when the process is killed, no tick waits, and a part may come twice, with the same id.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import json
import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from wsap_core.errors import ConfigError, StorageError, WsapError
from wsap_core.paths import HOME_VARIABLE
from wsap_core.seams.clock import Clock, SystemClock
from wsap_core.seams.services import RunReader
from wsap_sandbox.story.chapters import Cast, cast_of

EVERY = 1.0
"""Seconds between two looks into the log."""
LONGEST = 300.0
"""Seconds that are waited at most before something is sent again; after the first failure it is one."""
TIMEOUT = 10.0
"""Seconds that an answer may take."""
GRACE = 5.0
"""Seconds that what is left is sent for at the end."""
_BATCH = 200
_ANSWER = 64_000
"""Most bytes of an answer that are read."""

_LOGGERS = ("httpx2", "httpcore2.connection", "httpcore2.http11", "httpcore2.http2", "httpcore2.proxy")
_sending: ContextVar[bool] = ContextVar("_sending", default=False)


@dataclass(frozen=True)
class Cursor:
    """How far a story was sent."""

    seq: int
    """The last event of the run that needs no sending any more; -1 before the first."""
    tick: int
    """The last tick up to there."""


@dataclass
class Webhook:
    """Sends the story of one run, signed with the secret, to an address that is in no message and no log.

    A file in `folder` says how far it was sent; where it has not begun before, sending begins after the tick `since`.
    `tell` is told in a sentence when sending begins to fail; `now` gives the seconds since 1970 for the signature.
    Raises ConfigError if the address can't be used, or the secret is empty.
    """

    runs: RunReader
    run: str
    address: str = field(repr=False)
    secret: str = field(repr=False)
    folder: Path
    since: int = 0
    tell: Callable[[str], None] = lambda sentence: None
    clock: Clock = field(default_factory=SystemClock)
    now: Callable[[], float] = time.time

    def __post_init__(self) -> None:
        _check(self.address)
        if not self.secret:
            raise ConfigError("A webhook needs a secret to sign what is sent; set WSAP_SANDBOX_WEBHOOK_SECRET.")
        self._transport = httpx2.AsyncHTTPTransport()
        self._cast: tuple[int, Cast] | None = None
        self._said = ""

    @contextlib.asynccontextmanager
    async def sending(self) -> AsyncIterator[None]:
        """Send beside what is done within; at the end send what is left, for a few seconds at most."""

        async def go_on() -> None:
            while True:
                await self._try()
                await self.clock.sleep(EVERY)

        task = asyncio.create_task(go_on())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            try:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._try(), GRACE)
            finally:
                await self._transport.aclose()

    async def _try(self) -> None:
        try:
            await self.send()
        except Exception as error:  # what is wrong with sending must not stop the story
            said = str(error) if isinstance(error, WsapError) else f"The story can't be sent: {type(error).__name__}."
            if said != self._said:
                self.tell(said)
            self._said = said

    async def send(self) -> int:
        """Send all that waits, trying again until it is taken; return how many parts that were.

        Raises StorageError if how far it was sent can't be read or kept.
        """
        sent = 0
        while True:
            path, cursor, events = await asyncio.to_thread(self._waiting)
            for message, after in self._messages(events, cursor):
                if message is not None:
                    await self._post(message)
                    sent += 1
                if after != cursor:
                    await asyncio.to_thread(_keep, path, after)
                    cursor = after
            if len(events) < _BATCH:
                return sent

    # --- what is sent ----------------------------------------------------------------------------

    def _waiting(self) -> tuple[Path, Cursor, list[Mapping[str, Any]]]:
        """Return the file, how far the story was sent, and the events after that."""
        # Another run of the same name, or another address, has another file, whose name tells nothing.
        about = [self.run, self.runs.about(self.run)["created"], self.address]
        path = self.folder / f"{hashlib.sha256(json.dumps(about).encode()).hexdigest()[:24]}.json"
        cursor = _kept(path)
        if cursor is None:
            ticks = self.runs.history(self.run, "tick", first=self.since, last=self.since)
            cursor = Cursor(max((event["seq"] for event in ticks), default=-1), self.since)
            _keep(path, cursor)
        events = []
        for event in self.runs.events(self.run, "tick", "story", "rewound", after=cursor.seq):
            events.append(event)
            if len(events) >= _BATCH and event["kind"] == "tick":
                break
        return path, cursor, events

    def _messages(
        self, events: list[Mapping[str, Any]], cursor: Cursor
    ) -> Iterator[tuple[Mapping[str, Any] | None, Cursor]]:
        """Give each part with what is kept once it was sent; narration waits until its tick is recorded."""
        held: list[Mapping[str, Any]] = []
        for event in events:
            if event["kind"] == "story":
                if event["body"]["tick"] > cursor.tick:
                    held.append(event)
                    continue
                cursor = Cursor(event["seq"] if not held else cursor.seq, cursor.tick)
                yield self._story(event), cursor
                continue
            if event["kind"] == "tick":
                tick = int(event["body"]["number"])
                self._cast = tick, cast_of(event["body"]["body"])
                for story in held:
                    yield self._story(story), cursor
                message = None
            else:
                tick = int(event["body"]["to"])
                message = self._message(event, "rewound", tick)
            held, cursor = [], Cursor(event["seq"], tick)
            yield message, cursor

    def _story(self, event: Mapping[str, Any]) -> Mapping[str, Any]:
        body, tick = event["body"], int(event["body"]["tick"])
        if self._cast is None or self._cast[0] != tick:
            found = next(iter(self.runs.history(self.run, "tick", first=tick, last=tick)), None)
            self._cast = tick, Cast() if found is None else cast_of(found["body"]["body"])
        cast, place = self._cast[1], str(body["place"])
        about = {"title": cast.title, "language": cast.language, "place": {"id": place, "name": cast.name(place)}}
        return {**self._message(event, "story", tick), **about, "text": body["text"]}

    def _message(self, event: Mapping[str, Any], kind: str, tick: int) -> dict[str, Any]:
        return {"id": f"{self.run}/{event['seq']}", "kind": kind, "run": self.run, "tick": tick}

    # --- sending ---------------------------------------------------------------------------------

    async def _post(self, message: Mapping[str, Any]) -> None:
        """Send a part until it is taken."""
        content = json.dumps(message, ensure_ascii=False).encode()
        wait = 1.0
        while (problem := await self._problem(str(message["id"]), content)) is not None:
            if wait == 1.0:
                self.tell(f"The webhook did not take a part of the story: {problem}. It is sent again until it does.")
            await self.clock.sleep(wait)
            wait = min(LONGEST, 2 * wait)

    async def _problem(self, event_id: str, content: bytes) -> str | None:
        """Send once; return why it was not taken, without the address, or None."""
        when = str(int(self.now()))
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "wsap-sandbox",
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
            return f"it can't be reached ({type(error).__name__})"
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


def state_folder(environ: Mapping[str, str]) -> Path:
    """Return the usual folder for what says how far stories were sent."""
    from platformdirs import user_state_path  # deferred for weight

    home = environ.get(HOME_VARIABLE)
    return (Path(home) if home else user_state_path("wsap", appauthor=False)) / "webhooks"


def signature(secret: bytes, when: str, content: bytes) -> str:
    """Return the signature of what was sent at a time: HMAC-SHA256 of `TIME.CONTENT`, in hexadecimal digits."""
    return hmac.new(secret, when.encode() + b"." + content, hashlib.sha256).hexdigest()


def _check(address: str) -> None:
    # What is wrong is said without the address, which may hold a secret of its own.
    try:
        url = httpx2.URL(address)
    except httpx2.InvalidURL:
        raise ConfigError("The webhook's address is no URL.") from None
    if url.scheme not in ("http", "https") or not url.host or url.userinfo:
        raise ConfigError("The webhook's address must be an http or https URL without a user name in it.")


def _kept(path: Path) -> Cursor | None:
    try:
        data = json.loads(path.read_text("utf-8"))
        return Cursor(int(data["seq"]), int(data["tick"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StorageError(
            f"How far the story was sent can't be read from {path} ({type(error).__name__}); delete it to send anew."
        ) from None


def _keep(path: Path, cursor: Cursor) -> None:
    temporary = path.with_suffix(".new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("w", encoding="utf-8") as file:
            json.dump(asdict(cursor), file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise StorageError(f"How far the story was sent can't be kept in {path.parent}: {error.strerror}.") from error


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
