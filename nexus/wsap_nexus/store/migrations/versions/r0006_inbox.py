"""The inbox of living worlds, and their events in the index of rare kinds."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

_BEFORE = "kind IN ('lessons', 'mind', 'plan', 'snapshot', 'start', 'tools', 'totals', 'whisper')"
_NOW = (
    "kind IN ('influence', 'lessons', 'mind', 'model', 'plan', 'rewound', 'snapshot', 'start', 'tick', 'tools', "
    "'totals', 'whisper')"
)


def upgrade() -> None:
    """Create the table and rebuild the index."""
    op.create_table(
        "inbox",
        sa.Column("number", sa.Integer(), primary_key=True, autoincrement=True),
        sa.Column("run_id", sa.String(200), sa.ForeignKey("run.id", ondelete="CASCADE"), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("inbox_run", "inbox", ["run_id", "number"])
    _index(_NOW)


def downgrade() -> None:
    """Restore the index and drop the table."""
    _index(_BEFORE)
    op.drop_index("inbox_run", "inbox")
    op.drop_table("inbox")


def _index(seldom: str) -> None:
    where = sa.text(seldom)
    op.drop_index("event_seldom", "event")
    op.create_index("event_seldom", "event", ["run_id", "kind", "seq"], sqlite_where=where, postgresql_where=where)
