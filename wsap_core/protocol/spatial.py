"""Where things are: location, entities and terrain, described alike across games."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wsap_core.protocol.base import Part, freeze_sequences


@dataclass(frozen=True)
class Location(Part):
    """The agent's position in the world."""

    coordinates: Sequence[float] = ()
    """(x, y) or (x, y, z), in the game's own unit; empty where the game has none."""
    region: str | None = None
    """A named area, such as "forest" or "dungeon_level_2"."""
    description: str = ""
    """One phrase for a reader, such as "Standing on grass near a river"."""

    def __post_init__(self) -> None:
        freeze_sequences(self, "coordinates")


@dataclass(frozen=True)
class Entity(Part):
    """Something in the world that the agent perceives."""

    type: str
    """What kind of thing it is: "zombie", "tree", "chest"."""
    name: str | None = None
    """Its own name, if it has one: "Bob the Merchant"."""
    distance: float = 0.0
    """How far away, in the game's unit, at least 0."""
    direction: str = "here"
    """Where, seen from the agent: "north", "northwest", "behind"."""
    state: str | None = None
    """Its condition: "hostile", "sleeping", "on_fire"."""
    interactable: bool = False
    """Whether the agent can interact with it now."""
    description: str = ""
    """One phrase for a reader; when empty, one is made from the other fields."""


@dataclass(frozen=True)
class Terrain(Part):
    """A kind of ground, or surroundings, near the agent."""

    type: str
    """What it is: "water", "lava", "grass"."""
    direction: str = "here"
    """Where, seen from the agent."""
    passable: bool = True
    """Whether the agent can walk on it."""
    distance: float | None = None
    """How far the nearest of it is, in the game's unit; None where the game does not say."""
