"""The tables of the command log, in a `MetaData` of their own, and what may be written into them."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pydantic import JsonValue
from sqlalchemy import Dialect, Index, Row, String, TypeDecorator, UniqueConstraint, text
from sqlalchemy.orm import registry
from sqlmodel import Column, Field, SQLModel
from typing_extensions import override

from wsap_tes3mp.protocol.commands import CommandInput, CommandState
from wsap_tes3mp.protocol.perception import PerceptionOutput

_DEEPEST = 20
MOMENT = ("timestamp", "boot_id", "sequence")
"""Fields of a perception that are kept with the command, so that a world in which nothing changes is kept once."""


class _Object(TypeDecorator[Mapping[str, JsonValue]]):
    """A JSON object as text; NULL is an empty one."""

    impl = String
    cache_ok = True

    @override
    def process_bind_param(self, value: Mapping[str, JsonValue] | None, dialect: Dialect) -> str | None:
        return None if value is None else dump(value)

    @override
    def process_result_value(self, value: str | None, dialect: Dialect) -> dict[str, JsonValue]:
        return dict(json.loads(value or "{}"))


def _object(name: str, *, nullable: bool = False, key: str | None = None) -> Any:  # Any: a field's default
    default = None if nullable else dict
    column = Column(name, _Object, nullable=nullable, key=key or name, default=default)
    return Field(default_factory=dict, sa_column=column)


class Base(SQLModel, registry=registry()):
    """The base of all tables."""


class PerceptionRow(Base, table=True):
    """What agents perceived, once, however often: without time, boot and sequence, which the commands keep."""

    __tablename__ = "perception"

    hash: str = Field(primary_key=True)
    """SHA-256 of the body."""
    body: str
    """JSON."""


class CommandRecord(Base, table=True):
    """One command, and what became of it."""

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
    """In the order of receipt, from 1; never used again."""
    id: str = Field(unique=True)
    agent_id: str
    key: str | None = None
    """The idempotency key; the row is the reply that is repeated for it."""
    fingerprint: str = ""
    """SHA-256 of the command as it was received."""
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
    """What was received, of commands that were rejected: JSON, cut off where it is long."""
    received: float
    """Seconds since 1970, as the two below."""
    dispatched: float | None = None
    finished: float | None = None

    @property
    def latency(self) -> float | None:
        """Seconds from receipt to the outcome, where one came."""
        if self.finished is None or self.state not in ("confirmed", "failed"):
            return None
        return max(0.0, self.finished - self.received)

    def shown(self) -> dict[str, Any]:
        """Return what people are shown of it, as JSON."""
        return self.model_dump(exclude={"key", "fingerprint"})


COMMAND = Base.metadata.tables["command"]
PERCEPTION = Base.metadata.tables["perception"]


def record_of(row: Row[Any]) -> CommandRecord:
    """Return the record that a row of the table, which may have more columns, stands for."""
    return CommandRecord(**{name: row._mapping[name] for name in CommandRecord.model_fields})


def fingerprint(command: CommandInput) -> str:
    """Return what tells two commands apart."""
    return digest(dump(command.model_dump(mode="json"), sort=True))


def body_of(perception: PerceptionOutput) -> str:
    """Return the JSON of a perception without its moment."""
    return dump(perception.model_dump(mode="json", exclude=set(MOMENT), exclude_none=True), sort=True)


def digest(text: str) -> str:
    """Return the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def clean(text: object, longest: int = 20_000) -> str:
    """Return a text that any database and any reader of JSON takes."""
    return str(text)[:longest].encode("utf-8", "replace").decode().replace("\x00", "?")


def dump(value: object, *, sort: bool = False) -> str:
    """Return JSON, whatever a caller gave: what JSON lacks becomes text."""
    try:
        return json.dumps(value, allow_nan=False, sort_keys=sort, separators=(",", ":"))
    except (TypeError, ValueError):
        return json.dumps(plain(value), sort_keys=sort, separators=(",", ":"))


def plain(value: object, depth: int = 0) -> JsonValue:
    """Return what a strict reader of JSON takes of a value of an engine; the rest becomes text."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and abs(value) < 2**63:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if depth < _DEEPEST and isinstance(value, Mapping):
        return {clean(key, 200): plain(item, depth + 1) for key, item in value.items()}
    if depth < _DEEPEST and isinstance(value, Sequence | set | frozenset) and not isinstance(value, str | bytes):
        return [plain(item, depth + 1) for item in value]
    return clean(value, 20_000)
