"""The tables, in their own `MetaData`.

Runs, events and dictionaries are keyed by run first, so that a run is read, exported or deleted without touching
others. Its events are appended, so they lie on neighbouring pages.

The other tables hold the nexus' records; each event (`nexus_event`) is written in the transaction that it reports.

SQLModel tables do not validate values; `entities.check_run` and `entities.checked` do.
"""

from __future__ import annotations

import re
from typing import Any

from sqlalchemy import JSON, BigInteger, CheckConstraint, Column, ForeignKey, Index, Integer, LargeBinary, Text, text
from sqlalchemy.orm import declared_attr, registry
from sqlmodel import Field, SQLModel

from wsap_core.protocol import AvatarState
from wsap_core.seams.context import SEED_LIMIT
from wsap_nexus.store.records import RunStatus

LONGEST_NAME = 200
"""Characters in a run id, a game's or agent's name, a kind or a seat."""

SELDOM = frozenset({
    "arrived", "departed", "influence", "joined", "lessons", "mind", "model", "plan", "rewound", "snapshot", "start",
    "tick", "tools", "totals", "whisper", "withdrawn",
})  # fmt: skip
"""Rare event kinds, which have an index because they are searched for among many others."""
IS_SELDOM = text(f"kind IN ({', '.join(map(repr, sorted(SELDOM)))})")
"""The index' condition; SQLite uses the index only if the query repeats it."""


def _one_of(*words: str) -> dict[str, Any]:
    """Return the settings of a column that holds one of some words, which `entities.checked` reads."""
    return {"info": {"words": frozenset(words)}}


class Base(SQLModel, registry=registry()):
    """The base of all tables: `NexusEventRow` is a row of the table `nexus_event`."""

    @declared_attr.directive
    def __tablename__(cls) -> str:  # noqa: N805 the class
        return re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__.removesuffix("Row")).lower()


class RunFields(SQLModel):
    """The validated columns of a run."""

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

    __table_args__ = (Index("run_newest", "created", "id"),)

    config: dict[str, Any] = Field(sa_column=Column(JSON, nullable=False))
    summary: dict[str, Any] | None = Field(default=None, sa_column=Column(JSON(none_as_null=True)))


