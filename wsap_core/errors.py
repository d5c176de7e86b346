"""The tree of errors.

    WsapError
    ├── UsageError                the request is invalid                     exit 2
    │   ├── UnknownNameError      no game, agent, plugin ... of that name
    │   ├── DuplicateNameError    two plugins claim one name
    │   └── ConfigError           a configuration value is missing or wrong
    ├── PluginError               a plugin could not be loaded or failed     exit 3
    │   └── AgentError            an agent raised, or decided on no action
    ├── WorldError                a world broke its contract or crashed      exit 4
    │   ├── SnapshotError         a snapshot can't be restored
    │   └── RecordMismatchError   a world differs from its recording
    ├── WireError                 data from outside the process is invalid   exit 5
    │   └── ProtocolVersionError  it is of another major version
    ├── StorageError              the database can't be used                 exit 6
    │   ├── StorageLockedError    another process holds its lock
    │   ├── StorageReadOnlyError  it can't be written
    │   ├── StorageVersionError   a newer version of WSAP wrote it
    │   ├── NotADatabaseError     the file is not a WSAP database
    │   ├── StorageDamagedError   the file is damaged
    │   ├── StorageFullError      the disk is full
    │   └── StorageUnavailableError   it can't be used for the moment
    ├── MissingServiceError       a package is not installed                 exit 7
    ├── CutOffError               not all episodes were played               exit 10
    └── RunInterruptedError       the run was stopped and can be resumed     exit 130

A game's refusal of an action is an `ActionResult`, never one of these.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import ClassVar


class WsapError(Exception):
    """Base of all errors; its message is one sentence for the user."""

    code: ClassVar[str] = "WSAP_ERROR"
    """Stable code for programs."""
    exit_code: ClassVar[int] = 1
    """Exit status of `wsap`."""
    http_status: ClassVar[int] = 500
    """HTTP status of the wire API."""
    retryable: ClassVar[bool] = False
    """Whether a retry can succeed."""

    def __init_subclass__(cls, **values: str | int) -> None:
        super().__init_subclass__()
        for name, value in values.items():
            setattr(cls, name, value)


class UsageError(WsapError, code="USAGE", exit_code=2, http_status=400):
    """The request is invalid."""


def _similar(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return up to three similar known names, without those much less similar than the best one."""
    alike = {o: difflib.SequenceMatcher(None, o, name).ratio() for o in difflib.get_close_matches(name, known, 3, 0.5)}
    return tuple(other for other, ratio in alike.items() if ratio > max(alike.values()) - 0.2)


class UnknownNameError(UsageError, code="UNKNOWN_NAME", http_status=404):
    """There is no game, agent, plugin, command or run of that name."""

    def __init__(self, kind: str, name: str, known: Iterable[str], *, hint: str = "") -> None:
        self.kind = kind
        self.name = name
        self.suggestions = _similar(name, known)
        message = f"There is no {kind} called {name!r}."
        if self.suggestions:
            message += " Did you mean " + " or ".join(repr(s) for s in self.suggestions) + "?"
        elif hint:
            message += " " + hint
        super().__init__(message)


class DuplicateNameError(UsageError, code="DUPLICATE_NAME", http_status=409):
    """Two plugins claim one name."""


class ConfigError(UsageError, code="CONFIG"):
    """A configuration value is missing or wrong."""


class PluginError(WsapError, code="PLUGIN", exit_code=3):
    """A plugin could not be loaded, or failed."""


class AgentError(PluginError, code="AGENT"):
    """An agent raised, or decided on no action."""

    seat: str = ""
    """The agent's seat."""

    @classmethod
    def of(cls, seat: str, message: str) -> AgentError:
        """Return the error of the agent in a seat."""
        error = cls(message)
        error.seat = seat
        return error


class WorldError(WsapError, code="WORLD", exit_code=4, http_status=502):
    """A world broke its contract or crashed."""


class SnapshotError(WorldError, code="SNAPSHOT", http_status=422):
    """A snapshot is damaged, of another version, or of another world."""


class RecordMismatchError(WorldError, code="RECORD_MISMATCH", http_status=409):
    """A world differs from its recording: the game has another version, or is not determined by its seed."""


class WireError(WsapError, code="VALIDATION_ERROR", exit_code=5, http_status=400):
    """Data from outside the process does not follow the protocol."""


class ProtocolVersionError(WireError, code="SCHEMA_MISMATCH", http_status=422):
    """The other side uses another major version of the protocol."""


class StorageError(WsapError, code="STORAGE", exit_code=6):
    """The database can't be used."""


class StorageLockedError(StorageError, code="STORAGE_LOCKED", http_status=503, retryable=True):
    """Another process holds the database's lock."""


class StorageReadOnlyError(StorageError, code="STORAGE_READ_ONLY"):
    """The database or its folder can't be written."""


class StorageVersionError(StorageError, code="STORAGE_VERSION"):
    """A newer version of WSAP wrote the database."""


class NotADatabaseError(StorageError, code="NOT_A_DATABASE"):
    """The file is not a WSAP database."""


class StorageDamagedError(StorageError, code="STORAGE_DAMAGED", http_status=503):
    """The file of the database is damaged."""


class StorageFullError(StorageError, code="STORAGE_FULL", http_status=507, retryable=True):
    """The disk with the database is full."""


class StorageUnavailableError(StorageError, code="STORAGE_UNAVAILABLE", http_status=503, retryable=True):
    """The database can't be used for the moment: files or memory are lacking, or its disk or server does not answer."""


class MissingServiceError(WsapError, code="MISSING_SERVICE", exit_code=7, http_status=501):
    """A required package is not installed; the message names it."""


class CutOffError(WsapError, code="CUT_OFF", exit_code=10):
    """A run ended before all requested episodes were played; those that were are recorded and reported."""


class RunInterruptedError(WsapError, code="INTERRUPTED", exit_code=130):
    """The run was stopped; its recording is kept, and it can be resumed."""
