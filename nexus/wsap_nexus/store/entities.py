"""The records of the nexus, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from wsap_core.protocol import Avatar, PortableItem

AGENT_ID = r"^[a-z0-9][a-z0-9._-]{0,63}$"
"""The pattern of an agent's id."""
RESERVED = frozenset({"nexus"})
"""Ids that no new agent gets, because they name something else."""


@dataclass(frozen=True)
class Policy:
    """The decider of an agent of the nexus: an installed agent, with its options."""

    agent: str
    """A registered agent, `./file.py:Name`, or `external` for a client of the wire API."""
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def external(self) -> bool:
        """Whether a client of the wire API decides."""
        return self.agent == "external"


EXTERNAL = Policy("external")


@dataclass(frozen=True)
class AgentIdentity:
    """An agent, the same in every world."""

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
    """Its description, which a person can edit."""
    policies: Mapping[str, Policy] = field(default_factory=dict)
    """Game (or "nexus", or "*" for all others) -> decider."""
    core_memories: tuple[str, ...] = ()
    strategies: tuple[str, ...] = ()
    lifetime_steps: int = 0
    """Decisions in worlds."""
    playtime: float = 0.0
    """Seconds in worlds."""

    def policy(self, game: str) -> Policy | None:
        """Return the decider in a game; None if none is set."""
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
    """An avatar, as it was when its agent last left it."""

    world_id: str
    agent_id: str
    game: str
    avatar: Avatar
    left_at: int = 0
    """The agent's lifetime steps when it left the body."""


@dataclass(frozen=True)
class EntryRequest:
    """The request with which a world was entered."""

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
    """The avatar to enter, by its id or its world's; "new" for a new one; None for a dormant one, else a new one."""
    respawn: str | None = None
    """The respawn option of a dead avatar; None for the first."""
    world: str | None = None
    """The world to enter, of those that live in the nexus; None for any."""
    seat: str | None = None
    """Whom to be there; None for the agent itself."""

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON-ready data."""
        data = asdict(self) | {"goals": list(self.goals)}
        return {name: value for name, value in data.items() if value is not None or name not in ("world", "seat")}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> EntryRequest:
        """Return the request of `to_json`."""
        return cls(**{**data, "goals": tuple(data.get("goals", ()))})


@dataclass(frozen=True)
class SessionRecord:
    """A session: one stay of an agent in a world."""

    id: str
    agent_id: str
    game: str
    world_id: str
    avatar_id: str
    run_id: str
    opened: str
    closed: str | None = None
    reason: str | None = None
    """The reason of its end; see `wsap_nexus.store.events.endings`. None while it is open."""
    steps: int = 0
    terms: EntryRequest = EntryRequest()
    stats: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ItemRecord:
    """A portable item and its place."""

    item: PortableItem
    agent_id: str
    place: str
    """"escrow", "transfer", "world" or "lost"."""
    place_id: str | None = None
    """The transfer or the world."""
    note: str = ""


@dataclass(frozen=True)
class SkillGain:
    """An increase of a skill, with its source."""

    domain: str
    source: str
    """`achievement:NAME` or `action:NAME`."""
    times: int
    """Times in the session."""
    gain: float
    level: float
    """The level after it."""


How = Literal["words", "facts", "whisper", "letter"]


@dataclass(frozen=True)
class Answered:
    """What came of speaking to an agent."""

    text: str
    how: How
    """
    `words`: the agent answered in its own; `facts`: it has none, and this is what the nexus knows; `whisper`: it is in
    a world and hears it at its next decision; `letter`: it finds it among its messages.
    """

    def __str__(self) -> str:
        """Return the text."""
        return self.text


@dataclass(frozen=True)
class Exchange:
    """What a person said to an agent, and what came of it."""

    number: int
    """The event's."""
    time: str
    """ISO 8601, UTC."""
    said: str
    reply: str
    how: How
    """As in `Answered`."""


@dataclass(frozen=True)
class DiaryEntry:
    """What an agent wrote about one stay in a world."""

    number: int
    """The event's."""
    time: str
    """ISO 8601, UTC."""
    text: str
    game: str
    session: str | None
    own_words: bool
    """Whether the agent wrote it; False where it was put together from the log."""
