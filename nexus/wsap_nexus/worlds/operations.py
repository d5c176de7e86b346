"""The operations of a world, one class each: what it needs, what it does, and how it travels.

A world in this process carries them out (`on`). For one in another process they are sent by `name` with their fields,
over a worker's pipe, or by `route` over HTTP; the reply is made there by `hosted`, and read here by `read`. What
lines, journals and hosts must know of an operation, its class declares.
"""

from __future__ import annotations

import asyncio
import base64
import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar, cast, get_type_hints
from urllib.parse import quote

from typing_extensions import override

from wsap_core import protocol
from wsap_core.errors import SnapshotError, UnknownNameError, UsageError, WorldError
from wsap_core.protocol import Observation
from wsap_core.protocol.values import JsonValue
from wsap_core.protocol.wire import Codec, encode
from wsap_core.seams.game import AvatarGameAdapter, Transits
from wsap_core.specs import AdapterSpec
from wsap_core.worlds import Outcome, Seat, World
from wsap_core.worlds.answers import judged
from wsap_core.worlds.seat import blamed
from wsap_nexus.errors import WorldFailedError
from wsap_nexus.tasks import TURNS
from wsap_nexus.worlds.seats import SeatPort

# Any, in this module: JSON, and what a game returns.

T = TypeVar("T")

Reply = dict[str, Any]
"""A reply: protocol types and JSON values by name."""

AHEAD = 3
"""Turns of the event loop for which the result of a seat in a world that lives is held back, so that the tick from
which it comes is told first."""

_ID: Mapping[str, Any] = {"min_length": 1, "max_length": 200}


@dataclass(frozen=True)
class Route:
    """The HTTP route of an operation. Its fields have the same names in the path; the others are in the body."""

    method: str
    path: str
    """Relative to the world's."""
    once: bool = True
    """Whether it takes effect once per idempotency key, if it changes something."""

    @property
    def names(self) -> Sequence[str]:
        """The fields in the path."""
        return re.findall(r"{(\w+)}", self.path)


@dataclass(frozen=True)
class SeatState:
    """The state of a seat."""

    done: bool
    left: protocol.JackOutResult | None
    description: str | None = None
    """None if it has not changed."""


@dataclass(frozen=True)
class Opened:
    """A seat that was opened in another process."""

    action_space: protocol.ActionSpace
    state: SeatState
    reply: Mapping[str, Any]
    """The whole reply: over HTTP it also holds what `DefaultAction` asks for."""


@dataclass(frozen=True)
class Observed:
    """What a seat observes."""

    observation: Observation
    ended: bool
    """Whether the game ended without an action of the seat."""


@dataclass(frozen=True)
class Resolved:
    """The outcome of an action, and the seat's state after it."""

    outcome: Outcome
    state: SeatState


class Far(Protocol):
    """A world in another process, for what reads its replies."""

    spec: AdapterSpec
    can_snapshot: bool

    @property
    def seats(self) -> Collection[str]:
        """The names of the open seats."""
        ...

    def read(self, kind: type[Any], reply: Mapping[str, Any], name: str) -> Any:
        """Return a protocol value of a reply; WorldFailedError if it is invalid."""
        ...

    def maybe(self, kind: type[Any], reply: Mapping[str, Any], name: str) -> Any:
        """Return a protocol value of a reply as `read` does, if there is one."""
        ...

    def observation(self, seat: str, reply: Mapping[str, Any], text: bytes | None) -> Observation:
        """Return the observation of a reply, or that of its text."""
        ...

    def opened(self, seat: str, opened: Opened) -> SeatPort:
        """Return a new seat."""
        ...

    def told(self, seats: Mapping[str, SeatState]) -> None:
        """Update the states of seats."""
        ...

    def forget(self, seat: str | None = None) -> None:
        """Forget a seat that was closed, or all."""
        ...


