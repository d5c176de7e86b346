"""What a game implements, as the protocol names it.

An author implements `GameAdapter` (five members) or `AvatarGameAdapter`.
Methods may be synchronous or `async`; properties never are. What a game or agent can do
beyond that (`Seedable`, `Snapshots`, `Renders`, `HasSeats` ...) it declares as an ability in
its spec, and the conformance suite holds it to that.
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
    """A game, or one seat of it, made playable by language models."""

    @property
    def game_description(self) -> str:
        """The game, its goals and mechanics. Sent once, at the start of a session."""

    @property
    def action_space(self) -> ActionSpace:
        """All actions there are; what is legal now is in the observation."""

    def observe(self) -> Observation | Awaitable[Observation]:
        """Return the state as this seat perceives it, waiting for its next decision point.

        Observing changes nothing: twice in a row gives the same.
        """

    def act(self, action: Action) -> ActionResult | Awaitable[ActionResult]:
        """Carry out an action and return what came of it, once the world has resolved it."""

    def reset(self) -> Observation | Awaitable[Observation]:
        """Begin a new episode and return its first observation.

        An adapter that declares the ability `seed` takes `reset(seed=...)` too.
        """


@runtime_checkable
class AvatarGameAdapter(GameAdapter, Protocol):
    """A game with bodies that agents enter and leave."""

    def list_avatars(self, agent_id: str) -> list[Avatar]:
        """Return all avatars that this agent has in this game."""

    def create_avatar(self, agent_id: str, spec: AvatarSpec) -> Avatar:
        """Create a new, unbound avatar for the agent."""

    def jack_in(self, agent_id: str, avatar_id: str) -> JackInResult:
        """Bind an agent to an avatar and return its first observation."""

    def jack_out(self, agent_id: str, mode: str = "dormant") -> JackOutResult:
        """Release the agent's avatar: `dormant`, `suspend` or `despawn`."""

    def handle_death(self, avatar_id: str) -> DeathEvent:
        """Return what happened to a destroyed avatar, and how it can live again."""

    def respawn(self, avatar_id: str, option: RespawnOption | str) -> JackInResult:
        """Bring a destroyed avatar back by one of its options (or an option's id), and bind it again."""


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
    "live": ("act_once",),
}
"""The members that each ability takes; a `reset` with a seed, a `mailbox` that is one, an `advance` that is async."""


def has_methods(game: object, ability: Ability) -> bool:
    """Return whether a game has the methods that an ability takes; its properties are not asked, which may raise."""
    return all(callable(getattr(game, name, None)) for name in MEMBERS[ability])


# --- what may be declared beyond that --------------------------------------------------------


@runtime_checkable
class Seedable(Protocol):
    """Ability `seed`: the same seed and actions give the same trajectory in another process."""

    def reset(self, seed: int | None = None) -> Observation | Awaitable[Observation]:
        """Begin a new episode from the seed; None goes on with the world's own sequence."""


@runtime_checkable
class Snapshots(Protocol):
    """Ability `snapshot`, of games and of agents: all state as bytes, and back. Never a pickle."""

    def snapshot(self) -> bytes:
        """Return everything that what happens next depends on."""

    def restore(self, data: bytes) -> None:
        """Become what the snapshot was taken of.

        Raises:
            SnapshotError: the data is damaged or of another version; nothing has changed.
        """


@runtime_checkable
class Renders(Protocol):
    """Ability `render`: something for people to look at."""

    def render(self) -> View:
        """Return the current state as blocks that a viewer can draw. Changes nothing."""


@runtime_checkable
class HasSeats(Protocol):
    """Ability `multi-seat`: several agents in one world."""

    def seat(self, agent_id: str) -> GameAdapter:
        """Return the face of the world for one agent; its `observe` and `act` are about that mind alone."""


@runtime_checkable
class Transits(Protocol):
    """Ability `transit`: agents bring skills and items along, and take items out.

    Both are idempotent by transfer id: asked again, the world does nothing more and answers the same,
    also after it was restored from a snapshot taken since. Either may be `async`.
    """

    def admit(self, avatar_id: str, entry: Entry) -> Receipt | Awaitable[Receipt]:
        """Apply what an agent's skills are worth to its avatar, map its items in, and say what was done.

        Called for a new avatar before its agent is bound, and for a sleeping one before it wakes,
        so that bonuses reach both alike; a bonus is applied to an avatar once.
        """

    def release(self, avatar_id: str, transfer_id: str) -> TransitPackage | Awaitable[TransitPackage]:
        """Take what is portable out of the avatar, for its agent to carry on."""


@runtime_checkable
class Leavable(Protocol):
    """A world of several seats that wants to know when an agent leaves for good."""

    def leave(self, agent_id: str) -> None:
        """Go on without the agent, or with something in its place."""


@runtime_checkable
class HasDefaultAction(Protocol):
    """A seat that says what is done in its place when its agent misses the deadline."""

    def default_action(self) -> Action:
        """Return the action that is always legal here now."""


@runtime_checkable
class HasClosingResult(Protocol):
    """A seat of several that is paid when the game ends without an action of its own."""

    def closing_result(self) -> ActionResult | None:
        """Return the last result of such a seat, `done`, the same each time; None for all others. Changes nothing."""


@runtime_checkable
class HasTeams(Protocol):
    """A world whose seats form teams, for team messages."""

    def team_of(self, agent_id: str) -> str | None:
        """Return the name of the agent's team, or None."""


@runtime_checkable
class Lives(Protocol):
    """Ability `lives`: the world goes on by itself, tick after tick, also while nobody is in it.

    Whoever runs the world calls `advance` again and again, one call at a time. What a tick changes is applied at its
    end, at once: a call that is cancelled has changed nothing. The same state, and the same replies of models and
    acts of seats, give the same tick, whichever of them comes first.
    """

    async def advance(self) -> Tick:
        """Carry out the next tick and return what it did, waiting inside for the seats that decide in it.

        An act that comes in the meantime either is waited for, or counts from the next tick on.
        """


@runtime_checkable
class Settles(Protocol):
    """A world that lives and may still be busy with what nothing depends on when a tick is over."""

    async def settle(self) -> None:
        """Return once that is done, such as the story of the last tick; called where play ends, or goes back."""


@runtime_checkable
class Influenced(Protocol):
    """Ability `influence`, of a world that lives: somebody outside it may interfere between two ticks."""

    def influence(self, body: Mapping[str, JsonValue]) -> str:
        """Take an influence, before the next tick, and return one sentence that says what was done.

        Raises:
            UsageError: it can't be taken; nothing has changed.
        """


@dataclass(frozen=True)
class ChoiceKey:
    """Names one choice of one seat, in all runs."""

    text: str
    """Run, seat and number of the decision, such as `crafter-3f2a/seat-1/17`."""
    again: bool = False
    """Whether the run was cut off after the choice was recorded, so that the world may have heard of it already."""


@runtime_checkable
class Live(Protocol):
    """Ability `live`: a world that can't be rewound, such as a game in another process with a clock of its own.

    A run that is resumed attaches to its present, and acts nothing again. A choice is committed before such a world
    hears of it. It has neither the ability `seed` nor `snapshot`; `reset` changes nothing that has happened.
    """

    def act_once(self, action: Action, key: ChoiceKey) -> ActionResult | Awaitable[ActionResult]:
        """Carry out an action at most once for its key, and return what came of it.

        Where the key comes `again`, it finds out what came of the action, carrying it out only if the world certainly
        never heard of it; if nobody knows, the result's outcome is `unknown`.
        """
