"""Location, entities and terrain, described alike in all games."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wsap_core.protocol.base import Part
from wsap_core.protocol.lines import where
from wsap_core.protocol.words import ENGLISH, Words
from wsap_core.untrusted import single_line


@dataclass(frozen=True)
class Location(Part):
    """The agent's position in the world."""

    coordinates: Sequence[float] = ()
    """(x, y) or (x, y, z), in the game's unit; empty if the game has none."""
    region: str | None = None
    """A named area, such as "forest" or "dungeon_level_2"."""
    description: str = ""
    """A phrase for a reader, such as "Standing on grass near a river"."""


@dataclass(frozen=True)
class Entity(Part):
    """Something in the world that the agent perceives."""

    type: str
    """"zombie", "tree", "chest"."""
    name: str | None = None
    """Proper name: "Bob the Merchant"."""
    distance: float = 0.0
    """In the game's unit, at least 0."""
    direction: str = "here"
    """Direction from the agent: "north", "northwest", "behind"."""
    state: str | None = None
    """"hostile", "sleeping", "on_fire"."""
    interactable: bool = False
    """Whether the agent can interact with it now."""
    description: str = ""
    """A phrase for a reader; when empty, one is composed of the other fields."""


@dataclass(frozen=True)
class Terrain(Part):
    """A kind of ground near the agent."""

    type: str
    """"water", "lava", "grass"."""
    direction: str = "here"
    """Direction from the agent."""
    passable: bool = True
    """Whether the agent can walk on it."""
    distance: float | None = None
    """Distance to the nearest of it, in the game's unit; None if not stated."""


def entity_line(entity: Entity, words: Words = ENGLISH) -> str:
    """Return the description of an entity, or one composed of its fields."""
    if entity.description:
        return single_line(entity.description)
    text = single_line(entity.type)
    if entity.name:
        text = f"{single_line(entity.name)} ({text})"
    if entity.state:
        text += f", {single_line(entity.state)}"
    return f"{text}, {where(entity.direction, entity.distance, words)}"


def terrain_line(terrain: Terrain, words: Words = ENGLISH) -> str:
    """Return a description of terrain: type, direction, distance, and whether it is blocked."""
    text = f"{single_line(terrain.type)}, {where(terrain.direction, terrain.distance, words)}"
    return text if terrain.passable else text + words.say(" (blocked)")
