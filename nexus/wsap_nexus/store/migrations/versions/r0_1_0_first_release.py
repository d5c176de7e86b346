"""The tables of 0.1.0, the first release."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0.1.0"
down_revision = None

_NAME = sa.String(200)
_WORD = sa.String(20)
_TIME = sa.String(40)
_WHOLE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_SELDOM = (
    "kind IN ('arrived', 'departed', 'influence', 'joined', 'lessons', 'mind', 'model', 'plan', 'rewound', 'snapshot', "
    "'start', 'tick', 'tools', 'totals', 'whisper', 'withdrawn')"
)


def upgrade() -> None:
    """Create the tables."""
    _create_runs()
    _create_agents()
    _create_worlds()
    _create_nexus()


def downgrade() -> None:
    """Drop the tables."""
    for tables in (
        ("transfer", "skill", "session", "metagoal", "item", "evidence", "avatar", "achievement"),
        ("world", "token", "pass", "nexus_event", "listener", "letter", "game", "counter", "answer", "agent"),
        ("moment", "inbox", "saved_state", "dictionary", "event", "run"),
    ):
        for table in tables:
            op.drop_table(table)


def _of(table: str) -> sa.ForeignKey:
    return sa.ForeignKey(f"{table}.id", ondelete="CASCADE")


def _index_some(name: str, table: str, columns: list[str], condition: str, *, unique: bool = False) -> None:
    where = sa.text(condition)
    op.create_index(name, table, columns, unique=unique, sqlite_where=where, postgresql_where=where)


def _create_runs() -> None:
    op.create_table(
        "run",
        sa.Column("id", _NAME, primary_key=True),
        sa.Column("game", _NAME, nullable=False),
        sa.Column("agent", _NAME, nullable=False),
        sa.Column("seed", _WHOLE, nullable=False),
        sa.Column("step_limit", _WHOLE),
        sa.Column("status", _WORD, nullable=False),
        sa.Column("created", _TIME, nullable=False),
        sa.Column("updated", _TIME, nullable=False),
        sa.Column("wsap_version", sa.String(40), nullable=False),
        sa.Column("protocol_version", sa.String(40), nullable=False),
        sa.Column("config", sa.JSON(), nullable=False),
        sa.Column("summary", sa.JSON()),
    )
    op.create_index("run_newest", "run", ["created", "id"])
    op.create_table(
        "event",
        sa.Column("run_id", _NAME, _of("run"), primary_key=True),
        sa.Column("seq", _WHOLE, primary_key=True),
        sa.Column("kind", _NAME, nullable=False),
        sa.Column("seat", _NAME),
        sa.Column("episode", _WHOLE, nullable=False),
        sa.Column("step", _WHOLE),
        sa.Column("time", sa.Float(), nullable=False),
        sa.Column("form", sa.String(10), nullable=False),
        sa.Column("codec", _WORD, nullable=False),
        sa.Column("dictionary", _WHOLE),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.CheckConstraint("seq >= 0", name="event_seq_counts_from_0"),
    )
    _index_some("event_seldom", "event", ["run_id", "kind", "seq"], _SELDOM)
    op.create_table(
        "dictionary",
        sa.Column("run_id", _NAME, _of("run"), primary_key=True),
        sa.Column("number", _WHOLE, primary_key=True),
        sa.Column("kind", _NAME, nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
    )
    op.create_table(
        "saved_state",
        sa.Column("run_id", _NAME, _of("run"), primary_key=True),
        sa.Column("whole", sa.Boolean(), primary_key=True),
        sa.Column("seq", _WHOLE, nullable=False),
        sa.Column("step", _WHOLE, nullable=False),
        sa.Column("time", sa.Float(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
    )
    op.create_table(
        "moment",
        sa.Column("run_id", _NAME, _of("run"), primary_key=True),
        sa.Column("seq", _WHOLE, primary_key=True),
        sa.Column("number", _WHOLE, primary_key=True),
        sa.Column("seat", _NAME, nullable=False),
        sa.Column("agent", _NAME, nullable=False),
        sa.Column("step", _WHOLE, nullable=False),
        sa.Column("time", sa.Float(), nullable=False),
        sa.Column("kind", _WORD, nullable=False),
        sa.Column("weight", sa.Float(), nullable=False),
        sa.Column("audience", _WORD, nullable=False),
        sa.Column("words", sa.Text(), nullable=False),
    )
    op.create_index("moment_time", "moment", ["time"])
    op.create_table(
        "inbox",
        sa.Column("number", _WHOLE, primary_key=True, autoincrement=True),
        sa.Column("run_id", _NAME, _of("run"), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("inbox_run", "inbox", ["run_id", "number"])


def _create_agents() -> None:
    op.create_table(
        "agent",
        sa.Column("id", _NAME, primary_key=True),
        sa.Column("name", _NAME, nullable=False),
        sa.Column("created", _TIME, nullable=False),
        sa.Column("state", _WORD, nullable=False),
        sa.Column("place", _WORD, nullable=False),
        sa.Column("session_id", _NAME),
        sa.Column("persona", sa.Text(), nullable=False),
        sa.Column("policies", sa.JSON(), nullable=False),
        sa.Column("lore", sa.JSON(), nullable=False),
        sa.Column("lifetime_steps", _WHOLE, nullable=False),
        sa.Column("playtime", sa.Float(), nullable=False),
        sa.Column("mind", sa.LargeBinary()),
    )
    op.create_index("agent_place", "agent", ["place", "id"])
    op.create_table(
        "skill",
        sa.Column("agent_id", _NAME, _of("agent"), primary_key=True),
        sa.Column("domain", _NAME, primary_key=True),
        sa.Column("level", sa.Float(), nullable=False),
    )
    op.create_table(
        "evidence",
        sa.Column("agent_id", _NAME, _of("agent"), primary_key=True),
        sa.Column("domain", _NAME, primary_key=True),
        sa.Column("game", _NAME, primary_key=True),
        sa.Column("source", _NAME, primary_key=True),
        sa.Column("times", _WHOLE, nullable=False),
        sa.Column("gained", sa.Float(), nullable=False),
    )
    op.create_table(
        "achievement",
        sa.Column("agent_id", _NAME, _of("agent"), primary_key=True),
        sa.Column("game", _NAME, primary_key=True),
        sa.Column("name", _NAME, primary_key=True),
        sa.Column("first", _TIME, nullable=False),
        sa.Column("times", _WHOLE, nullable=False),
    )
    op.create_table(
        "item",
        sa.Column("id", _NAME, primary_key=True),
        sa.Column("agent_id", _NAME, _of("agent"), nullable=False),
        sa.Column("place", _WORD, nullable=False),
        sa.Column("place_id", _NAME),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
    )
    op.create_index("item_owner", "item", ["agent_id", "place"])
    op.create_table(
        "metagoal",
        sa.Column("agent_id", _NAME, _of("agent"), primary_key=True),
        sa.Column("id", _NAME, primary_key=True),
        sa.Column("state", _WORD, nullable=False),
        sa.Column("since", _WHOLE, nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
    )
    op.create_table(
        "transfer",
        sa.Column("id", _NAME, primary_key=True),
        sa.Column("agent_id", _NAME, _of("agent"), nullable=False),
        sa.Column("kind", _WORD, nullable=False),
        sa.Column("state", _WORD, nullable=False),
        sa.Column("created", _TIME, nullable=False),
        sa.Column("world_id", _NAME),
        sa.Column("data", sa.JSON(), nullable=False),
    )
    # An agent has at most one open transfer and, below, one open session.
    _index_some("transfer_open", "transfer", ["agent_id"], "state = 'prepared'", unique=True)


def _create_worlds() -> None:
    op.create_table(
        "world",
        sa.Column("id", _NAME, primary_key=True),
        sa.Column("game", _NAME, nullable=False),
        sa.Column("owner", _NAME),
        sa.Column("seed", _WHOLE, nullable=False),
        sa.Column("options", sa.JSON(), nullable=False),
        sa.Column("created", _TIME, nullable=False),
        sa.Column("failures", _WHOLE, nullable=False),
        sa.Column("run_id", _NAME),
        sa.Column("snapshot", sa.LargeBinary()),
    )
    op.create_index("world_owner", "world", ["game", "owner"])
    op.create_table(
        "avatar",
        sa.Column("world_id", _NAME, _of("world"), primary_key=True),
        sa.Column("id", _NAME, primary_key=True),
        sa.Column("agent_id", _NAME, _of("agent"), nullable=False),
        sa.Column("game", _NAME, nullable=False),
        sa.Column("state", _WORD, nullable=False),
        sa.Column("left_at", _WHOLE, nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
    )
    op.create_index("avatar_agent", "avatar", ["agent_id", "game"])
    op.create_table(
        "session",
        sa.Column("id", _NAME, primary_key=True),
        sa.Column("agent_id", _NAME, _of("agent"), nullable=False),
        sa.Column("game", _NAME, nullable=False),
        sa.Column("world_id", _NAME, nullable=False),
        sa.Column("avatar_id", _NAME, nullable=False),
        sa.Column("run_id", _NAME, nullable=False),
        sa.Column("opened", _TIME, nullable=False),
        sa.Column("closed", _TIME),
        sa.Column("reason", _NAME),
        sa.Column("steps", _WHOLE, nullable=False),
        sa.Column("terms", sa.JSON(), nullable=False),
        sa.Column("stats", sa.JSON(), nullable=False),
    )
    op.create_index("session_agent", "session", ["agent_id", "id"])
    op.create_index("session_visits", "session", ["agent_id", "game"])
    op.create_index("session_world", "session", ["world_id"])
    _index_some("session_open", "session", ["agent_id"], "closed IS NULL", unique=True)


def _create_nexus() -> None:
    op.create_table(
        "letter",
        sa.Column("id", _WHOLE, primary_key=True, autoincrement=True),
        sa.Column("sender", _NAME, nullable=False),
        sa.Column("recipient", _NAME, nullable=False),
        sa.Column("kind", _WORD, nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("created", _TIME, nullable=False),
        sa.Column("read", sa.Boolean(), nullable=False),
    )
    op.create_index("letter_recipient", "letter", ["recipient", "read"])
    op.create_table(
        "token",
        sa.Column("hash", _NAME, primary_key=True),
        sa.Column("agent_id", _NAME),
        sa.Column("created", _TIME, nullable=False),
    )
    op.create_table(
        "pass",
        sa.Column("id", _NAME, primary_key=True),
        sa.Column("hash", _NAME, nullable=False),
        sa.Column("scope", _WORD, nullable=False),
        sa.Column("target", _NAME, nullable=False),
        sa.Column("talks", sa.Boolean(), nullable=False),
        sa.Column("created", _TIME, nullable=False),
        sa.Column("expires", sa.Float(), nullable=False),
        sa.Column("revoked", sa.Boolean(), nullable=False),
    )
    op.create_index("pass_hash", "pass", ["hash"], unique=True)
    op.create_table(
        "answer",
        sa.Column("scope", _NAME, primary_key=True),
        sa.Column("key", _NAME, primary_key=True),
        sa.Column("fingerprint", _NAME, nullable=False),
        sa.Column("status", _WHOLE, nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
    )
    op.create_table(
        "counter",
        sa.Column("name", _NAME, primary_key=True),
        sa.Column("value", _WHOLE, nullable=False),
    )
    op.create_table(
        "game",
        sa.Column("name", _NAME, primary_key=True),
        sa.Column("status", _WORD, nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("failures", _WHOLE, nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
    )
    op.create_table(
        "nexus_event",
        sa.Column("seq", _WHOLE, primary_key=True, autoincrement=True),
        sa.Column("kind", _NAME, nullable=False),
        sa.Column("agent_id", _NAME),
        sa.Column("game", _NAME),
        sa.Column("session_id", _NAME),
        sa.Column("time", sa.Float(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("nexus_event_agent", "nexus_event", ["agent_id", "seq"])
    op.create_index("nexus_event_agent_kind", "nexus_event", ["agent_id", "kind", "seq"])
    op.create_index("nexus_event_kind", "nexus_event", ["kind", "seq"])
    op.create_table(
        "listener",
        sa.Column("name", _NAME, primary_key=True),
        sa.Column("seq", _WHOLE, nullable=False),
    )
