"""Backs up the whole database while it is in use, and restores it."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from wsap_core.errors import NotADatabaseError, StorageError, StorageLockedError, UsageError
from wsap_core.untrusted import single_line
from wsap_nexus.store.connection.files import is_held
from wsap_nexus.store.database import Database
from wsap_nexus.store.tables import NOT_IDS

_PAGES = 2000  # per progress report: 8 MB

_NUMBERED = ("nexus_event", "inbox")
# Tables whose numbers are never used again.

Progress = Callable[[int, int], None]
"""Called with the pages done and the total."""


def back_up(database: Database, target: Path, *, force: bool = False, progress: Progress = lambda d, o: None) -> int:
    """Copy a database into a file, readable by its owner only, and return its size in bytes.

    The copy is a consistent snapshot; writers are not blocked. It is checked before it gets its final name.

    Raises:
        UsageError: the file exists, is the database itself, or the database is on a server.
        StorageError: the file can't be written, or the database is damaged.
    """
    if not database.is_sqlite:
        raise UsageError(
            "This database is on a server; back it up with the server's tools: pg_dump --format=custom --file=FILE, "
            "and restore it with pg_restore."
        )
    source = Path(database.where)
    if target.exists() and (not force or target.samefile(source)):
        raise UsageError(f"The file {target} already exists; choose another name, or overwrite it with --force.")
    if target.is_dir():
        raise UsageError(f"{target} is a folder; give a file name.")
    partial = target.with_name(target.name + ".partial")
    try:
        partial.unlink(missing_ok=True)
        os.close(os.open(partial, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600))
        _copy(source, partial, progress)
        _check(partial)
        partial.replace(target)
        return target.stat().st_size
    except OSError as error:
        raise StorageError(f"The file {target} can't be written: {error.strerror or error}.") from None
    except sqlite3.Error as error:
        raise StorageError(f"The database {source} can't be copied to {target}: {error}.") from None
    finally:
        _clear(partial)


def restore(copy: Path, where: Path, *, now: datetime | None = None) -> Path | None:
    """Replace a database by a copy from `back_up`; return the path of the replaced one, which has `now` in its name.

    The numbers of events, runs, sessions, transfers and worlds go on where the replaced database was, so that none is
    used again for something else, and who follows its events goes on from the last one known.

    Raises:
        NotADatabaseError: the copy is not a WSAP database, or has triggers or views, which none of ours has.
        StorageVersionError: a newer version of WSAP created it.
        StorageLockedError: a nexus runs on the database, or a run is being recorded in it.
        StorageError: the copy is damaged, or a file can't be written.
    """
    if not copy.is_file():
        raise StorageError(f"The file {copy} is not a regular file." if copy.exists() else f"There is no file {copy}.")
    if where.exists() and copy.samefile(where):
        raise UsageError(f"The file {copy} is the database itself; give a copy made by wsap nexus backup.")
    fresh = where.with_name(where.name + ".restoring")
    try:
        _clear(fresh)
        # Copied first, so that the backup itself is never changed.
        os.close(os.open(fresh, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600))
        _copy_file(copy, fresh)
        _check(fresh)
        _check_schema(fresh, copy)
        with Database.open(fresh, create=False):
            pass  # migrated, or refused
        _check_unused(where)
        _go_on_counting(fresh, where)
        return _put_in_place(fresh, where, now or datetime.now(UTC))
    except OSError as error:
        raise StorageError(f"The database {where} can't be restored: {error.strerror or error}.") from None
    finally:
        _clear(fresh)


def _copy(source: Path, target: Path, progress: Progress) -> None:
    with (
        closing(sqlite3.connect(f"{source.as_uri()}?mode=ro", uri=True, isolation_level=None, timeout=30)) as reading,
        closing(sqlite3.connect(target, isolation_level=None)) as writing,
    ):
        # One transaction for the whole copy; otherwise SQLite starts over whenever another process writes.
        reading.execute("BEGIN")
        reading.execute("SELECT count(*) FROM sqlite_master").fetchone()
        reading.backup(writing, pages=_PAGES, progress=lambda _, left, of: progress(of - left, of))
        writing.execute("PRAGMA journal_mode = DELETE")
        writing.execute("PRAGMA user_version = 0")  # the copy is not in use; see `soundness`
    descriptor = os.open(target, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _copy_file(copy: Path, fresh: Path) -> None:
    with copy.open("rb") as file:
        if file.read(16) != b"SQLite format 3\x00":
            raise NotADatabaseError(f"The file {copy} is not a copy of a WSAP database.")
    log = copy.with_name(copy.name + "-wal")
    if log.exists() and log.stat().st_size:
        raise StorageError(f"{copy} is in use, or was not closed; copy it with wsap nexus backup.")
    shutil.copyfile(copy, fresh)


def _check(path: Path) -> None:
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            found = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(5)")]
            broken: tuple[object, ...] | None = connection.execute("PRAGMA foreign_key_check").fetchone()
    except sqlite3.DatabaseError as error:
        found, broken = [str(error)], None
    if found != ["ok"] or broken is not None:
        what = f"a row of {broken[0]} refers to a missing row" if broken is not None else found[0]
        raise StorageError(f"The copy is damaged ({what}) and was not used; use an older one.")


def _check_schema(path: Path, copy: Path) -> None:
    # A trigger in the file would run at every change that the nexus makes.
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        foreign = connection.execute(
            "SELECT type, name FROM sqlite_master WHERE type NOT IN ('table', 'index') OR sql LIKE 'CREATE VIRTUAL%'"
        ).fetchone()
    if foreign is not None:
        raise NotADatabaseError(
            f"The file {copy} contains the {foreign[0]} {single_line(foreign[1])!r}, which no WSAP database has."
        )


def _check_unused(where: Path) -> None:
    for path in where.parent.glob(f"{where.name}.*.lock"):
        if is_held(path):
            who = "a nexus runs on it; stop it with: wsap nexus stop" if path.name.endswith(
                ".nexus.lock") else "a run is being recorded in it; wait for it, or stop it"  # fmt: skip
            raise StorageLockedError(f"The database {where} is in use: {who}.")


def _go_on_counting(fresh: Path, where: Path) -> None:
    if not where.is_file():
        return
    try:
        with closing(sqlite3.connect(f"{where.as_uri()}?mode=ro", uri=True)) as connection:
            used = connection.execute("SELECT name, value FROM counter").fetchall()
            numbers = connection.execute("SELECT name, seq FROM sqlite_sequence").fetchall()
    except sqlite3.Error:
        return  # damaged, or of an old version: this may be why a copy replaces it
    with closing(sqlite3.connect(fresh, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        for name, value in used:
            if name not in NOT_IDS and isinstance(value, int):
                connection.execute(
                    "INSERT INTO counter (name, value) VALUES (?, ?) "
                    "ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)",
                    (name, value),
                )
        for name, seq in numbers:
            if name in _NUMBERED and isinstance(seq, int):
                connection.execute("UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?", (seq, name))
                connection.execute(
                    "INSERT INTO sqlite_sequence (name, seq) SELECT ?, ? "
                    "WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = ?)",
                    (name, seq, name),
                )
        connection.execute("COMMIT")


def _put_in_place(fresh: Path, where: Path, now: datetime) -> Path | None:
    kept: Path | None = None
    if where.exists():
        kept = where.with_name(f"{where.name}.before-{now.strftime('%Y%m%d-%H%M%S')}")
        number = 1
        while kept.exists():
            number += 1
            kept = where.with_name(f"{where.name}.before-{now.strftime('%Y%m%d-%H%M%S')}-{number}")
        # The log first: a database without its log is only older, a log without its database is useless.
        for suffix in ("-wal", "-shm"):
            beside = where.with_name(where.name + suffix)
            if beside.exists():
                beside.replace(kept.with_name(kept.name + suffix))
        where.replace(kept)
    fresh.replace(where)
    return kept


def _clear(path: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
