"""The parts of the original game that this package uses, typed in ``game.pyi`` because Crafter ships no types."""

from __future__ import annotations

from crafter import constants
from crafter.engine import ItemView, LocalView, Textures, World
from crafter.env import Env
from crafter.objects import Arrow, Cow, Object, Plant, Player, Skeleton, Zombie

__all__ = [
    "Arrow",
    "Cow",
    "Env",
    "ItemView",
    "LocalView",
    "Object",
    "Plant",
    "Player",
    "Skeleton",
    "Textures",
    "World",
    "Zombie",
    "constants",
]
