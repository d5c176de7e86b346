"""A game in a process of its own, for a nexus elsewhere: `serve_world(MyGame, name="my-game", port=7801)`.

What it serves is the bridge that `wsap_nexus.worlds.game_client` drives. The process holds running copies of
worlds; what lasts of them is with the nexus, as snapshots and logs. Register it there with
`POST /nexus/games`.
"""

from __future__ import annotations

import asyncio
import base64
import inspect
import secrets
import socket
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import uvicorn
from fastapi import APIRouter, FastAPI, Path, Request, Response
from pydantic import Field

from wsap_core.errors import ConfigError, UnknownNameError, UsageError
from wsap_core.factories import Reference
from wsap_core.protocol import Action, AvatarSpec, Entry
from wsap_core.protocol.wire import Codec
from wsap_core.seams.context import Context
from wsap_core.seams.game import GameAdapter
from wsap_core.specs import AdapterSpec
from wsap_core.version import PROTOCOL_VERSION
from wsap_nexus.http import errors
from wsap_nexus.http.auth import Caller
from wsap_nexus.http.guard import Guard, HttpLimits
from wsap_nexus.http.refusals import AbilityMissingError, KeyReusedError, UnauthorizedError
from wsap_nexus.http.replies import Key, Reply, Wait, pending, reply_of
from wsap_nexus.http.replies import Request as Shape
from wsap_nexus.http.timeouts import TimeoutProtocol
from wsap_nexus.worlds.port import LocalWorld
from wsap_nexus.worlds.seats import SeatPort, leave

# Any, in this module: JSON, and what games give.

ANSWERS_KEPT = 4096
"""Answers that are kept, to be given again under their keys."""
WORLDS_MOST = 1000
"""Worlds that one process holds."""
BODY_MOST = 64 * 2**20
"""Bytes of a body: snapshots are large."""
_SPEC_FIELDS = (
    "name", "summary", "title", "abilities", "seats", "seat_names", "timing", "deadline", "default_action",
    "achievements", "skills", "transfer_rules", "max_avatars", "max_worlds", "genre", "dimensions", "persistent",
    "protocol_version",
)  # fmt: skip

Id = Annotated[str, Path(min_length=1, max_length=200)]


class Begin(Shape):
    """How a world begins."""

    world_seed: int = 0
    seed: int = 0
    options: dict[str, Any] = Field(default_factory=dict)


class ActShape(Shape):
    """An action."""

    action: dict[str, Any]


class WantedShape(Shape):
    """A body that is wanted."""

    wanted: dict[str, Any] = Field(default_factory=dict)


class EntryShape(Shape):
    """What an agent brings along."""

    entry: dict[str, Any]


class TransferShape(Shape):
    """A transfer."""

    transfer_id: str = Field(min_length=1, max_length=200)


class ModeShape(Shape):
    """How a body is left."""

    mode: str = Field(default="dormant", pattern="^(dormant|suspend|despawn)$")


class RespawnShape(Shape):
    """How a body lives again."""

    agent: str = Field(min_length=1, max_length=200)
    option: str = Field(default="", max_length=200)


class StateShape(Shape):
    """A world's state."""

    state: str
    """Base64."""


@dataclass
class Running:
    """A world that runs here."""

    face: LocalWorld
    seats: dict[str, SeatPort] = field(default_factory=dict)

    def seat(self, name: str) -> SeatPort:
        """Return an open seat.

        Raises:
            UnknownNameError: there is none of that name.
        """
        if name not in self.seats:
            raise UnknownNameError("seat", name, self.seats)
        return self.seats[name]

    def states(self) -> dict[str, Any]:
        """Return how the seats stand."""
        return {name: state_of(seat) for name, seat in sorted(self.seats.items())}


def state_of(seat: SeatPort) -> dict[str, Any]:
    """Return how a seat stands."""
    return {"done": seat.done, "left": seat.left}


