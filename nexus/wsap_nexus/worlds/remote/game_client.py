"""The HTTP client of a game in another process.

The server is `wsap_nexus.worlds.remote.serve_world`, or any program with the same routes
(docs/reference/wire-api.md, "The bridge of a game"). Every request has an idempotency key and is retried with it when
the connection breaks, or when the game asks for that, so that it takes effect once. A reply repeats the key, so that
the reply to another request, of another seat or an earlier step, is not believed.

What a game sends is judged here and in `remote_world`: whatever is wrong with it is the game's failure.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NoReturn

import httpx2

from wsap_core.errors import PluginError, WorldError, WsapError
from wsap_core.protocol.wire import dumps
from wsap_core.untrusted import error_line, single_line
from wsap_core.worlds.answers import wrong_value
from wsap_nexus.errors import WorldFailedError
from wsap_nexus.http.refusals import NotJsonError
from wsap_nexus.http.retries import Retries
from wsap_nexus.http.strict import read_json

# Any, in this module: JSON.

LARGEST = 64 * 2**20
"""The maximum bytes of a response."""
_WAIT = 20.0
"""Seconds that the server holds a request before it responds 202."""
_EXCHANGE = _WAIT + 15
"""Seconds for one request with its whole response, however slowly that drips in."""
ANSWER = 60.0
"""Seconds for a response, with all repetitions, unless the caller has a limit of its own."""
_PAUSES = Retries(jitter=0.0)
"""Pauses between requests that the game refuses with `retry`."""
# Errors of requests that never reached the process.
_NOBODY_THERE = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)


class GameLostError(WorldFailedError):
    """A game in another process can't be reached, or lost its worlds in a restart."""

    answered = False
    """Whether it responded, so that it no longer knows the world."""
    at_work: frozenset[str] = frozenset()
    """The paths of all requests interrupted together; empty if the game was gone before."""


class GameBusyError(WorldFailedError):
    """A game asks for a later repetition of the request (`retry`), and did so until the limit."""

    after = 0.0
    """The seconds of its `Retry-After`."""


@dataclass(frozen=True)
class GameTimeouts:
    """The retries while a game does not respond, or asks for a repetition."""

    seconds: float = 10.0
    """Total seconds of pauses and broken requests, after which a request fails."""
    busy: float = 30.0
    """The same for requests that the game refuses with `retry`, and for those that it wants repeated (202) at once."""
    first: float = 0.1
    """Seconds before the first retry; doubled for each later one, up to `most`."""
    most: float = 2.0


