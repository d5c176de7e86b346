"""A world in a worker, with the face of any other."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

from wsap_core.errors import WireError, WsapError
from wsap_core.factories import load
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
from wsap_core.protocol.wire import Codec, keep_text
from wsap_core.seams.game import ChoiceKey
from wsap_core.specs import AdapterSpec
from wsap_core.worlds import Outcome
from wsap_nexus.errors import WorldFailedError
from wsap_nexus.worlds.workers.pool import WorkerPool
from wsap_nexus.worlds.workers.rebuild import SNAPSHOT_EVERY, OnFailure, RebuildingLine

# Any, in this module: JSON.

T = TypeVar("T")


class WorkerWorld:
    """A world in one of the pool's workers. When the worker is lost, it is made again in another.

    Args:
        spec: the game.
        seed: of the world.
        options: the game's own.
        factory: what names the game in any process.
        pool: the workers.
        on_failure: told each time the world brought its worker down.
        snapshot_every: steps between two saved states.
    """

    def __init__(
        self,
        spec: AdapterSpec,
        seed: int,
        options: Mapping[str, Any],
        *,
        factory: str,
        pool: WorkerPool,
        on_failure: OnFailure | None = None,
        snapshot_every: int = SNAPSHOT_EVERY,
    ) -> None:
        self._spec = spec
        self._line = RebuildingLine(
            spec, seed, options, factory=factory, pool=pool, on_failure=on_failure, snapshot_every=snapshot_every
        )
        self._can_snapshot = "snapshot" in spec.abilities
        self._seats: dict[str, WorkerSeat] = {}

    # --- the face of a world ------------------------------------------------------------------------

    @property
    def spec(self) -> AdapterSpec:
        """The game."""
        return self._spec

    @property
    def can_snapshot(self) -> bool:
        """Whether its state can be taken and given back."""
        return self._can_snapshot

    @property
    def last_state(self) -> bytes | None:
        """The newest state that was saved on the way."""
        return self._line.last_state

    @property
    def failures(self) -> int:
        """How often it brought its worker down."""
        return self._line.failures

    @property
    def rebuilt(self) -> int:
        """How often it was made again."""
        return self._line.rebuilt

    async def begin(self, seed: int) -> None:
        """Begin the first episode."""
        said = await self._line.ask("begin", seed=seed)
        self._can_snapshot = bool(said["can_snapshot"])
        self._take_states(said["seats"])

    async def open_seat(self, agent_id: str) -> WorkerSeat:
        """Bind an agent to the avatar it has, or a new one."""
        said = await self._line.ask("open_seat", seat=agent_id)
        # An agent that comes back gets a seat of its own, as in any world.
        self._seats.pop(agent_id, None)
        seat = self._seats[agent_id] = WorkerSeat(self, agent_id, said)
        return seat

    async def avatars(self, agent_id: str) -> Sequence[Avatar]:
        """Return the bodies that an agent has."""
        said = await self._line.ask("avatars", changes=False, agent=agent_id)
        return [self.decode(Avatar, body) for body in said]

    async def create_avatar(self, agent_id: str, wanted: AvatarSpec) -> Avatar | None:
        """Make a body, if the game has bodies of its own."""
        said = await self._line.ask("create_avatar", agent=agent_id, wanted=wanted)
        return None if said is None else self.decode(Avatar, said)

    async def admit(self, avatar_id: str, entry: Entry) -> Receipt:
        """Let skills and items in."""
        said = await self._line.ask("admit", avatar=avatar_id, entry=entry)
        self._take_states(said["seats"])
        return self.decode(Receipt, said["receipt"])

    async def release(self, avatar_id: str, transfer_id: str) -> TransitPackage:
        """Take out what is portable."""
        return self.decode(TransitPackage, await self._line.ask("release", avatar=avatar_id, transfer=transfer_id))

    async def death(self, avatar_id: str) -> DeathEvent | None:
        """Return what happened to a destroyed body."""
        said = await self._line.ask("death", avatar=avatar_id)
        return None if said is None else self.decode(DeathEvent, said)

    async def respawn(self, agent_id: str, avatar_id: str, option: str) -> str:
        """Bring a destroyed body back."""
        said = await self._line.ask("respawn", agent=agent_id, avatar=avatar_id, option=option)
        self._take_states(said["seats"])
        return str(said["message"])

    async def snapshot(self) -> bytes:
        """Return the whole state."""
        return await self._line.save()

    async def restore(self, data: bytes) -> None:
        """Become what the snapshot was taken of."""
        said = await self._line.ask("restore", state=base64.b64encode(data).decode("ascii"))
        self._take_states(said["seats"])

    async def render(self) -> View | None:
        """Return what a viewer can draw."""
        said = await self._line.ask("render", changes=False)
        return None if said is None else self.decode(View, said)

    async def close(self) -> None:
        """Let go of it; the worker stays for others."""
        await self._line.close()
        self._seats.clear()  # each has this world: together they would stay in memory

    # --- for its seats ----------------------------------------------------------------------------------

    async def ask(self, op: str, **values: Any) -> Any:
        """Ask what one of its seats asks, and return what is said; see `RebuildingLine.ask`."""
        return await self._line.ask(op, **values)

    async def ask_turn(self, op: str, **values: Any) -> tuple[Any, bytes | None]:
        """Ask for something that may wait for other seats; return what is said and the observation's text."""
        return await self._line.ask_seat(op, waits=True, **values)

    def decode(self, cls: type[T], said: Any) -> T:
        """Return what the world said as a protocol type.

        Raises:
            WorldFailedError: it is none.
        """
        try:
            return self.codec.decode(cls, said, where="world's answer")
        except WireError as error:
            raise WorldFailedError(f"The game {self._spec.name!r} broke the protocol: {error}") from error

    @cached_property
    def codec(self) -> Codec:
        """What reads the game's messages; types that can't be loaded here are read as what they extend."""
        known = []
        for reference in self._spec.wire_types:
            try:
                known.append(load(reference))
            except WsapError:
                continue
        return Codec(known)

    def _take_states(self, states: Mapping[str, Any]) -> None:
        for name, state in states.items():
            if name in self._seats:
                self._seats[name].take_state(state)


