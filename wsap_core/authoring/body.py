"""The body of a one-body world: owner, state and age; and the session of the agent in it.

The game keeps the body's place, health and inventory; this module keeps the rest, for any game.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from pydantic import StrictBool, StrictFloat

from wsap_core.authoring.packing import Count, read
from wsap_core.errors import UsageError
from wsap_core.protocol import ActionResult, Avatar, AvatarSpec, AvatarState, DeathEvent, JackOutResult, RespawnOption
from wsap_core.protocol.avatars import LEAVING
from wsap_core.protocol.values import JsonValue


@dataclass(frozen=True)
class Body:
    """The part of an avatar that does not depend on the game."""

    number: Count = 1
    """The world's first body is 1; each new one counts on."""
    owner: str | None = None
    """The agent it was created for; None before the first `create_avatar`."""
    name: str = "Player"
    state: AvatarState = AvatarState.UNBOUND
    appearance: Mapping[str, JsonValue] = field(default_factory=dict)
    """As the agent asked for; JSON-ready."""
    deaths: Count = 0
    played: Count = 0
    """Steps in the episodes before this one."""
    despawned: StrictBool = False
    """Destroyed by leaving rather than by dying."""

    @property
    def avatar_id(self) -> str:
        """The body's id, unique in its world."""
        return f"avatar-{self.number}"

    @property
    def driver(self) -> str | None:
        """The agent that controls it now, if any."""
        return self.owner if self.state is AvatarState.BOUND else None

    def claimed(self, agent_id: str, spec: AvatarSpec) -> Body:
        """Return the body with the agent as its owner."""
        # Through JSON and back, so that it equals the appearance that a snapshot restores.
        appearance = json.loads(json.dumps(dict(spec.appearance or {}), default=str))
        return replace(self, owner=agent_id, name=spec.name or agent_id, appearance=appearance)

    def after(self, steps: int) -> Body:
        """Return the body of the next episode, after one of so many steps.

        It is the same body; a dead one is alive again and bound to its owner, a despawned one is replaced by another.
        """
        if self.despawned:
            return Body(number=self.number + 1)
        state = self.state
        if state is AvatarState.DESTROYED:
            state = AvatarState.BOUND if self.owner else AvatarState.UNBOUND
        return replace(self, state=state, played=self.played + steps)

    def left(
        self, agent_id: str, mode: str, stats: Mapping[str, JsonValue], danger: str = ""
    ) -> tuple[Body, JackOutResult]:
        """Return the body once an agent has asked to leave it, and the answer; `danger` is why it can't now."""
        problem = ""
        if mode not in LEAVING:
            problem = f"There is no mode {mode!r}; it is {', '.join(LEAVING)}."
        elif self.driver != agent_id:
            problem = f"{agent_id!r} is in no avatar in this world."
        elif danger:
            problem = f"You can't leave now: {danger}."
        if problem:
            return self, JackOutResult(False, self.state, problem)
        body = replace(self, state=LEAVING[mode], despawned=mode == "despawn")
        return body, JackOutResult(True, body.state, f"{self.avatar_id} is {body.state.value} now.", stats)

    def death(
        self, cause: str, killer: str | None, at: Sequence[float], step: int, way_back: RespawnOption
    ) -> DeathEvent:
        """Return what destroyed the body, and how it can live again; `UsageError` if it is not destroyed."""
        if self.state is not AvatarState.DESTROYED:
            raise UsageError(f"{self.avatar_id} is not dead: it is {self.state.value}.")
        if self.despawned:
            return DeathEvent(self.avatar_id, "despawned", None, tuple(at), f"step {step}")
        return DeathEvent(self.avatar_id, cause, killer, tuple(at), f"step {step}", respawn_options=(way_back,))

    def avatar(self, game_id: str, step: int, **known: Any) -> Avatar:
        """Return the body as an avatar of the protocol, with the fields that the game knows: `position`, ..."""
        lived = {"total_playtime": self.played + step, "death_count": self.deaths}
        ages = {"created_at": "step 0", "last_active": f"step {step}"}
        said = {"name": self.name, "appearance": self.appearance, **ages, **lived, **known}
        return Avatar(self.avatar_id, game_id, self.driver, self.state, **said)

    def to_json(self) -> dict[str, JsonValue]:
        """Return the body as JSON-ready data."""
        return {**asdict(self), "state": self.state.value}

    @classmethod
    def from_json(cls, data: JsonValue) -> Body:
        """Return the body of `to_json`; the data is not trusted.

        Raises:
            ValueError, TypeError, KeyError: the data describes no body.
        """
        return read(cls, {f.name: data[f.name] for f in fields(cls)})


@dataclass
class Session:
    """Statistics of the agent's stay in the body, since it jacked in."""

    start: int = 0
    """The episode's step at which it began."""
    reward: float = 0.0
    achievements: tuple[str, ...] = ()

    def add(self, result: ActionResult) -> None:
        """Count the outcome of a step."""
        self.reward += result.reward
        self.achievements += tuple(result.achievements)

    def stats(self, step: int) -> dict[str, JsonValue]:
        """Return the statistics for the agent that leaves at that step."""
        reward = round(self.reward, 3)
        return {"playtime": step - self.start, "reward": reward, "achievements": list(self.achievements)}

    def to_json(self) -> list[JsonValue]:
        """Return the session as JSON-ready data."""
        return [self.start, self.reward, list(self.achievements)]

    @classmethod
    def from_json(cls, data: JsonValue) -> Session:
        """Return the session of `to_json`; the data is not trusted.

        Raises:
            ValueError: the data describes no session.
        """
        return cls(*read(tuple[Count, StrictFloat, tuple[str, ...]], data))