class Host:
    """The worlds of one game in this process, and what was done under which key and transfer.

    Args:
        spec: the game.
    """

    def __init__(self, spec: AdapterSpec) -> None:
        self.spec = spec
        self.process_id = secrets.token_hex(8)
        """Another each time the process is started: what was in memory before is gone."""
        self.worlds: dict[str, Running] = {}
        self.codec = Codec()
        self._answers: OrderedDict[str, tuple[str, asyncio.Task[Reply]]] = OrderedDict()
        self._admitted: dict[str, tuple[str, str]] = {}
        self._withdrawn: set[str] = set()

    def about(self) -> dict[str, Any]:
        """Return what the game is."""
        return {
            "protocol_version": PROTOCOL_VERSION,
            "boot": self.process_id,
            "game": {name: getattr(self.spec, name) for name in _SPEC_FIELDS},
        }

    def world(self, world_id: str) -> Running:
        """Return a world.

        Raises:
            UnknownNameError: there is none of that name.
        """
        if world_id not in self.worlds:
            raise UnknownNameError("world", world_id, ())
        return self.worlds[world_id]

    async def begin(self, world_id: str, how: Begin) -> dict[str, Any]:
        """Make a world, in place of whatever had its name."""
        if world_id not in self.worlds and len(self.worlds) >= WORLDS_MOST:
            raise UsageError(f"This process has {WORLDS_MOST} worlds, as many as it may.")
        await self.end(world_id)
        running = self.worlds[world_id] = Running(LocalWorld(self.spec, how.world_seed, how.options, Context()))
        try:
            await running.face.begin(how.seed)
        except BaseException:
            await self.end(world_id)
            raise
        return {"can_snapshot": running.face.can_snapshot}

    async def end(self, world_id: str) -> None:
        """Let go of a world, if it is there."""
        running = self.worlds.pop(world_id, None)
        self._admitted = {t: where for t, where in self._admitted.items() if where[0] != world_id}
        if running is not None:
            await running.face.close()

    async def admit(self, world_id: str, avatar_id: str, entry: Entry) -> dict[str, Any]:
        """Let skills and items in, unless the transfer was withdrawn."""
        if entry.transfer_id in self._withdrawn:
            raise UsageError(f"The transfer {entry.transfer_id!r} was withdrawn.")
        running = self.world(world_id)
        self.needs("transit")
        receipt = await running.face.admit(avatar_id, entry)
        self._admitted[entry.transfer_id] = (world_id, avatar_id)
        return {"receipt": receipt, "seats": running.states()}

    async def withdraw(self, transfer_id: str) -> dict[str, Any]:
        """Undo what was let in under a transfer, and let nothing in under it from now on."""
        self._withdrawn.add(transfer_id)
        where = self._admitted.pop(transfer_id, None)
        if where is None or where[0] not in self.worlds:
            return {"known": False, "boot": self.process_id, "package": None}
        package = await self.worlds[where[0]].face.release(where[1], f"{transfer_id}:back")
        return {"known": True, "boot": self.process_id, "package": package}

    def needs(self, ability: str) -> None:
        """Refuse what the game can't do.

        Raises:
            AbilityMissingError: it declares no such ability.
        """
        if ability not in self.spec.abilities:
            raise AbilityMissingError(f"{self.spec.display_title} has no ability {ability!r}.")

    async def once(self, key: str | None, what: str, do: Callable[[], Awaitable[Any]], wait: float) -> Response:
        """Do something once for a key, and answer with what came of it, or that it is not through yet."""
        kept = self._answers.get(key) if key is not None else None
        if kept is not None and kept[0] != what:
            raise KeyReusedError("The idempotency key was used for another request.")
        if kept is None:

            async def doing() -> Reply:
                return reply_of(await do())

            kept = (what, asyncio.ensure_future(doing()))
            self._answers[key or secrets.token_hex(8)] = kept
            while len(self._answers) > ANSWERS_KEPT:
                self._answers.popitem(last=False)
        task = kept[1]
        done, _ = await asyncio.wait({task}, timeout=wait)
        if not done:
            return pending("It is not through yet; ask again with the same key.")
        reply = task.result()
        return Response(reply.body, reply.status, media_type="application/json")