@dataclass(frozen=True, slots=True)
class Operation(ABC, Generic[T]):
    """An operation of a world; its fields are what is sent."""

    name: ClassVar[str]
    """Its name on a worker's pipe."""
    route: ClassVar[Route | None] = None
    """None if it has none over HTTP."""
    ability: ClassVar[str] = ""
    """The ability of the game that it requires, if any; see `lacking`."""

    # --- the reply

    key: ClassVar[str] = ""
    """The name of its result in the reply; empty if it has none."""
    kind: ClassVar[type[Any]] = type(None)
    """The type of its result."""
    optional: ClassVar[bool] = False
    """Whether the result may be None."""
    tells_seats: ClassVar[bool] = False
    """Whether the reply has the states of all open seats."""

    # --- what lines, journals and hosts do with it

    changes: ClassVar[bool] = True
    """Whether it may change the world, so that it is repeated when the world is rebuilt."""
    in_turn: ClassVar[bool] = False
    """Whether it is part of a seat's turn: it may wait for other seats and models, and what the game raises is the
    game's failure."""
    is_long: ClassVar[bool] = False
    """Whether it waits for seats and models as long as these take, while the world is asked other things."""
    is_announced: ClassVar[bool] = False
    """Whether a world that lives tells when it gets it."""
    moves: ClassVar[bool] = False
    """Whether the tick of a world that lives may end after it."""
    can_be_dropped: ClassVar[bool] = False
    """Whether a game elsewhere is not asked any more when nobody waits; what else is asked is completed, so that its
    result is known."""
    begins: ClassVar[bool] = False
    """Whether it begins an episode of all seats."""
    ends: ClassVar[bool] = False
    """Whether the world is forgotten after it."""
    saves: ClassVar[bool] = False
    """Whether its reply is a state from which the world can be rebuilt."""
    renews: ClassVar[bool] = False
    """Whether after it the state of every seat is one that saved states contain."""
    enters: ClassVar[bool] = False
    """Whether the seat plays after it."""
    ponders: ClassVar[bool] = False
    """Whether after it the seat is about to decide, which saved states do not contain."""
    decides: ClassVar[bool] = False
    """Whether after it the seat is not about to decide."""
    settles: ClassVar[bool] = False
    """Whether after it the effect of a cancelled call of the seat does not matter."""

    @property
    def at(self) -> str:
        """The seat that it is for; empty if it is for the world itself."""
        return ""

    @property
    def what(self) -> str:
        """What it is, for messages: `resolve of 'row'`."""
        return f"{self.name} of {self.at!r}" if self.at else self.name

    def leaves(self, reply: Any) -> bool:
        """Return whether its seat does not play any more after this reply."""
        return False

    # --- as it is sent

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Return the operation of the fields that were sent; WireError or UsageError if they are invalid."""
        return cls(**{name: _READERS.get(kind, _same)(values[name]) for name, kind in kinds_of(cls).items()})

    def values(self) -> dict[str, Any]:
        """Return its fields, as they are sent."""
        return {name: _plain(getattr(self, name)) for name in kinds_of(type(self))}

    def http_path(self) -> str:
        """Return the path of its route."""
        route = _route_of(self)
        return route.path.format(**{name: quote(str(getattr(self, name)), safe="") for name in route.names})

    def http_body(self) -> dict[str, Any] | None:
        """Return the body of its HTTP request, as JSON-ready data; None if there is none."""
        route = _route_of(self)
        if route.method == "GET":
            return None
        return {name: encode(value) for name, value in self.values().items() if name not in route.names}

    # --- carrying it out

    async def on(self, world: World) -> T:
        """Carry it out on a world in this process, and return the result."""
        return self.lacking(world.spec) if self.is_lacking(world.spec) else await self.apply(world)

    @abstractmethod
    async def apply(self, world: World) -> T:
        """Carry it out on a world in this process whose game has the required ability, and return the result."""

    def is_lacking(self, spec: AdapterSpec) -> bool:
        """Return whether a game lacks the required ability."""
        return bool(self.ability) and self.ability not in spec.abilities

    def lacking(self, spec: AdapterSpec) -> T:
        """Return, or raise, the result for a game that lacks the required ability."""
        return cast(T, None)

    async def hosted(self, world: World) -> Reply:
        """Carry it out on a world in this process for another process, and return the reply."""
        return self.reply(await self.on(world), world)

    def reply(self, result: T, world: World) -> Reply:
        """Return the reply with a result."""
        reply = {self.key: _plain(result)} if self.key else {}
        if self.tells_seats:
            reply["seats"] = {name: _told(state_of(seat)) for name, seat in sorted(world.seats.items())}
        return reply

    def split(self, reply: Reply) -> tuple[Reply, Observation | None]:
        """Return a reply without its observation, and that: on a pipe its text is a line of its own."""
        return reply, None

    def check(self, reply: Mapping[str, Any], game: str) -> None:
        """Raise WorldFailedError if a reply over HTTP is invalid, where it is too late to notice when it is read."""

    def read(self, reply: Mapping[str, Any], text: bytes | None, world: Far) -> T:
        """Return the result in a reply; WorldFailedError if it is invalid.

        `text` is that of the observation, if that was on a line of its own.
        """
        if self.tells_seats and isinstance(states := reply.get("seats"), dict):
            world.told({name: _state_in(state, world) for name, state in states.items() if name in world.seats})
        if not self.key:
            return cast(T, None)
        if self.kind is str:
            return cast(T, str(reply.get(self.key, "")))
        if self.kind is bytes:
            return cast(T, base64.b64decode(str(reply.get(self.key))))
        return cast(T, (world.maybe if self.optional else world.read)(self.kind, reply, self.key))


@dataclass(frozen=True, slots=True)
class OfSeat(Operation[T]):
    """An operation of one seat."""

    seat: str

    @property
    @override
    def at(self) -> str:
        return self.seat


# --- a world's beginning and end ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Create(Operation[None]):
    """Create the world in its process, where its host does that; a game elsewhere does it with `Begin`."""

    name = "create"

    spec: Any
    """As `spec_to_json` writes it."""
    factory: str
    """The reference to the game; empty for a game in its own process."""
    seed: int
    options: Mapping[str, Any]
    lives: bool = False
    """Whether it is a world that lives, which gets its services from the nexus."""

    @override
    async def apply(self, world: World) -> None:
        raise UsageError("The world exists already.")


@dataclass(frozen=True, slots=True)
class Begin(Operation[None]):
    """Start the first episode; if that recreates the world, its seats are closed."""

    name = "begin"
    route = Route("PUT", "")
    tells_seats = begins = renews = True

    seed: int

    @override
    async def apply(self, world: World) -> None:
        await world.reset(self.seed)

    @override
    def reply(self, result: None, world: World) -> Reply:
        return {"can_snapshot": world.can_snapshot, **Operation.reply(self, result, world)}

    @override
    def read(self, reply: Mapping[str, Any], text: bytes | None, world: Far) -> None:
        world.can_snapshot = bool(reply.get("can_snapshot", world.can_snapshot))
        if "seats" not in reply:
            world.forget()
        Operation.read(self, reply, text, world)


@dataclass(frozen=True, slots=True)
class Close(Operation[None]):
    """Close the world; a worker stays for other worlds."""

    name = "close"
    route = Route("DELETE", "")
    ends = True

    @override
    async def apply(self, world: World) -> None:
        close = getattr(world.adapter, "close", None)
        if callable(close):
            await _ask(world, close)

    @override
    def read(self, reply: Mapping[str, Any], text: bytes | None, world: Far) -> None:
        world.forget()


# --- agents, their avatars, and what these bring --------------------------------------------------


@dataclass(frozen=True, slots=True)
class OpenSeat(OfSeat[SeatPort]):
    """Bind an agent to its avatar, or a new one, and return its new seat."""

    name = "open_seat"
    route = Route("POST", "/seats/{seat}/jack-in")
    enters = True

    @override
    async def apply(self, world: World) -> SeatPort:
        return world.open_seat(self.seat)

    @override
    def reply(self, result: SeatPort, world: World) -> Reply:
        return {"action_space": result.action_space, **_told(state_of(result))}

    @override
    def read(self, reply: Mapping[str, Any], text: bytes | None, world: Far) -> SeatPort:
        space = world.read(protocol.ActionSpace, reply, "action_space")
        return world.opened(self.seat, Opened(space, _state_in(reply, world), reply))


@dataclass(frozen=True, slots=True)
class Avatars(Operation[Sequence[protocol.Avatar]]):
    """Return the avatars of an agent."""

    name = "avatars"
    route = Route("GET", "/seats/{agent}/avatars")
    key = "avatars"
    changes = False

    agent: str

    @override
    async def apply(self, world: World) -> Sequence[protocol.Avatar]:
        if not world.has_avatars:
            return [world.avatar_of(self.agent)]
        bodies: Sequence[object] = await _ask(world, lambda: _bodies(world).list_avatars(self.agent))
        return [judged(world.spec.name, "has as an avatar", body, protocol.Avatar) for body in bodies]

    @override
    def read(self, reply: Mapping[str, Any], text: bytes | None, world: Far) -> Sequence[protocol.Avatar]:
        found = reply.get(self.key)
        if not isinstance(found, list):
            raise WorldFailedError(f"The game {world.spec.name!r} returned no list of avatars.")
        return [world.read(protocol.Avatar, {"avatar": body}, "avatar") for body in found]


@dataclass(frozen=True, slots=True)
class CreateAvatar(Operation[protocol.Avatar | None]):
    """Create an avatar for an agent and return it; None if opening a seat creates it."""

    name = "create_avatar"
    route = Route("POST", "/seats/{agent}/avatars")
    key, kind, optional = "avatar", protocol.Avatar, True

    agent: str
    wanted: protocol.AvatarSpec = field(default_factory=protocol.AvatarSpec)

    @override
    async def apply(self, world: World) -> protocol.Avatar | None:
        if not world.has_avatars:
            return None
        body: object = await _ask(world, lambda: _bodies(world).create_avatar(self.agent, self.wanted))
        return judged(world.spec.name, f"created for {self.agent!r}", body, protocol.Avatar)


@dataclass(frozen=True, slots=True)
class Admit(Operation[protocol.Receipt]):
    """Import skills and items and return the receipt; a world without transit refuses all items."""

    name = "admit"
    route = Route("POST", "/avatars/{avatar}/admit")
    ability = "transit"
    key, kind = "receipt", protocol.Receipt
    tells_seats = True

    avatar: str
    entry: protocol.Entry

    @override
    async def apply(self, world: World) -> protocol.Receipt:
        receipt: object = await _ask(world, lambda: cast(Transits, world.adapter).admit(self.avatar, self.entry))
        return judged(world.spec.name, "admitted with", receipt, protocol.Receipt)

    @override
    def lacking(self, spec: AdapterSpec) -> protocol.Receipt:
        reason = f"{spec.display_title} accepts no items."
        return protocol.Receipt(self.entry.transfer_id, refused={item.item_id: reason for item in self.entry.items})


@dataclass(frozen=True, slots=True)
class Release(Operation[protocol.TransitPackage]):
    """Export the portable items and return them; none for a world without transit."""

    name = "release"
    route = Route("POST", "/avatars/{avatar}/release")
    ability = "transit"
    key, kind = "package", protocol.TransitPackage

    avatar: str
    transfer_id: str = field(metadata=_ID)

    @override
    async def apply(self, world: World) -> protocol.TransitPackage:
        out: object = await _ask(world, lambda: cast(Transits, world.adapter).release(self.avatar, self.transfer_id))
        return judged(world.spec.name, "released", out, protocol.TransitPackage)

    @override
    def lacking(self, spec: AdapterSpec) -> protocol.TransitPackage:
        return protocol.TransitPackage(self.transfer_id)


@dataclass(frozen=True, slots=True)
class Death(Operation[protocol.DeathEvent | None]):
    """Return the death of a destroyed avatar; None if the world reports no deaths."""

    name = "death"
    route = Route("GET", "/avatars/{avatar}/death")
    key, kind, optional = "death", protocol.DeathEvent, True

    avatar: str

    @override
    async def apply(self, world: World) -> protocol.DeathEvent | None:
        if not world.has_avatars:
            return None
        death: object = await _ask(world, lambda: _bodies(world).handle_death(self.avatar))
        return judged(world.spec.name, "told of a death with", death, protocol.DeathEvent)


@dataclass(frozen=True, slots=True)
class Respawn(Operation[str]):
    """Respawn a destroyed avatar and return the world's message; WorldError if the world refuses."""

    name = "respawn"
    route = Route("POST", "/avatars/{avatar}/respawn")
    key, kind = "message", str
    tells_seats = True

    agent: str = field(metadata=_ID)
    avatar: str
    option: str = field(default="", metadata={"max_length": 200})

    @override
    async def apply(self, world: World) -> str:
        answer: object = await _ask(world, lambda: _bodies(world).respawn(self.avatar, self.option))
        result = judged(world.spec.name, "respawned with", answer, protocol.JackInResult)
        if not result.success:
            raise WorldError(f"{world.spec.display_title} did not respawn {self.avatar!r}: {result.message}")
        return result.message


