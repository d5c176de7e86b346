"""A world in another process, over HTTP.

It survives the game's process, as worlds in workers survive their workers: its state is saved from time to time, and
the calls since are kept, so that it is rebuilt when the game runs again.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from wsap_core.errors import WireError
from wsap_core.protocol import (
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
from wsap_core.protocol.wire import Codec
from wsap_core.seams.game import ChoiceKey
from wsap_core.specs import AdapterSpec
from wsap_core.worlds import Outcome
from wsap_nexus.errors import WorldFailedError
from wsap_nexus.worlds.game_client import GameClient
from wsap_nexus.worlds.http_lines import HttpLines
from wsap_nexus.worlds.seats import HasSpec
from wsap_nexus.worlds.workers.rebuild import SNAPSHOT_EVERY, OnFailure, RebuildingLine

# Any, in this module: JSON.

_CODEC = Codec()


class HttpSeat:
    """A seat in a world in another process. Made by `HttpWorld.open_seat`.

    Args:
        world: the world.
        agent_id: who sits there.
        told: the game's answer to the opening of the seat.
    """

    def __init__(self, world: HttpWorld, agent_id: str, told: Mapping[str, Any]) -> None:
        self._world = world
        self._agent_id = agent_id
        self.game_description = str(told.get("description", ""))
        """The game, its goals and mechanics."""
        self.action_space = _CODEC.decode(ActionSpace, told.get("action_space"), where="action space")
        """All actions."""
        self.done = False
        """Whether the episode of this seat is over."""
        self.ended = False
        """Whether the game ended without an action of this seat."""
        self.left: JackOutResult | None = None
        """Set when the agent has left the world."""
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
        """Update the state of the seat."""
        self.done, self.ended = bool(told.get("done")), False
        left = told.get("left")
        self.left = None if left is None else _CODEC.decode(JackOutResult, left, where="seat")

    def default_action(self) -> Action | None:
        """Return the action for a missed deadline; None if the game declares none."""
        return None if self._default is None else _CODEC.decode(Action, self._default, where="default action")

    async def observe(self) -> Observation:
        """Return this seat's state at its next decision point."""
        told = await self._world.ask_turn("observe", seat=self._agent_id)
        seen: Observation = self._read(Observation, told, "observation")
        self.ended = told.get("ended") is True
        return seen

    async def look(self) -> View | None:
        """Return this seat's view; None where the game has none."""
        if "render" not in self._world.spec.abilities:
            return None
        told = await self._world.ask("look", changes=False, seat=self._agent_id)
        return None if told.get("view") is None else self._read(View, told, "view")

    async def step(self, action: Action, key: ChoiceKey | None = None) -> Outcome:
        """Carry out an action and return what came of it, and how."""
        told = await self._world.ask_turn("resolve", seat=self._agent_id, action=action)
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
        """Remove the agent from the world by force."""
        told = await self._world.ask("leave", seat=self._agent_id, mode=mode)
        self.left = self._read(JackOutResult, told, "jack_out")
        return self.left

    def _read(self, kind: type[Any], told: Mapping[str, Any], name: str) -> Any:
        return self._world.read(kind, told, name)


