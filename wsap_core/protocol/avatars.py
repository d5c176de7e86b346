"""Avatars: the mortal bodies of agents in games."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from wsap_core.protocol.actions import ActionDef, ActionSpace, ParamDef
from wsap_core.protocol.base import Part
from wsap_core.protocol.lines import number
from wsap_core.protocol.observation import Observation
from wsap_core.protocol.words import words_of
from wsap_core.untrusted import single_line


class AvatarState(Enum):
    """The state of an avatar."""

    UNBOUND = "unbound"
    """No agent controls it."""
    BOUND = "bound"
    """An agent controls it."""
    DORMANT = "dormant"
    """Its agent is away; the body sleeps in the world and can be hurt."""
    SUSPENDED = "suspended"
    """Frozen in time and removed from the world."""
    DESTROYED = "destroyed"
    """Dead or despawned."""


_TRANSITIONS: Mapping[AvatarState, frozenset[AvatarState]] = {
    AvatarState.UNBOUND: frozenset({AvatarState.BOUND}),
    AvatarState.BOUND: frozenset(AvatarState) - {AvatarState.BOUND},
    AvatarState.DORMANT: frozenset({AvatarState.BOUND, AvatarState.DESTROYED}),
    AvatarState.SUSPENDED: frozenset({AvatarState.BOUND, AvatarState.DESTROYED}),
    AvatarState.DESTROYED: frozenset({AvatarState.BOUND}),
}


def can_become(state: AvatarState, new: AvatarState, *, respawning: bool = False) -> bool:
    """Return whether an avatar may change from one state to another; a destroyed one only by respawning."""
    return new in _TRANSITIONS[state] and (respawning or state is not AvatarState.DESTROYED)


@dataclass(frozen=True)
class Avatar(Part):
    """A body in a game."""

    avatar_id: str
    game_id: str
    bound_agent: str | None = None
    """The agent that controls it."""
    state: AvatarState = AvatarState.UNBOUND
    name: str = ""
    position: Sequence[float] = ()
    appearance: Mapping[str, Any] = field(default_factory=dict)
    health: float = 0.0
    max_health: float = 0.0
    inventory: Mapping[str, int] = field(default_factory=dict)
    equipment: Mapping[str, str] = field(default_factory=dict)
    """Slot -> item id."""
    created_at: str = ""
    """ISO 8601, or a logical time of the world; empty if the world keeps no time."""
    last_active: str = ""
    total_playtime: int = 0
    """Seconds by the world's clock."""
    death_count: int = 0
    respawn_point: Sequence[float] | None = None
    """Where it comes to life again, if that is known before it dies; else see the death's `RespawnOption`."""


@dataclass(frozen=True)
class AvatarSpec(Part):
    """Preferences for creating a new avatar."""

    name: str | None = None
    appearance: Mapping[str, Any] | None = None
    spawn_location: str = "safe"
    """"safe", "random" or "challenging"; a game takes those of its `AdapterSpec.terms`."""
    starting_loadout: str = "default"
    """What it carries, in the game's own words; see `AdapterSpec.terms`."""


@dataclass(frozen=True)
class AvatarRoster(Part):
    """An agent's avatars in one game."""

    agent_id: str
    game_id: str
    avatars: Sequence[Avatar] = ()
    active_avatar_id: str | None = None
    max_avatars: int = 3
    """Most living avatars that the game allows one agent."""

    def get_active(self) -> Avatar | None:
        """Return the avatar that the agent controls now, or None."""
        return next((a for a in self.avatars if a.avatar_id == self.active_avatar_id), None)

    def get_dormant(self) -> list[Avatar]:
        """Return the dormant avatars."""
        return [a for a in self.avatars if a.state is AvatarState.DORMANT]

    def can_create_new(self) -> bool:
        """Return whether the game allows another living avatar."""
        alive = [a for a in self.avatars if a.state is not AvatarState.DESTROYED]
        return len(alive) < self.max_avatars


