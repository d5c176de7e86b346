"""The tables of the world: tiles, items, recipes, planets and creatures, read once."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any, TypeVar

from pydantic import TypeAdapter
from pydantic.dataclasses import dataclass

T = TypeVar("T")


@dataclass(frozen=True)
class Tile:
    """A kind of tile."""

    char: str
    word: str
    solid: bool = False
    tier: int = 0
    """The least power of a pick that digs it; 9 is beyond every pick."""
    beats: int = 0
    """Beats that digging takes; 0 if it can't be dug."""
    drop: str = ""
    flow: str = ""
    """"sand", "water" or "lava" for what falls by itself."""
    climb: bool = False
    light: int = 0
    """Radius in tiles."""
    object: bool = False
    """Whether `interact` does something with it."""


@dataclass(frozen=True)
class Item:
    """A kind of item."""

    name: str
    kind: str
    tile: str = ""
    power: int = 0
    damage: int = 0
    reach: int = 0
    heals: int = 0
    against: str = ""
    armour: int = 0
    category: str = ""
    """Its category in transit; empty for what stays in this world."""
    tier: int = 1


@dataclass(frozen=True)
class Recipe:
    """How to make something."""

    station: str
    """The tile that has to be within reach; empty for by hand."""
    count: int
    needs: Mapping[str, int]


@dataclass(frozen=True)
class Planet:
    """A planet; see the head of planets.toml."""

    name: str
    biome: str
    hazard: str
    jump: int
    safe_fall: int
    fall_harm: int
    fall_speed: int
    day: int
    ground: int
    relief: int
    rock: str
    soil: str
    cover: str
    soil_depth: int
    trees: int
    lakes: int
    caves: int
    lava_from: int
    fuel: int
    lens: str
    lens_depth: int
    settlement: bool
    creatures: tuple[str, ...]
    ores: Mapping[str, tuple[int, int]]


@dataclass(frozen=True)
class Kind:
    """A kind of creature; see the head of creatures.toml."""

    char: str
    word: str
    health: int
    damage: int
    pace: int
    temper: str
    reach: int
    loot: Mapping[str, int]


def _table(file: str, kind: type[T]) -> dict[str, T]:
    data: Any = tomllib.loads(resources.files(__package__).joinpath(file).read_text("utf-8"))
    return TypeAdapter(dict[str, kind]).validate_python(data)  # type: ignore[valid-type]


@cache
def tiles() -> Mapping[str, Tile]:
    """Return the tiles by name, in the order of their numbers."""
    return _table("blocks.toml", Tile)


@cache
def items() -> Mapping[str, Item]:
    """Return the items by name."""
    return _table("items.toml", Item)


@cache
def recipes() -> Mapping[str, Recipe]:
    """Return the recipes by the item that they make."""
    return _table("recipes.toml", Recipe)


@cache
def planets() -> Mapping[str, Planet]:
    """Return the planets by id; the first is where everybody begins."""
    return _table("planets.toml", Planet)


@cache
def creatures() -> Mapping[str, Kind]:
    """Return the kinds of creatures by name."""
    return _table("creatures.toml", Kind)
