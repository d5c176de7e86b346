"""The routes of a game's bridge; docs/reference/wire-api.md describes them ("The bridge of a game").

A route that changes something takes an idempotency key: repeated with the same key it is done once. It answers
202 when it takes longer than `wait` seconds; the same key then asks for the result.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Request, Response
from pydantic import Field

from wsap_core.errors import UsageError
from wsap_core.protocol import Action, AvatarSpec, Entry
from wsap_core.protocol.values import JsonValue
from wsap_nexus.http.replies import Key, Wait, answer, pending
from wsap_nexus.http.replies import Request as Shape
from wsap_nexus.worlds.game_host import GameHost, HostedWorld, state_of
from wsap_nexus.worlds.seats import SeatPort, default_action, leave

router = APIRouter()

Id = Annotated[str, Path(min_length=1, max_length=200)]


async def _host(request: Request) -> GameHost:
    host: GameHost = request.app.state.host
    return host


Host = Annotated[GameHost, Depends(_host)]


async def _world(host: Host, world_id: Id) -> HostedWorld:
    return host.world(world_id)


World = Annotated[HostedWorld, Depends(_world)]


async def _seat(world: World, seat: Id) -> SeatPort:
    return world.seat(seat)


Seat = Annotated[SeatPort, Depends(_seat)]


async def _once(request: Request, host: Host, key: Key = None, wait: Wait = 10.0) -> Callable[..., Awaitable[Response]]:
    async def once(do: Callable[[], Awaitable[Any]], asked: Shape | None = None) -> Response:
        return await host.once(key, f"{request.method} {request.url.path} {asked!r}", do, wait)

    return once


Once = Annotated[Callable[..., Awaitable[Response]], Depends(_once)]
"""Does what a request asks for once under its idempotency key, which is for no other request."""


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


# --- the game and its worlds --------------------------------------------------------------------


@router.get("/")
async def about(host: Host) -> Response:
    """The game's description."""
    return answer(host.about())


@router.put("/worlds/{world_id}")
async def begin(host: Host, world_id: Id, how: BeginShape, once: Once) -> Response:
    """Make a world and begin its first episode; a world of the same name is closed first."""

    async def do() -> dict[str, Any]:
        return await host.begin(world_id, world_seed=how.world_seed, seed=how.seed, options=how.options)

    return await once(do, how)


@router.delete("/worlds/{world_id}")
async def end(host: Host, world_id: Id) -> Response:
    """Close a world."""
    await host.end(world_id)
    return answer({"ended": True})


@router.get("/worlds/{world_id}/snapshot")
async def snapshot(host: Host, world: World) -> Response:
    """The world's whole state."""
    host.needs("snapshot")
    return answer({"state": base64.b64encode(await world.port.snapshot()).decode("ascii")})


@router.post("/worlds/{world_id}/restore")
async def restore(host: Host, world: World, asked: StateShape) -> Response:
    """Restore a snapshot; the same seats must be open."""
    host.needs("snapshot")
    try:
        data = base64.b64decode(asked.state, validate=True)
    except ValueError:
        raise UsageError("The state is not base64.") from None
    await world.port.restore(data)
    return answer({"seats": world.states()})


@router.get("/worlds/{world_id}/view")
async def view(host: Host, world: World) -> Response:
    """The view for spectators."""
    host.needs("render")
    return answer({"view": await world.port.render()})


# --- seats --------------------------------------------------------------------------------------


@router.post("/worlds/{world_id}/seats/{seat}/jack-in")
async def jack_in(world: World, seat: Id, once: Once) -> Response:
    """Bind an agent to its avatar, or a new one; answers the seat's description, actions and state."""

    async def do() -> dict[str, Any]:
        opened = world.seats[seat] = await world.port.open_seat(seat)
        return {
            "description": opened.game_description,
            "action_space": opened.action_space,
            "default_action": await default_action(opened),
            **state_of(opened),
        }

    return await once(do)


@router.get("/worlds/{world_id}/seats/{seat}/description")
async def description(port: Seat) -> Response:
    """The game, its goals and mechanics."""
    return answer({"description": port.game_description})


