"""What travels with an agent from world to world: skills that become bonuses, and portable items.

Agents are lasting, avatars are mortal. An agent's skills are levels from 0 to 1 in nine domains;
a world declares which of its achievements and actions are evidence for which domain
(`AdapterSpec.skills`) and what a level is worth there (`AdapterSpec.transfer_rules`). Items are
abstract while they travel; each world maps them into things of its own, or says why it can't.
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
"""The domains that skills are measured in."""

ITEM_CATEGORIES: tuple[str, ...] = ("weapon", "armor", "tool", "material", "consumable", "key_item", "currency")
"""What kinds of portable items there are."""

BONUS_KINDS: tuple[str, ...] = ("stat", "item", "ability", "unlock")
"""What a skill can be worth in a world."""

TOP_TIER = 10
"""The best tier of a portable item; the plainest is 1."""


@dataclass(frozen=True)
class Bonus(Part):
    """A change to an avatar's actual state that a skill is worth."""

    kind: str
    """One of `BONUS_KINDS`."""
    name: str
    """The stat, item, ability or unlock, by the world's own name."""
    amount: float = 1.0
    """How much of it."""


@dataclass(frozen=True)
class TransferRule(Part):
    """A world's rule: a level in a domain is worth a bonus."""

    id: str
    """Unique in the game."""
    domain: str
    """One of `SKILL_DOMAINS`."""
    threshold: float
    """The level, above 0 and at most 1, from which on it holds."""
    bonus: Bonus
    description: str = ""
    """For people and models: "a wood sword to begin with"."""


@dataclass(frozen=True)
class PortableItem(Part):
    """A thing that an agent carries between worlds."""

    item_id: str
    """Unique for ever; the item keeps it through all worlds."""
    name: str
    category: str
    """One of `ITEM_CATEGORIES`."""
    tier: int = 1
    """From 1 to `TOP_TIER`."""
    properties: Mapping[str, Any] = field(default_factory=dict)
    """JSON-ready data of the world it comes from."""
    origin: str = ""
    """The game that it comes from."""
    hints: Mapping[str, str] = field(default_factory=dict)
    """Game -> what it is best mapped to there."""


@dataclass(frozen=True)
class Entry(Part):
    """What an agent brings along when it enters an avatar."""

    transfer_id: str
    """Unique; a world that is asked twice with one id does it once and answers the same."""
    agent_id: str
    skills: Mapping[str, float] = field(default_factory=dict)
    """Domain -> level from 0 to 1."""
    items: Sequence[PortableItem] = ()
    steps_away: int = 0
    """Decisions that the agent has made elsewhere since it left this avatar; a dormant body slept through them."""
    difficulty: str = "normal"
    """"easy", "normal", "hard" or "adaptive"."""


@dataclass(frozen=True)
class Receipt(Part):
    """What a world did with an entry. Every item of the entry is in `admitted` or in `refused`."""

    transfer_id: str
    bonuses_applied: Mapping[str, Any] = field(default_factory=dict)
    """Rule id -> what really changed in the avatar; nothing else."""
    admitted: Sequence[str] = ()
    """Ids of the items that are in the world now."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Item id -> why it stays in escrow."""
    notes: Sequence[str] = ()
    """What happened to the body in the meantime, for the agent."""


@dataclass(frozen=True)
class TransitPackage(Part):
    """What a world lets out with an agent. The items are no longer in the world."""

    transfer_id: str
    items: Sequence[PortableItem] = ()
    """Those brought along keep their ids; a new one's id begins with the transfer's id and a colon."""
    lost: Mapping[str, str] = field(default_factory=dict)
    """Ids of items brought along that are no more -> what became of them ("lost when the avatar died")."""
