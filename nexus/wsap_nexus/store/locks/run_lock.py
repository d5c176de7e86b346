"""The lock of a run: one process plays it. The lock ends with its process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from wsap_core.errors import StorageLockedError
from wsap_nexus.store.connection.files import is_held, lock_file
from wsap_nexus.store.database import Database
from wsap_nexus.store.errors import said_clearly

# Advisory locks on PostgreSQL; the first number stands for runs.
_TRY = text("SELECT pg_try_advisory_lock(1465076050, hashtext(:run))")
_LET_GO = text("SELECT pg_advisory_unlock(1465076050, hashtext(:run))")


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
