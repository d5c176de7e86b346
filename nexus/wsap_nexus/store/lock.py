"""The instance lock: one nexus runs on a database, and the lock ends with its process.

On a server the lock also ends with the connection; `_ServerLock` handles that.
"""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from wsap_core.errors import WsapError
from wsap_nexus.errors import LockLostError, NexusRunningError
from wsap_nexus.store.database import Database
from wsap_nexus.store.errors import said_clearly

EVERY = 2.0
"""Seconds between two checks of a running nexus that it still has the lock."""

_KEY = 0x57534150
"""The number of the advisory lock on PostgreSQL: "WSAP"."""

_EPOCH = "lead"
# The name of the counter of lock holders, as it is stored.
_HANGS = 10_000
# Milliseconds to wait for a transaction of the previous holder.
_COUNT_ON = text(
    "INSERT INTO counter (name, value) VALUES (:name, 1)"
    " ON CONFLICT (name) DO UPDATE SET value = counter.value + 1 RETURNING value"
)
_TRY = text("SELECT pg_try_advisory_lock(:key)")
_LOOK = text("SELECT value FROM counter WHERE name = :name FOR SHARE")


def instance_lock(database: Database) -> InstanceLock:
    """Return the right to run a nexus on a database, not yet acquired."""
    return _FileLock(database) if database.is_sqlite else _ServerLock(database)


def _refusal(database: Database) -> NexusRunningError:
    return NexusRunningError(
        f"Another nexus runs on the database {database.where}; look at it with: wsap nexus status, "
        "or stop it with: wsap nexus stop"
    )


def _lost(database: Database) -> str:
    return (
        f"Another nexus leads the database {database.where} now, since the connection to it was interrupted; "
        "this one writes nothing more. Look at the other with: wsap nexus status"
    )


class _FileLock:
    """The lock of the process itself."""

    def __init__(self, database: Database) -> None:
        from filelock import FileLock  # deferred for weight: reading needs no lock

        self._database = database
        # Resolved, so that the file has the same lock by every path.
        self._lock = FileLock(Path(f"{Path(database.where).resolve()}.nexus.lock"), timeout=0)

    def acquire(self, patience: float = 0.0) -> None:
        """Acquire the lock, waiting for up to `patience` seconds; NexusRunningError if another process holds it."""
        from filelock import Timeout

        try:
            self._lock.acquire(timeout=patience)
        except Timeout:
            raise _refusal(self._database) from None

    def check(self) -> None:
        """Acquire the lock again if its connection was interrupted; there is none to a file.

        Raises:
            LockLostError: another nexus holds it, or held it since.
        """

    def release(self) -> None:
        self._lock.release()


class _ServerLock:
    """A lock that a connection holds, and a number, the epoch, that each holder increases.

    A connection can break while its process lives on; another nexus may then acquire the lock before this one
    notices. So each transaction that writes first checks the epoch, and locks its row until the commit: the next
    holder waits for it.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._connection: Connection | None = None
        self._epoch = 0

    def acquire(self, patience: float = 0.0) -> None:
        self._connection = self._take(patience)
        try:
            with said_clearly(self._database.where), self._database.engine.begin() as connection:
                # A transaction of the previous holder may hang.
                connection.execute(text(f"SET LOCAL lock_timeout = {_HANGS}"))
                self._epoch = int(connection.execute(_COUNT_ON, {"name": _EPOCH}).scalar_one())
        except BaseException:
            self._let_go()
            raise
        self._database.fence = self._check_epoch

    def check(self) -> None:
        connection = self._connection
        if connection is None:
            return
        try:
            connection.execute(text("SELECT 1"))
            connection.commit()
            return
        except SQLAlchemyError:
            connection.invalidate()
            connection.close()
        try:
            self._connection = self._take()
            with self._database.read() as reading:
                self._check_epoch(reading)
        except NexusRunningError:
            self._let_go()
            raise LockLostError(_lost(self._database)) from None
        except WsapError:
            pass  # the server can't be reached, so nothing can be written either; the next check tries again

    def release(self) -> None:
        self._database.fence = None
        self._let_go()

    def _take(self, patience: float = 0.0) -> Connection:
        with said_clearly(self._database.where):
            connection = self._database.engine.connect()
            end = time.monotonic() + patience
            while not (taken := connection.execute(_TRY, {"key": _KEY}).scalar()) and time.monotonic() < end:
                time.sleep(0.05)
            if not taken:
                connection.close()
                raise _refusal(self._database)
            connection.commit()
            return connection

    def _let_go(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        with suppress(SQLAlchemyError):  # a broken connection holds no lock
            connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": _KEY})
            connection.commit()
        with suppress(SQLAlchemyError):
            connection.close()

    def _check_epoch(self, connection: Connection) -> None:
        if connection.execute(_LOOK, {"name": _EPOCH}).scalar() != self._epoch:
            raise LockLostError(_lost(self._database))


InstanceLock = _FileLock | _ServerLock
"""The right to run a nexus on a database."""
