"""Checks a SQLite file after an unclean end: a killed process, a power cut, or a copy made while it was in use.

A file is taken as unclean if its log was left behind, or if it has the mark that a nexus sets while it runs: a copy of
the file without its log has the mark, too. Looking for both opens nothing, so a clean start takes no time.
"""

from __future__ import annotations

import logging
import sqlite3
import struct
import threading
from contextlib import closing
from pathlib import Path

from sqlalchemy import Connection

from wsap_nexus.store.connection.files import is_held, is_open_here, reading_uri
from wsap_nexus.store.errors import damaged, is_damage

SLOW = 2.0
"""Seconds after which a message says that the file is being checked."""

BYTES_PER_SECOND = 5e8
"""The speed of a check, for that message."""

_IN_USE = 1  # the mark: SQLite's `user_version`, which is in the header, in the 4 bytes from 60 on
_AT = 60
_LOG = logging.getLogger(__name__)


def check_after_unclean_end(path: Path, where: str, busy_seconds: float) -> bool:
    """Check a file if no process uses it and its last one did not close it; return whether it was checked.

    Raises:
        StorageDamagedError: the file is damaged; nothing was written to it.
    """
    if (
        is_open_here(path)
        or not _is_unclean(path)
        or any(is_held(lock) for lock in path.parent.glob(f"{path.name}.*.lock"))
    ):
        return False
    if found := problems(path, busy_seconds):
        raise damaged(where, found[0])
    return True


def problems(path: Path, busy_seconds: float = 5.0) -> list[str]:
    """Return what SQLite finds wrong in a file, at most a few; reads all of it and writes nothing.

    After `SLOW` seconds a message is logged.
    """
    about = "Checking the database %s takes about %.0f seconds."
    timer = threading.Timer(SLOW, _LOG.warning, (about, path, max(SLOW, path.stat().st_size / BYTES_PER_SECOND)))
    timer.daemon = True
    timer.start()
    try:
        # A connection that may only read does not write the log into the file when it is closed.
        with closing(sqlite3.connect(reading_uri(path), uri=True, timeout=busy_seconds)) as connection:
            found = [str(row[0]) for row in connection.execute("PRAGMA quick_check(5)")]
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        found = [str(error)]
    finally:
        timer.cancel()
    return [] if found == ["ok"] else [text.partition("\n")[2] or text for text in found]


def mark(connection: Connection, *, in_use: bool) -> None:
    """Mark a file as in use by a nexus, or remove the mark."""
    connection.exec_driver_sql(f"PRAGMA user_version = {_IN_USE if in_use else 0}")


def _is_unclean(path: Path) -> bool:
    log = path.with_name(path.name + "-wal")
    try:
        if log.stat().st_size:
            return True
    except OSError:
        pass  # there is none
    with path.open("rb") as file:
        head = file.read(_AT + 4)
    return len(head) == _AT + 4 and struct.unpack_from(">I", head, _AT)[0] == _IN_USE
