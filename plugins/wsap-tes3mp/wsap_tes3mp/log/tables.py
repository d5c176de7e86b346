"""The tables of the command log, in a `MetaData` of their own."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlalchemy import Index, UniqueConstraint, text
from sqlalchemy.orm import registry
from sqlmodel import Field, SQLModel


class Base(SQLModel, registry=registry()):
    """The base of all tables."""


class PerceptionRow(Base, table=True):
    """What agents perceived, once, however often: without time, boot and sequence, which the commands keep."""

    __tablename__ = "perception"

    hash: str = Field(primary_key=True)
    """SHA-256 of the body."""
    body: str
    """JSON."""


class CommandRow(Base, table=True):
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
    """In the order of receipt; never used again."""
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
    params: str = "{}"
    """JSON, as `context` and `data`."""
    reasoning: str = ""
    episode_id: str | None = None
    context: str | None = None
    perception_hash: str | None = Field(default=None, foreign_key="perception.hash")
    perception: str | None = None
    """JSON: what is the perception's own beside its body: its time, boot and sequence."""
    state: str
    code: str | None = None
    message: str = ""
    sequence: int | None = None
    data: str = "{}"
    raw: str | None = None
    """JSON, cut off where it is long: what was received, of commands that were rejected."""
    received: float
    """Seconds since 1970, as the two below."""
    dispatched: float | None = None
    finished: float | None = None
