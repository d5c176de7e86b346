"""The one body of a world that holds one: whose it is, in which state, and how long it has lived.

What a body has in the game (place, health, inventory) is the game's own; this keeps the rest, for any game.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from wsap_core.protocol import Avatar, AvatarSpec, AvatarState

LEAVING: Mapping[str, AvatarState] = {
    "dormant": AvatarState.DORMANT,
    "suspend": AvatarState.SUSPENDED,
    "despawn": AvatarState.DESTROYED,
}
"""How a body can be left -> what it is then."""

_BIGGEST = 2**63


@dataclass(frozen=True)
class Body:
    """What the protocol knows of a body besides what the game knows."""

    number: int = 1
    """Counts the bodies that this world has had."""
    owner: str | None = None
    """The agent it was made for; None until one asks."""
    name: str = "Player"
    state: AvatarState = AvatarState.UNBOUND
    appearance: Mapping[str, Any] = field(default_factory=dict)
    """As the agent wished; JSON-ready."""
    deaths: int = 0
    played: int = 0
    """Steps in the episodes before this one."""
    despawned: bool = False
    """Destroyed by leaving rather than by dying."""

    @property
    def avatar_id(self) -> str:
        """The body's id, unique in its world."""
        return f"avatar-{self.number}"

    @property
    def driver(self) -> str | None:
        """The agent that controls it now."""
        return self.owner if self.state is AvatarState.BOUND else None

    def claimed(self, agent_id: str, spec: AvatarSpec) -> Body:
        """Return the body made for an agent."""
        # Through JSON and back, so that a snapshot gives the very same appearance again.
        appearance = json.loads(json.dumps(dict(spec.appearance or {}), default=str))
        return replace(self, owner=agent_id, name=spec.name or agent_id, appearance=appearance)

    def after(self, steps: int) -> Body:
        """Return the body for another episode, after one of so many steps.

        It is the same body, alive again and bound to whom it was made for; one that was despawned makes room
        for another.
        """
        if self.despawned:
            return Body(number=self.number + 1)
        state = self.state
        if state is AvatarState.DESTROYED:
            state = AvatarState.BOUND if self.owner else AvatarState.UNBOUND
        return replace(self, state=state, played=self.played + steps)

    def avatar(
        self,
        game_id: str,
        step: int,
        *,
        position: tuple[float, ...] = (),
        health: float = 0.0,
        max_health: float = 0.0,
        inventory: Mapping[str, int] | None = None,
        equipment: Mapping[str, str] | None = None,
    ) -> Avatar:
        """Return the body as the protocol describes it, with what the game knows of it now."""
        return Avatar(
            self.avatar_id,
            game_id,
            self.driver,
            self.state,
            self.name,
            position,
            self.appearance,
            health,
            max_health,
            inventory or {},
            equipment or {},
            "step 0",
            f"step {step}",
            self.played + step,
            self.deaths,
        )

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON-ready data."""
        return {
            "number": self.number,
            "owner": self.owner,
            "name": self.name,
            "state": self.state.value,
            "appearance": dict(self.appearance),
            "deaths": self.deaths,
            "played": self.played,
            "despawned": self.despawned,
        }

    @classmethod
    def from_json(cls, data: Any) -> Body:
        """Return the body of `to_json`; the data is not trusted.

        Raises:
            ValueError, TypeError, KeyError: it is not that of a body.
        """
        # Any: JSON whose shape is checked here.
        owner, name, appearance = data["owner"], data["name"], data["appearance"]
        if not (isinstance(owner, str | None) and isinstance(name, str) and isinstance(appearance, dict)):
            raise ValueError("owner, name and appearance are not text, text and an object")
        number, deaths, played = (_count(data[key]) for key in ("number", "deaths", "played"))
        return cls(
            number, owner, name, AvatarState(data["state"]), appearance, deaths, played, data["despawned"] is True
        )


def _count(value: Any) -> int:
    # Any: JSON.
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _BIGGEST:
        raise ValueError(f"{str(value)[:40]} is not a count")
    return value
