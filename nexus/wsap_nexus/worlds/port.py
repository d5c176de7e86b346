"""The interface of worlds in this process, in workers and over HTTP."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar, cast

from wsap_core import protocol
from wsap_core.errors import RecordMismatchError, WorldError
from wsap_core.protocol.values import JsonValue
from wsap_core.protocol.wire import Codec, encode
from wsap_core.seams.context import Context
from wsap_core.seams.game import AvatarGameAdapter, Transits
from wsap_core.seams.options import Options, check_used
from wsap_core.seams.services import Services
from wsap_core.specs import AdapterSpec
from wsap_core.worlds import World
from wsap_core.worlds.answers import judged
from wsap_core.worlds.seat import blamed
from wsap_llm.secrets import with_secrets
from wsap_nexus.errors import WorldFailedError
from wsap_nexus.worlds.seats import SeatPort

T = TypeVar("T")


class WorldPort(Protocol):
    """A world. Every method may wait, and raises `WorldError` if the world fails."""

    @property
    def spec(self) -> AdapterSpec:
        """The game."""
        ...

    @property
    def can_snapshot(self) -> bool:
        """Whether its state can be saved and restored."""
        ...

    async def begin(self, seed: int) -> None:
        """Start the first episode."""
        ...

    async def open_seat(self, agent_id: str) -> SeatPort:
        """Bind an agent to its avatar, or a new one, and return its seat."""
        ...

    async def avatars(self, agent_id: str) -> Sequence[protocol.Avatar]:
        """Return the avatars of an agent."""
        ...

    async def create_avatar(self, agent_id: str, wanted: protocol.AvatarSpec) -> protocol.Avatar | None:
        """Create an avatar for an agent; None if opening a seat creates it."""
        ...

    async def admit(self, avatar_id: str, entry: protocol.Entry) -> protocol.Receipt:
        """Import skills and items; a world without transit refuses all items."""
        ...

    async def release(self, avatar_id: str, transfer_id: str) -> protocol.TransitPackage:
        """Export the portable items; none for a world without transit."""
        ...

    async def death(self, avatar_id: str) -> protocol.DeathEvent | None:
        """Return the death of a destroyed avatar; None if the world reports no deaths."""
        ...

    async def respawn(self, agent_id: str, avatar_id: str, option: str) -> str:
        """Respawn a destroyed avatar and return the world's message; WorldError if the world refuses."""
        ...

    async def snapshot(self) -> bytes:
        """Return the world's whole state."""
        ...

    async def restore(self, data: bytes) -> None:
        """Restore a snapshot; the same seats must be open."""
        ...

    async def render(self) -> protocol.View | None:
        """Return the view for spectators; None if the world has none."""
        ...

    async def close(self) -> None:
        """Close the world."""
        ...


