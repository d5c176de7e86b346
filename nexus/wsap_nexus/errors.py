"""Errors of the nexus: one class for each stable code.

TransitError                  the nexus refuses a transfer              exit 2
├── AlreadyInWorldError       the agent is in a world or a transfer
├── NotInWorldError           the agent is in no world
├── GameUnavailableError      the game is offline, busy or in maintenance
├── IncompatibleGameError     the game speaks another major version of the protocol
├── RosterFullError           the agent has the maximum of living avatars there
├── DiedAsleepError           the avatar died while it was dormant; the agent decides how to respawn
└── AvatarStateError          an avatar can't change to the requested state
AgentPausedError              the agent is paused
NexusRunningError             another nexus runs on this database       exit 6
└── LockLostError             it took the database over from this one, or its file was replaced
WorldFailedError              a world crashed, hung, or was not rebuilt identically   exit 4
WorldInterruptedError         the process of a world that lives ended; it goes on from its log
"""

from __future__ import annotations

from wsap_core.errors import PluginError, StorageLockedError, UsageError, WorldError, WsapError
from wsap_core.protocol import Avatar, DeathEvent, Receipt, TransitPackage


class TransitError(UsageError):
    """The nexus refuses a transfer; nothing has changed."""

    code = "TRANSIT_REFUSED"
    http_status = 409


class AlreadyInWorldError(TransitError):
    """The agent is in a world, or in a transfer."""

    code = "ALREADY_IN_WORLD"


class NotInWorldError(TransitError):
    """The agent is in no world."""

    code = "NOT_IN_WORLD"


class GameUnavailableError(TransitError):
    """The game can't be entered now."""

    code = "GAME_UNAVAILABLE"
    http_status = 503
    retryable = True


class IncompatibleGameError(TransitError):
    """The game speaks another major version of the protocol."""

    code = "GAME_INCOMPATIBLE"


class RosterFullError(TransitError):
    """The agent has the maximum of living avatars in the game."""

    code = "ROSTER_FULL"


class DiedAsleepError(TransitError):
    """The avatar to enter died while it was dormant, and no respawn option was chosen.

    Args:
        death: how the avatar died.
        body: the avatar.
        receipt: of the imported skills and items.
        package: the exported items, and the lost ones.
        state: the world's state to store; None if it can't be entered again.
    """

    code = "DIED_ASLEEP"

    def __init__(
        self,
        message: str,
        *,
        death: DeathEvent,
        body: Avatar,
        receipt: Receipt,
        package: TransitPackage,
        state: bytes | None,
    ) -> None:
        super().__init__(message)
        self.death = death
        self.body = body
        self.receipt = receipt
        self.package = package
        self.state = state


class AvatarStateError(TransitError):
    """An avatar can't change from its state to the requested one."""

    code = "AVATAR_STATE"


class AgentPausedError(UsageError):
    """The agent is paused until it is resumed."""

    code = "AGENT_PAUSED"
    http_status = 409


class NexusRunningError(StorageLockedError):
    """Another nexus runs on the database."""

    code = "NEXUS_RUNNING"
    http_status = 409
    retryable = False


class LockLostError(NexusRunningError):
    """Another nexus took the database over, or its file was deleted, moved or replaced; nothing more is written."""

    code = "LEAD_LOST"


class ConservationError(WsapError):
    """A world exported an item twice, or one that is not in it; the transfer is undone."""

    code = "ITEM_CONSERVATION"
    http_status = 502


class WorldFailedError(WorldError):
    """A world crashed, hung, raised, or was not rebuilt identically."""

    code = "WORLD_FAILED"
    http_status = 502
    counted = False
    """Whether it was counted as a failure of the game already."""
    given_up = False
    """Whether the world was given up, since its game did not return while its agent was to leave."""


class WorldInterruptedError(WorldError):
    """The process of a world that lives ended; the world goes on from its log."""

    code = "WORLD_INTERRUPTED"
    http_status = 503
    retryable = True


def is_failure(error: BaseException) -> bool:
    """Return whether an error is a failure of a game, rather than its refusal or a wrong request."""
    if isinstance(error, WorldFailedError | PluginError):
        return True
    cause = error.__cause__
    return isinstance(error, WorldError) and cause is not None and not isinstance(cause, WsapError)
