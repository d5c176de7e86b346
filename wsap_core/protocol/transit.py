"""Transit: the skills and portable items that agents take from world to world.

An agent's skills are levels from 0 to 1 in nine domains. A world declares which achievements and actions are evidence
for a domain (`AdapterSpec.skills`), and the bonus of a level (`AdapterSpec.transfer_rules`). Each world converts
portable items to its own, or refuses them with a reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wsap_core.protocol.base import Part

SKILL_DOMAINS: tuple[str, ...] = (
    "exploration",
    "resource_management",
    "combat",
    "crafting",
    "survival",
    "social",
    "puzzle_solving",
    "planning",
    "adaptation",
)
"""The domains of skills."""

ITEM_CATEGORIES: tuple[str, ...] = ("weapon", "armor", "tool", "material", "consumable", "key_item", "currency")
"""The categories of portable items."""

BONUS_KINDS: tuple[str, ...] = ("stat", "item", "ability", "unlock")
"""The kinds of bonuses."""

TOP_TIER = 10
"""The highest tier of a portable item; the lowest is 1."""


@dataclass(frozen=True)
class Bonus(Part):
    """A change to an avatar's state as the reward for a skill."""

    kind: str
    """One of `BONUS_KINDS`."""
    name: str
    """The world's name of the stat, item, ability or unlock."""
    amount: float = 1.0


@dataclass(frozen=True)
class TransferRule(Part):
    """A world's rule that grants a bonus for a skill level."""

    id: str
    """Unique in the game."""
    domain: str
    """One of `SKILL_DOMAINS`."""
    threshold: float
    """The lowest level that gets the bonus, above 0 and at most 1."""
    bonus: Bonus
    description: str = ""
    """For people and models: "a wood sword at the start"."""


@dataclass(frozen=True)
class PortableItem(Part):
    """An item that an agent carries between worlds."""

    item_id: str
    """Globally unique; the same in all worlds."""
    name: str
    category: str
    """One of `ITEM_CATEGORIES`."""
    tier: int = 1
    """From 1 to `TOP_TIER`."""
    properties: Mapping[str, Any] = field(default_factory=dict)
    """JSON-ready data of its game of origin."""
    origin: str = ""
    """The game that it comes from."""
    hints: Mapping[str, str] = field(default_factory=dict)
    """Game -> the best equivalent there."""


@dataclass(frozen=True)
class Entry(Part):
    """What an agent brings when it enters an avatar."""

    transfer_id: str
    """Unique; a repeated request with the same id changes nothing and returns the same answer."""
    agent_id: str
    skills: Mapping[str, float] = field(default_factory=dict)
    """Domain -> level from 0 to 1."""
    items: Sequence[PortableItem] = ()
    steps_away: int = 0
    """Decisions that the agent made elsewhere since it left this avatar, which a dormant body slept through."""
    difficulty: str = "normal"
    """"easy", "normal", "hard" or "adaptive"."""


@dataclass(frozen=True)
class Receipt(Part):
    """A world's answer to an entry. Every item of the entry is either in `admitted` or in `refused`."""

    transfer_id: str
    bonuses_applied: Mapping[str, Any] = field(default_factory=dict)
    """Rule id -> the change in the avatar."""
    admitted: Sequence[str] = ()
    """Ids of the items that are now in the world."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Item id -> why it stays in escrow."""
    notes: Sequence[str] = ()
    """What happened to the body in the meantime, for the agent."""


@dataclass(frozen=True)
class TransitPackage(Part):
    """What an agent takes out of a world. The items are no longer in the world."""

    transfer_id: str
    items: Sequence[PortableItem] = ()
    """Items brought into the world keep their ids; the id of a new one starts with the transfer id and a colon."""
    lost: Mapping[str, str] = field(default_factory=dict)
    """Id of an item brought into the world -> how it was lost ("lost when the avatar died")."""