# --- its state, and how it looks ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Snapshot(Operation[bytes]):
    """Return the world's whole state."""

    name = "snapshot"
    route = Route("GET", "/snapshot")
    ability = "snapshot"
    key, kind = "state", bytes
    changes = False
    saves = True

    @override
    async def apply(self, world: World) -> bytes:
        return cast(bytes, await _ask(world, world.snapshot))

    @override
    def lacking(self, spec: AdapterSpec) -> bytes:
        raise SnapshotError(f"The game {spec.name!r} can't be saved in the middle of an episode.")

    @override
    def check(self, reply: Mapping[str, Any], game: str) -> None:
        try:
            base64.b64decode(reply.get(self.key), validate=True)  # type: ignore[arg-type]  # other types raise, too
        except (TypeError, ValueError):
            raise WorldFailedError(f"The game {game!r} returned an invalid snapshot.") from None


@dataclass(frozen=True, slots=True)
class Restore(Operation[None]):
    """Restore a snapshot; the same seats must be open."""

    name = "restore"
    route = Route("POST", "/restore", once=False)
    ability = "snapshot"
    tells_seats = renews = True

    state: bytes

    @override
    async def apply(self, world: World) -> None:
        await _ask(world, lambda: world.restore(self.state))

    @override
    def lacking(self, spec: AdapterSpec) -> None:
        raise SnapshotError(f"The game {spec.name!r} has no snapshots to restore.")


