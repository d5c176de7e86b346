"""The catalogue entry of a game."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from wsap_core.specs import AdapterSpec
from wsap_core.version import PROTOCOL_VERSION


@dataclass(frozen=True)
class GameInfo:
    """The description of a game for agents."""

    id: str
    name: str
    description: str
    genre: str = ""
    dimensions: str = ""
    multiplayer: bool = False
    persistent_world: bool = False
    skill_domains: tuple[str, ...] = ()
    protocol_version: str = PROTOCOL_VERSION
    transit_compatible: bool = False
    terms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Term of an entry (`spawn`, `loadout`, `difficulty`) -> the values that the game takes besides the default."""
    capacity: int = 1
    """Simultaneous agents: in total, or per world if the number of worlds is not limited."""
    active_agents: int = 0
    status: Literal["available", "busy", "offline", "maintenance"] = "available"
    """"busy" if all worlds are full; "offline" also if the game lives and none of its worlds is kept in this nexus."""
    reason: str = ""
    """Why it is offline or in maintenance, if that is known, and what opens it."""

    @classmethod
    def of(cls, spec: AdapterSpec) -> GameInfo:
        """Return the entry of a registered game."""
        return cls(
            id=spec.name,
            name=spec.display_title,
            description=spec.summary,
            genre=spec.genre,
            dimensions=spec.dimensions,
            multiplayer=spec.seats[1] > 1,
            persistent_world=spec.persistent,
            skill_domains=tuple(spec.skills or ()),
            protocol_version=spec.protocol_version,
            transit_compatible="transit" in spec.abilities,
            terms=spec.terms,
            capacity=spec.seats[1] * (spec.max_worlds or 1),
        )
