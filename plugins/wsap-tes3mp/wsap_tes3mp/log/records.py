"""The SQLite file of a command log: its tables, the values they accept, opening it, and its errors."""

from __future__ import annotations

import hashlib
import json
import math
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from pydantic import JsonValue
from sqlalchemy import JSON, Engine, Index, Row, String, Table, UniqueConstraint, create_engine, event, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.orm import registry
from sqlalchemy.pool import StaticPool
from sqlmodel import Column, Field, SQLModel

from wsap_core import errors
from wsap_core.installing import install_line
from wsap_tes3mp.protocol.commands import CommandInput, CommandState

APPLICATION = 0x57544C31
"""Marks the file as a command log (SQLite's application_id)."""
VERSION = 1
"""Of the schema."""
BUSY_SECONDS = 5.0
"""How long a commit waits for another writing process, such as `wsap tes3mp log prune`."""
_DEEPEST = 20
MOMENT = {"timestamp", "boot_id", "sequence"}
"""Fields of a perception stored with the command, so that a world in which nothing changes is stored once."""


def _object(name: str, *, nullable: bool = False, key: str | None = None) -> Any:  # Any: a field's default
    default = None if nullable else dict
    column = Column(name, JSON(none_as_null=True), nullable=nullable, key=key or name, default=default)
    return Field(default_factory=dict, sa_column=column)


class Base(SQLModel, registry=registry()):
    """The base of all tables."""


_BODY = Column("body", String, nullable=False)
PERCEPTION = Table("perception", Base.metadata, Column("hash", String, primary_key=True), _BODY)
"""Distinct perceptions: JSON without time, boot and sequence, and its SHA-256."""


class CommandRecord(Base, table=True):
    """One command and its outcome."""

    __tablename__ = "command"
    __table_args__: ClassVar[Any] = (
        UniqueConstraint("agent_id", "key"),
        Index("command_agent", "agent_id", "number"),
        Index("command_episode", "episode_id", "number", sqlite_where=text("episode_id IS NOT NULL")),
        Index("command_perception", "perception_hash", sqlite_where=text("perception_hash IS NOT NULL")),
        Index("command_open", "number", sqlite_where=text("state IN ('accepted', 'dispatched')")),
        {"sqlite_autoincrement": True},
    )

    number: int | None = Field(default=None, primary_key=True)
    """In order of receipt, from 1; never reused."""
    id: str = Field(unique=True)
    agent_id: str
    key: str | None = None
    """The idempotency key; a repeated key gets this row as its reply."""
    fingerprint: str = ""
    """SHA-256 of the command as received."""
    engine: str = ""
    protocol_version: str = ""
    timestamp: str = ""
    """When the agent issued it, ISO 8601."""
    command: str
    params: Mapping[str, JsonValue] = _object("params")
    reasoning: str = ""
    episode_id: str | None = None
    context: Mapping[str, JsonValue] = _object("context", nullable=True)
    perception_hash: str | None = Field(default=None, foreign_key="perception.hash")
    """The perception that led to it, without its moment."""
    perception_moment: Mapping[str, JsonValue] = _object("perception", nullable=True, key="perception_moment")
    """Time, boot and sequence of that perception."""
    state: CommandState = Field(sa_type=String)
    code: str | None = None
    message: str = ""
    sequence: int | None = None
    data: Mapping[str, JsonValue] = _object("data")
    raw: str | None = None
    """The received JSON of a rejected command, truncated."""
    received: float
    """Seconds since 1970, like the two below."""
    dispatched: float | None = None
    finished: float | None = None

    @property
    def latency(self) -> float | None:
        """Seconds from receipt to the outcome; None without one."""
        if self.finished is None or self.state not in ("confirmed", "failed"):
            return None
        return max(0.0, self.finished - self.received)

    def shown(self) -> dict[str, Any]:
        """Return the fields shown to users, as JSON."""
        return self.model_dump(exclude={"key", "fingerprint"})


COMMAND = Base.metadata.tables["command"]


def record_of(row: Row[Any]) -> CommandRecord:
    """Return the record of a row, which may have more columns than the table."""
    found = {name: row._mapping[name] for name in CommandRecord.model_fields}
    return CommandRecord(**found | {name: found[name] or {} for name in ("context", "perception_moment")})


