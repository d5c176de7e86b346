"""Opens and migrates the database.

SQLite by default, in WAL mode, so that readers (`wsap runs`, a dashboard) and the one writer do not block each other.
A commit reaches the operating system at once, so it survives the process; `LogWriter` decides when it reaches the disk.
"""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Self

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import QueuePool

from wsap_core import errors
from wsap_nexus.paths import is_url
from wsap_nexus.store import migrate
from wsap_nexus.store.connection.files import (
    Identity,
    check_owner,
    check_writable,
    identity_of,
    is_same,
    note_open,
    prepare_file,
    reading_uri,
)
from wsap_nexus.store.connection.server import LONGEST_SECONDS, Connections, limit, server_engine
from wsap_nexus.store.connection.soundness import check_after_unclean_end, mark, problems
from wsap_nexus.store.errors import DatabaseReplacedError, OutdatedDatabaseError, is_passing, said_clearly
from wsap_nexus.store.json_values import JSON_COLUMNS

BUSY_SECONDS = 5.0
"""Seconds to wait for another process that is writing."""

SETUP_SECONDS = 30.0
"""Seconds to wait for another process that is creating or migrating the database; the log writer waits as long."""

PAGE_BYTES = 4096
"""SQLite's page size for new databases; larger ones waste space on snapshots."""

CHECKPOINT_PAGES = 4000
"""Pages in the write-ahead log at which SQLite makes a checkpoint: 16 MB, less on a small disk."""

SETUP_LOCK = 0x57534152
"""The PostgreSQL advisory lock that serializes migrations."""
_LOG = logging.getLogger(__name__)


