"""The SQLite file of a command log: where it lies, how it is opened, and its errors."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import StaticPool

from wsap_core.errors import (
    NotADatabaseError,
    StorageError,
    StorageFullError,
    StorageLockedError,
    StorageReadOnlyError,
    StorageVersionError,
)
from wsap_tes3mp.log.records import Base

APPLICATION = 0x57544C31
"""Marks the file as a command log (SQLite's application_id)."""
VERSION = 1
"""Of the schema."""
BUSY_SECONDS = 5.0
"""How long a commit waits for another process that writes, such as `wsap tes3mp log prune`."""


def open_database(path: Path | None, *, read_only: bool = False) -> Engine:
    """Return an engine with one connection to a log, in memory without a path; a file that is missing is made.

    `read_only` neither makes nor changes it. `CommandLog` says what is raised.
    """
    where = "in memory" if path is None else str(path)
    if path is not None and read_only and not path.is_file():
        raise StorageError(f"There is no command log {path}; name another one with --log.")
    with said_clearly(where):
        if path is not None and not read_only:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        uri = "file::memory:" if path is None else f"{path.absolute().as_uri()}?mode={'ro' if read_only else 'rw'}"
        connection = sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            _prepare(connection, where, fresh_allowed=not read_only)
        except BaseException:
            connection.close()
            raise
    engine = create_engine("sqlite://", creator=lambda: connection, poolclass=StaticPool)
    event.listen(engine, "begin", lambda begun: begun.exec_driver_sql("BEGIN"))
    if not read_only:
        with said_clearly(where), engine.begin() as setup:
            Base.metadata.create_all(setup)
            setup.exec_driver_sql(f"PRAGMA application_id = {APPLICATION}")
            setup.exec_driver_sql(f"PRAGMA user_version = {VERSION}")
    return engine


def _prepare(connection: sqlite3.Connection, where: str, *, fresh_allowed: bool) -> None:
    run = connection.execute
    known = run("PRAGMA application_id").fetchone()[0]
    tables = run("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if known != APPLICATION and (tables or not fresh_allowed):
        raise NotADatabaseError(f"{where} is not a command log; name another file with --log.")
    if run("PRAGMA user_version").fetchone()[0] > VERSION:
        raise StorageVersionError(
            f"A newer version wrote the command log {where}; update with: pip install -U wsap-tes3mp"
        )
    run("PRAGMA trusted_schema = OFF")
    run("PRAGMA foreign_keys = ON")
    if fresh_allowed:
        run("PRAGMA auto_vacuum = INCREMENTAL")  # of a new file; no effect on others
        run("PRAGMA journal_mode = WAL")
        # A commit survives the end of the process; a power cut may cost the last ones, but never consistency.
        run("PRAGMA synchronous = NORMAL")
        run("PRAGMA journal_size_limit = 67108864")


_KINDS: tuple[tuple[int, type[StorageError], str], ...] = (
    (sqlite3.SQLITE_BUSY, StorageLockedError, "Another process holds the command log {where}; try again."),
    (sqlite3.SQLITE_LOCKED, StorageLockedError, "Another process holds the command log {where}; try again."),
    (sqlite3.SQLITE_READONLY, StorageReadOnlyError, "The command log {where} can't be written."),
    (sqlite3.SQLITE_CANTOPEN, StorageReadOnlyError, "The command log {where} can't be opened or made."),
    (sqlite3.SQLITE_NOTADB, NotADatabaseError, "{where} is not a command log; name another file with --log."),
    (sqlite3.SQLITE_FULL, StorageFullError, "There is no room left for the command log {where}."),
)


@contextmanager
def said_clearly(where: str) -> Iterator[None]:
    """Raise errors of SQLAlchemy, sqlite3 and the system as a `StorageError` that names the log."""
    try:
        yield
    except (SQLAlchemyError, sqlite3.Error, OSError) as error:
        cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
        code = getattr(cause, "sqlite_errorcode", None)
        for known, kind, sentence in _KINDS:
            if isinstance(code, int) and code & 0xFF == known:
                raise kind(sentence.format(where=where)) from error
        if isinstance(cause, PermissionError):
            raise StorageReadOnlyError(f"The command log {where} can't be opened or made.") from error
        reason = str(cause).strip().partition("\n")[0] or type(cause).__name__
        raise StorageError(f"The command log {where} can't be used: {reason}.") from error
