"""Translates errors of database drivers."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from wsap_core import errors
from wsap_core.untrusted import single_line


class OutdatedDatabaseError(errors.StorageError):
    """The database needs a migration, and was opened read-only."""


LACKING: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.EAGAIN})
"""Numbers of system errors that say that the machine lacks open files, memory or processes for the moment."""

_NO_THREAD = "can't start new thread"  # Python's message, whatever the system lacks for it


class OneValueError(errors.StorageError):
    """One value can't be recorded, or read; the database itself works."""


class UnfitValueError(OneValueError):
    """A value does not fit the database; nothing was written."""


class UnreadableError(OneValueError):
    """A recorded value is damaged, or of a newer version."""


class DatabaseReplacedError(errors.StorageError):
    """The file of the database was deleted, moved or replaced while this process used it; nothing is written to it."""

    code = "DATABASE_REPLACED"


_LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_DENIED = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH)
# SQLite reports FULL for ENOSPC only; over a quota or a file size limit it reports a failed write.
_NO_ROOM = (
    sqlite3.SQLITE_IOERR_WRITE,
    sqlite3.SQLITE_IOERR_TRUNCATE,
    sqlite3.SQLITE_IOERR_SHMSIZE,
    sqlite3.SQLITE_IOERR_FSYNC,
)
_PASSING = (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PROTOCOL)
_TAKEN = (sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_UNIQUE)
# https://www.postgresql.org/docs/current/errcodes-appendix.html
_POSTGRES: dict[str, type[errors.StorageError]] = {
    "53100": errors.StorageFullError,
    "53": errors.StorageUnavailableError,  # it lacks memory or connections
    "08": errors.StorageUnavailableError,  # the connection failed
    "57": errors.StorageUnavailableError,  # it is being stopped, or started, or an operator ended the connection
    "58": errors.StorageUnavailableError,  # its own machine failed it
    "55P03": errors.StorageLockedError,
    "40P01": errors.StorageLockedError,
    "40001": errors.StorageLockedError,
    "25006": errors.StorageReadOnlyError,
    "42501": errors.StorageReadOnlyError,
}
_ERRNO: dict[int, type[errors.StorageError]] = {
    errno.ENOSPC: errors.StorageFullError,
    errno.EDQUOT: errors.StorageFullError,
    errno.EFBIG: errors.StorageFullError,
    errno.EROFS: errors.StorageReadOnlyError,
    errno.EACCES: errors.StorageReadOnlyError,
    errno.EPERM: errors.StorageReadOnlyError,
}
_ERRNO |= dict.fromkeys(LACKING | {errno.EIO}, errors.StorageUnavailableError)
_SENTENCES: dict[type[errors.StorageError], str] = {
    errors.StorageLockedError: "The database {where} is in use by another process; wait until it is done, "
    "then try again.",
    errors.StorageReadOnlyError: "The database {where} can't be written; "
    "change the permissions of the file and its folder, or choose another path with --database.",
    errors.NotADatabaseError: "The file {where} is not a WSAP database; choose another path with --database.",
    errors.StorageFullError: "There is no room left for the database {where}; committed data is safe. "
    "Free some space, then try again.",
    errors.StorageUnavailableError: "The database {where} can't be used for the moment ({reason}); committed data is "
    "safe. Try again later.",
}


@contextmanager
def said_clearly(where: str) -> Iterator[None]:
    """Raise driver errors as a `StorageError` that names the database, with the driver's error as its cause."""
    try:
        yield
    except (SQLAlchemyError, sqlite3.Error, OSError, MemoryError) as error:
        raise translate(error, where) from error


def translate(error: BaseException, where: str) -> errors.WsapError:
    """Return the `StorageError` for a driver error; a `WsapError` is returned unchanged."""
    if isinstance(error, errors.WsapError):
        return error
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    if _is_taken(cause) and "event" in str(cause):
        return errors.StorageError(
            f"Another process is recording the same run in the database {where}; stop one of the two, "
            "then continue with --resume."
        )
    reason = str(cause).strip().splitlines()[0] if str(cause).strip() else type(cause).__name__
    if isinstance(cause, OSError) and cause.strerror:
        reason = cause.strerror  # without the path
    kind = errors.StorageUnavailableError if _is_away(error, cause) else _kind(cause, where)
    if kind is not None:
        return kind(_SENTENCES[kind].format(where=where, reason=reason))
    if isinstance(cause, sqlite3.Error) and _code(cause) == sqlite3.SQLITE_CANTOPEN:
        return errors.StorageError(
            f"The database {where} can't be opened; check that its folder exists and is readable and writable."
        )
    if is_damage(cause):
        return damaged(where, reason)
    return errors.StorageError(f"The database {where} failed: {reason}.")


