"""The interface of worlds in this process, in workers and over HTTP."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, runtime_checkable

from typing_extensions import override

from wsap_core import protocol
from wsap_core.errors import RecordMismatchError, WorldError
from wsap_core.protocol.wire import Codec, encode
from wsap_core.seams.context import Context
from wsap_core.seams.model import Request
from wsap_core.seams.options import Options, check_used
from wsap_core.seams.services import Services
from wsap_core.specs import AdapterSpec
from wsap_core.worlds import World
from wsap_llm.secrets import with_secrets
from wsap_nexus.worlds import operations as ops
from wsap_nexus.worlds.operations import Operation
from wsap_nexus.worlds.seats import SeatPort, Told

T = TypeVar("T")
P = ParamSpec("P")


def _offered(operation: Callable[P, Operation[T]]) -> Callable[Concatenate[WorldPort, P], Coroutine[Any, Any, T]]:
    """Return the method that calls an operation with its fields as arguments."""

    async def method(self: WorldPort, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.call(operation(*args, **kwargs))

    method.__doc__ = operation.__doc__
    return method


class WorldPort(ABC):
    """A world. Every method may wait, and raises `WorldError` if the world fails.

    The methods call the `operations` of the same names, whose fields are their parameters.
    """

    spec: AdapterSpec
    """The game."""
    can_snapshot: bool
    """Whether its state can be saved and restored."""

    @abstractmethod
    async def call(self, operation: Operation[T]) -> T:
        """Carry out an operation and return its result."""

    begin = _offered(ops.Begin)
    open_seat = _offered(ops.OpenSeat)
    avatars = _offered(ops.Avatars)
    create_avatar = _offered(ops.CreateAvatar)
    admit = _offered(ops.Admit)
    release = _offered(ops.Release)
    death = _offered(ops.Death)
    respawn = _offered(ops.Respawn)
    snapshot = _offered(ops.Snapshot)
    restore = _offered(ops.Restore)
    render = _offered(ops.Render)
    close = _offered(ops.Close)


class LivingPort(WorldPort):
    """A world that lives. `WorldInterruptedError` if its process ended, and it goes on from its log."""

    @abstractmethod
    async def call(self, operation: Operation[T], told: Told | None = None) -> T:
        """Carry out an operation and return its result; `told` is called when it reaches the world."""

    async def advance(self, begun: Told) -> protocol.Tick:
        """Carry out and return the next tick; `begun` is called at its start, after all that the world was told."""
        return await self.call(ops.Advance(), begun)

    rest = _offered(ops.Rest)
    settle = _offered(ops.Settle)
    influence = _offered(ops.Influence)
    close_seat = _offered(ops.CloseSeat)
    vacated = _offered(ops.Vacated)


class LocalWorld(LivingPort):
    """A world in this process; `offline` leaves secrets in its options unresolved, as it calls no external service."""

    def __init__(
        self,
        spec: AdapterSpec,
        seed: int,
        options: Mapping[str, Any],
        context: Context | None = None,
        *,
        offline: bool = False,
    ) -> None:
        own = Options(options if offline else with_secrets(options, os.environ))
        base = context or Context()
        self._take(
            World.create(spec, Context.create(seed, config=own, clock=base.clock, services=base.services)),
            base.services,
        )
        check_used(f"The game {spec.name!r}", own)

    @classmethod
    def of(cls, world: World) -> LocalWorld:
        """Return the port of an existing world."""
        port = cls.__new__(cls)
        port._take(world, Services())
        return port

    def _take(self, world: World, services: Services) -> None:
        self.world, self.services = world, services
        self.spec, self.can_snapshot = world.spec, world.can_snapshot

    @override
    async def call(self, operation: Operation[T], told: Told | None = None) -> T:
        if told is not None:
            told()
        return await operation.on(self.world)


@runtime_checkable
class TakesTurns(Protocol):
    """A world in another process, in which seats can act while it is asked something."""

    def alone(self) -> AbstractAsyncContextManager[None]:
        """Let only the calling task ask the world, once all that others asked has reached it."""
        ...


@runtime_checkable
class TellsWhenGiven(Protocol):
    """A model whose replies are given to a world again in a replay, when the world has what it had before."""

    elsewhere: bool
    """Whether the world is in another process."""

    def gave(self, request: Request) -> None:
        """Note that the world gets the answer to a request; called if it is in another process."""
        ...


def alone_in(port: WorldPort) -> AbstractAsyncContextManager[None]:
    """Let only the calling task ask a world; in this process nothing can come between two questions anyway."""
    return port.alone() if isinstance(port, TakesTurns) else nullcontext()


async def let_in_again(world: WorldPort, seat: str, arrival: Mapping[str, Any]) -> SeatPort:
    """Repeat a recorded entry (`wanted`, `entry`, created `avatar` and `receipt`, as JSON), and return the seat.

    Raises:
        RecordMismatchError: the world gives a different receipt.
        WireError: the record is damaged.
    """
    codec = Codec()
    wanted = codec.decode(protocol.AvatarSpec, arrival["wanted"], where="recorded arrival")
    entry = codec.decode(protocol.Entry, arrival["entry"], where="recorded arrival")
    await world.create_avatar(seat, wanted)
    if encode(await world.admit(str(arrival["avatar"]), entry)) != arrival["receipt"]:
        raise RecordMismatchError(
            f"The game {world.spec.name!r} did not admit {seat!r} as recorded. Have the game or its options changed?"
        )
    return await world.open_seat(seat)


async def avatar_in(world: WorldPort, seat_name: str, avatar_id: str | None) -> protocol.Avatar:
    """Return an agent's avatar of that id, or its first for None; WorldError if there is none."""
    bodies = await world.avatars(seat_name)
    for body in bodies:
        if body.avatar_id == avatar_id or avatar_id is None:
            return body
    raise WorldError(f"The game {world.spec.name!r} no longer has the avatar {avatar_id!r} of {seat_name!r}.")
