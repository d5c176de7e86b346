"""Checks of a SQLite database file before it is opened."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType

from wsap_core.errors import NotADatabaseError, StorageError, StorageReadOnlyError
from wsap_nexus.store import migrate

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

_MAGIC = b"SQLite format 3\x00"
_TAKEN = frozenset({errno.EACCES, errno.EAGAIN, errno.EWOULDBLOCK})
_WITHOUT_LOCKS = frozenset({errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK})
"""What file systems without `flock` answer."""


def prepare_file(path: Path, *, create: bool, read_only: bool) -> None:
    """Check that a path can be a database, and create a missing file; StorageError or a subclass if it can't."""
    if path.is_dir():
        raise NotADatabaseError(f"{path} is a folder, not a database; give the path of a file in it.")
    try:
        if not path.exists():
            _make_file(path, create=create)
            return
        if not path.is_file():
            raise NotADatabaseError(f"{path} is not a regular file; choose another path with --database.")
        if not read_only and path.stat().st_nlink > 1:
            # The names of SQLite's log and of the nexus' lock are derived from the path.
            raise StorageError(
                f"The database {path} has more than one name (a hard link), and would be damaged if two processes "
                "opened it by different names; remove the other links, or copy it with: wsap nexus backup"
            )
        if is_open_here(path):
            return
        with path.open("rb") as file:
            head = file.read(len(_MAGIC))
    except PermissionError:
        verb = "read" if path.exists() or read_only else "made"
        raise StorageReadOnlyError(
            f"The database {path} can't be {verb}: permission denied; "
            "change the permissions of the file and its folder, or choose another path with --database."
        ) from None
    except OSError as error:
        raise StorageError(f"The database {path} can't be opened: {error.strerror or error}.") from None
    if head and head != _MAGIC:
        raise NotADatabaseError(f"The file {path} is not a WSAP database; choose another path with --database.")


def _make_file(path: Path, *, create: bool) -> None:
    if not create:
        raise StorageError(f"There is no database at {path}; record a run first, with: wsap play")
    if not path.parent.is_dir():
        raise StorageError(
            f"The folder {path.parent} for the database does not exist; "
            "create it, or choose another path with --database."
        )
    # Created with permissions for the owner only; SQLite's files beside it get the same.
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))


def check_writable(path: Path) -> None:
    """Raise StorageReadOnlyError if a database is not writable: SQLite would fail only at the first write."""
    if not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        raise StorageReadOnlyError(
            f"The database {path} can't be written; change the permissions of the file and its folder, "
            "or choose another path with --database."
        )


def check_owner(path: Path, where: str, busy_seconds: float) -> None:
    """Raise NotADatabaseError for another program's database, which must not be changed, even in its journal mode."""
    if path.stat().st_size == 0:
        return
    connection = sqlite3.connect(reading_uri(path), uri=True, timeout=busy_seconds)
    try:
        (identity,) = connection.execute("PRAGMA application_id").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    finally:
        connection.close()
    if identity != migrate.APPLICATION_ID and (identity or tables):
        raise migrate.not_ours(where)


Identity = tuple[int, int]
"""The device and the number of a file on it."""


def identity_of(path: Path) -> Identity | None:
    """Return the identity of the file that a path names now; None if there is none."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


_OPEN_HERE: Counter[Identity] = Counter()


def note_open(identity: Identity, *, more: int) -> None:
    """Count the databases of a file that this process has open: one more, or one less."""
    _OPEN_HERE[identity] += more


def is_open_here(path: Path) -> bool:
    """Return whether this process has a file open as a database, so that nothing but SQLite may open it.

    A system releases the locks of a process on a file when the process closes it, even if it was opened twice. Without
    SQLite's locks another process would take the database as unused, and delete its write-ahead log with what is in it.
    """
    identity = identity_of(path)
    return identity is not None and _OPEN_HERE[identity] > 0


def is_same(path: Path, identity: Identity) -> bool:
    """Return whether a path still names a file; also if that can't be determined."""
    try:
        return identity_of(path) == identity
    except OSError:
        return True


def lock_file(path: Path) -> Callable[[], None] | None:
    """Create a file and lock it against other processes, and return what deletes it and releases the lock.

    Returns None if another process holds it. The lock ends with the process, even if that is killed.
    """
    locked = None if fcntl is None else _flock(path)
    if isinstance(locked, int):
        return lambda: _unlock(path, locked)
    return _portable_lock(path) if fcntl is None or locked is _NO_LOCKS else None


class _NoLocks:
    pass


_NO_LOCKS = _NoLocks()
_HELD: set[int] = set()
"""Locked descriptors, which a forked process must not keep locked."""


def _flock(path: Path) -> int | _NoLocks | None:
    # filelock does the same, with checks that take longer than a short episode.
    assert fcntl is not None
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            found = os.fstat(file)
            if is_same(path, (found.st_dev, found.st_ino)):
                _HELD.add(file)
                return file
        except OSError as error:
            os.close(file)
            if error.errno in _TAKEN:
                return None
            if error.errno in _WITHOUT_LOCKS:
                return _NO_LOCKS
            raise
        os.close(file)  # it was just deleted by who held it: this is nobody's file any more


def _unlock(path: Path, file: int) -> None:
    assert fcntl is not None
    # Before its release, and only this one: another process can have a lock of that name already.
    found = os.fstat(file)
    if is_same(path, (found.st_dev, found.st_ino)):
        with suppress(OSError):
            path.unlink(missing_ok=True)
    _HELD.discard(file)
    fcntl.flock(file, fcntl.LOCK_UN)
    os.close(file)


def _forget_locks() -> None:
    for file in _HELD:
        with suppress(OSError):
            os.close(file)
    _HELD.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_locks)


def _portable_lock(path: Path) -> Callable[[], None] | None:
    from filelock import FileLock, Timeout  # deferred for weight

    lock = FileLock(path, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        return None
    mine = identity_of(path)

    def release() -> None:
        if mine is not None and is_same(path, mine):
            with suppress(OSError):  # Windows deletes no file that is open
                path.unlink(missing_ok=True)
        lock.release()

    return release


def is_held(path: Path) -> bool:
    """Return whether a process holds a lock file, or that can't be determined."""
    from filelock import FileLock, Timeout  # deferred for weight

    lock = FileLock(path, timeout=0)
    try:
        lock.acquire()
    except (Timeout, OSError):
        return True
    lock.release()
    return False


def reading_uri(path: Path) -> str:
    """Return the URI that opens a database for reading."""
    # In WAL mode a reader writes an index beside the file. If it can't and there is no log, the file is immutable.
    wal = path.with_name(path.name + "-wal")
    sealed = not os.access(path.parent, os.W_OK) and not (wal.exists() and wal.stat().st_size)
    return path.as_uri() + ("?immutable=1" if sealed else "?mode=ro")