class LocalWorld:
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
        self.services = base.services
        self.world = World.create(spec, Context.create(seed, config=own, clock=base.clock, services=base.services))
        check_used(f"The game {spec.name!r}", own)

    @classmethod
    def of(cls, world: World) -> LocalWorld:
        """Return the port of an existing world."""
        port = cls.__new__(cls)
        port.world, port.services = world, Services()
        return port

    @property
    def spec(self) -> AdapterSpec:
        """The game."""
        return self.world.spec

    @property
    def can_snapshot(self) -> bool:
        """Whether its state can be saved and restored."""
        return self.world.can_snapshot

    async def begin(self, seed: int) -> None:
        """Start the first episode."""
        await self.world.reset(seed)

    async def open_seat(self, agent_id: str) -> SeatPort:
        """Bind an agent to its avatar, or a new one."""
        return self.world.open_seat(agent_id)

    async def avatars(self, agent_id: str) -> Sequence[protocol.Avatar]:
        """Return the avatars of an agent."""
        if self.world.has_avatars:
            bodies: Sequence[object] = await self._ask(lambda: self._bodies.list_avatars(agent_id))
            return [self._judged("has as an avatar", body, protocol.Avatar) for body in bodies]
        return [self.world.avatar_of(agent_id)]

    async def create_avatar(self, agent_id: str, wanted: protocol.AvatarSpec) -> protocol.Avatar | None:
        """Create an avatar; None if the game has no avatars of its own."""
        if not self.world.has_avatars:
            return None
        body: object = await self._ask(lambda: self._bodies.create_avatar(agent_id, wanted))
        return self._judged(f"created for {agent_id!r}", body, protocol.Avatar)

    async def admit(self, avatar_id: str, entry: protocol.Entry) -> protocol.Receipt:
        """Import skills and items."""
        if "transit" not in self.spec.abilities:
            reason = f"{self.spec.display_title} accepts no items."
            return protocol.Receipt(entry.transfer_id, refused={item.item_id: reason for item in entry.items})
        receipt: object = await self._ask(lambda: cast(Transits, self.world.adapter).admit(avatar_id, entry))
        return self._judged("admitted with", receipt, protocol.Receipt)

    async def release(self, avatar_id: str, transfer_id: str) -> protocol.TransitPackage:
        """Export the portable items."""
        if "transit" not in self.spec.abilities:
            return protocol.TransitPackage(transfer_id)
        package: object = await self._ask(lambda: cast(Transits, self.world.adapter).release(avatar_id, transfer_id))
        return self._judged("released", package, protocol.TransitPackage)

    async def death(self, avatar_id: str) -> protocol.DeathEvent | None:
        """Return the death of a destroyed avatar."""
        if not self.world.has_avatars:
            return None
        death: object = await self._ask(lambda: self._bodies.handle_death(avatar_id))
        return self._judged("told of a death with", death, protocol.DeathEvent)

    async def respawn(self, agent_id: str, avatar_id: str, option: str) -> str:
        """Respawn a destroyed avatar."""
        answer: object = await self._ask(lambda: self._bodies.respawn(avatar_id, option))
        result = self._judged("respawned with", answer, protocol.JackInResult)
        if not result.success:
            raise WorldError(f"{self.spec.display_title} did not respawn {avatar_id!r}: {result.message}")
        return result.message

    async def snapshot(self) -> bytes:
        """Return the whole state."""
        return await self._ask(self.world.snapshot)

    async def restore(self, data: bytes) -> None:
        """Restore a snapshot."""
        await self._ask(lambda: self.world.restore(data))

    async def render(self) -> protocol.View | None:
        """Return the view for spectators."""
        return await self._ask(self.world.render)

    async def close(self) -> None:
        """Close the game if it can be closed."""
        close = getattr(self.world.adapter, "close", None)
        if callable(close):
            await self._ask(close)

    async def advance(self, begun: Callable[[], None]) -> protocol.Tick:
        """Carry out and return the next tick."""
        begun()
        return await self.world.advance()

    async def rest(self) -> None:
        """Return at once: results arrive in the next turns of the event loop."""

    async def settle(self) -> None:
        """Wait for the work that the world still has when play ends."""
        await self.world.settle()

    async def influence(self, body: Mapping[str, JsonValue]) -> str:
        """Apply an influence before the next tick."""
        said: object = self.world.influence(body)
        return cast(str, await said if inspect.isawaitable(said) else said)

    async def close_seat(self, agent_id: str) -> None:
        """Forget the seat of an agent that has left."""
        self.world.close_seat(agent_id)

    async def vacated(self) -> bytes:
        """Let all agents leave their seats, and return the state."""
        for name, seat in list(self.world.seats.items()):
            if seat.left is None:
                seat.leave()
            self.world.close_seat(name)
        return await self.snapshot()

    @property
    def _bodies(self) -> AvatarGameAdapter:
        return cast(AvatarGameAdapter, self.world.adapter)

    def _judged(self, did: str, answer: object, kind: type[T]) -> T:
        return judged(self.spec.name, did, answer, kind)

    async def _ask(self, question: Callable[[], Any]) -> T:
        # A game's methods may be synchronous or not, regardless of their protocols.
        with blamed(f"The game {self.spec.name!r} raised", WorldFailedError):
            answer = question()
            return cast(T, await answer if inspect.isawaitable(answer) else answer)


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
