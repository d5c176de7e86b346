"""The parts of a one-body world's avatar that do not depend on the game, and the session of the agent in it."""

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
    """The parts of an avatar that do not depend on the game."""

    number: Count = 1
    """Number of the body in its world, from 1."""
    owner: str | None = None
    """The agent it was created for; None before the first `create_avatar`."""
    name: str = "Player"
    state: AvatarState = AvatarState.UNBOUND
    appearance: Mapping[str, JsonValue] = field(default_factory=dict)
    """As requested by the agent; JSON-ready."""
    deaths: Count = 0
    played: Count = 0
    """Steps in earlier episodes."""
    despawned: StrictBool = False
    """Whether it was destroyed by leaving rather than by dying."""

    @property
    def avatar_id(self) -> str:
        """Unique in its world."""
        return f"avatar-{self.number}"

    @property
    def driver(self) -> str | None:
        """The agent that controls it now, if any."""
        return self.owner if self.state is AvatarState.BOUND else None

    def claimed(self, agent_id: str, spec: AvatarSpec) -> Body:
        """Return the body with the agent as its owner."""
        # Through JSON, so that it equals the appearance that a snapshot restores.
        appearance = json.loads(json.dumps(dict(spec.appearance or {}), default=str))
        return replace(self, owner=agent_id, name=spec.name or agent_id, appearance=appearance)

    def after(self, steps: int) -> Body:
        """Return the body of the next episode, after one of `steps`: a dead one is revived and bound to its owner, a
        despawned one replaced."""
        if self.despawned:
            return Body(number=self.number + 1)
        state = self.state
        if state is AvatarState.DESTROYED:
            state = AvatarState.BOUND if self.owner else AvatarState.UNBOUND
        return replace(self, state=state, played=self.played + steps)

    def left(
        self, agent_id: str, mode: str, stats: Mapping[str, JsonValue], danger: str = ""
    ) -> tuple[Body, JackOutResult]:
        """Return the body after an agent's request to leave it, and the answer; `danger` is why it can't now."""
        problem = ""
        if mode not in LEAVING:
            problem = f"There is no mode {mode!r}; there are {', '.join(LEAVING)}."
        elif self.driver != agent_id:
            problem = f"{agent_id!r} is not in an avatar in this world."
        elif danger:
            problem = f"You can't leave now: {danger}."
        if problem:
            return self, JackOutResult(False, self.state, problem)
        body = replace(self, state=LEAVING[mode], despawned=mode == "despawn")
        return body, JackOutResult(True, body.state, f"{self.avatar_id} is {body.state.value} now.", stats)

    def death(
        self, cause: str, killer: str | None, at: Sequence[float], step: int, way_back: RespawnOption
    ) -> DeathEvent:
        """Return how the body was destroyed, and its respawn option; `UsageError` if it is not destroyed."""
        if self.state is not AvatarState.DESTROYED:
            raise UsageError(f"{self.avatar_id} is not dead: it is {self.state.value}.")
        if self.despawned:
            return DeathEvent(self.avatar_id, "despawned", None, tuple(at), f"step {step}")
        return DeathEvent(self.avatar_id, cause, killer, tuple(at), f"step {step}", respawn_options=(way_back,))

    def avatar(self, game_id: str, step: int, **known: Any) -> Avatar:
        """Return the body as an avatar of the protocol, with the fields known to the game: `position`, ..."""
        lived = {"total_playtime": self.played + step, "death_count": self.deaths}
        ages = {"created_at": "step 0", "last_active": f"step {step}"}
        said = {"name": self.name, "appearance": self.appearance, **ages, **lived, **known}
        return Avatar(self.avatar_id, game_id, self.driver, self.state, **said)

    def to_json(self) -> dict[str, JsonValue]:
        """Return the body as JSON-ready data."""
        return {**asdict(self), "state": self.state.value}

    @classmethod
    def from_json(cls, data: JsonValue) -> Body:
        """Return the body from untrusted data; `ValueError`, `TypeError` or `KeyError` if it is invalid."""
        return read(cls, {f.name: data[f.name] for f in fields(cls)})


@dataclass
class Session:
    """Statistics of the agent's session, since it jacked in."""

    start: int = 0
    """The episode's step at its start."""
    reward: float = 0.0
    achievements: tuple[str, ...] = ()

    def add(self, result: ActionResult) -> None:
        """Count the result of a step."""
        self.reward += result.reward
        self.achievements += tuple(result.achievements)

    def stats(self, step: int) -> dict[str, JsonValue]:
        """Return the statistics of a session that ends at that step."""
        reward = round(self.reward, 3)
        return {"playtime": step - self.start, "reward": reward, "achievements": list(self.achievements)}

    def to_json(self) -> list[JsonValue]:
        """Return the session as JSON-ready data."""
        return [self.start, self.reward, list(self.achievements)]

    @classmethod
    def from_json(cls, data: JsonValue) -> Session:
        """Return the session from untrusted data; `ValueError` if it is invalid."""
        return cls(*read(tuple[Count, StrictFloat, tuple[str, ...]], data))
