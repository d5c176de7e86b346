"""A world: one running instance of a game, with its avatars and seats."""

from __future__ import annotations

import base64
import inspect
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

from wsap_core.errors import SnapshotError, UsageError, WorldError
from wsap_core.factories import build
from wsap_core.protocol import ActionResult, EmbodiedObservation, Tick, View
from wsap_core.protocol.avatars import LEAVING, Avatar, AvatarSpec, AvatarState, DeathEvent, JackInResult, JackOutResult
from wsap_core.protocol.values import JsonValue
from wsap_core.seams import game as seam
from wsap_core.seams.context import Context
from wsap_core.specs import AdapterSpec
from wsap_core.worlds.answers import judged
from wsap_core.worlds.mailbox import Mailbox
from wsap_core.worlds.seat import Seat, blamed


class World:
    """One running instance of a game, with its avatars and seats; a game without avatars gets default ones."""

    def __init__(self, spec: AdapterSpec, adapter: seam.GameAdapter) -> None:
        self.spec = spec
        self.adapter = adapter
        self.has_avatars = "avatars" in spec.abilities or seam.has_methods(adapter, "avatars")
        """Whether the game has avatars of its own."""
        self.seats: dict[str, Seat] = {}
        """The open seats, by agent id, in the order they were opened."""
        self._bodies: dict[str, AvatarState] = {}  # of the default avatars, by agent
        mailbox = getattr(adapter, "mailbox", None)
        self.mailbox: Mailbox | None = mailbox if isinstance(mailbox, Mailbox) else None
        """The messages between seats, if the world has messages."""

    @classmethod
    def create(cls, spec: AdapterSpec, context: Context) -> World:
        """Return a new world of a game with the context's options.

        Raises:
            PluginError: the game can't be loaded or created.
            UsageError: the options are invalid.
        """
        spec = spec.with_options(context.config)
        own = replace(context, config=spec.options_with(context.config))
        return cls(spec, cast(seam.GameAdapter, build(spec.factory, own)))

    async def reset(self, seed: int | None = None) -> None:
        """Start a new episode for all seats, from the seed if the game has that ability, else the next of its own."""
        with blamed(f"The game {self.spec.name!r} failed at a reset:"):
            if "seed" in self.spec.abilities and seed is not None:
                value = cast(Any, self.adapter).reset(seed=seed)  # declared: Seedable
            else:
                value = self.adapter.reset()
            if inspect.isawaitable(value):
                await value
        for agent_id, seat in self.seats.items():
            self._bind(agent_id)
            seat.begin_episode()

    def open_seat(self, agent_id: str) -> Seat:
        """Bind an agent to its existing avatar or else a new one, and return its seat.

        Raises:
            UsageError: the agent has a seat already, or all seats are taken.
            WorldError: the game refuses.
        """
        if agent_id in self.seats and self.seats[agent_id].left is None:
            raise UsageError(f"{agent_id!r} already has a seat in {self.spec.name!r}.")
        taken = sum(1 for seat in self.seats.values() if seat.left is None)
        if taken >= self.spec.seats[1]:
            raise UsageError(f"All {self.spec.seats[1]} seats of {self.spec.name!r} are taken.")
        self._bind(agent_id)
        if "multi-seat" in self.spec.abilities and isinstance(self.adapter, seam.HasSeats):
            face = self.adapter.seat(agent_id)
        else:
            face = self.adapter
        seat = Seat(self, agent_id, face)
        self.seats[agent_id] = seat
        return seat

    def close_seat(self, agent_id: str) -> None:
        """Forget the seat of an agent that has left, so that snapshots do not include it."""
        self.seats.pop(agent_id, None)
        self._bodies.pop(agent_id, None)

    def avatar_of(self, agent_id: str) -> Avatar:
        """Return the avatar that the agent controls, or controlled last."""
        if self.has_avatars:
            with blamed(f"The game {self.spec.name!r} raised"):
                avatars = self._avatars.list_avatars(agent_id)
            bound = [a for a in avatars if a.bound_agent == agent_id]
            if bound or avatars:
                return judged(self.spec.name, "has as an avatar", (bound or avatars)[0], Avatar)
        state = self._bodies.get(agent_id, AvatarState.UNBOUND)
        agent = agent_id if state is AvatarState.BOUND else None
        return Avatar(f"{agent_id}@{self.spec.name}", self.spec.name, agent, state, agent_id)

    def release(self, agent_id: str, mode: str, *, forced: bool = False) -> JackOutResult:
        """Release an agent's avatar: `dormant`, `suspend` or `despawn`. The game may refuse, for example in danger; if
        `forced`, the agent leaves nevertheless and the body stays as it is."""
        if self.has_avatars:
            with blamed(f"The game {self.spec.name!r} raised"):
                left = self._avatars.jack_out(agent_id, mode)
            result = judged(self.spec.name, "jacked out with", left, JackOutResult)
            if result.success or not forced:
                return result
            return replace(result, success=True, message=f"Left by force: {result.message}")
        state = LEAVING.get(mode, AvatarState.DORMANT)
        self._bodies[agent_id] = state
        if isinstance(self.adapter, seam.Leavable):
            self.adapter.leave(agent_id)
        return JackOutResult(True, state, "You have left your avatar.")

    def death_of(self, agent_id: str, result: ActionResult) -> DeathEvent | None:
        """Return the death of the agent's avatar, if the step that ended its episode destroyed it."""
        if not self.has_avatars:
            return None
        observation = result.observation
        avatar = observation.avatar if isinstance(observation, EmbodiedObservation) else self.avatar_of(agent_id)
        if avatar.state is not AvatarState.DESTROYED:
            return None
        with blamed(f"The game {self.spec.name!r} raised"):
            death = self._avatars.handle_death(avatar.avatar_id)
        return judged(self.spec.name, "told of a death with", death, DeathEvent)

    def render(self) -> View | None:
        """Return the world's view, or None if the game has none."""
        if "render" not in self.spec.abilities or not isinstance(self.adapter, seam.Renders):
            return None
        return judged(self.spec.name, "rendered", self.adapter.render(), View)

    @property
    def lives(self) -> bool:
        """Whether the world goes on by itself."""
        return "lives" in self.spec.abilities

    async def advance(self) -> Tick:
        """Carry out and return the next tick of a world that lives; `WorldError` if the game fails."""
        with blamed(f"The game {self.spec.name!r} failed in a tick:"):
            tick = await cast(seam.Lives, self.adapter).advance()
        return judged(self.spec.name, "returned", tick, Tick)

    async def settle(self) -> None:
        """Wait for the work that a world that lives still has when play ends (`Settles`)."""
        if isinstance(self.adapter, seam.Settles):
            await self.adapter.settle()

    def influence(self, body: Mapping[str, JsonValue]) -> str:
        """Apply an influence before the next tick, and return one sentence about it.

        Raises:
            UsageError: the game refuses it.
            WorldError: the game fails.
        """
        if "influence" not in self.spec.abilities:
            raise UsageError(f"The game {self.spec.name!r} accepts no influence from outside.")
        with blamed(f"The game {self.spec.name!r} failed at an influence:"):
            return cast(seam.Influenced, self.adapter).influence(body)

    @property
    def can_snapshot(self) -> bool:
        """Whether the game has snapshots."""
        return "snapshot" in self.spec.abilities and isinstance(self.adapter, seam.Snapshots)

    def snapshot(self) -> bytes:
        """Return the whole state, including seats and messages; `SnapshotError` if the game has no snapshots."""
        if not self.can_snapshot:
            raise SnapshotError(f"The game {self.spec.name!r} can't be saved in the middle of an episode.")
        game = cast(seam.Snapshots, self.adapter).snapshot()
        state: Mapping[str, Any] = {
            "format": 1,
            "game": self.spec.name,
            "state": base64.b64encode(game).decode("ascii"),
            "seats": {name: {"done": s.done, "left": s.left is not None} for name, s in self.seats.items()},
            "bodies": {agent_id: state.value for agent_id, state in self._bodies.items()},
            "messages": self.mailbox.snapshot() if self.mailbox is not None else None,
        }
        return json.dumps(state, sort_keys=True, separators=(",", ":")).encode()

    def restore(self, data: bytes) -> None:
        """Restore a snapshot with the same seats open; `SnapshotError` if it is damaged or of another game or seats."""
        try:
            state = json.loads(data)
            if state["format"] != 1 or state["game"] != self.spec.name:
                raise SnapshotError(f"This is not a snapshot of {self.spec.name!r}.")
            game = base64.b64decode(state["state"], validate=True)
            seats = {agent_id: (bool(s["done"]), bool(s["left"])) for agent_id, s in state["seats"].items()}
            bodies = {agent_id: AvatarState(value) for agent_id, value in state["bodies"].items()}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise SnapshotError(f"The snapshot of {self.spec.name!r} is damaged: {error}.") from error
        if set(seats) != set(self.seats):
            raise SnapshotError(f"The snapshot has seats {sorted(seats)}, the world {sorted(self.seats)}.")
        with self._messages_of(state.get("messages")):
            cast(seam.Snapshots, self.adapter).restore(game)
        self._bodies = bodies
        for agent_id, (done, left) in seats.items():
            self.seats[agent_id].begin_episode()
            self.seats[agent_id].done = done
            if left:
                state_now = self.avatar_of(agent_id).state
                self.seats[agent_id].left = JackOutResult(True, state_now, "Left before.")
                if isinstance(self.adapter, seam.Leavable) and not self.has_avatars:
                    self.adapter.leave(agent_id)

    @contextmanager
    def _messages_of(self, saved: Mapping[str, Any] | None) -> Iterator[None]:
        """Replace the messages by those of a snapshot, or by none; if the block raises, bring back the current ones."""
        if self.mailbox is None:
            yield
            return
        before = self.mailbox.snapshot()
        if saved is None:
            self.mailbox.clear()
        else:
            self.mailbox.restore(saved)
        try:
            yield
        except BaseException:
            self.mailbox.restore(before)
            raise

    @property
    def _avatars(self) -> seam.AvatarGameAdapter:
        return cast(seam.AvatarGameAdapter, self.adapter)

    def _bind(self, agent_id: str) -> None:
        """Jack an agent in to the avatar that it has, or else a new one."""
        if not self.has_avatars:
            self._bodies[agent_id] = AvatarState.BOUND
            return
        avatars = self._avatars.list_avatars(agent_id) or []
        if any(a.state is AvatarState.BOUND and a.bound_agent == agent_id for a in avatars):
            return
        alive = [a for a in avatars if a.state is not AvatarState.DESTROYED]
        avatar = alive[0] if alive else None
        if avatar is None:
            avatar = self._avatars.create_avatar(agent_id, AvatarSpec(name=agent_id))
            judged(self.spec.name, f"created for {agent_id!r}", avatar, Avatar)
        bound = self._avatars.jack_in(agent_id, avatar.avatar_id)
        result = judged(self.spec.name, f"let {agent_id!r} in with", bound, JackInResult)
        if not result.success:
            raise WorldError(f"The game {self.spec.name!r} did not let {agent_id!r} in: {result.message}")
