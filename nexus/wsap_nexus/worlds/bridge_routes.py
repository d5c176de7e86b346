"""The routes of a game's bridge; docs/reference/wire-api.md describes them ("The bridge of a game").

A route that changes something takes an idempotency key: requests with the same key take effect once. It responds 202
if it takes longer than `wait` seconds; repeat the request with the same key for the result. Each reply repeats the key
of its request as `request`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Request, Response
from pydantic import Field

from wsap_core.protocol.values import JsonValue
from wsap_nexus.http.replies import Key, Wait, answer, pending
from wsap_nexus.http.replies import Request as Shape
from wsap_nexus.worlds.bridge import ROUTES, Bridge
from wsap_nexus.worlds.game_host import GameHost, echoing

router = APIRouter()

Id = Annotated[str, Path(min_length=1, max_length=200)]
WORLD = "/worlds/{world_id}"


async def _host(request: Request) -> GameHost:
    host: GameHost = request.app.state.host
    return host


Host = Annotated[GameHost, Depends(_host)]


async def _world(host: Host, world_id: Id) -> Bridge:
    return host.world(world_id)


World = Annotated[Bridge, Depends(_world)]


async def _once(request: Request, host: Host, key: Key = None, wait: Wait = 10.0) -> Callable[..., Awaitable[Response]]:
    async def once(do: Callable[[], Awaitable[Any]], asked: Shape | None = None) -> Response:
        return await host.once(key, f"{request.method} {request.url.path} {asked!r}", do, wait)

    return once


Once = Annotated[Callable[..., Awaitable[Response]], Depends(_once)]
"""Runs a request's operation once per idempotency key; the key can't be used for another request."""


class BeginShape(Shape):
    """The seeds and options of a new world."""

    world_seed: int = 0
    seed: int = 0
    options: dict[str, JsonValue] = Field(default_factory=dict)


class ActShape(Shape):
    """An action."""

    action: dict[str, JsonValue]


class WantedShape(Shape):
    """The avatar to create."""

    wanted: dict[str, JsonValue] = Field(default_factory=dict)


class EntryShape(Shape):
    """The skills and items that an agent brings."""

    entry: dict[str, JsonValue]


class TransferShape(Shape):
    """A transfer."""

    transfer_id: str = Field(min_length=1, max_length=200)


class ModeShape(Shape):
    """The state in which an avatar is left."""

    mode: str = Field(default="dormant", pattern="^(dormant|suspend|despawn)$")


class RespawnShape(Shape):
    """The agent and the respawn option of a destroyed avatar."""

    agent: str = Field(min_length=1, max_length=200)
    option: str = Field(default="", max_length=200)


class StateShape(Shape):
    """A world's state."""

    state: str
    """Base64."""


_BODIES: Mapping[str, type[Shape]] = {
    "resolve": ActShape,
    "leave": ModeShape,
    "create_avatar": WantedShape,
    "release": TransferShape,
    "respawn": RespawnShape,
    "restore": StateShape,
}
_ASKED = (*_BODIES, "look", "avatars", "death", "snapshot", "render")  # forwarded unchanged to the world


def _serve(name: str) -> None:
    route = ROUTES[name]

    def operation(request: Request, host: GameHost, world: Bridge, asked: Shape | None = None) -> Any:
        host.needs(route.ability)
        in_path = {key: value for key, value in request.path_params.items() if key != "world_id"}
        return partial(getattr(world, name), **in_path, **(asked.model_dump() if asked else {}))

    async def get(request: Request, host: Host, world: World, key: Key = None) -> Response:
        return answer(echoing(await operation(request, host, world)(), key))

    async def change(request: Request, host: Host, world: World, once: Once, asked: Shape, key: Key = None) -> Response:
        do = operation(request, host, world, asked)
        return await once(do, asked) if route.once else answer(echoing(await do(), key))

    change.__annotations__["asked"] = _BODIES.get(name, Shape)  # FastAPI reads the body's type there
    endpoint = get if route.method == "GET" else change
    router.add_api_route(WORLD + route.path, endpoint, methods=[route.method], name=name)


for _name in _ASKED:
    _serve(_name)


# --- routes that do more than call the world ----------------------------------------------------


@router.get("/")
async def about(host: Host, key: Key = None) -> Response:
    """The game's description."""
    return answer(echoing(host.about(), key))


@router.put(WORLD)
async def begin(host: Host, world_id: Id, how: BeginShape, once: Once) -> Response:
    """Create a world and start its first episode; a world of the same name is closed first."""
    return await once(partial(host.begin, world_id, **dict(how)), how)


@router.delete(WORLD)
async def end(host: Host, world_id: Id, key: Key = None) -> Response:
    """Close a world."""
    await host.end(world_id)
    return answer(echoing({"ended": True}, key))


@router.post(WORLD + "/seats/{seat}/jack-in")
async def jack_in(world: World, seat: Id, once: Once) -> Response:
    """Bind an agent to its avatar, or a new one; returns the seat's description, actions and state."""

    async def do() -> dict[str, Any]:
        return {**await world.open_seat(seat), **await world.default_action(seat)}

    return await once(do)


@router.get(WORLD + "/seats/{seat}/description")
async def description(world: World, seat: Id, key: Key = None) -> Response:
    """The game, its goals and mechanics."""
    return answer(echoing({"description": world.seat(seat).game_description}, key))


@router.get(WORLD + "/seats/{seat}/action-space")
async def action_space(world: World, seat: Id, key: Key = None) -> Response:
    """All actions of the seat."""
    return answer(echoing({"action_space": world.seat(seat).action_space}, key))


@router.get(WORLD + "/seats/{seat}/observation")
async def observation(world: World, seat: Id, wait: Wait = 10.0, key: Key = None) -> Response:
    """The seat's observation at its next decision point; 202 while there is none."""
    try:
        async with asyncio.timeout(wait):
            return answer(echoing(await world.observe(seat), key))
    except TimeoutError:
        return pending("There is nothing to decide yet.")


@router.post(WORLD + "/avatars/{avatar}/admit")
async def admit(host: Host, world_id: Id, avatar: Id, asked: EntryShape, once: Once) -> Response:
    """Import skills and items, once per transfer."""
    return await once(partial(host.admit, world_id, avatar, asked.entry), asked)


@router.post("/transfers/{transfer_id}/withdraw")
async def withdraw(host: Host, transfer_id: Id, key: Key = None) -> Response:
    """Undo the import of a transfer, and refuse any later import of it."""
    return answer(echoing(await host.withdraw(transfer_id), key))
