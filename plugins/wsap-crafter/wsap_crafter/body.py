"""The player's body: equipment, safety, death and respawn."""

from __future__ import annotations

from collections.abc import Mapping

from wsap_core.protocol import RespawnOption
from wsap_crafter.perception.observation import CrafterObservation
from wsap_crafter.simulation.sight import Sight

GAME_ID = "crafter"
MAX_HEALTH = 9

NEW_WORLD = RespawnOption(
    id="new_world",
    type="spawn_point",
    location="the middle of another world",
    cost=None,
    penalties=("lose_inventory", "lose_world", "lose_achievements_of_the_episode"),
    description="Crafter has no respawn: start over in the next world of this seed, with nothing.",
)
"""The only respawn option."""

CAUSES: Mapping[str, tuple[str, str | None]] = {
    "zombie": ("combat", "zombie"),
    "arrow": ("combat", "skeleton"),
    "lava": ("lava", None),
    "hunger": ("starvation", None),
    "thirst": ("thirst", None),
    "exhaustion": ("exhaustion", None),
}
"""Source of the last wound -> cause of death and killer."""


def equipment_of(carried: Mapping[str, int]) -> dict[str, str]:
    """Return the best pickaxe and sword carried, which are those that the game uses."""
    equipment = {}
    for slot in ("pickaxe", "sword"):
        for metal in ("iron", "stone", "wood"):
            if f"{metal}_{slot}" in carried:
                equipment[slot] = f"{metal}_{slot}"
                break
    return equipment


def unsafe_reason(observation: CrafterObservation, sight: Sight) -> str:
    """Return why the body must not be left here now; empty if it may be. Unsafe are a zombie, skeleton or arrow within
    three steps, damage in the last step, and lava next to the body."""
    if observation.damage:
        return "you were hit in the last step"
    for entity in observation.nearby_entities:
        if entity.type in ("zombie", "skeleton", "arrow") and entity.distance <= 3:
            return f"a threat is near: {entity.description}"
    cells = sight.cells
    around = cells[21:24] + cells[30:33] + cells[39:42]
    return "there is lava next to you" if "L" in around else ""