class GameClient:
    """The client of a game's bridge, by base URL and token; as the game's factory it refuses to create a world."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        timeouts: GameTimeouts | None = None,
        sleep: Callable[[float], Any] = asyncio.sleep,
    ) -> None:
        self.url = url.rstrip("/")
        self.token = token
        self._timeouts = timeouts or GameTimeouts()
        self._sleep = sleep
        self._client: httpx2.AsyncClient | None = None
        self._closed = False
        self._asking: Counter[str] = Counter()
        self.echoes = False
        """Whether the game declares that each of its replies repeats the key of the request."""
        self.reported_dead: set[str] = set()
        """The ids of processes whose end was counted as a failure."""

    def __call__(self) -> NoReturn:
        """Raise PluginError: the worlds of this game are created in its own process."""
        raise PluginError(f"This game runs in another process ({self.url}); play it through the nexus.")

    @property
    def at_work(self) -> frozenset[str]:
        """The paths of worlds and transfers with an open request."""
        return frozenset(self._asking)

    def begin_work(self, path: str) -> None:
        """Count the start of a request of a path."""
        self._asking[path] += 1

    def end_work(self, path: str) -> None:
        """Count the end of a request of a path."""
        self._asking[path] -= 1
        if self._asking[path] <= 0:
            del self._asking[path]

    async def ask(self, method: str, path: str, body: Any = None, *, within: float | None = ANSWER) -> Any:
        """Return the game's response, repeating the request while the status is 202 or the game is busy.

        Args:
            within: seconds for the response; None if the caller limits the time.

        Raises:
            GameLostError: it does not respond, or no longer knows the world.
            WorldFailedError: its response violates the protocol.
            WsapError: it refuses; the class depends on the code.
        """
        key = secrets.token_urlsafe(12)
        try:
            async with asyncio.timeout(within):
                data = await self._answer(method, path, body, key)
        except TimeoutError:
            raise GameLostError(f"The game at {self.url} did not answer {method} {path} within {within:g} s.") from None
        if path == "/":
            self.echoes = data.get("echoes") is True
        self._check_echo(data.pop("request", None), key, f"{method} {path}", required=self.echoes and method != "GET")
        return data

    async def _answer(self, method: str, path: str, body: Any, key: str) -> Any:
        pause = self._timeouts.first
        while True:
            began = time.monotonic()
            status, data = await self._patiently(method, path, body, key)
            if status != 202:
                return data
            # A game that holds the request until there is something to say is asked again at once.
            await self._sleep(max(0.0, pause - (time.monotonic() - began)))
            pause = min(2 * pause, self._timeouts.most)

    async def _patiently(self, method: str, path: str, body: Any, key: str) -> tuple[int, Any]:
        """Send a request, again and again while the game asks for that by `retry`."""
        waited, tries = 0.0, 0
        while True:
            try:
                return await self._once(method, path, body, key)
            except GameBusyError as busy:
                tries += 1
                pause = _PAUSES.pause(tries, 0.5, busy.after)
                if waited + pause > self._timeouts.busy:
                    raise
            await self._sleep(pause)
            waited += pause

    def _check_echo(self, named: Any, key: str, what: str, *, required: bool) -> None:
        if named == key or (named is None and not required):
            return
        wrong = "names no request" if named is None else f"names another request ({single_line(str(named))[:40]})"
        raise WorldFailedError(f"The reply of the game at {self.url} to {what} {wrong}, so it can't be believed.")

    async def process_id(self) -> str | None:
        """Return the id of its process, new for each start; None if it reports none. Raises as `ask` does."""
        process_id = (await self.ask("GET", "/")).get("boot")
        return None if process_id is None else str(process_id)[:200]

    async def close(self) -> None:
        """Close the connections for good: a request that is being retried does not open another."""
        self._closed = True
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _once(self, method: str, path: str, body: Any, key: str) -> tuple[int, Any]:
        waited, pause = 0.0, self._timeouts.first
        at_work: frozenset[str] | None = None  # at the first interruption
        tries = 0
        while True:
            began = time.monotonic()
            try:
                async with asyncio.timeout(_EXCHANGE):
                    return await self._send(method, path, body, key)
            except GameLostError as lost:
                lost.at_work = at_work or frozenset()
                raise
            except (httpx2.TransportError, TimeoutError) as error:
                tries += 1
                waited += time.monotonic() - began
                if at_work is None:
                    # The end of a process interrupts all open requests at once; one that fails to connect came later.
                    at_work = frozenset() if isinstance(error, _NOBODY_THERE) else self.at_work
                if waited >= self._timeouts.seconds and (tries > 1 or not self._timeouts.seconds):
                    detail = error_line(error, 200) or f"no whole response within {_EXCHANGE:g} s"
                    gone = GameLostError(f"The game at {self.url} does not respond: {detail}")
                    gone.at_work = at_work
                    raise gone from error
            await self._sleep(pause)
            waited += pause
            pause = min(2 * pause, self._timeouts.most)

    async def _send(self, method: str, path: str, body: Any, key: str) -> tuple[int, Any]:
        if self._closed:
            raise GameLostError(f"The connections to the game at {self.url} are closed.")
        if self._client is None:
            headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
            limits = httpx2.Limits(max_connections=None, max_keepalive_connections=32)
            timeout = httpx2.Timeout(_EXCHANGE, connect=5)
            # The environment's proxy settings are not for games.
            self._client = httpx2.AsyncClient(headers=headers, limits=limits, timeout=timeout, trust_env=False)
        headers = {"Idempotency-Key": key, **({} if method == "GET" else {"Content-Type": "application/json"})}
        content = None if body is None else dumps(body).encode()
        query = {"wait": _WAIT}
        request = self._client.build_request(method, self.url + path, content=content, headers=headers, params=query)
        response = await self._client.send(request, stream=True)
        try:
            parts, size = [], 0
            async for part in response.aiter_bytes():
                size += len(part)
                if size > LARGEST:
                    raise WorldFailedError(f"The game at {self.url} sent more than {LARGEST} bytes.")
                parts.append(part)
        finally:
            await response.aclose()
        try:
            return response.status_code, self._read(response.status_code, b"".join(parts), path)
        except GameBusyError as busy:
            after = response.headers.get("retry-after", "")
            busy.after = float(after) if after.isascii() and after.isdigit() and len(after) < 6 else 0.0
            raise

    def _read(self, status: int, content: bytes, path: str) -> Any:
        try:
            data = read_json(content)
        except NotJsonError as error:
            why = str(error).removeprefix("The body ").rstrip(".")
            with suppress(ValueError, RecursionError):  # name the field, if it is a number that JSON does not have
                if wrong := wrong_value(json.loads(content), ""):
                    why = f"holds {wrong}"
            raise WorldFailedError(f"The reply of the game at {self.url} to {path} ({status}) {why}.") from None
        if not isinstance(data, dict):
            raise WorldFailedError(f"The reply of the game at {self.url} to {path} is not a JSON object.")
        if status < 300:
            return data
        raise _told(data, self.url, status)


def _told(data: Mapping[str, Any], url: str, status: int) -> WsapError:
    error = data.get("error")
    known = error if isinstance(error, dict) else {}
    code, message = str(known.get("code")), single_line(known.get("message") or "it refused")[:1000]
    if code == "UNKNOWN_NAME":
        lost = GameLostError(f"The game at {url} has lost its world: {message}")
        lost.answered = True
        return lost
    if status >= 400 and known.get("retry") is True:
        return GameBusyError(f"The game at {url} is not ready: {message} ({single_line(code)[:60]})")
    for kind in _kinds(WorldError):
        if kind.code == code and not issubclass(kind, WorldFailedError):
            found = kind.__new__(kind)
            found.args = (message,)
            return found
    return WorldFailedError(f"The game at {url}: {message} ({single_line(code)[:60]})")


def _kinds(cls: type[WorldError]) -> Iterator[type[WorldError]]:
    yield cls
    for below in cls.__subclasses__():
        yield from _kinds(below)
