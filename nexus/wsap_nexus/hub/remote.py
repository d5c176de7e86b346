"""A world in another process, reached over HTTP: the same face as any other.

The other side is `wsap_nexus.server.world`, or anything that answers the same paths in any language
(docs/reference/wire-api.md, "The bridge of a game"). Every request that changes something carries a
key of its own and is asked again with it when the connection breaks, so that it is done once.
"""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn
from urllib.parse import quote

import httpx2

from wsap_core.errors import PluginError, WireError, WorldError, WsapError
from wsap_core.models import (
    Action,
    ActionResult,
    ActionSpace,
    Avatar,
    AvatarSpec,
    DeathEvent,
    Entry,
    JackOutResult,
    Observation,
    Receipt,
    TransitPackage,
    View,
)
from wsap_core.specs import AdapterSpec
from wsap_core.untrusted import one_line
from wsap_core.wire import Codec, dumps
from wsap_core.worlds import Outcome
from wsap_nexus.hub.errors import WorldFailedError
from wsap_nexus.runtime.seats import HasSpec

# Any, in this module: JSON.

LARGEST = 64 * 2**20
"""Bytes of an answer."""
_WAIT = 20.0
"""Seconds that one request waits on the other side before it is asked again."""
_CODEC = Codec()


@dataclass(frozen=True)
class Patience:
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
        patience: how long it is waited for.
        sleep: waits some seconds.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        patience: Patience | None = None,
        sleep: Callable[[float], Any] = asyncio.sleep,
    ) -> None:
        self.url = url.rstrip("/")
        """Where its bridge answers."""
        self.token = token
        """What it wants to be shown."""
        self._patience = patience or Patience()
        self._sleep = sleep
        self._client: httpx2.AsyncClient | None = None

    def __call__(self) -> NoReturn:
        """Refuse: a world of this game is made in its own process."""
        raise PluginError(f"This game runs elsewhere ({self.url}); play it through the nexus.")

    async def ask(self, method: str, path: str, body: Any = None, *, params: Mapping[str, Any] | None = None) -> Any:
        """Return what the game answers; waits while it says that it is not through yet.

        Raises:
            WorldFailedError: it doesn't answer, or not as the bridge is described.
            WsapError: it refuses; the class is that of the code it gives.
        """
        key = secrets.token_urlsafe(12)
        while True:
            status, data = await self._once(method, path, body, key, params)
            if status != 202:
                return data

    async def close(self) -> None:
        """Let go of the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _once(
        self, method: str, path: str, body: Any, key: str, params: Mapping[str, Any] | None
    ) -> tuple[int, Any]:
        waited, pause = 0.0, self._patience.first
        while True:
            try:
                return await self._send(method, path, body, key, params)
            except httpx2.TransportError as error:
                if waited >= self._patience.seconds:
                    detail = one_line(error)[:200] or type(error).__name__
                    raise WorldFailedError(f"The game at {self.url} does not answer: {detail}") from error
            await self._sleep(pause)
            waited += pause
            pause = min(2 * pause, self._patience.most)

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
        return WorldFailedError(f"The game at {url} no longer has what was there: {message}")
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


class RemoteSeat:
    """A seat in a world in another process. Made by `RemoteWorld.open_seat`.

    Args:
        world: the world.
        agent_id: who sits there.
        told: what the game said when the seat was opened.
    """

    def __init__(self, world: RemoteWorld, agent_id: str, told: Mapping[str, Any]) -> None:
        self._world = world
        self._agent_id = agent_id
        self._path = f"{world.path}/seats/{quote(agent_id, safe='')}"
        self.game_description = str(told.get("description", ""))
        """The game, its goals and mechanics."""
        self.action_space = _CODEC.decode(ActionSpace, told.get("action_space"), where="action space")
        """All actions there are."""
        self.done = False
        """Whether the episode of this seat is over."""
        self.left: JackOutResult | None = None
        """Set once the agent has left the world."""
        self._default = told.get("default_action")
        self.take(told)

    @property
    def agent_id(self) -> str:
        """Who sits there."""
        return self._agent_id

    @property
    def world(self) -> HasSpec:
        """The world."""
        return self._world

    def take(self, told: Mapping[str, Any]) -> None:
        """Take in what the game says of how the seat stands."""
        self.done = bool(told.get("done"))
        left = told.get("left")
        self.left = None if left is None else _CODEC.decode(JackOutResult, left, where="seat")

    def default_action(self) -> Action | None:
        """Return what is done when the agent misses its deadline."""
        return None if self._default is None else _CODEC.decode(Action, self._default, where="default action")

    async def observe(self) -> Observation:
        """Return this seat's state at its next decision point."""
        told = await self._world.client.ask("GET", f"{self._path}/observation")
        seen: Observation = self._read(Observation, told, "observation")
        return seen

    async def look(self) -> View | None:
        """Return what this seat sees now; None where the game draws nothing."""
        if "render" not in self._world.spec.abilities:
            return None
        told = await self._world.client.ask("GET", f"{self._path}/view")
        return None if told.get("view") is None else self._read(View, told, "view")

    async def resolve(self, action: Action) -> Outcome:
        """Carry out an action and return what came of it, and how."""
        told = await self._world.client.ask("POST", f"{self._path}/act", {"action": action})
        out, death = told.get("out"), told.get("death")
        outcome = Outcome(
            self._read(Action, told, "action"),
            self._read(ActionResult, told, "result"),
            bool(told.get("stepped")),
            None if out is None else self._read(JackOutResult, told, "out"),
            None if death is None else self._read(DeathEvent, told, "death"),
        )
        self.take(told)
        return outcome

    async def leave(self, mode: str = "dormant") -> JackOutResult:
        """Take the agent out of the world by force."""
        told = await self._world.client.ask("POST", f"{self._path}/jack-out", {"mode": mode})
        self.left = self._read(JackOutResult, told, "jack_out")
        return self.left

    def _read(self, kind: type[Any], told: Mapping[str, Any], name: str) -> Any:
        return self._world.read(kind, told, name)


