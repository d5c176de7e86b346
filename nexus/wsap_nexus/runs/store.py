"""Where a run is recorded: the database, the writer, and the lock of the process that plays it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from wsap_core.errors import StorageLockedError, StorageReadOnlyError
from wsap_nexus.paths import database_location, prepare_home
from wsap_nexus.store.database import Database
from wsap_nexus.store.errors import OutdatedDatabaseError, said_clearly
from wsap_nexus.store.eventlog import LogWriter
from wsap_nexus.store.files import is_held, lock_file
from wsap_nexus.store.repository import Repository

# Advisory locks on PostgreSQL; the first number stands for runs.
_TRY = text("SELECT pg_try_advisory_lock(1465076050, hashtext(:run))")
_LET_GO = text("SELECT pg_advisory_unlock(1465076050, hashtext(:run))")


@dataclass(frozen=True)
class Store:
    """An open database with its repository and log writer."""

    database: Database
    repository: Repository
    writer: LogWriter


def open_database(
    location: str | None = None, *, read_only: bool = False, environ: Mapping[str, str] | None = None
) -> Database:
    """Open the database at a location or the default one, migrating it if needed; StorageError if it can't be used."""
    variables = os.environ if environ is None else environ
    where = database_location(location, variables)
    if not read_only:
        prepare_home(where, variables)
    try:
        return Database.open(where, read_only=read_only)
    except OutdatedDatabaseError:
        with suppress(StorageReadOnlyError):
            Database.open(where).close()
        return Database.open(where, read_only=read_only)


@contextmanager
def open_store(location: str | None = None, *, environ: Mapping[str, str] | None = None) -> Iterator[Store]:
    """Open the database for recording, all committed when the block ends; StorageError if it can't be used."""
    with open_database(location, environ=environ) as database, LogWriter(database) as writer:
        yield Store(database, Repository(database), writer)


@contextmanager
def hold_run(database: Database, run_id: str) -> Iterator[None]:
    """Lock a run against other processes; the lock is released even if this process is killed.

    On SQLite it holds for this machine, on a database server everywhere.

    Raises:
        StorageLockedError: another process plays the run.
    """
    played = StorageLockedError(f"Run {run_id!r} is being played by another process; wait for it, or stop it first.")
    if not database.is_sqlite:
        with said_clearly(database.where):
            connection = database.engine.connect()
            taken = connection.execute(_TRY, {"run": run_id}).scalar()
            connection.commit()
        try:
            if not taken:
                raise played
            yield
        finally:
            with suppress(SQLAlchemyError):  # a broken connection holds no lock
                connection.execute(_LET_GO, {"run": run_id})
                connection.commit()
                connection.close()
        return
    release = lock_file(Path(f"{database.where}.{run_id}.lock"))
    if release is None:
        raise played
    try:
        yield
    finally:
        release()


def is_played(database: Database, run_id: str) -> bool:
    """Return whether a process holds the lock of a run."""
    if not database.is_sqlite:
        try:
            with hold_run(database, run_id):
                return False
        except StorageLockedError:
            return True
    path = Path(f"{database.where}.{run_id}.lock")
    return path.exists() and is_held(path)
