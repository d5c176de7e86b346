"""The nexus: agents, where they and their things are, and its log."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the nexus' tables."""
    op.create_table(
        "agent",
        sa.Column("id", sa.String(200), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("created", sa.String(40), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("place", sa.String(20), nullable=False),
        sa.Column("session_id", sa.String(200)),
        sa.Column("persona", sa.Text(), nullable=False),
        sa.Column("policies", sa.JSON(), nullable=False),
        sa.Column("lore", sa.JSON(), nullable=False),
        sa.Column("lifetime_steps", sa.Integer(), nullable=False),
        sa.Column("playtime", sa.Float(), nullable=False),
        sa.Column("mind", sa.LargeBinary()),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("agent_place", "agent", ["place", "id"])
    op.create_table(
        "answer",
        sa.Column("scope", sa.String(200), nullable=False),
        sa.Column("key", sa.String(200), nullable=False),
        sa.Column("fingerprint", sa.String(200), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("scope", "key"),
    )
    op.create_table(
        "counter",
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("value", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "game",
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "letter",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("sender", sa.String(200), nullable=False),
        sa.Column("recipient", sa.String(200), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("created", sa.String(40), nullable=False),
        sa.Column("read", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("letter_recipient", "letter", ["recipient", "read"])
    op.create_table(
        "nexus_event",
        sa.Column("seq", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("kind", sa.String(200), nullable=False),
        sa.Column("agent_id", sa.String(200)),
        sa.Column("game", sa.String(200)),
        sa.Column("session_id", sa.String(200)),
        sa.Column("time", sa.Float(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("seq"),
        sqlite_autoincrement=True,
    )
    op.create_index("nexus_event_agent", "nexus_event", ["agent_id", "seq"])
    op.create_index("nexus_event_agent_kind", "nexus_event", ["agent_id", "kind", "seq"])
    op.create_index("nexus_event_kind", "nexus_event", ["kind", "seq"])
    op.create_table(
        "token",
        sa.Column("hash", sa.String(200), nullable=False),
        sa.Column("agent_id", sa.String(200)),
        sa.Column("created", sa.String(40), nullable=False),
        sa.PrimaryKeyConstraint("hash"),
    )
    op.create_table(
        "world",
        sa.Column("id", sa.String(200), nullable=False),
        sa.Column("game", sa.String(200), nullable=False),
        sa.Column("owner", sa.String(200)),
        sa.Column("seed", sa.Integer(), nullable=False),
        sa.Column("options", sa.JSON(), nullable=False),
        sa.Column("created", sa.String(40), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.String(200)),
        sa.Column("snapshot", sa.LargeBinary()),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("world_owner", "world", ["game", "owner"])
    op.create_table(
        "achievement",
        sa.Column("agent_id", sa.String(200), nullable=False),
        sa.Column("game", sa.String(200), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("first", sa.String(40), nullable=False),
        sa.Column("times", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["agent_id"], ["agent.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("agent_id", "game", "name"),
    )
    op.create_table(
        "avatar",
        sa.Column("world_id", sa.String(200), nullable=False),
        sa.Column("id", sa.String(200), nullable=False),
        sa.Column("agent_id", sa.String(200), nullable=False),
        sa.Column("game", sa.String(200), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("left_at", sa.Integer(), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["agent_id"], ["agent.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["world_id"], ["world.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("world_id", "id"),
    )
    op.create_index("avatar_agent", "avatar", ["agent_id", "game"])
    op.create_table(
        "evidence",
        sa.Column("agent_id", sa.String(200), nullable=False),
        sa.Column("domain", sa.String(200), nullable=False),
        sa.Column("game", sa.String(200), nullable=False),
        sa.Column("source", sa.String(200), nullable=False),
        sa.Column("times", sa.Integer(), nullable=False),
        sa.Column("gained", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["agent_id"], ["agent.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("agent_id", "domain", "game", "source"),
    )
    op.create_table(
        "item",
        sa.Column("id", sa.String(200), nullable=False),
        sa.Column("agent_id", sa.String(200), nullable=False),
        sa.Column("place", sa.String(20), nullable=False),
        sa.Column("place_id", sa.String(200)),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["agent_id"], ["agent.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("item_owner", "item", ["agent_id", "place"])
    op.create_table(
        "metagoal",
        sa.Column("agent_id", sa.String(200), nullable=False),
        sa.Column("id", sa.String(200), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("since", sa.Integer(), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["agent_id"], ["agent.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("agent_id", "id"),
    )
    op.create_table(
        "session",
        sa.Column("id", sa.String(200), nullable=False),
        sa.Column("agent_id", sa.String(200), nullable=False),
        sa.Column("game", sa.String(200), nullable=False),
        sa.Column("world_id", sa.String(200), nullable=False),
        sa.Column("avatar_id", sa.String(200), nullable=False),
        sa.Column("run_id", sa.String(200), nullable=False),
        sa.Column("opened", sa.String(40), nullable=False),
        sa.Column("closed", sa.String(40)),
        sa.Column("reason", sa.String(200)),
        sa.Column("steps", sa.Integer(), nullable=False),
        sa.Column("terms", sa.JSON(), nullable=False),
        sa.Column("stats", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["agent_id"], ["agent.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("session_agent", "session", ["agent_id", "id"])
    op.create_index("session_visits", "session", ["agent_id", "game"])
    op.create_index(
        "session_open",
        "session",
        ["agent_id"],
        unique=True,
        sqlite_where=sa.text("closed IS NULL"),
        postgresql_where=sa.text("closed IS NULL"),
    )
    op.create_index("session_world", "session", ["world_id"])
    op.create_table(
        "skill",
        sa.Column("agent_id", sa.String(200), nullable=False),
        sa.Column("domain", sa.String(200), nullable=False),
        sa.Column("level", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["agent_id"], ["agent.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("agent_id", "domain"),
    )
    op.create_table(
        "transfer",
        sa.Column("id", sa.String(200), nullable=False),
        sa.Column("agent_id", sa.String(200), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("created", sa.String(40), nullable=False),
        sa.Column("world_id", sa.String(200)),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["agent_id"], ["agent.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(
        "transfer_open",
        "transfer",
        ["agent_id"],
        unique=True,
        sqlite_where=sa.text("state = 'prepared'"),
        postgresql_where=sa.text("state = 'prepared'"),
    )


def downgrade() -> None:
    """Drop them, and with them every agent."""
    op.drop_table("transfer")
    op.drop_table("skill")
    op.drop_table("session")
    op.drop_table("metagoal")
    op.drop_table("item")
    op.drop_table("evidence")
    op.drop_table("avatar")
    op.drop_table("achievement")
    op.drop_table("world")
    op.drop_table("token")
    op.drop_table("nexus_event")
    op.drop_table("letter")
    op.drop_table("game")
    op.drop_table("counter")
    op.drop_table("answer")
    op.drop_table("agent")
