"""The records of the nexus."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_NAME = sa.String(200)


def _of(table: str) -> sa.ForeignKey:
    return sa.ForeignKey(f"{table}.id", ondelete="CASCADE")


def _index_of_one(name: str, table: str, condition: str) -> None:
    # At most one row per agent meets the condition.
    where = sa.text(condition)
    op.create_index(name, table, ["agent_id"], unique=True, sqlite_where=where, postgresql_where=where)


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "agent",
        sa.Column("id", _NAME, primary_key=True),
        sa.Column("name", _NAME, nullable=False),
        sa.Column("created", sa.String(40), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("place", sa.String(20), nullable=False),
        sa.Column("session_id", _NAME),
        sa.Column("persona", sa.Text(), nullable=False),
        sa.Column("policies", sa.JSON(), nullable=False),
        sa.Column("lore", sa.JSON(), nullable=False),
        sa.Column("lifetime_steps", sa.Integer(), nullable=False),
        sa.Column("playtime", sa.Float(), nullable=False),
        sa.Column("mind", sa.LargeBinary()),
    )
    op.create_index("agent_place", "agent", ["place", "id"])
    op.create_table(
        "answer",
        sa.Column("scope", _NAME, primary_key=True),
        sa.Column("key", _NAME, primary_key=True),
        sa.Column("fingerprint", _NAME, nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
    )
    op.create_table(
        "counter",
        sa.Column("name", _NAME, primary_key=True),
        sa.Column("value", sa.Integer(), nullable=False),
    )
    op.create_table(
        "game",
        sa.Column("name", _NAME, primary_key=True),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
    )
    op.create_table(
        "letter",
        sa.Column("id", sa.Integer(), autoincrement=True, primary_key=True),
        sa.Column("sender", _NAME, nullable=False),
        sa.Column("recipient", _NAME, nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("created", sa.String(40), nullable=False),
        sa.Column("read", sa.Boolean(), nullable=False),
    )
    op.create_index("letter_recipient", "letter", ["recipient", "read"])
    op.create_table(
        "nexus_event",
        sa.Column("seq", sa.Integer(), autoincrement=True, primary_key=True),
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
        "token",
        sa.Column("hash", _NAME, primary_key=True),
        sa.Column("agent_id", _NAME),
        sa.Column("created", sa.String(40), nullable=False),
    )
    op.create_table(
        "world",
        sa.Column("id", _NAME, primary_key=True),
        sa.Column("game", _NAME, nullable=False),
        sa.Column("owner", _NAME),
        sa.Column("seed", sa.Integer(), nullable=False),
        sa.Column("options", sa.JSON(), nullable=False),
        sa.Column("created", sa.String(40), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("run_id", _NAME),
        sa.Column("snapshot", sa.LargeBinary()),
    )
    op.create_index("world_owner", "world", ["game", "owner"])
    op.create_table(
        "achievement",
        sa.Column("agent_id", _NAME, _of("agent"), primary_key=True),
        sa.Column("game", _NAME, primary_key=True),
        sa.Column("name", _NAME, primary_key=True),
        sa.Column("first", sa.String(40), nullable=False),
        sa.Column("times", sa.Integer(), nullable=False),
    )
    op.create_table(
        "avatar",
        sa.Column("world_id", _NAME, _of("world"), primary_key=True),
        sa.Column("id", _NAME, primary_key=True),
        sa.Column("agent_id", _NAME, _of("agent"), nullable=False),
        sa.Column("game", _NAME, nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("left_at", sa.Integer(), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
    )
    op.create_index("avatar_agent", "avatar", ["agent_id", "game"])
    op.create_table(
        "evidence",
        sa.Column("agent_id", _NAME, _of("agent"), primary_key=True),
        sa.Column("domain", _NAME, primary_key=True),
        sa.Column("game", _NAME, primary_key=True),
        sa.Column("source", _NAME, primary_key=True),
        sa.Column("times", sa.Integer(), nullable=False),
        sa.Column("gained", sa.Float(), nullable=False),
    )
    op.create_table(
        "item",
        sa.Column("id", _NAME, primary_key=True),
        sa.Column("agent_id", _NAME, _of("agent"), nullable=False),
        sa.Column("place", sa.String(20), nullable=False),
        sa.Column("place_id", _NAME),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
    )
    op.create_index("item_owner", "item", ["agent_id", "place"])
    op.create_table(
        "metagoal",
        sa.Column("agent_id", _NAME, _of("agent"), primary_key=True),
        sa.Column("id", _NAME, primary_key=True),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("since", sa.Integer(), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
    )
    op.create_table(
        "session",
        sa.Column("id", _NAME, primary_key=True),
        sa.Column("agent_id", _NAME, _of("agent"), nullable=False),
        sa.Column("game", _NAME, nullable=False),
        sa.Column("world_id", _NAME, nullable=False),
        sa.Column("avatar_id", _NAME, nullable=False),
        sa.Column("run_id", _NAME, nullable=False),
        sa.Column("opened", sa.String(40), nullable=False),
        sa.Column("closed", sa.String(40)),
        sa.Column("reason", _NAME),
        sa.Column("steps", sa.Integer(), nullable=False),
        sa.Column("terms", sa.JSON(), nullable=False),
        sa.Column("stats", sa.JSON(), nullable=False),
    )
    op.create_index("session_agent", "session", ["agent_id", "id"])
    op.create_index("session_visits", "session", ["agent_id", "game"])
    _index_of_one("session_open", "session", "closed IS NULL")
    op.create_index("session_world", "session", ["world_id"])
    op.create_table(
        "skill",
        sa.Column("agent_id", _NAME, _of("agent"), primary_key=True),
        sa.Column("domain", _NAME, primary_key=True),
        sa.Column("level", sa.Float(), nullable=False),
    )
    op.create_table(
        "transfer",
        sa.Column("id", _NAME, primary_key=True),
        sa.Column("agent_id", _NAME, _of("agent"), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("created", sa.String(40), nullable=False),
        sa.Column("world_id", _NAME),
        sa.Column("data", sa.JSON(), nullable=False),
    )
    _index_of_one("transfer_open", "transfer", "state = 'prepared'")


def downgrade() -> None:
    """Drop the tables."""
    for tables in (
        ("transfer", "skill", "session", "metagoal", "item", "evidence", "avatar", "achievement"),
        ("world", "token", "nexus_event", "letter", "game", "counter", "answer", "agent"),
    ):
        for table in tables:
            op.drop_table(table)
