"""The tables, on a `MetaData` of their own.

Every table is keyed by run first, so that the log is partitioned by run: a run can be read,
exported, moved or deleted without touching another. In SQLite the event table has no row ids
and is therefore clustered by (run, number); reading a run is one walk along neighbouring pages.

SQLModel tables do not validate what they are given; `RunRow.checked` does.
"""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError
from sqlalchemy import JSON, CheckConstraint, Column, ForeignKey, Index, LargeBinary
from sqlalchemy.orm import registry
from sqlmodel import Field, SQLModel

from wsap_core.context import SEED_LIMIT
from wsap_core.errors import StorageError
from wsap_nexus.storage.records import RunStatus

LONGEST_NAME = 200
"""Characters in a run id, a game's or agent's name, a kind or a seat."""


class Base(SQLModel, registry=registry()):
    """The base of all tables; its `metadata` holds these and nothing else."""


class RunFields(SQLModel):
    """A run's columns with what they may hold."""

    id: str = Field(primary_key=True, min_length=1, max_length=LONGEST_NAME, regex=r"^[a-z0-9][a-z0-9._-]*$")
    game: str = Field(min_length=1, max_length=LONGEST_NAME)
    agent: str = Field(min_length=1, max_length=LONGEST_NAME)
    seed: int = Field(ge=0, le=SEED_LIMIT)
    step_limit: int | None = Field(default=None, ge=0)
    status: str = Field(regex="^(" + "|".join(RunStatus) + ")$", max_length=20)
    created: str = Field(max_length=40)
    updated: str = Field(max_length=40)
    wsap_version: str = Field(max_length=40)
    protocol_version: str = Field(max_length=40)


class RunRow(Base, RunFields, table=True):
    """One run."""

    __tablename__ = "run"
    __table_args__ = (Index("run_newest", "created", "id"),)

    # Any: JSON of an open shape, checked by whoever reads it.
    config: dict[str, Any] = Field(sa_column=Column(JSON, nullable=False))
    summary: dict[str, Any] | None = Field(default=None, sa_column=Column(JSON(none_as_null=True)))


def checked_run(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a new run, validated.

    Raises:
        StorageError: one is out of its range; the message says which and why.
    """
    try:
        RunFields.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise StorageError(f"The run can't be recorded: its {where} is wrong ({first['msg']}).") from None
    return values


class EventRow(Base, table=True):
    """One event; rows are written by `eventlog`, which checks them, and read by `repository`."""

    __tablename__ = "event"
    __table_args__ = (
        CheckConstraint("seq >= 0", name="event_seq_counts_from_0"),
        {"sqlite_with_rowid": False},
    )

    run_id: str = Field(sa_column=Column(ForeignKey("run.id", ondelete="CASCADE"), primary_key=True))
    seq: int = Field(primary_key=True)
    kind: str = Field(max_length=LONGEST_NAME)
    seat: str | None = Field(default=None, max_length=LONGEST_NAME)
    episode: int
    step: int | None = None
    time: float
    form: str = Field(max_length=10)
    """"json" or "bytes"."""
    codec: str = Field(max_length=20)
    """"raw" or "zstd"."""
    dictionary: int | None = None
    """The number of the run's dictionary that the body was compressed with."""
    body: bytes = Field(sa_column=Column(LargeBinary, nullable=False))


class DictionaryRow(Base, table=True):
    """What bodies of one kind in one run have in common, for the compressor."""

    __tablename__ = "dictionary"

    run_id: str = Field(sa_column=Column(ForeignKey("run.id", ondelete="CASCADE"), primary_key=True))
    number: int = Field(primary_key=True)
    kind: str = Field(max_length=LONGEST_NAME)
    body: bytes = Field(sa_column=Column(LargeBinary, nullable=False))
    """Compressed with zstd, without a dictionary."""


METADATA = Base.metadata
"""All tables, for the migrations."""