def is_of_database(error: BaseException) -> bool:
    """Return whether the whole database failed, rather than one value or whoever gave it."""
    return isinstance(error, errors.StorageError) and not isinstance(error, OneValueError)


def is_passing(error: BaseException) -> bool:
    """Return whether an error is a fault of the machine under the database, which passes without a change to WSAP.

    It is nobody's failure: the same transaction succeeds once there are space, files, memory, the lock, the server, or
    a writable disk again.
    """
    return isinstance(error, errors.StorageError) and (
        error.retryable or isinstance(error, errors.StorageReadOnlyError)
    )


def lack(error: BaseException) -> Exception | None:
    """Return the error among the causes of another that says that this machine lacks something; None if none does."""
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        if isinstance(at, MemoryError) or (isinstance(at, RuntimeError) and str(at) == _NO_THREAD):
            return at
        if isinstance(at, OSError) and at.errno in LACKING | {errno.ENOSPC, errno.EDQUOT}:
            return at
        at = at.__cause__ or at.__context__
    return None


def damaged(where: str, reason: str) -> errors.StorageDamagedError:
    """Return the error for a damaged file."""
    return errors.StorageDamagedError(
        f"The database {where} is damaged ({single_line(reason)[:200]}); restore a backup with: wsap nexus restore, or "
        "recover what is readable with sqlite3's .recover."
    )


def is_damage(cause: BaseException | None) -> bool:
    """Return whether SQLite reports a damaged file."""
    return isinstance(cause, sqlite3.Error) and _code(cause) == sqlite3.SQLITE_CORRUPT


def _is_taken(cause: BaseException) -> bool:
    # A run has one writer; a duplicate number of an event means two.
    code = getattr(cause, "sqlite_errorcode", None)
    return code in _TAKEN or getattr(cause, "sqlstate", None) == "23505"


def _kind(cause: BaseException, where: str) -> type[errors.StorageError] | None:
    if isinstance(cause, MemoryError):
        return errors.StorageUnavailableError
    if isinstance(cause, OSError):
        return _ERRNO.get(cause.errno or 0)
    if isinstance(cause, sqlite3.Error):
        extended = getattr(cause, "sqlite_errorcode", None)
        code = _code(cause)
        if code in _LOCKED:
            return errors.StorageLockedError
        if code in _DENIED:
            return errors.StorageReadOnlyError
        if code == sqlite3.SQLITE_NOTADB:
            return errors.NotADatabaseError
        if code == sqlite3.SQLITE_FULL or extended in _NO_ROOM:
            return errors.StorageFullError
        if code in _PASSING or (code == sqlite3.SQLITE_CANTOPEN and _is_there(where)):
            return errors.StorageUnavailableError
        return None
    state = getattr(cause, "sqlstate", None) or ""
    return _POSTGRES.get(state) or _POSTGRES.get(state[:2])


def _is_away(error: BaseException, cause: BaseException) -> bool:
    """Return whether a server, or a free connection to it, could not be had: such errors have no code."""
    if isinstance(error, PoolTimeoutError):
        return True
    return (
        isinstance(error, OperationalError | InterfaceError)
        and not isinstance(cause, sqlite3.Error)
        and getattr(cause, "sqlstate", None) is None
    )


def _is_there(where: str) -> bool:
    # SQLite reports the same code for a file that is missing and for a process that can't open any more files.
    return os.access(where, os.R_OK | os.W_OK) and os.access(Path(where).parent, os.W_OK)


def _code(cause: BaseException) -> int | None:
    extended = getattr(cause, "sqlite_errorcode", None)
    return None if extended is None else extended & 0xFF
