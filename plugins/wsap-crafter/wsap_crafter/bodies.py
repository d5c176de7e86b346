"""The player's body as an avatar of the protocol: one world, one body.

Crafter has one player, so a world holds one body at a time; an agent with several has several
worlds. What a body owns in the game (place, health, inventory) is the game's; this keeps the rest.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from wsap_core.models import Avatar, AvatarSpec, AvatarState, DeathEvent, RespawnOption
from wsap_crafter.observation import CrafterObservation
from wsap_crafter.sight import Sight
from wsap_crafter.snapshot import restoring, whole

GAME_ID = "crafter"
MAX_HEALTH = 9

NEW_WORLD = RespawnOption(
    id="new_world",
    type="spawn_point",
    location="the middle of another world",
    cost=None,
    penalties=("lose_inventory", "lose_world", "lose_achievements_of_the_episode"),
    description="Crafter knows no way back: begin anew in the next world of this seed, with nothing.",
)
"""The only way to live again."""


@dataclass(frozen=True)
class Body:
    """What the protocol knows of the player's body besides what the game knows."""

    number: int = 1
    """Counts the bodies this world has had."""
    owner: str | None = None
    """The agent it was made for; None until one asks."""
    name: str = "Player"
    state: AvatarState = AvatarState.UNBOUND
    appearance: Mapping[str, Any] = field(default_factory=dict)
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
        """Return the body of :meth:`to_json`.

        Raises:
            SnapshotError: the data is not that of a body.
        """
        body: Body = restoring(lambda: cls._from_json(data))
        return body

    @classmethod
    def _from_json(cls, data: Any) -> Body:
        owner, name, appearance = data["owner"], data["name"], data["appearance"]
        if not (isinstance(owner, str | None) and isinstance(name, str) and isinstance(appearance, dict)):
            raise ValueError("owner, name and appearance are not text, text and an object")
        numbers = (whole(data[key], 0, 2**63) for key in ("number", "deaths", "played"))
        number, deaths, played = numbers
        state, despawned = AvatarState(data["state"]), data["despawned"] is True
        return cls(number, owner, name, state, appearance, deaths, played, despawned)


def avatar_of(body: Body, player: Any, carried: Mapping[str, int], step: int) -> Avatar:
    """Return the body as the protocol describes it, with what the game knows of it now."""
    x, y = player.pos.tolist()
    return Avatar(
        body.avatar_id,
        GAME_ID,
        body.driver,
        body.state,
        body.name,
        (x, y),
        body.appearance,
        player.inventory["health"],
        MAX_HEALTH,
        carried,
        equipment_of(carried),
        "step 0",
        f"step {step}",
        body.played + step,
        body.deaths,
        None,
    )


_TOOLS = ("iron", "stone", "wood")


def equipment_of(carried: Mapping[str, int]) -> dict[str, str]:
    """Return the best pickaxe and sword carried: the game always uses the best."""
    equipment = {}
    for slot in ("pickaxe", "sword"):
        for metal in _TOOLS:
            if f"{metal}_{slot}" in carried:
                equipment[slot] = f"{metal}_{slot}"
                break
    return equipment


def unsafe_reason(observation: CrafterObservation, sight: Sight) -> str:
    """Return why the body must not be left here now; empty if it may be.

    Left alone it would be killed: by a zombie or skeleton within three steps, an arrow, or whatever
    hurt it in the last step; and nobody lies down beside lava.
    """
    if observation.damage:
        return "you were hit in the last step"
    for entity in observation.nearby_entities:
        if entity.type in ("zombie", "skeleton", "arrow") and entity.distance <= 3:
            return f"a threat is near: {entity.description}"
    cells = sight.cells
    around = cells[21:24] + cells[30:33] + cells[39:42]
    return "there is lava next to you" if "L" in around else ""


def death_of(body: Body, observation: CrafterObservation, cause: str) -> DeathEvent:
    """Return what happened to a destroyed body, and how it can live again.

    Args:
        body: destroyed.
        observation: its last.
        cause: what took its last point of health: "zombie", "arrow", "lava", or a lack.
    """
    kind, killer = ("despawned", None) if body.despawned else _CAUSES.get(cause, (cause, None))
    return DeathEvent(
        body.avatar_id,
        kind,
        killer,
        tuple(observation.location.coordinates),
        f"step {observation.step}",
        dict(observation.inventory),
        0.0,
        () if body.despawned else (NEW_WORLD,),
    )


_CAUSES: dict[str, tuple[str, str | None]] = {
    "zombie": ("combat", "zombie"),
    "arrow": ("combat", "skeleton"),
    "lava": ("lava", None),
    "hunger": ("starvation", None),
    "thirst": ("thirst", None),
    "exhaustion": ("exhaustion", None),
}
