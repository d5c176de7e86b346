"""The instance lock: at most one nexus runs on a database. The lock ends with its process."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from wsap_core.errors import StorageError
from wsap_nexus.errors import LockLostError, NexusRunningError
from wsap_nexus.store.connection.files import Identity, identity_of, is_same
from wsap_nexus.store.database import Database
from wsap_nexus.store.errors import said_clearly
from wsap_nexus.store.tables import LEAD

EVERY = 2.0
"""Seconds between a running nexus' checks that it still holds the lock."""
PATIENCE = 2.0
"""Seconds to wait for the lock of a run that is starting, or of a process that was killed, which can outlive it until
the system or the server notices; a running nexus holds it for longer."""

_KEY = 0x57534150  # the PostgreSQL advisory lock: "WSAP"
_HANGS = 10_000  # milliseconds to wait for a transaction of the previous holder
_COUNT_ON = text(
    "INSERT INTO counter (name, value) VALUES (:name, 1)"
    " ON CONFLICT (name) DO UPDATE SET value = counter.value + 1 RETURNING value"
)
_TRY = text("SELECT pg_try_advisory_lock(:key)")
_LOOK = text("SELECT value FROM counter WHERE name = :name FOR SHARE")


def instance_lock(database: Database) -> InstanceLock:
    """Return the lock of a database, not yet acquired."""
    return _FileLock(database) if database.is_sqlite else _ServerLock(database)


def _refusal(database: Database) -> NexusRunningError:
    return NexusRunningError(
        f"Another nexus runs on the database {database.where}; see it with: wsap nexus status, "
        "or stop it with: wsap nexus stop"
    )


def _lost(database: Database) -> LockLostError:
    return LockLostError(
        f"Another nexus took over the database {database.where}, or can have done so, while the connection to it was "
        "interrupted; this one no longer writes. See the other with: wsap nexus status"
    )


class _FileLock:
    """A lock file, held by the process. Its path and the database's must go on naming the same files.

    Somebody can delete or move both while their process lives on, and another nexus can start on new files of the same
    names. Therefore each writing transaction first looks at the two.
    """

    def __init__(self, database: Database) -> None:
        from filelock import FileLock  # deferred for weight: reading needs no lock

        self._database = database
        # Resolved, so that the file has the same lock by every path.
        self._file = Path(f"{Path(database.where).resolve()}.nexus.lock")
        self._lock = FileLock(self._file, timeout=0)
        self._held: list[tuple[Path, Identity]] = []
        self._lost = ""

    def acquire(self, patience: float = PATIENCE) -> None:
        """Acquire the lock within `patience` seconds; NexusRunningError if another process holds it."""
        from filelock import Timeout

        try:
            self._lock.acquire(timeout=patience)
        except Timeout:
            raise _refusal(self._database) from None
        # Of the database, the file that was opened: it can have been replaced before the lock was acquired.
        found = [(self._file, identity_of(self._file)), (Path(self._database.where), self._database.identity)]
        self._held = [(path, identity) for path, identity in found if identity is not None]
        self._database.fence = lambda connection: self.check()

    def check(self) -> None:
        """Raise LockLostError if the lock's file or the database was deleted, moved or replaced."""
        for path, identity in self._held:
            if not self._lost and not is_same(path, identity):
                self._lost = (
                    f"The file {path} was deleted, moved or replaced while this nexus ran on it; this one no longer "
                    "writes, and has stopped. Start again with: wsap nexus start"
                )
        if self._lost:
            raise LockLostError(self._lost)

    def release(self) -> None:
        if not self._lost:  # or what still waits to be written would be
            self._database.fence = None
            self._held = []
        self._lock.release()


class _ServerLock:
    """An advisory lock held by a connection, and a number, the epoch, which each holder increments.

    The connection can break while its process lives on, and another nexus can acquire the lock before this one
    notices. Therefore each writing transaction first checks the epoch and locks its row until the commit, and the next
    holder waits for that.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._connection: Connection | None = None
        self._epoch = 0
        self._held = self._lost = False

    def acquire(self, patience: float = PATIENCE) -> None:
        self._connection = self._take(patience)
        try:
            with said_clearly(self._database.where), self._database.engine.begin() as connection:
                # A transaction of the previous holder may hang.
                connection.execute(text(f"SET LOCAL lock_timeout = {_HANGS}"))
                self._epoch = int(connection.execute(_COUNT_ON, {"name": LEAD}).scalar_one())
        except BaseException:
            self._let_go()
            raise
        self._database.fence = self._check_epoch
        self._held = True

    def check(self) -> None:
        # Acquires the lock again after an interruption; LockLostError if another nexus has held it since.
        if not self._held:
            return
        try:
            if not self._is_kept():
                self._connection = self._take()
                self._is_kept()
        except (LockLostError, NexusRunningError):
            self._held, self._lost = False, True
            self._let_go()
            raise _lost(self._database) from None
        except StorageError as error:
            # The server can't be reached, so nothing can be written either; the next check tries again.
            self._database.report(error)

    def _is_kept(self) -> bool:
        """Return whether the connection with the lock is intact, and close it if not; LockLostError as in `check`."""
        connection = self._connection
        if connection is None:
            return False
        try:
            self._database.limit(connection)
            self._check_epoch(connection)
            connection.commit()
        except SQLAlchemyError:
            self._connection = None
            with suppress(SQLAlchemyError):
                connection.invalidate()
                connection.close()
            return False
        return True

    def release(self) -> None:
        self._held = False
        if not self._lost:  # or what still waits to be written would be
            self._database.fence = None
        self._let_go()

    def _take(self, patience: float = 0.0) -> Connection:
        with said_clearly(self._database.where):
            connection = self._database.engine.connect()
            try:
                self._database.limit(connection)
                end = time.monotonic() + patience
                while not (taken := connection.execute(_TRY, {"key": _KEY}).scalar()) and time.monotonic() < end:
                    time.sleep(0.05)
                connection.commit()
                if not taken:
                    raise _refusal(self._database)
            except BaseException:
                connection.close()
                raise
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

    def _check_epoch(self, connection: Connection | None) -> None:
        if connection is not None and connection.execute(_LOOK, {"name": LEAD}).scalar() != self._epoch:
            raise _lost(self._database)


InstanceLock = _FileLock | _ServerLock
