"""A world in another process: a worker, or a game's own process over HTTP.

It survives the process: its state is saved regularly and the calls since then are kept, so that it can be rebuilt in
another worker, or when the game runs again.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from wsap_core import protocol
from wsap_core.errors import WireError, WorldError, WsapError
from wsap_core.factories import load
from wsap_core.protocol.wire import Codec, keep_text
from wsap_core.seams.game import ChoiceKey
from wsap_core.specs import AdapterSpec
from wsap_core.worlds import Outcome
from wsap_core.worlds.answers import wrong_in
from wsap_nexus.errors import WorldFailedError
from wsap_nexus.worlds.workers.rebuild import SNAPSHOT_EVERY, Lines, OnFailure, RebuildingLine

# Any, in this module: JSON.


class RemoteWorld:
    """A world in another process.

    Args:
        pool: the workers, or the lines to a game's process.
        factory: the reference to the game in any process; empty for a game in its own process.
        on_failure: called each time the world or its game crashed the process.
        snapshot_every: steps between two saved states.
    """

    def __init__(
        self,
        spec: AdapterSpec,
        seed: int,
        options: Mapping[str, Any],
        *,
        pool: Lines,
        factory: str = "",
        on_failure: OnFailure = lambda error: None,
        snapshot_every: int = SNAPSHOT_EVERY,
    ) -> None:
        self.spec = spec
        self._line = RebuildingLine(
            spec, seed, options, factory=factory, pool=pool, on_failure=on_failure, snapshot_every=snapshot_every
        )
        self.can_snapshot = "snapshot" in spec.abilities
        """Whether its state can be saved and restored."""
        self._seats: dict[str, RemoteSeat] = {}

    @property
    def last_state(self) -> bytes | None:
        """The newest saved state."""
        return self._line.last_state

    @property
    def failures(self) -> int:
        """How often it crashed its process."""
        return self._line.failures

    @property
    def rebuilt(self) -> int:
        """How often it was rebuilt after the end of its process."""
        return self._line.rebuilt

    @property
    def asked(self) -> tuple[str, float] | None:
        """The oldest unanswered call, such as "resolve of 'eve'", and its seconds; None if there is none."""
        return self._line.asked

    @property
    def is_held(self) -> bool:
        """Whether its game has not returned for long from a call, and holds its worker."""
        return self._line.is_held

    def give_up(self) -> bool:
        """End the world, with its worker, if that `is_held`; return whether it was. This counts as no failure."""
        return self._line.give_up()

    async def begin(self, seed: int) -> None:
        """Start the first episode; if that recreates the world, its seats are closed."""
        told = await self.ask("begin", seed=seed)
        self.can_snapshot = bool(told.get("can_snapshot", self.can_snapshot))
        if "seats" in told:
            self._take(told)
        else:
            self._seats.clear()

    async def open_seat(self, agent_id: str) -> RemoteSeat:
        """Bind an agent to its avatar, or a new one, and return a new seat."""
        told = await self.ask("open_seat", seat=agent_id)
        seat = self._seats[agent_id] = RemoteSeat(self, agent_id, told)
        return seat

    async def avatars(self, agent_id: str) -> Sequence[protocol.Avatar]:
        """Return the avatars of an agent."""
        told = await self.ask("avatars", changes=False, agent=agent_id)
        found = told.get("avatars")
        if not isinstance(found, list):
            raise WorldFailedError(f"The game {self.spec.name!r} returned no list of avatars.")
        return [self.read(protocol.Avatar, {"avatar": body}, "avatar") for body in found]

    async def create_avatar(self, agent_id: str, wanted: protocol.AvatarSpec) -> protocol.Avatar | None:
        """Create an avatar for an agent; None if opening a seat creates it."""
        avatar: protocol.Avatar | None = self.maybe(
            protocol.Avatar, await self.ask("create_avatar", agent=agent_id, wanted=wanted), "avatar"
        )
        return avatar

    async def admit(self, avatar_id: str, entry: protocol.Entry) -> protocol.Receipt:
        """Import skills and items; a game without transit refuses all items."""
        if "transit" not in self.spec.abilities:
            reason = f"{self.spec.display_title} accepts no items."
            return protocol.Receipt(entry.transfer_id, refused={item.item_id: reason for item in entry.items})
        told = await self.ask("admit", avatar=avatar_id, entry=entry)
        self._take(told)
        receipt: protocol.Receipt = self.read(protocol.Receipt, told, "receipt")
        return receipt

    async def release(self, avatar_id: str, transfer_id: str) -> protocol.TransitPackage:
        """Export the portable items; none for a game without transit."""
        if "transit" not in self.spec.abilities:
            return protocol.TransitPackage(transfer_id)
        told = await self.ask("release", avatar=avatar_id, transfer_id=transfer_id)
        package: protocol.TransitPackage = self.read(protocol.TransitPackage, told, "package")
        return package

    async def death(self, avatar_id: str) -> protocol.DeathEvent | None:
        """Return the death of a destroyed avatar; None if the game reports no deaths."""
        death: protocol.DeathEvent | None = self.maybe(
            protocol.DeathEvent, await self.ask("death", avatar=avatar_id), "death"
        )
        return death

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
        self._take(await self.ask("restore", state=base64.b64encode(data).decode("ascii")))

    async def render(self) -> protocol.View | None:
        """Return the view for spectators; None if the game has none."""
        return await self.view("render")

    async def close(self) -> None:
        """Close the world in its process, if that is reachable; a worker stays for other worlds."""
        await self._line.close()
        self._seats.clear()  # a reference cycle would stay in memory

    # --- for its seats ----------------------------------------------------------------------------------

    async def ask(self, op: str, *, changes: bool = True, **values: Any) -> Mapping[str, Any]:
        """Send a request and return the reply; see `RebuildingLine.ask`."""
        told: Mapping[str, Any] = await self._line.ask(op, changes=changes, **values)
        return told

    async def ask_turn(self, op: str, **values: Any) -> tuple[Mapping[str, Any], bytes | None]:
        """Send a request that may wait for other seats; return the reply and the text of its observation, if any.

        Whatever a game raises here is its failure, not that of the seat's agent.
        """
        try:
            return await self._line.ask_seat(op, waits=True, **values)
        except WorldError:
            raise
        except WsapError as error:
            raise WorldFailedError(f"The game {self.spec.name!r} failed: {error}") from error

    async def view(self, op: str, **values: Any) -> protocol.View | None:
        """Return a view; None if the game has none."""
        if "render" not in self.spec.abilities:
            return None
        view: protocol.View | None = self.maybe(protocol.View, await self.ask(op, changes=False, **values), "view")
        return view

    def read(self, kind: type[Any], told: Mapping[str, Any], name: str, text: str | None = None) -> Any:
        """Return a protocol value of a reply, of which `text` is the canonical JSON; WorldFailedError if invalid."""
        try:
            value = self._codec.decode(kind, told.get(name), where=f"{name} of {self.spec.name!r}")
            if text is not None:
                keep_text(value, text)  # every record of it is made from this
            if wrong := wrong_in(value):
                raise WireError(f"it holds {wrong}.")
            # The game's name may differ in its own process.
            return replace(value, game_id=self.spec.name) if isinstance(value, protocol.Avatar) else value
        except WireError as error:
            raise WorldFailedError(f"The game {self.spec.name!r} sent an invalid reply: {error}") from error

    def maybe(self, kind: type[Any], told: Mapping[str, Any], name: str) -> Any:
        """Return a protocol value of a reply as `read` does, if there is one."""
        return None if told.get(name) is None else self.read(kind, told, name)

    @cached_property
    def _codec(self) -> Codec:
        """Reads the game's messages; types that can't be loaded here are read as their base types."""
        known = []
        for reference in self.spec.wire_types:
            try:
                known.append(load(reference))
            except WsapError:
                continue
        return Codec(known)

    def _take(self, told: Mapping[str, Any]) -> None:
        states = told.get("seats")
        for name, state in (states if isinstance(states, dict) else {}).items():
            if name in self._seats:
                self._seats[name].take(state)


class RemoteSeat:
    """A seat in a world in another process, created by `RemoteWorld.open_seat` from the reply `told`."""

    def __init__(self, world: RemoteWorld, agent_id: str, told: Mapping[str, Any]) -> None:
        self.world = world
        self.agent_id = agent_id
        self.done = False
        self.ended = False
        """Whether the game ended without an action of this seat."""
        self.left: protocol.JackOutResult | None = None
        """Set when the agent has left the world."""
        self.action_space: protocol.ActionSpace = world.read(protocol.ActionSpace, told, "action_space")
        self.game_description = ""
        self._opened = told
        self._text: bytes | None = None
        self._seen = protocol.Observation()
        self.take(told)

    def take(self, told: Mapping[str, Any]) -> None:
        """Update the state of the seat."""
        self.done, self.ended = bool(told.get("done")), False
        self.left = self.world.maybe(protocol.JackOutResult, told, "left")
        self.game_description = str(told.get("description", self.game_description))

    async def default_action(self) -> protocol.Action | None:
        """Return the action for a missed deadline; None if the game declares none."""
        told = self._opened
        if "default_action" not in told:  # it may change with each decision
            told = await self.world.ask("default_action", changes=False, seat=self.agent_id)
        action: protocol.Action | None = self.world.maybe(protocol.Action, told, "default_action")
        return action

    async def observe(self) -> protocol.Observation:
        """Return this seat's state at its next decision point."""
        told, text = await self.world.ask_turn("observe", seat=self.agent_id)
        seen: protocol.Observation = (
            self.world.read(protocol.Observation, told, "observation") if text is None else self._read(text)
        )
        self.ended = told.get("ended") is True
        return seen

    async def look(self) -> protocol.View | None:
        """Return this seat's view; None if the game has none."""
        return await self.world.view("look", seat=self.agent_id)

    async def step(self, action: protocol.Action, key: ChoiceKey | None = None) -> Outcome:
        """Carry out an action and return its outcome."""
        return self.outcome(*await self.world.ask_turn("resolve", seat=self.agent_id, action=action))

    def outcome(self, told: Mapping[str, Any], text: bytes | None) -> Outcome:
        """Return the outcome in the reply to an action and the text of its observation, if any."""
        world = self.world
        result: protocol.ActionResult = world.read(protocol.ActionResult, told, "result")
        result = result if text is None else replace(result, observation=self._read(text))
        outcome = Outcome(
            world.read(protocol.Action, told, "action"),
            result,
            bool(told.get("stepped")),
            world.maybe(protocol.JackOutResult, told, "out"),
            world.maybe(protocol.DeathEvent, told, "death"),
        )
        self.take(told)
        return outcome

    async def leave(self, mode: str = "dormant") -> protocol.JackOutResult:
        """Remove the agent from the world by force."""
        told = await self.world.ask("leave", seat=self.agent_id, mode=mode)
        left: protocol.JackOutResult = self.world.read(protocol.JackOutResult, told, "jack_out")
        self.left = left
        return left

    def _read(self, text: bytes) -> protocol.Observation:
        """Return the observation of a reply's text; an unchanged text is not parsed again."""
        if text != self._text:
            try:
                told = {"observation": json.loads(text)}
            except (ValueError, RecursionError) as error:
                raise WorldFailedError(f"The game {self.world.spec.name!r} sent an invalid observation.") from error
            self._seen = self.world.read(protocol.Observation, told, "observation", text.decode("ascii"))
            self._text = text
        return self._seen
