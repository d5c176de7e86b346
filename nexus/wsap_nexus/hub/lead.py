"""One nexus leads a database: a lock that ends with the process, however that ends."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from sqlalchemy import Connection, text

from wsap_nexus.hub.errors import NexusRunningError
from wsap_nexus.storage.database import Database

_KEY = 0x57534150
"""The advisory lock's number on PostgreSQL: "WSAP"."""


class Lead(Protocol):
    """The right to run a nexus on a database."""

    def acquire(self) -> None:
        """Take it.

        Raises:
            NexusRunningError: another process has it.
        """
        ...

    def release(self) -> None:
        """Give it back."""
        ...


def lead(database: Database) -> Lead:
    """Return the lock of a database, not yet taken."""
    return _FileLead(database) if database.is_sqlite else _ServerLead(database)


def _refusal(database: Database) -> NexusRunningError:
    return NexusRunningError(
        f"Another nexus runs on the database {database.where}; look at it with: wsap nexus status, "
        "or stop it with: wsap nexus stop"
    )


class _FileLead:
    def __init__(self, database: Database) -> None:
        from filelock import FileLock  # deferred for weight: reading needs no lock

        self._database = database
        # Resolved, so that whoever reaches the file by another path meets the same lock.
        self._lock = FileLock(Path(f"{Path(database.where).resolve()}.nexus.lock"), timeout=0)

    def acquire(self) -> None:
        from filelock import Timeout

        try:
            self._lock.acquire()
        except Timeout:
            raise _refusal(self._database) from None

    def release(self) -> None:
        self._lock.release()


class _ServerLead:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._connection: Connection | None = None

    def acquire(self) -> None:
        connection = self._database.engine.connect()
        if not connection.execute(text("SELECT pg_try_advisory_lock(:key)"), {"key": _KEY}).scalar():
            connection.close()
            raise _refusal(self._database)
        connection.commit()
        self._connection = connection

    def release(self) -> None:
        if self._connection is not None:
            self._connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": _KEY})
            self._connection.close()
            self._connection = None
