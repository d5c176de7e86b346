"""What the nexus keeps, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from wsap_core.protocol import Avatar, PortableItem

AGENT_ID = r"^[a-z0-9][a-z0-9._-]{0,63}$"
"""What an agent's id looks like."""


@dataclass(frozen=True)
class Policy:
    """Who decides for an identity: an agent that is installed, with its options."""

    agent: str
    """A registered agent, `./file.py:Name`, or `external` for one that comes over the wire."""
    options: Mapping[str, Any] = field(default_factory=dict)  # Any: as the agent reads them

    @property
    def external(self) -> bool:
        """Whether somebody outside decides, over the wire."""
        return self.agent == "external"


EXTERNAL = Policy("external")


@dataclass(frozen=True)
class AgentIdentity:
    """Who an agent is: it stays the same in every world, and for good."""

    id: str
    name: str
    created: str
    state: str = "active"
    """"active", "paused" or "removed"."""
    place: str = "nexus"
    """"nexus" or "world"."""
    session_id: str | None = None
    """The open session, when in a world."""
    persona: str = ""
    """Who it is, in words that a person can edit."""
    policies: Mapping[str, Policy] = field(default_factory=dict)
    """Game (or "nexus") -> who decides there; "*" for everywhere else."""
    core_memories: tuple[str, ...] = ()
    strategies: tuple[str, ...] = ()
    lifetime_steps: int = 0
    """Decisions in worlds."""
    playtime: float = 0.0
    """Seconds in worlds."""

    def policy(self, game: str) -> Policy | None:
        """Return who decides in a game, or None if nobody was named."""
        return self.policies.get(game) or self.policies.get("*")


@dataclass(frozen=True)
class WorldRecord:
    """A world, running or asleep."""

    id: str
    game: str
    owner: str | None
    seed: int
    options: Mapping[str, Any]
    created: str
    failures: int = 0
    run_id: str | None = None


@dataclass(frozen=True)
class AvatarRecord:
    """A body, as the nexus knows it: its world knows better while somebody is in it."""

    world_id: str
    agent_id: str
    game: str
    avatar: Avatar
    left_at: int = 0
    """The agent's lifetime steps when it left the body."""


@dataclass(frozen=True)
class EntryRequest:
    """What was asked for on entering a world."""

    goals: tuple[str, ...] = ()
    exit_when: str = ""
    """An exit condition; see `wsap_nexus.agents.exit_rules`."""
    steps: int | None = None
    """Most decisions; None for no limit."""
    spawn: str = "safe"
    """"safe", "challenging" or "random"."""
    difficulty: str = "normal"
    """"easy", "normal", "hard" or "adaptive"."""
    avatar: str | None = None
    """The avatar to enter, by id or by its world's; None for the one that sleeps, or a new one; "new" for a new one."""
    respawn: str | None = None
    """How a dead avatar is to live again, by the option's id; None for the first there is."""

    def to_json(self) -> dict[str, Any]:
        """Return them as JSON-ready data."""
        return {
            "goals": list(self.goals),
            "exit_when": self.exit_when,
            "steps": self.steps,
            "spawn": self.spawn,
            "difficulty": self.difficulty,
            "avatar": self.avatar,
            "respawn": self.respawn,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> EntryRequest:
        """Return the terms of `to_json`."""
        return cls(**{**data, "goals": tuple(data.get("goals", ()))})


@dataclass(frozen=True)
class SessionRecord:
    """One stay of an agent in a world."""

    id: str
    agent_id: str
    game: str
    world_id: str
    avatar_id: str
    run_id: str
    opened: str
    closed: str | None = None
    reason: str | None = None
    """Why it ended; see `wsap_nexus.store.events.endings`. None while it is open."""
    steps: int = 0
    terms: EntryRequest = EntryRequest()
    stats: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ItemRecord:
    """A portable item and where it is."""

    item: PortableItem
    agent_id: str
    place: str
    """"escrow", "transfer", "world" or "lost"."""
    place_id: str | None = None
    """The transfer or the world."""
    note: str = ""


@dataclass(frozen=True)
class SkillGain:
    """A step up in a domain, with what it is for."""

    domain: str
    source: str
    """`achievement:NAME` or `action:NAME`."""
    times: int
    """How often it was done in the session."""
    gain: float
    level: float
    """The level after it."""
