"""The protocol's avatar actions for Crafter's body: look and inspect_self."""

from __future__ import annotations

from wsap_core.protocol import Action
from wsap_crafter.perception.observation import CrafterObservation
from wsap_crafter.simulation.sight import HEIGHT, STEPS, WIDTH, WORDS


def gesture(action: Action, observation: CrafterObservation) -> tuple[bool, str]:
    """Return success and message of an avatar action, which takes no step."""
    if action.name == "look":
        return _look(str(action.parameters.get("target", "")).strip().lower(), observation)
    if action.name == "inspect_self":
        return True, _inspect(observation)
    if action.name == "emote":
        return False, "Crafter's body has no gestures; to sleep, use the action sleep."
    return False, "Leaving the body is not a step of the game: the runtime does it."


def _look(target: str, observation: CrafterObservation) -> tuple[bool, str]:
    """Describe the cells in a direction, or the nearest thing of a kind, without turning the body."""
    if target in STEPS:
        return True, f"To the {target}, without turning: {_line_of_sight(target, observation.local_map)}."
    for entity in observation.nearby_entities:
        if target in (entity.type, entity.description.partition(",")[0]):
            return True, f"In view: {entity.description}."
    for terrain in observation.nearby_terrain:
        if terrain.type == target:
            return True, f"In view: {target}, the nearest {terrain.distance:g} {terrain.direction}."
    return False, f"There is no {target[:40]!r} in view; look north, south, east or west, or at what is nearby."


def _line_of_sight(direction: str, rows: tuple[str, ...]) -> str:
    dx, dy = STEPS[direction]
    x, y = WIDTH // 2, HEIGHT // 2
    reach = WIDTH // 2 if dx else HEIGHT // 2
    cells = [WORDS[rows[y + dy * n][x + dx * n]] for n in range(1, reach + 1)]
    return ", then ".join(cells)


def _inspect(observation: CrafterObservation) -> str:
    avatar = observation.avatar
    vitals = ", ".join(f"{name} {value}" for name, value in observation.status.items())
    items = ", ".join(f"{count} {name}" for name, count in observation.inventory.items()) or "nothing"
    x, y = observation.location.coordinates
    return f"{avatar.name} at ({x}, {y}), facing {observation.facing}: {vitals}; carries {items}."
