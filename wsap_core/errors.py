"""What can go wrong, as one tree.

    WsapError
    ├── UsageError                what was asked for makes no sense          exit 2
    │   ├── UnknownNameError      no game, agent, plugin ... of that name
    │   ├── DuplicateNameError    two plugins claim one name
    │   └── ConfigError           a configuration value is wrong
    ├── PluginError               a plugin could not be loaded or failed     exit 3
    ├── WorldError                a world broke its contract or crashed      exit 4
    │   ├── SnapshotError         a snapshot can't be restored
    │   └── RecordMismatchError   a world does not go the way it was recorded
    ├── WireError                 data from outside is not what it should be exit 5
    │   └── ProtocolVersionError  it speaks another major version
    ├── StorageError              the database can't be used                 exit 6
    │   ├── StorageLockedError    another process holds it
    │   ├── StorageReadOnlyError  it can't be written
    │   ├── StorageVersionError   a newer WSAP made it
    │   ├── NotADatabaseError     the file is something else
    │   └── StorageFullError      the disk is full
    ├── MissingServiceError       a part is not installed                    exit 7
    ├── CutOffError               not all episodes were played               exit 10
    └── RunInterruptedError       the run was stopped and can be resumed     exit 130

A game's refusal of an action is an `ActionResult`, never one of these.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import ClassVar


class WsapError(Exception):
    """Something that a person can be told in one sentence."""

    code: ClassVar[str] = "WSAP_ERROR"
    """Stable, for programs."""
    exit_code: ClassVar[int] = 1
    """What `wsap` exits with."""
    http_status: ClassVar[int] = 500
    """What the wire API answers with."""
    retryable: ClassVar[bool] = False
    """Whether trying the same thing again can help."""

    def __init_subclass__(cls, **values: str | int) -> None:
        super().__init_subclass__()
        for name, value in values.items():
            setattr(cls, name, value)


class UsageError(WsapError, code="USAGE", exit_code=2, http_status=400):
    """What was asked for makes no sense as it stands."""


def _similar(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return up to three known names that are like this one, leaving out those much less so than the best."""
    close = difflib.get_close_matches(name, sorted(known), n=3, cutoff=0.5)
    likeness = [difflib.SequenceMatcher(None, other, name).ratio() for other in close]
    return tuple(other for other, ratio in zip(close, likeness, strict=True) if ratio > likeness[0] - 0.2)


class UnknownNameError(UsageError, code="UNKNOWN_NAME", http_status=404):
    """There is no such game, agent, plugin, command or run."""

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
    """Two plugins claim one name, so that using it would be a guess."""


class ConfigError(UsageError, code="CONFIG"):
    """A configuration value is missing or wrong."""


class PluginError(WsapError, code="PLUGIN", exit_code=3):
    """A plugin could not be loaded, or failed while it was asked for something."""


class WorldError(WsapError, code="WORLD", exit_code=4, http_status=502):
    """A world broke its contract, or raised where it should have refused."""


class SnapshotError(WorldError, code="SNAPSHOT", http_status=422):
    """A snapshot is damaged, of another version, or of another world."""


class RecordMismatchError(WorldError, code="RECORD_MISMATCH", http_status=409):
    """A world does not go the way that is recorded: another version of the game, or chance beyond its seed."""


class WireError(WsapError, code="VALIDATION_ERROR", exit_code=5, http_status=400):
    """Data from outside the process is not what the protocol says."""


class ProtocolVersionError(WireError, code="SCHEMA_MISMATCH", http_status=422):
    """The other side speaks another major version of the protocol."""


class StorageError(WsapError, code="STORAGE", exit_code=6):
    """The database can't be used as it is."""


class StorageLockedError(StorageError, code="STORAGE_LOCKED", http_status=503, retryable=True):
    """Another process holds the database."""


class StorageReadOnlyError(StorageError, code="STORAGE_READ_ONLY"):
    """The database, or the folder it lies in, can't be written."""


class StorageVersionError(StorageError, code="STORAGE_VERSION"):
    """A newer version of WSAP wrote the database."""


class NotADatabaseError(StorageError, code="NOT_A_DATABASE"):
    """The file is not a WSAP database."""


class StorageFullError(StorageError, code="STORAGE_FULL", http_status=507, retryable=True):
    """There is no room left where the database lies."""


class MissingServiceError(WsapError, code="MISSING_SERVICE", exit_code=7, http_status=501):
    """A part that this needs is not installed; the message says which package has it."""


class CutOffError(WsapError, code="CUT_OFF", exit_code=10):
    """A run ended before as many episodes were played as were asked for; what was played is recorded and told."""


class RunInterruptedError(WsapError, code="INTERRUPTED", exit_code=130):
    """The run was stopped; what was recorded is kept and it can be resumed."""