class _OneToken:
    """Stands where a nexus has its tokens: one is good for everything."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    def check(self, header: str | None) -> Caller:
        """Return who asks.

        Raises:
            UnauthorizedError: the token is another.
        """
        scheme, _, token = (header or "").partition(" ")
        if scheme.lower() != "bearer" or not secrets.compare_digest(token.strip().encode(), self._token):
            raise UnauthorizedError("The token is not known here.")
        return Caller(None)


def world_app(spec: AdapterSpec, *, token: str | None = None, limits: HttpLimits | None = None) -> FastAPI:
    """Return the bridge of a game, as an ASGI application.

    Args:
        spec: the game.
        token: what whoever drives it has to show; None for nothing.
        limits: what a request may take.
    """
    app = FastAPI(title=f"WSAP bridge: {spec.name}", version=PROTOCOL_VERSION, docs_url=None, redoc_url=None)
    app.state.host = Host(spec)
    errors.install(app)
    app.include_router(router)
    app.add_middleware(
        Guard,
        tokens=None if token is None else _OneToken(token),
        limits=limits or HttpLimits(body=BODY_MOST, body_seconds=60, rate=1e6, burst=1e6),
        hosts=frozenset() if token is None else None,
        guarded=token is not None,
        clock=time.monotonic,
        data_paths=("/",),
    )
    return app


def serve_world(
    game: AdapterSpec | Reference | GameAdapter,
    *,
    name: str = "",
    host: str = "127.0.0.1",
    port: int = 7801,
    token: str | None = None,
    ready: Callable[[str], None] | None = None,
    **described: Any,
) -> None:
    """Serve a game to a nexus until the process is told to stop.

    Args:
        game: a spec, a class or factory, `module:attribute`, or an adapter that is there already (for one world).
        name: what the game is called; needed unless `game` is a spec.
        host: where to listen; other than loopback only with a token.
        port: the port; 0 for any that is free.
        token: what the nexus has to show; register it along with the address.
        ready: told the base URL once requests are answered; it is printed when None.
        described: what else a spec says: `abilities`, `seats`, `summary`, `skills`, `transfer_rules` ...

    Raises:
        ConfigError: it would be open to other machines.
        UsageError: there is no name, or something else listens there.
    """
    from wsap_nexus.http.listening import Address, listen, url_of

    address = Address(host, port)
    address.check()
    if not address.is_loopback and token is None:
        raise ConfigError("A game that other machines can reach needs a token; give one, or listen on 127.0.0.1.")
    spec = spec_for(game, name, described)
    listening: socket.socket = listen(address)
    url = url_of(*listening.getsockname()[:2])
    tell = ready or (lambda where: print(f"{spec.name} is served at {where}", flush=True))  # noqa: T201 its only sign

    class _Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            tell(url.rstrip("/"))

    config = uvicorn.Config(
        world_app(spec, token=token), http=TimeoutProtocol, ws="none", log_level="warning", access_log=False,
        lifespan="off", timeout_graceful_shutdown=2, server_header=False,
    )  # fmt: skip
    _Server(config).run(sockets=[listening])


def spec_for(game: AdapterSpec | Reference | GameAdapter, name: str, described: Mapping[str, Any]) -> AdapterSpec:
    """Return the description of a game that is to be served.

    Raises:
        UsageError: it has no name.
    """
    if isinstance(game, AdapterSpec):
        return replace(game, **described) if described else game
    if not name:
        raise UsageError("A game that is served needs a name: serve_world(game, name=...).")
    factory: Any = game
    if not (isinstance(game, str) or inspect.isclass(game) or inspect.isroutine(game)):
        factory = lambda: game  # noqa: E731 the one that is there already
    return AdapterSpec(**{"summary": name, **described, "name": name, "factory": factory})


# --- routes -------------------------------------------------------------------------------------

router = APIRouter()


def _host(request: Request) -> Host:
    host: Host = request.app.state.host
    return host


def _reply(body: Any, status: int = 200) -> Response:
    reply = reply_of(body, status)
    return Response(reply.body, reply.status, media_type="application/json")


@router.get("/")
async def about(request: Request) -> Response:
    """What the game is."""
    return _reply(_host(request).about())


@router.put("/worlds/{world_id}")
async def begin(request: Request, world_id: Id, how: Begin, key: Key = None, wait: Wait = 10.0) -> Response:
    """Make a world and begin its first episode; whatever had its name is gone."""
    host = _host(request)
    return await host.once(key, f"begin {world_id} {how!r}", lambda: host.begin(world_id, how), wait)


@router.delete("/worlds/{world_id}")
async def end(request: Request, world_id: Id) -> Response:
    """Let go of a world."""
    await _host(request).end(world_id)
    return _reply({"ended": True})


@router.post("/worlds/{world_id}/seats/{seat}/jack-in")
async def jack_in(request: Request, world_id: Id, seat: Id, key: Key = None, wait: Wait = 10.0) -> Response:
    """Bind an agent to the avatar it has, or a new one: the seat's description, actions and state."""
    host = _host(request)
    running = host.world(world_id)

    async def do() -> dict[str, Any]:
        opened = running.seats[seat] = await running.face.open_seat(seat)
        default = opened.default_action()
        return {
            "description": opened.game_description,
            "action_space": opened.action_space,
            "default_action": await default if inspect.isawaitable(default) else default,
            **state_of(opened),
        }

    return await host.once(key, f"jack-in {world_id} {seat}", do, wait)