@router.get("/worlds/{world_id}/seats/{seat}/action-space")
async def action_space(port: Seat) -> Response:
    """All actions of the seat."""
    return answer({"action_space": port.action_space})


@router.get("/worlds/{world_id}/seats/{seat}/observation")
async def observation(port: Seat, wait: Wait = 10.0) -> Response:
    """The seat's observation at its next decision point; 202 while there is none."""
    try:
        async with asyncio.timeout(wait):
            return answer({"observation": await port.observe(), "ended": port.ended})
    except TimeoutError:
        return pending("There is nothing to decide yet.")


@router.post("/worlds/{world_id}/seats/{seat}/act")
async def act(host: Host, port: Seat, asked: ActShape, once: Once) -> Response:
    """Carry out an action; 202 while the world has not resolved it."""
    action = host.codec.decode(Action, asked.action, where="action")

    async def do() -> dict[str, Any]:
        outcome = await port.step(action)
        return {
            "action": outcome.action,
            "result": outcome.result,
            "stepped": outcome.stepped,
            "out": outcome.left,
            "death": outcome.death,
            **state_of(port),
        }

    return await once(do, asked)


@router.post("/worlds/{world_id}/seats/{seat}/jack-out")
async def jack_out(port: Seat, asked: ModeShape, once: Once) -> Response:
    """Remove an agent from its avatar by force."""

    async def do() -> dict[str, Any]:
        return {"jack_out": await leave(port, asked.mode)}

    return await once(do, asked)


@router.get("/worlds/{world_id}/seats/{seat}/view")
async def seat_view(host: Host, port: Seat) -> Response:
    """The seat's view."""
    host.needs("render")
    return answer({"view": await port.look()})


# --- avatars and transfers ----------------------------------------------------------------------


@router.get("/worlds/{world_id}/seats/{seat}/avatars")
async def avatars(world: World, seat: Id) -> Response:
    """The avatars of an agent."""
    return answer({"avatars": list(await world.port.avatars(seat))})


@router.post("/worlds/{world_id}/seats/{seat}/avatars")
async def create_avatar(host: Host, world: World, seat: Id, asked: WantedShape, once: Once) -> Response:
    """Create an avatar for an agent; null where jacking in creates it."""
    wanted = host.codec.decode(AvatarSpec, asked.wanted, where="wanted avatar")

    async def do() -> dict[str, Any]:
        return {"avatar": await world.port.create_avatar(seat, wanted)}

    return await once(do, asked)


@router.post("/worlds/{world_id}/avatars/{avatar_id}/admit")
async def admit(host: Host, world_id: Id, avatar_id: Id, asked: EntryShape, once: Once) -> Response:
    """Import skills and items, once for each transfer."""
    entry = host.codec.decode(Entry, asked.entry, where="entry")
    return await once(lambda: host.admit(world_id, avatar_id, entry), asked)


@router.post("/worlds/{world_id}/avatars/{avatar_id}/release")
async def release(host: Host, world: World, avatar_id: Id, asked: TransferShape, once: Once) -> Response:
    """Export the portable items, once for each transfer."""
    host.needs("transit")

    async def do() -> dict[str, Any]:
        return {"package": await world.port.release(avatar_id, asked.transfer_id)}

    return await once(do, asked)


@router.get("/worlds/{world_id}/avatars/{avatar_id}/death")
async def death(world: World, avatar_id: Id) -> Response:
    """The death of a destroyed avatar; null where the game reports no deaths."""
    return answer({"death": await world.port.death(avatar_id)})


@router.post("/worlds/{world_id}/avatars/{avatar_id}/respawn")
async def respawn(world: World, avatar_id: Id, asked: RespawnShape, once: Once) -> Response:
    """Respawn a destroyed avatar."""

    async def do() -> dict[str, Any]:
        message = await world.port.respawn(asked.agent, avatar_id, asked.option)
        return {"message": message, "seats": world.states()}

    return await once(do, asked)


@router.post("/transfers/{transfer_id}/withdraw")
async def withdraw(host: Host, transfer_id: Id) -> Response:
    """Undo the import of a transfer, and refuse any later import of it."""
    return answer(await host.withdraw(transfer_id))
