"""The newest states of worlds that live, and arrivals and departures in the index of rare kinds."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

_WHOLE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_BEFORE = (
    "kind IN ('influence', 'lessons', 'mind', 'model', 'plan', 'rewound', 'snapshot', 'start', 'tick', 'tools', "
    "'totals', 'whisper')"
)
_NOW = (
    "kind IN ('arrived', 'departed', 'influence', 'joined', 'lessons', 'mind', 'model', 'plan', 'rewound', 'snapshot', "
    "'start', 'tick', 'tools', 'totals', 'whisper', 'withdrawn')"
)


def upgrade() -> None:
    """Create the table and rebuild the index."""
    op.create_table(
        "saved_state",
        sa.Column("run_id", sa.String(200), sa.ForeignKey("run.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("whole", sa.Boolean(), primary_key=True),
        sa.Column("seq", _WHOLE, nullable=False),
        sa.Column("step", _WHOLE, nullable=False),
        sa.Column("time", sa.Float(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
    )
    _index(_NOW)


def downgrade() -> None:
    """Restore the index and drop the table."""
    _index(_BEFORE)
    op.drop_table("saved_state")


def _index(seldom: str) -> None:
    where = sa.text(seldom)
    op.drop_index("event_seldom", "event")
    op.create_index("event_seldom", "event", ["run_id", "kind", "seq"], sqlite_where=where, postgresql_where=where)