@router.get("/worlds/{world_id}/seats/{seat}/description")
async def description(request: Request, world_id: Id, seat: Id) -> Response:
    """The game, its goals and mechanics."""
    return _reply({"description": _host(request).world(world_id).seat(seat).game_description})


@router.get("/worlds/{world_id}/seats/{seat}/action-space")
async def action_space(request: Request, world_id: Id, seat: Id) -> Response:
    """All actions there are."""
    return _reply({"action_space": _host(request).world(world_id).seat(seat).action_space})


@router.get("/worlds/{world_id}/seats/{seat}/observation")
async def observation(request: Request, world_id: Id, seat: Id, wait: Wait = 10.0) -> Response:
    """What the seat perceives at its next decision point; 202 when that is not yet."""
    face = _host(request).world(world_id).seat(seat)
    try:
        async with asyncio.timeout(wait):
            return _reply({"observation": await face.observe()})
    except TimeoutError:
        return pending("There is nothing to decide yet.")


@router.post("/worlds/{world_id}/seats/{seat}/act")
async def act(
    request: Request, world_id: Id, seat: Id, asked: ActShape, key: Key = None, wait: Wait = 10.0
) -> Response:
    """Carry out an action; 202 when the world has not resolved it yet, and the same key asks again."""
    host = _host(request)
    face = host.world(world_id).seat(seat)
    action = host.codec.decode(Action, asked.action, where="action")

    async def do() -> dict[str, Any]:
        outcome = await face.step(action)
        return {
            "action": outcome.action,
            "result": outcome.result,
            "stepped": outcome.stepped,
            "out": outcome.left,
            "death": outcome.death,
            **state_of(face),
        }

    return await host.once(key, f"act {world_id} {seat} {asked!r}", do, wait)


@router.post("/worlds/{world_id}/seats/{seat}/jack-out")
async def jack_out(
    request: Request, world_id: Id, seat: Id, asked: ModeShape, key: Key = None, wait: Wait = 10.0
) -> Response:
    """Take an agent out of its body by force."""
    host = _host(request)
    face = host.world(world_id).seat(seat)

    async def do() -> dict[str, Any]:
        return {"jack_out": await leave(face, asked.mode)}

    return await host.once(key, f"jack-out {world_id} {seat} {asked.mode}", do, wait)


@router.get("/worlds/{world_id}/seats/{seat}/view")
async def seat_view(request: Request, world_id: Id, seat: Id) -> Response:
    """What the seat sees, to be drawn."""
    host = _host(request)
    host.needs("render")
    return _reply({"view": await host.world(world_id).seat(seat).look()})


@router.get("/worlds/{world_id}/seats/{seat}/avatars")
async def avatars(request: Request, world_id: Id, seat: Id) -> Response:
    """The bodies that an agent has."""
    return _reply({"avatars": list(await _host(request).world(world_id).face.avatars(seat))})