class HttpWorld:
    """A world in another process.

    Args:
        spec: the game.
        world_id: the world's id in the game's process.
        seed: of the world.
        options: the game's own.
        client: of the game.
        on_failure: called when the game's process ended; None for no call.
        snapshot_every: steps between two saved states.
    """

    def __init__(
        self,
        spec: AdapterSpec,
        world_id: str,
        seed: int,
        options: Mapping[str, Any],
        client: GameClient,
        *,
        on_failure: OnFailure | None = None,
        snapshot_every: int = SNAPSHOT_EVERY,
    ) -> None:
        self._spec = spec
        self._line = RebuildingLine(
            spec,
            seed,
            options,
            factory="",
            pool=HttpLines(spec, world_id, client, on_failure),
            on_failure=on_failure,
            snapshot_every=snapshot_every,
        )
        self._seats: dict[str, HttpSeat] = {}

    @property
    def spec(self) -> AdapterSpec:
        """The game."""
        return self._spec

    @property
    def can_snapshot(self) -> bool:
        """Whether its state can be taken and given back."""
        return "snapshot" in self._spec.abilities

    @property
    def last_state(self) -> bytes | None:
        """The newest saved state."""
        return self._line.last_state

    @property
    def rebuilt(self) -> int:
        """How often it was rebuilt after the end of the game's process."""
        return self._line.rebuilt

    async def begin(self, seed: int) -> None:
        """Make the world and begin its first episode; a world of the same id is replaced."""
        self._seats.clear()
        await self.ask("begin", seed=seed)

    async def open_seat(self, agent_id: str) -> HttpSeat:
        """Bind an agent to the avatar it has, or a new one, and return its seat."""
        told = await self.ask("open_seat", seat=agent_id)
        try:
            seat = self._seats[agent_id] = HttpSeat(self, agent_id, told)
        except WireError as error:
            raise WorldFailedError(f"The game {self._spec.name!r}: {error}") from error
        return seat

    async def avatars(self, agent_id: str) -> Sequence[Avatar]:
        """Return the avatars of an agent."""
        told = await self.ask("avatars", changes=False, agent=agent_id)
        found = told.get("avatars")
        if not isinstance(found, list):
            raise WorldFailedError(f"The game {self._spec.name!r} gave no list of avatars.")
        return [self.read(Avatar, {"avatar": body}, "avatar") for body in found]

    async def create_avatar(self, agent_id: str, wanted: AvatarSpec) -> Avatar | None:
        """Create an avatar for an agent; None where opening a seat creates it."""
        told = await self.ask("create_avatar", agent=agent_id, wanted=wanted)
        return None if told.get("avatar") is None else self.read(Avatar, told, "avatar")

    async def admit(self, avatar_id: str, entry: Entry) -> Receipt:
        """Import skills and items; a game without transit refuses all items."""
        if "transit" not in self._spec.abilities:
            reason = f"{self._spec.display_title} lets nothing in."
            return Receipt(entry.transfer_id, refused={item.item_id: reason for item in entry.items})
        told = await self.ask("admit", avatar=avatar_id, entry=entry)
        self._take(told)
        receipt: Receipt = self.read(Receipt, told, "receipt")
        return receipt

    async def release(self, avatar_id: str, transfer_id: str) -> TransitPackage:
        """Export the portable items; none from a game without transit."""
        if "transit" not in self._spec.abilities:
            return TransitPackage(transfer_id)
        told = await self.ask("release", avatar=avatar_id, transfer=transfer_id)
        package: TransitPackage = self.read(TransitPackage, told, "package")
        return package

    async def death(self, avatar_id: str) -> DeathEvent | None:
        """Return the death of a destroyed avatar; None where the game reports no deaths."""
        told = await self.ask("death", avatar=avatar_id)
        return None if told.get("death") is None else self.read(DeathEvent, told, "death")

    async def respawn(self, agent_id: str, avatar_id: str, option: str) -> str:
        """Respawn a destroyed avatar and return the game's message."""
        told = await self.ask("respawn", agent=agent_id, avatar=avatar_id, option=option)
        self._take(told)
        return str(told.get("message", ""))

    async def snapshot(self) -> bytes:
        """Return the world's whole state."""
        return await self._line.save()

    async def restore(self, data: bytes) -> None:
        """Restore a snapshot; the same seats must be open."""
        state = base64.b64encode(data).decode("ascii")
        self._take(await self.ask("restore", state=state))

    async def render(self) -> View | None:
        """Return the view for spectators; None if the game has none."""
        if "render" not in self._spec.abilities:
            return None
        told = await self.ask("render", changes=False)
        return None if told.get("view") is None else self.read(View, told, "view")

    async def close(self) -> None:
        """Close the world in the game's process, if that can be reached."""
        await self._line.close()
        self._seats.clear()  # each has this world: together they would stay in memory

    # --- for its seats ----------------------------------------------------------------------------------

    async def ask(self, op: str, *, changes: bool = True, **values: Any) -> Mapping[str, Any]:
        """Send a request and return the game's answer; see `RebuildingLine.ask`."""
        told: Mapping[str, Any] = await self._line.ask(op, changes=changes, **values)
        return told

    async def ask_turn(self, op: str, **values: Any) -> Mapping[str, Any]:
        """Send a request that may wait for other seats, and return the game's answer."""
        told: Mapping[str, Any]
        told, _ = await self._line.ask_seat(op, waits=True, **values)
        return told

    def read(self, kind: type[Any], told: Mapping[str, Any], name: str) -> Any:
        """Return a protocol value of an answer.

        Raises:
            WorldFailedError: it is invalid.
        """
        try:
            value = _CODEC.decode(kind, told.get(name), where=f"{name} of {self._spec.name!r}")
            # The game may have another name here than in its own process.
            return replace(value, game_id=self._spec.name) if isinstance(value, Avatar) else value
        except WireError as error:
            raise WorldFailedError(f"The game {self._spec.name!r} answered what it may not: {error}") from error

    def _take(self, told: Mapping[str, Any]) -> None:
        states = told.get("seats")
        for name, state in (states if isinstance(states, dict) else {}).items():
            if name in self._seats:
                self._seats[name].take(state)