@dataclass(frozen=True)
class EmbodiedObservation(Observation):
    """An observation that includes the agent's body; its additional fields are keyword-only."""

    avatar: Avatar = field(kw_only=True)
    facing: str = field(default="", kw_only=True)
    """"north", "east", ...; empty if the body has no facing."""
    stance: str = field(default="standing", kw_only=True)
    """"standing", "crouching", "prone", "swimming"; a game may use other words."""
    velocity: Sequence[float] = field(default=(), kw_only=True)
    """Movement per game step, one number per coordinate."""
    vision_range: float | None = field(default=None, kw_only=True)
    """In the game's unit; None if not stated."""
    vision_cone: float = field(default=360.0, kw_only=True)
    """Field of view in degrees, centred on `facing`."""
    hearing_range: float | None = field(default=None, kw_only=True)
    """In the game's unit; None if not stated."""

    def to_text(self) -> str:
        """Return the body's section, then the observation in the protocol's message layout."""
        return render_avatar(self) + "\n" + super().to_text()


def render_avatar(observation: EmbodiedObservation) -> str:
    """Return the body's section in the protocol's message layout."""
    a, words = observation.avatar, words_of(observation.language)
    facing = words.say(f"Facing: {single_line(observation.facing)}")
    stance = words.say(f"Stance: {words.say(single_line(observation.stance))}")
    lines = (
        words.say(f"=== AVATAR: {single_line(a.name)} ==="),
        words.say(f"Health: {number(a.health)}/{number(a.max_health)}") if a.max_health > 1 else "",
        words.say(f"Position: ({', '.join(number(c) for c in a.position)})"),
        f"{facing} | {stance}",
    )
    return "".join(f"\n{line}" for line in lines if line) + "\n"


@dataclass(frozen=True)
class JackInResult(Part):
    """The result of binding an agent to an avatar."""

    success: bool
    avatar: Avatar | None = None
    message: str = ""
    bonuses_applied: Mapping[str, Any] = field(default_factory=dict)
    """The changes that the agent's skills made to the avatar."""
    initial_observation: Observation | None = None


@dataclass(frozen=True)
class JackOutResult(Part):
    """The result of releasing an avatar."""

    success: bool
    avatar_state: AvatarState = AvatarState.UNBOUND
    message: str = ""
    session_stats: Mapping[str, Any] = field(default_factory=dict)
    """Playtime, achievements and so on of the session, as the game counts them."""


@dataclass(frozen=True)
class RespawnOption(Part):
    """A way to revive a destroyed avatar."""

    id: str
    type: str = "spawn_point"
    """"checkpoint", "bed", "spawn_point" or "random"; a game may use other words."""
    location: Sequence[float] | str = ""
    cost: Mapping[str, Any] | None = None
    """Resources or currency."""
    penalties: Sequence[str] = ()
    """"lose_inventory", "lose_xp", "debuff"; a game may use other words."""
    description: str = ""


@dataclass(frozen=True)
class DeathEvent(Part):
    """The death of an avatar."""

    avatar_id: str
    cause: str
    """"combat", "fall", "drowning", "starvation"; a game may use other words."""
    killer: str | None = None
    """Who or what killed it."""
    location: Sequence[float] = ()
    timestamp: str = ""
    """By the world's clock."""
    items_dropped: Mapping[str, int] = field(default_factory=dict)
    xp_lost: float = 0.0
    """Experience points, in a game that has them."""
    respawn_options: Sequence[RespawnOption] = ()
    """Empty if death is final."""


AVATAR_ACTIONS = ActionSpace(
    (
        ActionDef(
            "jack_out",
            "Leave this avatar and return to menu/nexus",
            (ParamDef("mode", "dormant|suspend|despawn", optional=True),),
            ("Not in combat", "Not falling", "Safe location"),
            "meta",
        ),
        ActionDef(
            "look",
            "Turn avatar to face direction or entity",
            (ParamDef("target", "direction or entity_id"),),
            category="avatar",
        ),
        ActionDef(
            "emote",
            "Express emotion through avatar body",
            (ParamDef("emote", "wave|sit|dance|sleep|point"),),
            category="avatar",
        ),
        ActionDef("inspect_self", "Check avatar's body, equipment, status", category="avatar"),
    )
)
"""The actions that every world with avatars has in addition to its own."""

LEAVING: Mapping[str, AvatarState] = {
    "dormant": AvatarState.DORMANT,
    "suspend": AvatarState.SUSPENDED,
    "despawn": AvatarState.DESTROYED,
}
"""Mode of jacking out -> state of the body afterwards."""