class Database:
    """An open database; get one from `Database.open` and close it when done."""

    def __init__(self, engine: Engine, where: str, *, read_only: bool, busy_seconds: float = BUSY_SECONDS) -> None:
        self.engine = engine
        """Use it through `read` and `write`."""
        self.where = where
        """The path or URL, without a password."""
        self.read_only = read_only
        self.fence: Callable[[Connection | None], None] | None = None
        """Called before each writing transaction on a file, and first in each on a server; raises if this process may
        no longer write."""
        self.on_fault: Callable[[errors.StorageError], None] | None = None
        """Called, on any thread, at a fault of the machine that passes, such as a full disk or another program's lock.
        If set, the log writer waits for its end instead of failing."""
        self.fault: errors.StorageError | None = None
        """The fault that lasts; `write` raises it again at once instead of waiting for the machine each time."""
        self.on_damage: Callable[[errors.StorageDamagedError], None] | None = None
        """Called, on any thread, when the file turns out to be damaged while it is in use."""
        self._busy_seconds = busy_seconds
        self._writing = threading.Lock()
        self.identity: Identity | None = identity_of(Path(where)) if self.is_sqlite else None
        """Which file was opened; None for a server."""
        self._is_noted = self.identity is not None
        if self.identity is not None:
            note_open(self.identity, more=1)
        self._connections: Connections | None = None

    @classmethod
    def open(
        cls,
        location: str | os.PathLike[str],
        *,
        create: bool = True,
        read_only: bool = False,
        busy_seconds: float = BUSY_SECONDS,
    ) -> Database:
        """Return the database at a path, `sqlite:///path` or `postgresql://user@host/name`, at the newest revision.

        A new file is readable and writable by its owner only. `read_only` excludes even migrations; `busy_seconds` is
        the time to wait for another process that is writing.

        Raises:
            NotADatabaseError: the file is not a WSAP database.
            StorageVersionError: a newer version of WSAP created it.
            StorageReadOnlyError: it is not writable and `read_only` is false.
            StorageDamagedError: the file is damaged, which is looked for after an unclean end.
            StorageLockedError: another process held it for `busy_seconds`, or was migrating it for `SETUP_SECONDS`.
            StorageError: the folder is missing, the file is missing and `create` is false, or it has a hard link.
            ConfigError: the URL is invalid.
            MissingServiceError: the driver is not installed.
        """
        url, connections = _url(os.fspath(location)), None
        if url.get_backend_name() == "sqlite":
            path = Path(url.database or "").absolute()
            prepare_file(path, create=create and not read_only, read_only=read_only)
            where = str(path)
            with said_clearly(where):
                check_owner(path, where, busy_seconds)
                checked = not read_only and check_after_unclean_end(path, where, busy_seconds)
            engine = _sqlite_engine(path, identity_of(path), read_only=read_only, busy_seconds=busy_seconds)
        else:
            where = url.render_as_string(hide_password=True)
            checked = False
            connections = Connections(where)
            engine = server_engine(url, where, connections)
        database = cls(engine, where, read_only=read_only, busy_seconds=busy_seconds)
        database._connections = connections
        try:
            database._bring_up_to_date()
            if checked:
                database.mark(in_use=False)
        except BaseException:
            database.close()
            raise
        return database

    @property
    def is_sqlite(self) -> bool:
        """Whether the database is a file."""
        return self.engine.dialect.name == "sqlite"

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Yield a connection that sees one state of the database; keep the block short."""
        if self.fault is not None and self._is_away():
            raise again(self.fault)
        # Without it a server would show each statement a newer state.
        engine = self.engine if self.is_sqlite else self.engine.execution_options(isolation_level="REPEATABLE READ")
        with self._reported(), said_clearly(self.where), engine.connect() as connection:
            yield connection

    def look(self, sql: str, value: str) -> Any:
        """Return the first column of the first row that a SQLite file has for a value, or None; Any: as stored.

        It takes a tenth of the time of `read`, for what is asked hundreds of times a second.
        """
        with self._reported(), said_clearly(self.where), closing(self.engine.raw_connection()) as pooled:
            driver = pooled.driver_connection
            assert isinstance(driver, sqlite3.Connection)
            row = driver.execute(sql, (value,)).fetchone()
            return None if row is None else row[0]

    def limit(self, connection: Connection) -> None:
        """Let every statement on a server's connection end within seconds, for a thread that others wait for."""
        if not self.is_sqlite:
            limit(connection)

    def _is_away(self) -> bool:
        # A server that does not answer would let each caller wait.
        return not self.is_sqlite and isinstance(self.fault, errors.StorageUnavailableError)

    @contextmanager
    def write(self, *, probe: bool = False) -> Iterator[Connection]:
        """Yield a connection in a transaction: committed at the end of the block, rolled back on an exception.

        Args:
            probe: try even if there is a `fault`.

        Raises:
            StorageReadOnlyError: the database was opened read-only.
            StorageFullError: the disk is full; nothing was written.
            StorageLockedError: another program holds the write lock; likewise.
            StorageUnavailableError: the machine lacks files or memory, or its disk or server fails; likewise.
        """
        if self.read_only:
            raise errors.StorageReadOnlyError(f"The database {self.where} was opened for reading only.")
        if self.fault is not None and not probe:
            raise again(self.fault)
        # IMMEDIATE: a transaction that reads before it writes could fail if another one writes in between.
        engine = self.engine.execution_options(wsap_begin="BEGIN IMMEDIATE")
        with self._reported(), said_clearly(self.where), self.turn_to_write():
            self.check_file()
            with engine.begin() as connection:
                if self.fence is not None and not self.is_sqlite:
                    self.fence(connection)
                yield connection

    @contextmanager
    def _reported(self) -> Iterator[None]:
        """Report damage, and faults that pass."""
        try:
            yield
        except errors.StorageDamagedError as error:
            if self.on_damage is not None:
                self.on_damage(error)
            raise
        except errors.StorageError as error:
            self.report(error)
            raise

    def report(self, error: errors.StorageError) -> None:
        """Tell `on_fault` of an error of this database, if it is a fault that passes."""
        if self.on_fault is not None and is_passing(error) and _is_own(error):
            self.on_fault(error)

    def check_file(self) -> None:
        """Raise an error if the path of a database file names another file now, or none.

        Call it before writing, and now and then while reading.

        A connection keeps the file that it opened: what it writes would be lost, and acknowledged nevertheless.
        """
        if self.identity is None:
            return
        if self.fence is not None:  # it looks at the file, too
            self.fence(None)
        elif not is_same(Path(self.where), self.identity):
            raise replaced(self.where)

    @contextmanager
    def turn_to_write(self) -> Iterator[None]:
        """Hold a lock that wakes at once; SQLite polls for its own with pauses up to 0.1 s, even on an event loop."""
        if not self.is_sqlite:
            yield
            return
        # After the timeout SQLite reports that the database is locked.
        mine = self._writing.acquire(timeout=self._busy_seconds)
        try:
            yield
        finally:
            if mine:
                self._writing.release()

    def mark(self, *, in_use: bool) -> None:
        """Mark the file as in use by a nexus, so that also a copy of it is checked, or remove that; see `soundness`."""
        if not self.is_sqlite:
            return
        with self.write() as connection:
            mark(connection, in_use=in_use)
        if in_use:  # the mark is in the file before anything that is written after it
            with said_clearly(self.where), self.engine.connect().execution_options(wsap_begin="SELECT 1") as connection:
                connection.exec_driver_sql("PRAGMA wal_checkpoint(PASSIVE)")

    def problems(self) -> list[str]:
        """Return the problems that SQLite finds in the file, reading all of it (1 s per 500 MB); none for a server."""
        if not self.is_sqlite:
            return []
        with said_clearly(self.where):
            return problems(Path(self.where), self._busy_seconds)

    def close(self) -> None:
        """Close all connections, also one to a server that a thread still has; the last process makes a checkpoint."""
        self.engine.dispose()
        if self._is_noted and self.identity is not None:
            self._is_noted = False
            note_open(self.identity, more=-1)
        if self._connections is not None:
            self._connections.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _bring_up_to_date(self) -> None:
        with self.read() as connection:
            if not self.is_sqlite:
                migrate.check_ours(connection, self.where)
            found = migrate.revision(connection)
        if found == migrate.HEAD:
            if self.is_sqlite and not self.read_only:
                check_writable(Path(self.where))
            return
        if self.read_only:
            migrate.check_known(found, self.where)
            _refuse_reading(found, self.where)
        migrate.prepare()
        try:
            self._migrate(self._busy_seconds)
        except errors.StorageLockedError:
            _LOG.warning(
                "Another process is setting up the database %s; waiting up to %.0f seconds for it.",
                self.where, SETUP_SECONDS,
            )  # fmt: skip
            self._migrate(SETUP_SECONDS)
        finally:
            self.engine.dispose()  # the connection may have a longer timeout than others

    def _migrate(self, seconds: float) -> None:
        """Run the missing migrations, waiting up to `seconds` for another process that runs them."""
        with said_clearly(self.where), self.engine.connect() as connection:
            if self.is_sqlite:
                connection.connection.cursor().execute(f"PRAGMA busy_timeout = {int(seconds * 1000)}")
            connection = connection.execution_options(wsap_begin="BEGIN IMMEDIATE")
            with connection.begin():
                if self.is_sqlite:
                    connection.exec_driver_sql(f"PRAGMA application_id = {migrate.APPLICATION_ID}")
                else:
                    limit(connection, LONGEST_SECONDS)
                    connection.exec_driver_sql(f"SET LOCAL lock_timeout = {max(1, int(seconds * 1000))}")
                    connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({SETUP_LOCK})")
                    connection.exec_driver_sql("SET LOCAL lock_timeout = 0")
                if migrate.revision(connection) != migrate.HEAD:  # another process may have been first
                    migrate.upgrade(connection, self.where)


