"""Why the nexus refuses: one class for each stable code.

TransitError                  the nexus refuses a move                  exit 10
├── AlreadyInWorldError       the agent is in a world already
├── NotInWorldError           the agent is in no world
├── GameUnavailableError      the game is offline, busy or in maintenance
├── IncompatibleGameError     the game speaks another major version of the protocol
├── RosterFullError           the agent has as many living avatars there as it may
├── DiedAsleepError           the body died while it slept; the agent decides what becomes of it
└── AvatarStateError          an avatar can't go from its state to that one
AgentPausedError              the agent is paused
NexusRunningError             another nexus leads this database         exit 6
└── LockLostError             it has taken over from this one
WorldFailedError              a world crashed, hung, or is not the same again   exit 4
"""

from __future__ import annotations

from wsap_core.errors import PluginError, StorageLockedError, UsageError, WorldError, WsapError
from wsap_core.protocol import Avatar, DeathEvent, Receipt, TransitPackage


class TransitError(UsageError):
    """The nexus refuses a move; nothing has changed."""

    code = "TRANSIT_REFUSED"
    exit_code = 10
    http_status = 409


class AlreadyInWorldError(TransitError):
    """The agent is in a world, or on its way."""

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
    """The agent has as many living avatars in the game as it may."""

    code = "ROSTER_FULL"


class DiedAsleepError(TransitError):
    """The body that was to be woken died while it slept, and nothing was said of how it is to live again.

    Args:
        message: what happened, and the ways in which it can live again.
        death: what it died of, and these ways.
        body: as it is now.
        receipt: what the world said to what the agent brought.
        package: what came out of the body, and what was lost with it.
        state: the world's state to be kept; None where nobody can come back to it.
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
    """An avatar can't go from the state it is in to the one that was asked for."""

    code = "AVATAR_STATE"


class AgentPausedError(UsageError):
    """The agent is paused, and does nothing until it is resumed."""

    code = "AGENT_PAUSED"
    http_status = 409


class NexusRunningError(StorageLockedError):
    """Another nexus leads the database."""

    code = "NEXUS_RUNNING"
    http_status = 409
    retryable = False


class LockLostError(NexusRunningError):
    """Another nexus has taken over the database, after the connection to it was interrupted; nothing was written."""

    code = "LEAD_LOST"


class ConservationError(WsapError):
    """A world gave out an item twice, or one that is elsewhere; the move is undone."""

    code = "ITEM_CONSERVATION"
    http_status = 502


class WorldFailedError(WorldError):
    """A world crashed, hung, raised, or did not become again what it was."""

    code = "WORLD_FAILED"
    http_status = 502
    counted = False
    """Whether it has been held against the game already."""


def is_failure(error: BaseException) -> bool:
    """Return whether an error is a game's fault, rather than its refusal or somebody's mistake."""
    if isinstance(error, WorldFailedError | PluginError):
        return True
    cause = error.__cause__
    return isinstance(error, WorldError) and cause is not None and not isinstance(cause, WsapError)