@dataclass(frozen=True, slots=True)
class Render(Operation[protocol.View | None]):
    """Return the view for spectators; None if the world has none."""

    name = "render"
    route = Route("GET", "/view")
    ability = "render"
    key, kind, optional = "view", protocol.View, True
    changes = False

    @override
    async def apply(self, world: World) -> protocol.View | None:
        return cast("protocol.View | None", await _ask(world, world.render))


# --- a seat's turn --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Observe(OfSeat[Observed]):
    """Return a seat's observation at its next decision point."""

    name = "observe"
    route = Route("GET", "/seats/{seat}/observation")
    in_turn = can_be_dropped = ponders = True

    @override
    async def apply(self, world: World) -> Observed:
        seat = seat_in(world, self.seat)
        return Observed(await seat.observe(), seat.ended)

    @override
    def reply(self, result: Observed, world: World) -> Reply:
        return {"observation": result.observation, "ended": result.ended}

    @override
    def split(self, reply: Reply) -> tuple[Reply, Observation | None]:
        return {"ended": reply["ended"]}, reply["observation"]

    @override
    def read(self, reply: Mapping[str, Any], text: bytes | None, world: Far) -> Observed:
        return Observed(world.observation(self.seat, reply, text), reply.get("ended") is True)


@dataclass(frozen=True, slots=True)
class Look(OfSeat[protocol.View | None]):
    """Return a seat's view; None if the game has none."""

    name = "look"
    route = Route("GET", "/seats/{seat}/view")
    ability = "render"
    key, kind, optional = "view", protocol.View, True
    changes = False

    @override
    async def apply(self, world: World) -> protocol.View | None:
        return await seat_in(world, self.seat).look()