def again(error: errors.StorageError) -> errors.StorageError:
    """Return a new error with the message and cause of another, which may be raised once more."""
    fresh = type(error)(str(error))
    fresh.__cause__ = error.__cause__
    return fresh


def _is_own(error: errors.StorageError) -> bool:
    # Those of the code in the block, such as a game's own database, are raised without a driver's error.
    return isinstance(error.__cause__, SQLAlchemyError | sqlite3.Error | OSError | MemoryError)


def _refuse_reading(found: str | None, where: str) -> None:
    if found is None:
        raise errors.StorageError(f"The database {where} is empty; record a run first, with: wsap play")
    raise OutdatedDatabaseError(
        f"The database {where} was created by an older version of WSAP (its revision is {found!r}, this version "
        f"reads {migrate.HEAD!r}); migrate it by running any command that records."
    )


def _url(location: str) -> URL:
    if not is_url(location):
        return URL.create("sqlite", database=str(Path(location).expanduser()))
    try:
        url = make_url(location)
        if url.drivername == "postgresql":
            url = url.set(drivername="postgresql+psycopg")
        backend = url.get_backend_name()
    except (ArgumentError, ValueError):
        raise errors.ConfigError(
            "Invalid database URL; expected for example sqlite:///folder/wsap.db or postgresql://user@host/name."
        ) from None
    if backend not in ("sqlite", "postgresql"):
        raise errors.ConfigError(f"The database must be SQLite or PostgreSQL, not {backend!r}.")
    if backend == "sqlite" and url.database in (None, "", ":memory:"):
        raise errors.ConfigError("The database must be a file, because several connections share it; give a path.")
    return url


