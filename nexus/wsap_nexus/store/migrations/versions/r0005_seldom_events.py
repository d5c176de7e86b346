"""An index of the kinds of events that are seldom, and looked for in long runs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

_SELDOM = "kind IN ('lessons', 'mind', 'plan', 'snapshot', 'start', 'tools', 'totals', 'whisper')"


def upgrade() -> None:
    """Make the index."""
    where = sa.text(_SELDOM)
    op.create_index("event_seldom", "event", ["run_id", "kind", "seq"], sqlite_where=where, postgresql_where=where)


def downgrade() -> None:
    """Drop it."""
    op.drop_index("event_seldom", "event")