class RemoteWorld:
    """A world in another process.

    Args:
        spec: the game; its factory is the client.
        world_id: what the world is called there.
        seed: of the world.
        options: the game's own.
        client: the way to it.
    """

    def __init__(
        self, spec: AdapterSpec, world_id: str, seed: int, options: Mapping[str, Any], client: GameClient
    ) -> None:
        self._spec = spec
        self.client = client
        """The way to it."""
        self.path = f"/worlds/{quote(world_id, safe='')}"
        """Where it answers."""
        self._seed = seed
        self._options = options
        self._seats: dict[str, RemoteSeat] = {}

    @property
    def spec(self) -> AdapterSpec:
        """The game."""
        return self._spec

    @property
    def can_snapshot(self) -> bool:
        """Whether its state can be taken and given back."""
        return "snapshot" in self._spec.abilities

    async def begin(self, seed: int) -> None:
        """Make the world over there, and begin its first episode; whatever was there under its name is gone."""
        self._seats.clear()
        body = {"world_seed": self._seed, "seed": seed, "options": self._options}
        await self.client.ask("PUT", self.path, body)

    async def open_seat(self, agent_id: str) -> RemoteSeat:
        """Bind an agent to the avatar it has, or a new one, and return its seat."""
        told = await self.client.ask("POST", f"{self.path}/seats/{quote(agent_id, safe='')}/jack-in", {})
        try:
            seat = self._seats[agent_id] = RemoteSeat(self, agent_id, told)
        except WireError as error:
            raise WorldFailedError(f"The game {self._spec.name!r}: {error}") from error
        return seat

    async def avatars(self, agent_id: str) -> Sequence[Avatar]:
        """Return the bodies that an agent has there."""
        told = await self.client.ask("GET", f"{self.path}/seats/{quote(agent_id, safe='')}/avatars")
        found = told.get("avatars")
        if not isinstance(found, list):
            raise WorldFailedError(f"The game {self._spec.name!r} gave no list of avatars.")
        return [self.read(Avatar, {"avatar": body}, "avatar") for body in found]

    async def create_avatar(self, agent_id: str, wanted: AvatarSpec) -> Avatar | None:
        """Make a body for an agent; None where the world makes one when a seat is opened."""
        path = f"{self.path}/seats/{quote(agent_id, safe='')}/avatars"
        told = await self.client.ask("POST", path, {"wanted": wanted})
        return None if told.get("avatar") is None else self.read(Avatar, told, "avatar")

    async def admit(self, avatar_id: str, entry: Entry) -> Receipt:
        """Let skills and items in; a game without transit lets in nothing."""
        if "transit" not in self._spec.abilities:
            reason = f"{self._spec.display_title} lets nothing in."
            return Receipt(entry.transfer_id, refused={item.item_id: reason for item in entry.items})
        told = await self.client.ask("POST", f"{self._body(avatar_id)}/admit", {"entry": entry})
        self._take(told)
        receipt: Receipt = self.read(Receipt, told, "receipt")
        return receipt

    async def release(self, avatar_id: str, transfer_id: str) -> TransitPackage:
        """Take out what is portable; nothing from a game without transit."""
        if "transit" not in self._spec.abilities:
            return TransitPackage(transfer_id)
        told = await self.client.ask("POST", f"{self._body(avatar_id)}/release", {"transfer_id": transfer_id})
        package: TransitPackage = self.read(TransitPackage, told, "package")
        return package

    async def death(self, avatar_id: str) -> DeathEvent | None:
        """Return what happened to a destroyed body, None where the game knows nothing of deaths."""
        told = await self.client.ask("GET", f"{self._body(avatar_id)}/death")
        return None if told.get("death") is None else self.read(DeathEvent, told, "death")

    async def respawn(self, agent_id: str, avatar_id: str, option: str) -> str:
        """Bring a destroyed body back; return what the game says to it."""
        told = await self.client.ask("POST", f"{self._body(avatar_id)}/respawn", {"agent": agent_id, "option": option})
        self._take(told)
        return str(told.get("message", ""))

    async def snapshot(self) -> bytes:
        """Return the world's whole state."""
        told = await self.client.ask("GET", f"{self.path}/snapshot")
        try:
            return base64.b64decode(told["state"], validate=True)
        except (KeyError, TypeError, ValueError):
            raise WorldFailedError(f"The game {self._spec.name!r} gave no snapshot that can be read.") from None

    async def restore(self, data: bytes) -> None:
        """Become what the snapshot was taken of; the same seats must be open."""
        state = base64.b64encode(data).decode("ascii")
        self._take(await self.client.ask("POST", f"{self.path}/restore", {"state": state}))

    async def render(self) -> View | None:
        """Return what a viewer can draw, None if the game draws nothing."""
        if "render" not in self._spec.abilities:
            return None
        told = await self.client.ask("GET", f"{self.path}/view")
        return None if told.get("view") is None else self.read(View, told, "view")

    async def close(self) -> None:
        """Have the world let go over there, if it can still be told."""
        try:
            async with asyncio.timeout(5):
                await self.client.ask("DELETE", self.path)
        except (WsapError, TimeoutError):
            return  # it is gone, or will be replaced when it is begun again

    def read(self, kind: type[Any], told: Mapping[str, Any], name: str) -> Any:
        """Return a message of the protocol that an answer holds.

        Raises:
            WorldFailedError: it is none.
        """
        try:
            value = _CODEC.decode(kind, told.get(name), where=f"{name} of {self._spec.name!r}")
            # The game may go by another name here than in its own process.
            return replace(value, game_id=self._spec.name) if isinstance(value, Avatar) else value
        except WireError as error:
            raise WorldFailedError(f"The game {self._spec.name!r} answered what it may not: {error}") from error

    def _body(self, avatar_id: str) -> str:
        return f"{self.path}/avatars/{quote(avatar_id, safe='')}"

    def _take(self, told: Mapping[str, Any]) -> None:
        states = told.get("seats")
        for name, state in (states if isinstance(states, dict) else {}).items():
            if name in self._seats:
                self._seats[name].take(state)
