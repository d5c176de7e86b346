"""The operations of a world as messages with JSON-ready replies, for workers and for HTTP."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from wsap_core.errors import UnknownNameError, UsageError
from wsap_core.protocol import Action, AvatarSpec, Entry
from wsap_core.protocol.wire import Codec
from wsap_nexus.tasks import TURNS
from wsap_nexus.worlds.living import LivingPort
from wsap_nexus.worlds.port import WorldPort
from wsap_nexus.worlds.seats import SeatPort, default_action, leave

# Any, in this module: JSON.

Told = dict[str, Any]
"""A reply: protocol types and JSON values by name."""


@dataclass(frozen=True)
class Route:
    """The HTTP route of an operation; its arguments have the same names in the path and the body."""

    method: str
    path: str
    """Relative to the world's."""
    body: tuple[str, ...] = ()
    ability: str = ""
    """The ability that it requires, if any."""
    once: bool = True
    """Whether it takes effect once per idempotency key, if it changes something."""


ROUTES: Mapping[str, Route] = {
    "begin": Route("PUT", ""),
    "close": Route("DELETE", ""),
    "open_seat": Route("POST", "/seats/{seat}/jack-in"),
    "observe": Route("GET", "/seats/{seat}/observation"),
    "look": Route("GET", "/seats/{seat}/view", ability="render"),
    "resolve": Route("POST", "/seats/{seat}/act", ("action",)),
    "leave": Route("POST", "/seats/{seat}/jack-out", ("mode",)),
    "avatars": Route("GET", "/seats/{agent}/avatars"),
    "create_avatar": Route("POST", "/seats/{agent}/avatars", ("wanted",)),
    "admit": Route("POST", "/avatars/{avatar}/admit", ("entry",), "transit"),
    "release": Route("POST", "/avatars/{avatar}/release", ("transfer_id",), "transit"),
    "death": Route("GET", "/avatars/{avatar}/death"),
    "respawn": Route("POST", "/avatars/{avatar}/respawn", ("agent", "option")),
    "snapshot": Route("GET", "/snapshot", ability="snapshot"),
    "restore": Route("POST", "/restore", ("state",), "snapshot", once=False),
    "render": Route("GET", "/view", ability="render"),
}
"""Operation -> route, for the client `http_lines` and the server `bridge_routes`."""