@dataclass(frozen=True, slots=True)
class Resolve(OfSeat[Resolved]):
    """Carry out an action of a seat."""

    name = "resolve"
    route = Route("POST", "/seats/{seat}/act")
    in_turn = is_announced = moves = decides = True

    action: protocol.Action

    @override
    def leaves(self, reply: Any) -> bool:
        return isinstance(reply, dict) and bool(reply.get("done") or reply.get("left"))

    @override
    async def apply(self, world: World) -> Resolved:
        seat = seat_in(world, self.seat)
        outcome = await seat.step(self.action)
        for _ in range(AHEAD if outcome.stepped and world.lives else 0):
            await asyncio.sleep(0)
        return Resolved(outcome, SeatState(seat.done, seat.left))

    @override
    def reply(self, result: Resolved, world: World) -> Reply:
        outcome, state = result.outcome, result.state
        return {
            "action": outcome.action, "result": outcome.result, "stepped": outcome.stepped, "out": outcome.left,
            "death": outcome.death, "done": state.done, "left": state.left,
        }  # fmt: skip

    @override
    def split(self, reply: Reply) -> tuple[Reply, Observation | None]:
        result = reply["result"]
        return {**reply, "result": replace(result, observation=_UNSEEN)}, result.observation

    @override
    def read(self, reply: Mapping[str, Any], text: bytes | None, world: Far) -> Resolved:
        result: protocol.ActionResult = world.read(protocol.ActionResult, reply, "result")
        if text is not None:
            result = replace(result, observation=world.observation(self.seat, reply, text))
        outcome = Outcome(
            world.read(protocol.Action, reply, "action"),
            result,
            bool(reply.get("stepped")),
            world.maybe(protocol.JackOutResult, reply, "out"),
            world.maybe(protocol.DeathEvent, reply, "death"),
        )
        return Resolved(outcome, _state_in(reply, world))