class EventRow(Base, table=True):
    """One event; `eventlog` validates and writes it, `repository` reads it."""

    __table_args__ = (
        CheckConstraint("seq >= 0", name="event_seq_counts_from_0"),
        Index("event_seldom", "run_id", "kind", "seq", sqlite_where=IS_SELDOM, postgresql_where=IS_SELDOM),
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
    """The number of the body's dictionary in the run."""
    body: bytes = Field(sa_column=Column(LargeBinary, nullable=False))


class DictionaryRow(Base, table=True):
    """A compression dictionary for bodies of one kind in one run."""

    run_id: str = Field(sa_column=Column(ForeignKey("run.id", ondelete="CASCADE"), primary_key=True))
    number: int = Field(primary_key=True)
    kind: str = Field(max_length=LONGEST_NAME)
    body: bytes = Field(sa_column=Column(LargeBinary, nullable=False))
    """Compressed with zstd, without a dictionary."""


class SavedStateRow(Base, table=True):
    """The newest state of a world that lives, which replaces the previous one."""

    run_id: str = Field(sa_column=Column(ForeignKey("run.id", ondelete="CASCADE"), primary_key=True))
    whole: bool = Field(primary_key=True)
    """Whether it has the states of all agents, too, so that a run can be resumed from it."""
    seq: int
    """The last event in it."""
    step: int
    """Its tick."""
    time: float
    body: bytes = Field(sa_column=Column(LargeBinary, nullable=False))
    """The body of an event `snapshot`, compressed with zlib."""


class MomentRow(Base, table=True):
    """A moment of a run, written in the transaction of the event that it comes from."""

    __table_args__ = (Index("moment_time", "time"),)

    run_id: str = Field(sa_column=Column(ForeignKey("run.id", ondelete="CASCADE"), primary_key=True))
    seq: int = Field(primary_key=True)
    """The event."""
    number: int = Field(primary_key=True)
    """Counts the moments of one event, from 0."""
    seat: str = Field(max_length=LONGEST_NAME)
    agent: str = Field(max_length=LONGEST_NAME)
    """The agent of the nexus in the seat; elsewhere the seat."""
    step: int
    """The number of the seat's decision in the run, from 1."""
    time: float
    kind: str = Field(max_length=20)
    weight: float
    audience: str = Field(max_length=20)
    """"seat" or "everyone"."""
    words: str = Field(sa_column=Column(Text, nullable=False))
    """Language -> words, as canonical JSON."""


class InboxRow(Base, table=True):
    """An influence on a living world, stored for the process that plays its run."""

    __table_args__ = (Index("inbox_run", "run_id", "number"), {"sqlite_autoincrement": True})

    number: int | None = Field(default=None, sa_column=Column(Integer, primary_key=True, autoincrement=True))
    """Never reused."""
    run_id: str = Field(sa_column=Column(ForeignKey("run.id", ondelete="CASCADE"), nullable=False))
    body: dict[str, Any] = Field(sa_column=Column(JSON, nullable=False))


class AgentRow(Base, table=True):
    """One agent of the nexus."""

    __table_args__ = (Index("agent_place", "place", "id"),)

    id: str = Field(primary_key=True, max_length=LONGEST_NAME)
    name: str = Field(max_length=LONGEST_NAME)
    created: str = Field(max_length=40)
    state: str = Field(max_length=20, sa_column_kwargs=_one_of("active", "paused", "removed"))
    place: str = Field(max_length=20, sa_column_kwargs=_one_of("nexus", "world"))
    """With an open session if "world"."""
    session_id: str | None = Field(default=None, max_length=LONGEST_NAME)
    persona: str = Field(sa_column=Column(Text, nullable=False))
    policies: dict[str, Any] = Field(sa_column=Column(JSON, nullable=False))
    lore: dict[str, Any] = Field(sa_column=Column(JSON, nullable=False))
    """Core memories and strategies."""
    lifetime_steps: int
    playtime: float
    """Seconds in worlds."""
    mind: bytes | None = Field(default=None, sa_column=Column(LargeBinary))
    """Its compressed memories."""


class SkillRow(Base, table=True):
    """The skill of an agent in a domain."""

    agent_id: str = Field(sa_column=Column(ForeignKey("agent.id", ondelete="CASCADE"), primary_key=True))
    domain: str = Field(primary_key=True, max_length=LONGEST_NAME)
    level: float


class EvidenceRow(Base, table=True):
    """The evidence of a skill: an action or achievement in one game, with its count."""

    agent_id: str = Field(sa_column=Column(ForeignKey("agent.id", ondelete="CASCADE"), primary_key=True))
    domain: str = Field(primary_key=True, max_length=LONGEST_NAME)
    game: str = Field(primary_key=True, max_length=LONGEST_NAME)
    source: str = Field(primary_key=True, max_length=LONGEST_NAME)
    times: int
    gained: float


class AchievementRow(Base, table=True):
    """An achievement of an agent."""

    agent_id: str = Field(sa_column=Column(ForeignKey("agent.id", ondelete="CASCADE"), primary_key=True))
    game: str = Field(primary_key=True, max_length=LONGEST_NAME)
    name: str = Field(primary_key=True, max_length=LONGEST_NAME)
    first: str = Field(max_length=40)
    times: int


class ItemRow(Base, table=True):
    """One portable item, in exactly one place."""

    __table_args__ = (Index("item_owner", "agent_id", "place"),)

    id: str = Field(primary_key=True, max_length=LONGEST_NAME)
    agent_id: str = Field(sa_column=Column(ForeignKey("agent.id", ondelete="CASCADE"), nullable=False))
    place: str = Field(max_length=20, sa_column_kwargs=_one_of("escrow", "transfer", "world", "lost"))
    place_id: str | None = Field(default=None, max_length=LONGEST_NAME)
    """The transfer or the world."""
    note: str = Field(sa_column=Column(Text, nullable=False))
    """Why it is there, such as a world's reason for refusing it."""
    data: dict[str, Any] = Field(sa_column=Column(JSON, nullable=False))


class WorldRow(Base, table=True):
    """One world: an instance of a game, running or stored."""

    __table_args__ = (Index("world_owner", "game", "owner"),)

    id: str = Field(primary_key=True, max_length=LONGEST_NAME)
    game: str = Field(max_length=LONGEST_NAME)
    owner: str | None = Field(default=None, max_length=LONGEST_NAME)
    """The agent that owns the world; None for a shared one."""
    seed: int
    options: dict[str, Any] = Field(sa_column=Column(JSON, nullable=False))
    created: str = Field(max_length=40)
    failures: int
    run_id: str | None = Field(default=None, max_length=LONGEST_NAME)
    """Its current run."""
    snapshot: bytes | None = Field(default=None, sa_column=Column(LargeBinary))
    """Its compressed state between sessions."""


class AvatarRow(Base, table=True):
    """One avatar of an agent in a world."""

    __table_args__ = (Index("avatar_agent", "agent_id", "game"),)

    world_id: str = Field(sa_column=Column(ForeignKey("world.id", ondelete="CASCADE"), primary_key=True))
    id: str = Field(primary_key=True, max_length=LONGEST_NAME)
    agent_id: str = Field(sa_column=Column(ForeignKey("agent.id", ondelete="CASCADE"), nullable=False))
    game: str = Field(max_length=LONGEST_NAME)
    state: str = Field(max_length=20, sa_column_kwargs=_one_of(*(state.value for state in AvatarState)))
    left_at: int
    """The agent's lifetime steps when it left the avatar."""
    data: dict[str, Any] = Field(sa_column=Column(JSON, nullable=False))


class SessionRow(Base, table=True):
    """One session of an agent in a world."""

    __table_args__ = (
        Index("session_agent", "agent_id", "id"),
        Index("session_visits", "agent_id", "game"),
        Index("session_world", "world_id"),
        # An agent has at most one open session.
        Index("session_open", "agent_id", unique=True, sqlite_where=text("closed IS NULL"),
              postgresql_where=text("closed IS NULL")),
    )  # fmt: skip

    id: str = Field(primary_key=True, max_length=LONGEST_NAME)
    agent_id: str = Field(sa_column=Column(ForeignKey("agent.id", ondelete="CASCADE"), nullable=False))
    game: str = Field(max_length=LONGEST_NAME)
    world_id: str = Field(max_length=LONGEST_NAME)
    avatar_id: str = Field(max_length=LONGEST_NAME)
    run_id: str = Field(max_length=LONGEST_NAME)
    opened: str = Field(max_length=40)
    closed: str | None = Field(default=None, max_length=40)
    reason: str | None = Field(default=None, max_length=LONGEST_NAME)
    steps: int
    terms: dict[str, Any] = Field(sa_column=Column(JSON, nullable=False))
    """The `EntryRequest`: goals, exit condition, step limit, difficulty."""
    stats: dict[str, Any] = Field(sa_column=Column(JSON, nullable=False))


class TransferRow(Base, table=True):
    """One transfer of an agent between the nexus and a world."""

    __table_args__ = (
        Index("transfer_open", "agent_id", unique=True, sqlite_where=text("state = 'prepared'"),
              postgresql_where=text("state = 'prepared'")),
    )  # fmt: skip

    id: str = Field(primary_key=True, max_length=LONGEST_NAME)
    agent_id: str = Field(sa_column=Column(ForeignKey("agent.id", ondelete="CASCADE"), nullable=False))
    kind: str = Field(max_length=20, sa_column_kwargs=_one_of("enter", "leave"))
    state: str = Field(max_length=20, sa_column_kwargs=_one_of("prepared", "done", "cancelled", "unknown"))
    created: str = Field(max_length=40)
    world_id: str | None = Field(default=None, max_length=LONGEST_NAME)
    data: dict[str, Any] = Field(sa_column=Column(JSON, nullable=False))


class MetagoalRow(Base, table=True):
    """A meta-goal of an agent."""

    agent_id: str = Field(sa_column=Column(ForeignKey("agent.id", ondelete="CASCADE"), primary_key=True))
    id: str = Field(primary_key=True, max_length=LONGEST_NAME)
    state: str = Field(max_length=20, sa_column_kwargs=_one_of("active", "reached", "abandoned"))
    since: int
    """The number of the first nexus event that counts."""
    data: dict[str, Any] = Field(sa_column=Column(JSON, nullable=False))


class LetterRow(Base, table=True):
    """A message between agents in the nexus, or from a person; one row per recipient."""

    __table_args__ = (Index("letter_recipient", "recipient", "read"),)

    id: int | None = Field(default=None, sa_column=Column(Integer, primary_key=True, autoincrement=True))
    sender: str = Field(max_length=LONGEST_NAME)
    recipient: str = Field(max_length=LONGEST_NAME)
    kind: str = Field(max_length=20)
    """"direct", "broadcast", "team" or "talk"."""
    content: str = Field(sa_column=Column(Text, nullable=False))
    created: str = Field(max_length=40)
    read: bool


class TokenRow(Base, table=True):
    """The hash of a bearer token and its agent."""

    hash: str = Field(primary_key=True, max_length=LONGEST_NAME)
    agent_id: str | None = Field(default=None, max_length=LONGEST_NAME)
    """None for the admin."""
    created: str = Field(max_length=40)


class PassRow(Base, table=True):
    """A pass, with which somebody without a token sees one world or one agent, or plays as one."""

    __table_args__ = (Index("pass_hash", "hash", unique=True),)

    id: str = Field(primary_key=True, max_length=LONGEST_NAME)
    hash: str = Field(max_length=LONGEST_NAME)
    scope: str = Field(max_length=20)
    """"world", "agent" or "seat"."""
    target: str = Field(max_length=LONGEST_NAME)
    """The id of the world or agent."""
    talks: bool
    """Whether its holder may talk to the agent."""
    created: str = Field(max_length=40)
    expires: float
    """Seconds since 1970."""
    revoked: bool


class AnswerRow(Base, table=True):
    """The response to a request with an idempotency key, sent again to a retry."""

    scope: str = Field(primary_key=True, max_length=LONGEST_NAME)
    key: str = Field(primary_key=True, max_length=LONGEST_NAME)
    fingerprint: str = Field(max_length=LONGEST_NAME)
    status: int
    body: str = Field(sa_column=Column(Text, nullable=False))
    created: float


CLOCK, PRUNED, LEAD = "clock", "pruned", "lead"
NOT_IDS = frozenset({CLOCK, PRUNED, LEAD})
"""The numbers that are no counts of issued ids: minutes since 1970 until which the time was known, the same of the last
deletion by age, and how many nexuses have held a server's database."""


class CounterRow(Base, table=True):
    """Numbers by name: how many ids of a kind were issued, which never decreases, and a few others of the nexus."""

    name: str = Field(primary_key=True, max_length=LONGEST_NAME)
    value: int


class GameRow(Base, table=True):
    """The status of a game in the nexus; a game without a row is available."""

    name: str = Field(primary_key=True, max_length=LONGEST_NAME)
    status: str = Field(max_length=20)
    reason: str = Field(sa_column=Column(Text, nullable=False))
    failures: int
    data: dict[str, Any] = Field(sa_column=Column(JSON, nullable=False))
    """The connection to a game in another process."""


class NexusEventRow(Base, table=True):
    """An event of the nexus, written in the transaction that it reports."""

    __table_args__ = (
        Index("nexus_event_agent", "agent_id", "seq"),
        Index("nexus_event_agent_kind", "agent_id", "kind", "seq"),
        Index("nexus_event_kind", "kind", "seq"),
        {"sqlite_autoincrement": True},
    )

    seq: int | None = Field(default=None, sa_column=Column(Integer, primary_key=True, autoincrement=True))
    kind: str = Field(max_length=LONGEST_NAME)
    agent_id: str | None = Field(default=None, max_length=LONGEST_NAME)
    game: str | None = Field(default=None, max_length=LONGEST_NAME)
    session_id: str | None = Field(default=None, max_length=LONGEST_NAME)
    time: float
    body: str = Field(sa_column=Column(Text, nullable=False))
    """Canonical JSON."""


class ListenerRow(Base, table=True):
    """A listener's position in the log of the nexus."""

    name: str = Field(primary_key=True, max_length=LONGEST_NAME)
    seq: int
    """The number of the last event delivered to it."""


METADATA = Base.metadata
"""All tables, for the migrations."""

WHOLE = BigInteger().with_variant(Integer(), "sqlite")
"""The type of every whole number: 64 bits on a server, as they always are in SQLite, so that what can be bound to a
column of one can be bound to that of the other."""
for _table in METADATA.tables.values():
    for _column in _table.columns:
        if isinstance(_column.type, Integer):
            _column.type = WHOLE
