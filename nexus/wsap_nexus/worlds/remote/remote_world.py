"""A world in another process: a worker, or a game's own process over HTTP.

It survives the process: its state is saved regularly and the calls since then are kept, so that it can be rebuilt in
another worker, or when the game runs again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, TypeVar

from typing_extensions import override

from wsap_core import protocol
from wsap_core.errors import WireError, WorldError, WsapError
from wsap_core.factories import load
from wsap_core.protocol.wire import Codec, keep_text
from wsap_core.seams.game import ChoiceKey
from wsap_core.specs import AdapterSpec
from wsap_core.worlds import Outcome
from wsap_core.worlds.answers import wrong_in
from wsap_nexus.errors import WorldFailedError
from wsap_nexus.worlds.operations import (
    DefaultAction,
    Leave,
    Look,
    Observe,
    Opened,
    Operation,
    Resolve,
    Resolved,
    SeatState,
)
from wsap_nexus.worlds.port import WorldPort
from wsap_nexus.worlds.seats import Told
from wsap_nexus.worlds.workers.rebuild import SNAPSHOT_EVERY, Lines, OnFailure, RebuildingLine

# Any, in this module: JSON.

T = TypeVar("T")


class RemoteWorld(WorldPort):
    """A world in another process.

    Args:
        pool: the workers, or the lines to a game's process.
        factory: the reference to the game in any process; empty for a game in its own process.
        on_failure: called when the world or its game crashed the process, once for a call and its repetitions.
        snapshot_every: steps between two saved states.
    """

    not_the_games: ClassVar[tuple[type[WsapError], ...]] = (WorldError,)
    """The errors in a seat's turn that are raised as they are."""

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
        self.seats: dict[str, RemoteSeat] = {}
        """The open seats by name."""
        self._seen: dict[str, tuple[bytes, protocol.Observation]] = {}

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

    @override
    async def call(self, operation: Operation[T], told: Told | None = None) -> T:
        if operation.is_lacking(self.spec):
            return operation.lacking(self.spec)
        try:
            reply, text = await self._line.call(operation, told)
        except self.not_the_games:
            raise
        except WsapError as error:
            if not operation.in_turn:
                raise
            # Whatever a game raises in a seat's turn is its failure, not that of the seat's agent.
            raise WorldFailedError(f"The game {self.spec.name!r} failed: {error}") from error
        return operation.read(reply, text, self)

    # --- for what reads its replies -------------------------------------------------------------------

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

    def observation(self, seat: str, reply: Mapping[str, Any], text: bytes | None) -> protocol.Observation:
        """Return the observation of a reply, or that of its text."""
        if text is None:
            seen: protocol.Observation = self.read(protocol.Observation, reply, "observation")
            return seen
        known = self._seen.get(seat)
        if known is None or known[0] != text:  # an unchanged text is not parsed again
            try:
                told = {"observation": json.loads(text)}
            except (ValueError, RecursionError) as error:
                raise WorldFailedError(f"The game {self.spec.name!r} sent an invalid observation.") from error
            seen = self.read(protocol.Observation, told, "observation", text.decode("ascii"))
            known = self._seen[seat] = text, seen
        return known[1]

    def opened(self, seat: str, opened: Opened) -> RemoteSeat:
        """Return a new seat."""
        made = self.seats[seat] = RemoteSeat(self, seat, opened)
        return made

    def told(self, seats: Mapping[str, SeatState]) -> None:
        """Update the states of seats."""
        for name, state in seats.items():
            self.seats[name].take(state)

    def forget(self, seat: str | None = None) -> None:
        """Forget a seat that was closed, or all."""
        if seat is None:
            self.seats.clear()
            self._seen.clear()
        else:
            self.seats.pop(seat, None)
            self._seen.pop(seat, None)

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


class RemoteSeat:
    """A seat in a world in another process, created by `RemoteWorld.open_seat`."""

    def __init__(self, world: RemoteWorld, agent_id: str, opened: Opened) -> None:
        self.world = world
        self.agent_id = agent_id
        self.done = False
        self.ended = False
        """Whether the game ended without an action of this seat."""
        self.left: protocol.JackOutResult | None = None
        """Set when the agent has left the world."""
        self.action_space = opened.action_space
        self.game_description = ""
        self._opened = opened.reply
        self.take(opened.state)

    def take(self, state: SeatState) -> None:
        """Update the state of the seat."""
        self.done, self.ended, self.left = state.done, False, state.left
        if state.description is not None:
            self.game_description = state.description

    async def default_action(self) -> protocol.Action | None:
        """Return the action for a missed deadline; None if the game declares none."""
        asked = DefaultAction(self.agent_id)
        if asked.key in self._opened:
            return asked.read(self._opened, None, self.world)
        return await self.world.call(asked)  # it may change with each decision

    async def observe(self) -> protocol.Observation:
        """Return this seat's state at its next decision point."""
        seen = await self.world.call(Observe(self.agent_id))
        self.ended = seen.ended
        return seen.observation

    async def look(self) -> protocol.View | None:
        """Return this seat's view; None if the game has none."""
        return await self.world.call(Look(self.agent_id))

    async def step(self, action: protocol.Action, key: ChoiceKey | None = None) -> Outcome:
        """Carry out an action and return its outcome."""
        return self.resolved(await self.world.call(Resolve(self.agent_id, action)))

    def resolved(self, resolved: Resolved) -> Outcome:
        """Return the outcome of an action, after which the seat has another state."""
        self.take(resolved.state)
        return resolved.outcome

    async def leave(self, mode: str = "dormant") -> protocol.JackOutResult:
        """Remove the agent from the world by force."""
        self.left = await self.world.call(Leave(self.agent_id, mode))
        return self.left