class Bridge:
    """A world with its open seats. The methods that return `Told` are its operations."""

    def __init__(self, port: WorldPort) -> None:
        self.port = port
        self._seats: dict[str, SeatPort] = {}
        self._codec = Codec()

    def seat(self, name: str) -> SeatPort:
        """Return an open seat; UnknownNameError if it is not open."""
        if name not in self._seats:
            raise UnknownNameError("seat", name, self._seats)
        return self._seats[name]

    def states(self) -> Told:
        """Return the state of each open seat."""
        return {name: _state(seat) for name, seat in sorted(self._seats.items())}

    # --- the world --------------------------------------------------------------------------------

    async def begin(self, seed: int) -> Told:
        """Start the first episode."""
        await self.port.begin(seed)
        return {"can_snapshot": self.port.can_snapshot, "seats": self.states()}

    async def open_seat(self, seat: str) -> Told:
        """Bind an agent to its avatar, or a new one."""
        opened = self._seats[seat] = await self.port.open_seat(seat)
        return {"action_space": opened.action_space, **_state(opened)}

    async def avatars(self, agent: str) -> Told:
        """Return the avatars of an agent."""
        return {"avatars": list(await self.port.avatars(agent))}

    async def create_avatar(self, agent: str, wanted: Any) -> Told:
        """Create an avatar for an agent; None if opening a seat creates it."""
        decoded = self._codec.decode(AvatarSpec, wanted, where="wanted avatar")
        return {"avatar": await self.port.create_avatar(agent, decoded)}

    async def admit(self, avatar: str, entry: Any) -> Told:
        """Import skills and items."""
        decoded = self._codec.decode(Entry, entry, where="entry")
        return {"receipt": await self.port.admit(avatar, decoded), "seats": self.states()}

    async def release(self, avatar: str, transfer_id: str) -> Told:
        """Export the portable items."""
        return {"package": await self.port.release(avatar, transfer_id)}

    async def death(self, avatar: str) -> Told:
        """Return the death of a destroyed avatar; None if the game reports no deaths."""
        return {"death": await self.port.death(avatar)}

    async def respawn(self, agent: str, avatar: str, option: str) -> Told:
        """Respawn a destroyed avatar."""
        return {"message": await self.port.respawn(agent, avatar, option), "seats": self.states()}

    async def snapshot(self) -> Told:
        """Return the world's whole state, in base64."""
        return {"state": base64.b64encode(await self.port.snapshot()).decode("ascii")}

    async def restore(self, state: str) -> Told:
        """Restore a snapshot; the same seats must be open."""
        try:
            data = base64.b64decode(state, validate=True)
        except ValueError:
            raise UsageError("The state is not base64.") from None
        await self.port.restore(data)
        return {"seats": self.states()}

    async def render(self) -> Told:
        """Return the view for spectators."""
        return {"view": await self.port.render()}

    # --- seats ------------------------------------------------------------------------------------

    async def observe(self, seat: str) -> Told:
        """Return a seat's observation at its next decision point."""
        port = self.seat(seat)
        return {"observation": await port.observe(), "ended": port.ended}

    async def resolve(self, seat: str, action: Any) -> Told:
        """Carry out an action."""
        port = self.seat(seat)
        outcome = await port.step(self._codec.decode(Action, action, where="action"))
        return {
            "action": outcome.action,
            "result": outcome.result,
            "stepped": outcome.stepped,
            "out": outcome.left,
            "death": outcome.death,
            "done": port.done,
            "left": port.left,
        }

    async def look(self, seat: str) -> Told:
        """Return a seat's view."""
        return {"view": await self.seat(seat).look()}

    async def leave(self, seat: str, mode: str) -> Told:
        """Remove an agent from its avatar by force, once."""
        port = self.seat(seat)
        return {"jack_out": await leave(port, mode) if port.left is None else port.left}

    async def default_action(self, seat: str) -> Told:
        """Return the action for a missed deadline; None if the game declares none."""
        return {"default_action": await default_action(self.seat(seat))}


class LivingBridge(Bridge):
    """A world that lives, with its open seats."""

    AHEAD = 3
    """Turns of the event loop for which the result of a seat is held back, so that the tick from which it comes is told
    first."""

    def __init__(self, port: LivingPort) -> None:
        super().__init__(port)
        self._living = port

    async def advance(self) -> Told:
        """Carry out the next tick."""
        return {"tick": await self._living.advance(lambda: None)}

    async def reached(self) -> Told:
        """Return at once, after everything that the world was told before."""
        return {}

    async def rest(self) -> Told:
        """Return once the seats have the results of the last tick."""
        for _ in range(TURNS):
            await asyncio.sleep(0)
        return {}

    async def settle(self) -> Told:
        """Wait for the work that the world still has when play ends."""
        await self._living.settle()
        return {}

    async def influence(self, body: Any) -> Told:
        """Apply an influence before the next tick."""
        return {"said": await self._living.influence(body)}

    async def close_seat(self, seat: str) -> Told:
        """Forget the seat of an agent that has left."""
        await self._living.close_seat(seat)
        self._seats.pop(seat, None)
        return {}

    async def vacated(self) -> Told:
        """Let all agents leave their seats, and return the state, in base64."""
        return {"state": base64.b64encode(await self._living.vacated()).decode("ascii")}

    async def let_go(self, seat: str) -> Told:
        """Remove an agent from its avatar by force, unless its episode is over."""
        port = self.seat(seat)
        return {"jack_out": None if port.done or port.left is not None else await leave(port)}

    @override
    async def resolve(self, seat: str, action: Any) -> Told:
        port = self.seat(seat)
        told = await super().resolve(seat, action)
        for _ in range(self.AHEAD if told["stepped"] else 0):
            await asyncio.sleep(0)
        return {**told, "left": port.left}  # it may have been removed meanwhile


def _state(seat: SeatPort) -> Told:
    return {"description": seat.game_description, "done": seat.done, "left": seat.left}
