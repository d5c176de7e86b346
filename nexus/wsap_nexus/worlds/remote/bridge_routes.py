"""The routes of a game's bridge; docs/reference/wire-api.md describes them ("The bridge of a game").

A route that changes something takes an idempotency key: requests with the same key take effect once. It responds 202
if it takes longer than `wait` seconds; repeat the request with the same key for the result. Each reply repeats the key
of its request as `request`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import MISSING, fields
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Request, Response
from pydantic import Field, create_model

from wsap_core.protocol.base import Part
from wsap_core.protocol.values import JsonValue
from wsap_nexus.http.replies import Key, Wait, answer, pending
from wsap_nexus.http.replies import Request as Shape
from wsap_nexus.worlds.operations import (
    OPERATIONS,
    Admit,
    Begin,
    Close,
    DefaultAction,
    Observe,
    OpenSeat,
    Operation,
    Reply,
    Route,
    kinds_of,
    seat_in,
)
from wsap_nexus.worlds.port import LocalWorld
from wsap_nexus.worlds.remote.game_host import GameHost, echoing

router = APIRouter()

Id = Annotated[str, Path(min_length=1, max_length=200)]
WORLD = "/worlds/{world_id}"


async def _host(request: Request) -> GameHost:
    host: GameHost = request.app.state.host
    return host


Host = Annotated[GameHost, Depends(_host)]


async def _world(host: Host, world_id: Id) -> LocalWorld:
    return host.world(world_id)


World = Annotated[LocalWorld, Depends(_world)]


async def _once(request: Request, host: Host, key: Key = None, wait: Wait = 10.0) -> Callable[..., Awaitable[Response]]:
    async def once(do: Callable[[], Awaitable[Any]], asked: Shape | None = None) -> Response:
        return await host.once(key, f"{request.method} {request.url.path} {asked!r}", do, wait)

    return once


Endpoint = Callable[..., Awaitable[Response]]
Ask = Callable[[], Awaitable[Reply]]

Once = Annotated[Callable[..., Awaitable[Response]], Depends(_once)]
"""Runs a request's operation once per idempotency key; the key can't be used for another request."""


def shape_of(kind: type[Operation[Any]]) -> type[Shape]:
    """Return the body of an operation's requests: its fields that are not in the path."""
    assert kind.route is not None
    shape: dict[str, Any] = {}
    for known in fields(kind):
        if known.name in kind.route.names:
            continue
        type_ = kinds_of(kind)[known.name]
        if type_ is bytes:
            type_ = str
        if not issubclass(type_, Part):
            default = ... if known.default is MISSING else known.default
            shape[known.name] = (type_, Field(default, **known.metadata))
        elif known.default_factory is MISSING:
            shape[known.name] = (dict[str, JsonValue], ...)
        else:
            shape[known.name] = (dict[str, JsonValue], Field(default_factory=dict))
    return create_model(f"{kind.__name__}Shape", __base__=Shape, __doc__=kind.__doc__, **shape)


class BeginShape(Shape):
    """The seeds and options of a new world."""

    world_seed: int = 0
    seed: int = 0
    options: dict[str, JsonValue] = Field(default_factory=dict)


def _route(kind: type[Operation[Any]]) -> Callable[[Endpoint], Endpoint]:
    """Serve an operation at its route by a function that does more than ask the world."""

    def serve(endpoint: Endpoint) -> Endpoint:
        assert kind.route is not None
        if endpoint.__annotations__.get("asked") == "Shape":
            endpoint.__annotations__["asked"] = shape_of(kind)  # FastAPI reads the body's type there
        return router.api_route(WORLD + kind.route.path, methods=[kind.route.method])(endpoint)

    return serve


def _serve(kind: type[Operation[Any]], route: Route) -> None:
    def operation(request: Request, host: GameHost, world: LocalWorld, asked: Shape | None = None) -> Ask:
        host.needs(kind.ability)
        values = {**request.path_params, **(asked.model_dump() if asked else {})}

        async def do() -> Reply:
            return await kind.of(values).hosted(world.world)

        return do

    async def get(request: Request, host: Host, world: World, key: Key = None) -> Response:
        return answer(echoing(await operation(request, host, world)(), key))

    async def change(request: Request, host: Host, world: World, once: Once, asked: Shape, key: Key = None) -> Response:
        do = operation(request, host, world, asked)
        return await once(do, asked) if route.once else answer(echoing(await do(), key))

    change.__annotations__["asked"] = shape_of(kind)  # FastAPI reads the body's type there
    endpoint = get if route.method == "GET" else change
    router.add_api_route(WORLD + route.path, endpoint, methods=[route.method], name=kind.name)


_OWN = (Begin, Close, OpenSeat, Observe, Admit)  # below: their routes do more than ask the world

for _kind in OPERATIONS.values():
    if _kind.route is not None and _kind not in _OWN:
        _serve(_kind, _kind.route)


# --- routes that do more than call the world ----------------------------------------------------


@router.get("/")
async def about(host: Host, key: Key = None) -> Response:
    """The game's description."""
    return answer(echoing(host.about(), key))


@_route(Begin)
async def begin(host: Host, world_id: Id, how: BeginShape, once: Once) -> Response:
    """Create a world and start its first episode; a world of the same name is closed first."""
    return await once(partial(host.begin, world_id, **dict(how)), how)


@_route(Close)
async def end(host: Host, world_id: Id, key: Key = None) -> Response:
    """Close a world."""
    await host.end(world_id)
    return answer(echoing({"ended": True}, key))


@_route(OpenSeat)
async def jack_in(world: World, seat: Id, once: Once) -> Response:
    """Bind an agent to its avatar, or a new one; returns the seat's description, actions and state."""

    async def do() -> dict[str, Any]:
        return {**await OpenSeat(seat).hosted(world.world), **await DefaultAction(seat).hosted(world.world)}

    return await once(do)


@router.get(WORLD + "/seats/{seat}/description")
async def description(world: World, seat: Id, key: Key = None) -> Response:
    """The game, its goals and mechanics."""
    return answer(echoing({"description": seat_in(world.world, seat).game_description}, key))


@router.get(WORLD + "/seats/{seat}/action-space")
async def action_space(world: World, seat: Id, key: Key = None) -> Response:
    """All actions of the seat."""
    return answer(echoing({"action_space": seat_in(world.world, seat).action_space}, key))


@_route(Observe)
async def observation(world: World, seat: Id, wait: Wait = 10.0, key: Key = None) -> Response:
    """The seat's observation at its next decision point; 202 while there is none."""
    try:
        async with asyncio.timeout(wait):
            return answer(echoing(await Observe(seat).hosted(world.world), key))
    except TimeoutError:
        return pending("There is nothing to decide yet.")


@_route(Admit)
async def admit(host: Host, world_id: Id, avatar: Id, asked: Shape, once: Once) -> Response:
    """Import skills and items, once per transfer."""
    return await once(partial(host.admit, world_id, {"avatar": avatar, **asked.model_dump()}), asked)


@router.post("/transfers/{transfer_id}/withdraw")
async def withdraw(host: Host, transfer_id: Id, key: Key = None) -> Response:
    """Undo the import of a transfer, and refuse any later import of it."""
    return answer(echoing(await host.withdraw(transfer_id), key))
