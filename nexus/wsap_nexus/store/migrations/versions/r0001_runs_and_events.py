"""Runs, their events, and compression dictionaries."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "run",
        sa.Column("id", sa.String(200), primary_key=True),
        sa.Column("game", sa.String(200), nullable=False),
        sa.Column("agent", sa.String(200), nullable=False),
        sa.Column("seed", sa.Integer, nullable=False),
        sa.Column("step_limit", sa.Integer),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("created", sa.String(40), nullable=False),
        sa.Column("updated", sa.String(40), nullable=False),
        sa.Column("wsap_version", sa.String(40), nullable=False),
        sa.Column("protocol_version", sa.String(40), nullable=False),
        sa.Column("config", sa.JSON, nullable=False),
        sa.Column("summary", sa.JSON),
    )
    op.create_index("run_newest", "run", ["created", "id"])
    op.create_table(
        "event",
        sa.Column("run_id", sa.String(200), sa.ForeignKey("run.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("seq", sa.Integer, primary_key=True),
        sa.Column("kind", sa.String(200), nullable=False),
        sa.Column("seat", sa.String(200)),
        sa.Column("episode", sa.Integer, nullable=False),
        sa.Column("step", sa.Integer),
        sa.Column("time", sa.Float, nullable=False),
        sa.Column("form", sa.String(10), nullable=False),
        sa.Column("codec", sa.String(20), nullable=False),
        sa.Column("dictionary", sa.Integer),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.CheckConstraint("seq >= 0", name="event_seq_counts_from_0"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "dictionary",
        sa.Column("run_id", sa.String(200), sa.ForeignKey("run.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("kind", sa.String(200), nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )


def downgrade() -> None:
    """Drop the tables."""
    op.drop_table("dictionary")
    op.drop_table("event")
    op.drop_table("run")
