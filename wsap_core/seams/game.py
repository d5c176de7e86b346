"""The protocols of games, named as in the specification.

A game implements `GameAdapter` or `AvatarGameAdapter`, and the protocols of the abilities that its spec declares
(`Seedable`, `Snapshots` ...), which the conformance suite verifies. Methods may be `async`, properties may not.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from wsap_core.protocol import Action, ActionResult, ActionSpace, Observation, Tick, View
from wsap_core.protocol.avatars import Avatar, AvatarSpec, DeathEvent, JackInResult, JackOutResult, RespawnOption
from wsap_core.protocol.transit import Entry, Receipt, TransitPackage
from wsap_core.protocol.values import JsonValue
from wsap_core.specs import Ability


class GameAdapter(Protocol):
    """A game, or one seat of it."""

    @property
    def game_description(self) -> str:
        """The game's goals and mechanics, sent once at the start of a session."""

    @property
    def action_space(self) -> ActionSpace:
        """All actions; the observation says which are legal now."""

    def observe(self) -> Observation | Awaitable[Observation]:
        """Wait for the seat's next decision point and return what it perceives; changes nothing."""

    def act(self, action: Action) -> ActionResult | Awaitable[ActionResult]:
        """Carry out an action and return its result once the world has resolved it."""

    def reset(self) -> Observation | Awaitable[Observation]:
        """Start a new episode and return its first observation; see also `Seedable`."""


@runtime_checkable
class AvatarGameAdapter(GameAdapter, Protocol):
    """A game with bodies that agents enter and leave."""

    def list_avatars(self, agent_id: str) -> list[Avatar]:
        """Return all avatars of the agent in this game."""

    def create_avatar(self, agent_id: str, spec: AvatarSpec) -> Avatar:
        """Create a new, unbound avatar for the agent."""

    def jack_in(self, agent_id: str, avatar_id: str) -> JackInResult:
        """Bind an agent to an avatar and return its first observation."""

    def jack_out(self, agent_id: str, mode: str = "dormant") -> JackOutResult:
        """Release the agent's avatar: `dormant`, `suspend` or `despawn`."""

    def handle_death(self, avatar_id: str) -> DeathEvent:
        """Return how an avatar was destroyed, and how it can respawn."""

    def respawn(self, avatar_id: str, option: RespawnOption | str) -> JackInResult:
        """Revive a destroyed avatar by one of its options (or an option's id), and bind it again."""


MEMBERS: Mapping[Ability, tuple[str, ...]] = {
    "seed": ("reset",),
    "snapshot": ("snapshot", "restore"),
    "render": ("render",),
    "avatars": ("list_avatars", "create_avatar", "jack_in", "jack_out", "handle_death", "respawn"),
    "multi-seat": ("seat",),
    "transit": ("admit", "release"),
    "messages": ("mailbox",),
    "lives": ("advance",),
    "influence": ("influence",),
    "irreversible": ("act_once",),
}
"""The members that each ability requires: `reset` with a seed, `mailbox` a `Mailbox`, `advance` async."""


def has_methods(game: object, ability: Ability) -> bool:
    """Return whether a game has the methods that an ability requires."""
    return all(callable(getattr(game, name, None)) for name in MEMBERS[ability])


@runtime_checkable
class Seedable(Protocol):
    """Ability `seed`: the same seed and actions give the same trajectory in another process."""

    def reset(self, seed: int | None = None) -> Observation | Awaitable[Observation]:
        """Start a new episode from the seed; with None, the next one of the world's own sequence."""


@runtime_checkable
class Snapshots(Protocol):
    """Ability `snapshot`, of games and agents: the whole state as bytes, never as a pickle."""

    def snapshot(self) -> bytes:
        """Return the whole state."""

    def restore(self, data: bytes) -> None:
        """Restore a snapshot; `SnapshotError` if it is damaged or of another version, and nothing has changed."""


@runtime_checkable
class Renders(Protocol):
    """Ability `render`."""

    def render(self) -> View:
        """Return a view of the current state; changes nothing."""


@runtime_checkable
class HasSeats(Protocol):
    """Ability `multi-seat`: several agents in one world."""

    def seat(self, agent_id: str) -> GameAdapter:
        """Return the seat of one agent, with what that agent alone observes and does."""


@runtime_checkable
class Transits(Protocol):
    """Ability `transit`: agents bring skills and items, and take items out. Both methods are idempotent by transfer id,
    also after a later snapshot was restored: a repeated call changes nothing and returns the same answer."""

    def admit(self, avatar_id: str, entry: Entry) -> Receipt | Awaitable[Receipt]:
        """Apply the bonuses of an agent's skills, each once per avatar, and import its items. Called for a new avatar
        before its agent is bound, and for a dormant one before it wakes."""

    def release(self, avatar_id: str, transfer_id: str) -> TransitPackage | Awaitable[TransitPackage]:
        """Remove the portable items from the avatar and return them."""


@runtime_checkable
class Leavable(Protocol):
    """A world of several seats that is informed when an agent leaves for good."""

    def leave(self, agent_id: str) -> None:
        """Continue without the agent, or with a replacement."""


@runtime_checkable
class HasDefaultAction(Protocol):
    """A seat with a default action for an agent that misses its deadline."""

    def default_action(self) -> Action:
        """Return an action that is legal now."""


@runtime_checkable
class HasClosingResult(Protocol):
    """A seat that gets a last result when the game ends without an action of its own."""

    def closing_result(self) -> ActionResult | None:
        """Return that result (`done`), the same each time, or None for all other seats; changes nothing."""


@runtime_checkable
class HasTeams(Protocol):
    """A world whose seats form teams, for team messages."""

    def team_of(self, agent_id: str) -> str | None:
        """Return the name of the agent's team, or None."""


@runtime_checkable
class Lives(Protocol):
    """Ability `lives`: the world goes on by itself in ticks, also while nobody is in it.

    The runtime calls `advance` repeatedly, one call at a time. A tick applies its changes atomically at its end, so
    that a cancelled call changes nothing. The same state, replies of models and actions of seats give the same tick,
    in whatever order they arrive.
    """

    async def advance(self) -> Tick:
        """Carry out the next tick, waiting for the seats that decide in it; other actions may count from the next."""


@runtime_checkable
class Settles(Protocol):
    """A world that lives and may continue work after a tick on which nothing depends."""

    async def settle(self) -> None:
        """Wait for such work, for example the story of the last tick; called when play ends or is rewound."""


@runtime_checkable
class Influenced(Protocol):
    """Ability `influence`, of a world that lives."""

    def influence(self, body: Mapping[str, JsonValue]) -> str:
        """Apply an influence before the next tick, and return one sentence about it; `UsageError` if it is refused."""


@dataclass(frozen=True)
class ChoiceKey:
    """Globally identifies one choice of one seat."""

    text: str
    """Run, seat and number of the decision, such as `crafter-3f2a/seat-1/17`."""
    again: bool = False
    """Whether the run was interrupted after the choice was recorded, so that the world may have received it."""


@runtime_checkable
class Irreversible(Protocol):
    """Ability `irreversible`: a world that can't be rewound, such as a game in another process with its own clock.

    A resumed run attaches to its present state and repeats nothing. A choice is committed before the world receives it.
    It has neither the ability `seed` nor `snapshot`; `reset` undoes nothing.
    """

    def act_once(self, action: Action, key: ChoiceKey) -> ActionResult | Awaitable[ActionResult]:
        """Carry out an action at most once per key, and return its result.

        If the key comes `again`, return the original result, acting only if the world certainly never received the
        action; the outcome is `unknown` if it can't be determined.
        """