def replaced(where: str) -> DatabaseReplacedError:
    """Return the error of a database whose files are not those that were opened."""
    return DatabaseReplacedError(
        f"The database {where} was deleted, moved or replaced while this process used it, which therefore "
        "stops; start again."
    )


def _sqlite_engine(path: Path, identity: Identity | None, *, read_only: bool, busy_seconds: float) -> Engine:
    # A missing file is not created: it was there a moment ago.
    uri = reading_uri(path) if read_only else path.as_uri() + "?mode=rw"

    def connect() -> sqlite3.Connection:
        if identity is not None and not is_same(path, identity):
            raise replaced(str(path))
        # isolation_level None: transactions are started by `_begin`, not by sqlite3.
        connection = sqlite3.connect(uri, uri=True, timeout=busy_seconds, isolation_level=None, check_same_thread=False)
        try:
            for pragma in _pragmas(path, read_only=read_only):
                _execute_patiently(connection, pragma, busy_seconds)
        except BaseException:
            connection.close()
            raise
        return connection

    engine = create_engine("sqlite://", creator=connect, poolclass=QueuePool, **JSON_COLUMNS)
    event.listen(engine, "begin", _begin)
    return engine


def _execute_patiently(connection: sqlite3.Connection, pragma: str, busy_seconds: float) -> None:
    # SQLite does not wait for the lock that the switch to WAL takes: of several processes that create a database
    # simultaneously, all but the first would fail at once.
    deadline = time.monotonic() + busy_seconds
    while True:
        try:
            connection.execute(pragma)
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() >= deadline:
                raise
        time.sleep(0.02)


def _pragmas(path: Path, *, read_only: bool) -> list[str]:
    if read_only:
        return ["PRAGMA query_only = ON", "PRAGMA mmap_size = 0"]
    # The log must not fill a small disk before its first checkpoint.
    pages = min(CHECKPOINT_PAGES, max(64, shutil.disk_usage(path.parent).free // PAGE_BYTES // 8))
    return [
        f"PRAGMA page_size = {PAGE_BYTES}",  # affects new files only
        "PRAGMA journal_mode = WAL",
        # Commits reach the operating system, checkpoints the disk: consistent after a power cut. The log writer syncs
        # the log itself, several times a second.
        "PRAGMA synchronous = NORMAL",
        "PRAGMA foreign_keys = ON",
        f"PRAGMA wal_autocheckpoint = {pages}",
        "PRAGMA journal_size_limit = 67108864",
    ]


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql(str(connection.get_execution_options().get("wsap_begin", "BEGIN")))
