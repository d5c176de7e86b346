"""Whether a database can be written, its size, and its disk's free space."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from sqlalchemy import Connection, text

from wsap_core.errors import WsapError
from wsap_nexus.store.database import Database
from wsap_nexus.store.errors import is_passing, said_clearly

NEEDED = 1 << 18
"""Bytes that must be free before writing resumes: 256 KiB."""

_FILL = text("INSERT INTO answer (scope, key, fingerprint, status, body, created) VALUES ('', 'room', '', 0, :body, 0)")


class _Enough(Exception):
    pass


def can_write(database: Database) -> bool:
    """Return whether `NEEDED` bytes can be written, after truncating the write-ahead log."""
    try:
        if database.is_sqlite:
            _check_disk(database)
        with database.write(probe=True) as connection:
            connection.execute(_FILL, {"body": os.urandom(NEEDED // 2).hex()})
            raise _Enough  # rolled back
    except _Enough:
        return True
    except WsapError as error:
        # Another error will be raised by the next write.
        return not is_passing(error)


def _check_disk(database: Database) -> None:
    # SQLite writes nothing to disk in a transaction that is rolled back.
    with said_clearly(database.where):
        with database.engine.connect().execution_options(wsap_begin="SELECT 1") as connection:
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        path = Path(f"{database.where}.room")
        try:
            path.write_bytes(bytes(NEEDED))
        finally:
            path.unlink(missing_ok=True)


def used_bytes(database: Database) -> int:
    """Return the bytes of a database's content, without free pages in its file."""
    with database.read() as connection:
        if not database.is_sqlite:
            return int(connection.execute(text("SELECT pg_database_size(current_database())")).scalar_one())
        return (_pragma(connection, "page_count") - _pragma(connection, "freelist_count")) * _pragma(
            connection, "page_size"
        )


def free_bytes(database: Database) -> int | None:
    """Return the bytes by which a database's content can grow on its disk; None for a server."""
    if not database.is_sqlite:
        return None
    with database.read() as connection:
        reused = _pragma(connection, "freelist_count") * _pragma(connection, "page_size")
    return shutil.disk_usage(Path(database.where).parent).free + reused


def log_bytes(database: Database) -> int | None:
    """Return the bytes of a database's write-ahead log; None for a server."""
    if not database.is_sqlite:
        return None
    try:
        return Path(f"{database.where}-wal").stat().st_size
    except FileNotFoundError:
        return 0


def _pragma(connection: Connection, name: str) -> int:
    return int(connection.exec_driver_sql(f"PRAGMA {name}").scalar_one())