def fingerprint(command: CommandInput) -> str:
    """Return the SHA-256 of a command."""
    return digest(dump(command.model_dump(mode="json"), sort=True))


def digest(text: str) -> str:
    """Return the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def clean(text: object, longest: int = 20_000) -> str:
    """Return a text that any database and any JSON reader accepts."""
    return str(text)[:longest].encode("utf-8", "replace").decode().replace("\x00", "?")


def dump(value: object, *, sort: bool = False) -> str:
    """Return a value as JSON; what JSON lacks becomes text."""
    try:
        return json.dumps(value, allow_nan=False, sort_keys=sort, separators=(",", ":"))
    except (TypeError, ValueError):
        return json.dumps(plain(value), sort_keys=sort, separators=(",", ":"))


def plain(value: object, depth: int = 0) -> JsonValue:
    """Return an engine's value as strict JSON; what JSON lacks becomes text."""
    if value is None or isinstance(value, bool) or (isinstance(value, int) and abs(value) < 2**63):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if depth < _DEEPEST and isinstance(value, Mapping):
        return {clean(key, 200): plain(item, depth + 1) for key, item in value.items()}
    if depth < _DEEPEST and isinstance(value, Sequence | set | frozenset) and not isinstance(value, str | bytes):
        return [plain(item, depth + 1) for item in value]
    return clean(value, 20_000)


def open_database(path: Path | None, *, read_only: bool = False) -> Engine:
    """Return an engine with one connection to a log, in memory without a path; creates a missing file.

    `read_only` neither creates nor changes it. See `CommandLog` for the errors.
    """
    where = "in memory" if path is None else str(path)
    if path is not None and read_only and not path.is_file():
        raise errors.StorageError(f"There is no command log {path}; name another one with --log.")
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
    engine = create_engine("sqlite://", creator=lambda: connection, poolclass=StaticPool, json_serializer=dump)
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
        raise errors.NotADatabaseError(f"{where} is not a command log; name another file with --log.")
    if run("PRAGMA user_version").fetchone()[0] > VERSION:
        update = install_line("wsap-tes3mp", newer=True)
        raise errors.StorageVersionError(f"A newer version wrote the command log {where}; update with: {update}")
    run("PRAGMA trusted_schema = OFF")
    run("PRAGMA foreign_keys = ON")
    if fresh_allowed:
        run("PRAGMA auto_vacuum = INCREMENTAL")  # affects new files only
        run("PRAGMA journal_mode = WAL")
        # A commit survives the end of the process; a power cut may lose the last ones, but never consistency.
        run("PRAGMA synchronous = NORMAL")
        run("PRAGMA journal_size_limit = 67108864")


_HELD = (errors.StorageLockedError, "Another process has locked the command log {where}; try again.")
_KEPT_OUT = (errors.StorageReadOnlyError, "The command log {where} can't be opened or created.")
_KINDS: Mapping[int, tuple[type[errors.StorageError], str]] = {
    sqlite3.SQLITE_BUSY: _HELD,
    sqlite3.SQLITE_LOCKED: _HELD,
    sqlite3.SQLITE_READONLY: (errors.StorageReadOnlyError, "The command log {where} can't be written."),
    sqlite3.SQLITE_CANTOPEN: _KEPT_OUT,
    sqlite3.SQLITE_NOTADB: (errors.NotADatabaseError, "{where} is not a command log; name another file with --log."),
    sqlite3.SQLITE_FULL: (errors.StorageFullError, "There is no space left for the command log {where}."),
}


@contextmanager
def said_clearly(where: str) -> Iterator[None]:
    """Convert errors of SQLAlchemy, sqlite3 and the system to a `StorageError` that names the log."""
    try:
        yield
    except (SQLAlchemyError, sqlite3.Error, OSError) as error:
        cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
        code = getattr(cause, "sqlite_errorcode", None) or 0
        found = _KEPT_OUT if isinstance(cause, PermissionError) else _KINDS.get(code & 0xFF)
        if found is not None:
            kind, sentence = found
            raise kind(sentence.format(where=where)) from error
        reason = str(cause).strip().partition("\n")[0] or type(cause).__name__
        raise errors.StorageError(f"The command log {where} can't be used: {reason}.") from error
