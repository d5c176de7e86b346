"""The way to a game in another process, over HTTP.

The other side is `wsap_nexus.worlds.serve_world`, or anything that answers the same paths in any language
(docs/reference/wire-api.md, "The bridge of a game"). Every request that changes something carries a
key of its own and is asked again with it when the connection breaks, so that it is done once.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import httpx2

from wsap_core.errors import PluginError, WireError, WorldError, WsapError
from wsap_core.protocol.wire import dumps
from wsap_core.untrusted import one_line
from wsap_nexus.errors import WorldFailedError

# Any, in this module: JSON.

LARGEST = 64 * 2**20
"""Bytes of an answer."""
_WAIT = 20.0
"""Seconds that one request waits on the other side before it is asked again."""
_NOBODY_THERE = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
# What fails so has never reached the process.


class GameLostError(WorldFailedError):
    """A game elsewhere can't be reached, or no longer has what was there: its process ended, or was cut off."""

    answered = False
    """Whether it answered: then it has forgotten what it is asked about."""
    at_work: frozenset[str] = frozenset()
    """Upon what it was at work when it was cut off in the middle of this; empty where it was gone before that."""


@dataclass(frozen=True)
class GameTimeouts:
    """How long a game that does not answer is waited for."""

    seconds: float = 10.0
    """In which connections are tried again."""
    first: float = 0.1
    """Seconds before the second try; each later one waits twice as long, up to `most`."""
    most: float = 2.0


class GameClient:
    """The way to a game in another process. As a factory of a game it refuses: its worlds are made over there.

    Args:
        url: where its bridge answers.
        token: what it wants to be shown; None for nothing.
        timeouts: how long it is waited for.
        sleep: waits some seconds.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        timeouts: GameTimeouts | None = None,
        sleep: Callable[[float], Any] = asyncio.sleep,
    ) -> None:
        self.url = url.rstrip("/")
        """Where its bridge answers."""
        self.token = token
        """What it wants to be shown."""
        self._timeouts = timeouts or GameTimeouts()
        self._sleep = sleep
        self._client: httpx2.AsyncClient | None = None
        self._asking: Counter[str] = Counter()
        self.reported_dead: set[str] = set()
        """The lives of its process whose end was held against it."""

    def __call__(self) -> NoReturn:
        """Refuse: a world of this game is made in its own process."""
        raise PluginError(f"This game runs elsewhere ({self.url}); play it through the nexus.")

    @property
    def at_work(self) -> frozenset[str]:
        """The paths at which something is asked of it now that may end its process: its worlds, and moves."""
        return frozenset(self._asking)

    def begin_work(self, path: str) -> None:
        """Say that something is asked at a path from now on."""
        self._asking[path] += 1

    def end_work(self, path: str) -> None:
        """Say that it is answered, or given up."""
        self._asking[path] -= 1
        if self._asking[path] <= 0:
            del self._asking[path]

    async def ask(self, method: str, path: str, body: Any = None, *, params: Mapping[str, Any] | None = None) -> Any:
        """Return what the game answers; waits while it says that it is not through yet.

        Raises:
            GameLostError: it doesn't answer, or no longer has what was there.
            WorldFailedError: it does not answer as the bridge is described.
            WsapError: it refuses; the class is that of the code it gives.
        """
        key = secrets.token_urlsafe(12)
        while True:
            status, data = await self._once(method, path, body, key, params)
            if status != 202:
                return data

    async def process_id(self) -> str | None:
        """Return what the present life of its process is called, another each time it is started; None if it says none.

        Raises:
            WorldFailedError: it doesn't answer, or not as the bridge is described.
        """
        process_id = (await self.ask("GET", "/")).get("boot")
        return None if process_id is None else str(process_id)[:200]

    async def close(self) -> None:
        """Let go of the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _once(
        self, method: str, path: str, body: Any, key: str, params: Mapping[str, Any] | None
    ) -> tuple[int, Any]:
        waited, pause = 0.0, self._timeouts.first
        at_work: frozenset[str] | None = None  # when this was cut off first
        while True:
            try:
                return await self._send(method, path, body, key, params)
            except GameLostError as lost:
                lost.at_work = at_work or frozenset()
                raise
            except httpx2.TransportError as error:
                if at_work is None:
                    # All who are at work when a process ends are cut off at once, and still at it then, since none
                    # gets through before the next one is there. Whoever finds nobody to connect to comes later.
                    at_work = frozenset() if isinstance(error, _NOBODY_THERE) else self.at_work
                if waited >= self._timeouts.seconds:
                    detail = one_line(error)[:200] or type(error).__name__
                    gone = GameLostError(f"The game at {self.url} does not answer: {detail}")
                    gone.at_work = at_work
                    raise gone from error
            await self._sleep(pause)
            waited += pause
            pause = min(2 * pause, self._timeouts.most)

    async def _send(
        self, method: str, path: str, body: Any, key: str, params: Mapping[str, Any] | None
    ) -> tuple[int, Any]:
        if self._client is None:
            headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
            limits = httpx2.Limits(max_connections=None, max_keepalive_connections=32)
            timeout = httpx2.Timeout(_WAIT + 15, connect=5)
            # Nothing of the environment: a proxy has no place between the nexus and a game.
            self._client = httpx2.AsyncClient(headers=headers, limits=limits, timeout=timeout, trust_env=False)
        headers = {} if method == "GET" else {"Idempotency-Key": key, "Content-Type": "application/json"}
        content = None if body is None else dumps(body).encode()
        query = {"wait": _WAIT, **(params or {})}
        request = self._client.build_request(method, self.url + path, content=content, headers=headers, params=query)
        response = await self._client.send(request, stream=True)
        try:
            parts, size = [], 0
            async for part in response.aiter_bytes():
                size += len(part)
                if size > LARGEST:
                    raise WorldFailedError(f"The game at {self.url} answered with more than {LARGEST} bytes.")
                parts.append(part)
        finally:
            await response.aclose()
        return response.status_code, self._read(response.status_code, b"".join(parts), path)

    def _read(self, status: int, content: bytes, path: str) -> Any:
        try:
            data = json.loads(content)
        except (ValueError, RecursionError):
            raise WorldFailedError(f"The game at {self.url} answered {path} ({status}) with no JSON.") from None
        if not isinstance(data, dict):
            raise WorldFailedError(f"The game at {self.url} answered {path} with no object.")
        if status < 400:
            return data
        raise _told(data, self.url)


def _told(data: Mapping[str, Any], url: str) -> WsapError:
    """Return the error that a game's refusal stands for."""
    error = data.get("error")
    known = error if isinstance(error, dict) else {}
    code, message = str(known.get("code")), one_line(known.get("message") or "it refused")[:1000]
    if code == "UNKNOWN_NAME":
        lost = GameLostError(f"The game at {url} no longer has what was there: {message}")
        lost.answered = True
        return lost
    for kind in _kinds(WsapError):
        if kind.code == code and issubclass(kind, WorldError | WireError) and not issubclass(kind, WorldFailedError):
            found = kind.__new__(kind)
            found.args = (message,)
            return found
    return WorldFailedError(f"The game at {url}: {message} ({one_line(code)[:60]})")


def _kinds(cls: type[WsapError]) -> Iterator[type[WsapError]]:
    yield cls
    for below in cls.__subclasses__():
        yield from _kinds(below)
