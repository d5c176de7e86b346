"""An index of rare event kinds, which are searched for in long runs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

_SELDOM = "kind IN ('lessons', 'mind', 'plan', 'snapshot', 'start', 'tools', 'totals', 'whisper')"


def upgrade() -> None:
    """Create the index."""
    where = sa.text(_SELDOM)
    op.create_index("event_seldom", "event", ["run_id", "kind", "seq"], sqlite_where=where, postgresql_where=where)


def downgrade() -> None:
    """Drop the index."""
    op.drop_index("event_seldom", "event")