class WorkerSeat:
    """The face of a world in a worker for one agent. Made by `WorkerWorld.open_seat`.

    Args:
        world: the world.
        agent_id: who sits there.
        said: what the worker told of the seat.
    """

    def __init__(self, world: WorkerWorld, agent_id: str, said: Any) -> None:
        self.world = world
        """The world."""
        self.agent_id = agent_id
        """Who sits there."""
        self.done = False
        """True when the episode of this seat is over."""
        self.ended = False
        """Whether the game ended without an action of this seat."""
        self.left: JackOutResult | None = None
        """Set once the agent has left the world."""
        self.action_space: ActionSpace = world.decode(ActionSpace, said["actions"])
        """All actions there are."""
        self.game_description = ""
        """The game, its goals and mechanics."""
        self._text: bytes | None = None
        self._seen = Observation()
        self.take_state(said)

    async def observe(self) -> Observation:
        """Return this seat's state at its next decision point."""
        said, text = await self.world.ask_turn("observe", seat=self.agent_id)
        self.ended = bool(said and said["ended"])
        return self._read(text)

    async def step(self, action: Action, key: ChoiceKey | None = None) -> Outcome:
        """Carry out an action and return what came of it, and how."""
        said, text = await self.world.ask_turn("resolve", seat=self.agent_id, action=action)
        decode = self.world.decode
        result = replace(decode(ActionResult, said["result"]), observation=self._read(text))
        out = None if said["out"] is None else decode(JackOutResult, said["out"])
        death = None if said["death"] is None else decode(DeathEvent, said["death"])
        self.take_state(said)
        return Outcome(decode(Action, said["action"]), result, bool(said["stepped"]), out, death)

    async def look(self) -> View | None:
        """Return what this seat sees now, drawn by the game; None where it draws nothing."""
        said = await self.world.ask("look", changes=False, seat=self.agent_id)
        return None if said is None else self.world.decode(View, said)

    async def default_action(self) -> Action | None:
        """Return what is done when the agent misses its deadline, or None if the world declares nothing."""
        said = await self.world.ask("default_action", changes=False, seat=self.agent_id)
        return None if said is None else self.world.decode(Action, said)

    async def leave(self, mode: str = "dormant") -> JackOutResult:
        """Take the agent out of the world by force."""
        said = await self.world.ask("leave", seat=self.agent_id, mode=mode)
        self.left = self.world.decode(JackOutResult, said)
        return self.left

    def take_state(self, said: Any) -> None:
        """Take over what the worker tells of the seat."""
        self.done, self.ended = bool(said["done"]), False
        self.left = None if said["left"] is None else self.world.decode(JackOutResult, said["left"])
        self.game_description = said.get("description", self.game_description)

    def _read(self, text: bytes | None) -> Observation:
        """Return an observation; what comes again as it was is not read again."""
        if text is None:
            raise WorldFailedError(f"The game {self.world.spec.name!r} sent no observation.")
        if text != self._text:
            seen = self.world.decode(Observation, json.loads(text))
            # It is the canonical text, which every record of the observation is made of.
            self._seen, self._text = keep_text(seen, text.decode("ascii")), text
        return self._seen