@dataclass(frozen=True, slots=True)
class Leave(OfSeat[protocol.JackOutResult]):
    """Remove an agent from its avatar by force, once."""

    name = "leave"
    moves = True
    route = Route("POST", "/seats/{seat}/jack-out")
    key, kind = "jack_out", protocol.JackOutResult
    decides = settles = True

    mode: str = field(default="dormant", metadata={"pattern": "^(dormant|suspend|despawn)$"})

    @override
    def leaves(self, reply: Any) -> bool:
        return True

    @override
    async def apply(self, world: World) -> protocol.JackOutResult:
        seat = seat_in(world, self.seat)
        return seat.leave(self.mode) if seat.left is None else seat.left


@dataclass(frozen=True, slots=True)
class DefaultAction(OfSeat[protocol.Action | None]):
    """Return the action for a missed deadline of a seat; None if the game declares none."""

    name = "default_action"
    key, kind, optional = "default_action", protocol.Action, True
    changes = False

    @override
    async def apply(self, world: World) -> protocol.Action | None:
        return seat_in(world, self.seat).default_action()


# --- worlds that live -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Advance(Operation[protocol.Tick]):
    """Carry out and return the next tick of a world that lives."""

    name = "advance"
    key, kind = "tick", protocol.Tick
    is_long = True

    @override
    async def apply(self, world: World) -> protocol.Tick:
        return await world.advance()


@dataclass(frozen=True, slots=True)
class Reached(Operation[None]):
    """Return at once, after everything that a world that lives was told before."""

    name = "reached"

    @override
    async def apply(self, world: World) -> None:
        pass


@dataclass(frozen=True, slots=True)
class Rest(Operation[None]):
    """Return once all results that came of the last tick have arrived."""

    name = "rest"

    @override
    async def apply(self, world: World) -> None:
        pass  # in this process they arrive in the next turns of the event loop

    @override
    async def hosted(self, world: World) -> Reply:
        for _ in range(TURNS):
            await asyncio.sleep(0)
        return {}


@dataclass(frozen=True, slots=True)
class Settle(Operation[None]):
    """Wait for the work that a world that lives still has when play ends."""

    name = "settle"
    is_long = True

    @override
    async def apply(self, world: World) -> None:
        await world.settle()


@dataclass(frozen=True, slots=True)
class Influence(Operation[str]):
    """Apply an influence before the next tick, and return one sentence about it; UsageError if it is refused."""

    name = "influence"
    ability = "influence"
    key, kind = "said", str

    body: Mapping[str, JsonValue]

    @override
    async def apply(self, world: World) -> str:
        said: object = world.influence(self.body)
        return cast(str, await said if inspect.isawaitable(said) else said)

    @override
    def lacking(self, spec: AdapterSpec) -> str:
        raise UsageError(f"The game {spec.name!r} accepts no influence from outside.")


@dataclass(frozen=True, slots=True)
class CloseSeat(OfSeat[None]):
    """Forget the seat of an agent that has left, so that snapshots do not include it."""

    name = "close_seat"

    @override
    def leaves(self, reply: Any) -> bool:
        return True

    @override
    async def apply(self, world: World) -> None:
        world.close_seat(self.seat)

    @override
    def read(self, reply: Mapping[str, Any], text: bytes | None, world: Far) -> None:
        world.forget(self.seat)