@router.post("/worlds/{world_id}/seats/{seat}/avatars")
async def create_avatar(
    request: Request, world_id: Id, seat: Id, asked: WantedShape, key: Key = None, wait: Wait = 10.0
) -> Response:
    """Make a body for an agent; null where one is made when it jacks in."""
    host = _host(request)
    face = host.world(world_id).face
    wanted = host.codec.decode(AvatarSpec, asked.wanted, where="wanted avatar")

    async def do() -> dict[str, Any]:
        return {"avatar": await face.create_avatar(seat, wanted)}

    return await host.once(key, f"avatar {world_id} {seat} {asked!r}", do, wait)


@router.post("/worlds/{world_id}/avatars/{avatar_id}/admit")
async def admit(
    request: Request, world_id: Id, avatar_id: Id, asked: EntryShape, key: Key = None, wait: Wait = 10.0
) -> Response:
    """Let skills and items in, once for a transfer's id."""
    host = _host(request)
    entry = host.codec.decode(Entry, asked.entry, where="entry")
    what = f"admit {world_id} {avatar_id} {asked!r}"
    return await host.once(key, what, lambda: host.admit(world_id, avatar_id, entry), wait)


@router.post("/worlds/{world_id}/avatars/{avatar_id}/release")
async def release(
    request: Request, world_id: Id, avatar_id: Id, asked: TransferShape, key: Key = None, wait: Wait = 10.0
) -> Response:
    """Take out what is portable, once for a transfer's id."""
    host = _host(request)
    host.needs("transit")
    face = host.world(world_id).face

    async def do() -> dict[str, Any]:
        return {"package": await face.release(avatar_id, asked.transfer_id)}

    return await host.once(key, f"release {world_id} {avatar_id} {asked.transfer_id}", do, wait)


@router.get("/worlds/{world_id}/avatars/{avatar_id}/death")
async def death(request: Request, world_id: Id, avatar_id: Id) -> Response:
    """What happened to a destroyed body; null where the game knows nothing of deaths."""
    return _reply({"death": await _host(request).world(world_id).face.death(avatar_id)})


@router.post("/worlds/{world_id}/avatars/{avatar_id}/respawn")
async def respawn(
    request: Request, world_id: Id, avatar_id: Id, asked: RespawnShape, key: Key = None, wait: Wait = 10.0
) -> Response:
    """Bring a destroyed body back."""
    host = _host(request)
    running = host.world(world_id)

    async def do() -> dict[str, Any]:
        message = await running.face.respawn(asked.agent, avatar_id, asked.option)
        return {"message": message, "seats": running.states()}

    return await host.once(key, f"respawn {world_id} {avatar_id} {asked!r}", do, wait)


@router.get("/worlds/{world_id}/snapshot")
async def snapshot(request: Request, world_id: Id) -> Response:
    """The world's whole state."""
    host = _host(request)
    face = host.world(world_id).face
    host.needs("snapshot")
    return _reply({"state": base64.b64encode(await face.snapshot()).decode("ascii")})


@router.post("/worlds/{world_id}/restore")
async def restore(request: Request, world_id: Id, asked: StateShape) -> Response:
    """Become what a snapshot was taken of."""
    host = _host(request)
    running = host.world(world_id)
    host.needs("snapshot")
    try:
        data = base64.b64decode(asked.state, validate=True)
    except ValueError:
        raise UsageError("The state is not base64.") from None
    await running.face.restore(data)
    return _reply({"seats": running.states()})


@router.get("/worlds/{world_id}/view")
async def view(request: Request, world_id: Id) -> Response:
    """What onlookers see, to be drawn."""
    host = _host(request)
    host.needs("render")
    return _reply({"view": await host.world(world_id).face.render()})


@router.post("/transfers/{transfer_id}/withdraw")
async def withdraw(request: Request, transfer_id: Id) -> Response:
    """Undo what was let in under a transfer, and let nothing in under it from now on."""
    return _reply(await _host(request).withdraw(transfer_id))
