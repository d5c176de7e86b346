"""The player's body as an avatar of the protocol: one world, one body.

Crafter has one player, so a world holds one body at a time; an agent with several has several
worlds. What a body owns in the game (place, health, inventory) is the game's; `Body` keeps the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wsap_core.authoring.body import Body
from wsap_core.protocol import Avatar, DeathEvent, RespawnOption
from wsap_crafter.observation import CrafterObservation
from wsap_crafter.sight import Sight

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


def avatar_of(body: Body, player: Any, carried: Mapping[str, int], step: int) -> Avatar:
    """Return the body as the protocol describes it, with what the game knows of it now."""
    x, y = player.pos.tolist()
    return body.avatar(
        GAME_ID,
        step,
        position=(x, y),
        health=player.inventory["health"],
        max_health=MAX_HEALTH,
        inventory=carried,
        equipment=equipment_of(carried),
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