@dataclass(frozen=True, slots=True)
class Vacated(Operation[bytes]):
    """Let all agents leave their seats, and return the state."""

    name = "vacated"
    key, kind = "state", bytes

    @override
    async def apply(self, world: World) -> bytes:
        for name, seat in list(world.seats.items()):
            if seat.left is None:
                seat.leave()
            world.close_seat(name)
        return await Snapshot().on(world)

    @override
    def read(self, reply: Mapping[str, Any], text: bytes | None, world: Far) -> bytes:
        state = Operation.read(self, reply, text, world)
        world.forget()
        return state


@dataclass(frozen=True, slots=True)
class LetGo(OfSeat[protocol.JackOutResult | None]):
    """Remove an agent from its avatar by force, unless its episode is over; None if it is."""

    name = "let_go"
    moves = True
    key, kind, optional = "jack_out", protocol.JackOutResult, True

    @override
    def leaves(self, reply: Any) -> bool:
        return True

    @override
    async def apply(self, world: World) -> protocol.JackOutResult | None:
        seat = seat_in(world, self.seat)
        return None if seat.done or seat.left is not None else seat.leave()


OPERATIONS: Mapping[str, type[Operation[Any]]] = {
    operation.name: operation
    for operation in (
        Create, Begin, Close,
        OpenSeat, Avatars, CreateAvatar, Admit, Release, Death, Respawn,
        Snapshot, Restore, Render,
        Observe, Look, Resolve, Leave, DefaultAction,
        Advance, Reached, Rest, Settle, Influence, CloseSeat, Vacated, LetGo,
    )
}  # fmt: skip
"""Name -> operation."""


def seat_in(world: World, name: str) -> Seat:
    """Return an open seat; UnknownNameError if it is not open."""
    if name not in world.seats:
        raise UnknownNameError("seat", name, world.seats)
    return world.seats[name]


def state_of(seat: SeatPort) -> SeatState:
    """Return the state of an open seat."""
    return SeatState(seat.done, seat.left, seat.game_description)


@cache
def kinds_of(operation: type[Operation[Any]]) -> Mapping[str, Any]:
    """Return the types of an operation's fields, by name."""
    hints = get_type_hints(operation)
    return {known.name: hints[known.name] for known in fields(operation)}


@cache
def _codec() -> Codec:
    return Codec()


def _part(kind: type[Any], where: str) -> Callable[[Any], Any]:
    return lambda value: _codec().decode(kind, value, where=where)


def _bytes(value: Any) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except ValueError:
        raise UsageError("The state is not base64.") from None


def _same(value: Any) -> Any:
    return value


_READERS: Mapping[Any, Callable[[Any], Any]] = {
    protocol.Action: _part(protocol.Action, "action"),
    protocol.AvatarSpec: _part(protocol.AvatarSpec, "wanted avatar"),
    protocol.Entry: _part(protocol.Entry, "entry"),
    bytes: _bytes,
}
_UNSEEN = Observation()


def _plain(value: Any) -> Any:
    """Return a value as it is sent."""
    return base64.b64encode(value).decode("ascii") if isinstance(value, bytes) else value


def _route_of(operation: Operation[Any]) -> Route:
    if operation.route is None:
        raise UsageError(f"The operation {operation.name!r} has no route over HTTP.")
    return operation.route


def _told(state: SeatState) -> Reply:
    return {"description": state.description, "done": state.done, "left": state.left}


def _state_in(reply: Any, world: Far) -> SeatState:
    if not isinstance(reply, dict):
        raise WorldFailedError(f"The game {world.spec.name!r} sent an invalid state of a seat.")
    said = reply.get("description")
    left = world.maybe(protocol.JackOutResult, reply, "left")
    return SeatState(bool(reply.get("done")), left, None if said is None else str(said))


def _bodies(world: World) -> AvatarGameAdapter:
    return cast(AvatarGameAdapter, world.adapter)


async def _ask(world: World, question: Callable[[], Any]) -> Any:
    # A game's methods may be synchronous or not, regardless of their protocols.
    with blamed(f"The game {world.spec.name!r} raised", WorldFailedError):
        answer = question()
        return await answer if inspect.isawaitable(answer) else answer
