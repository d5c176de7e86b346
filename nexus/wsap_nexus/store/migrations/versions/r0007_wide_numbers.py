"""Whole numbers of 64 bits on PostgreSQL, as they are in SQLite."""

from __future__ import annotations

from alembic import op

revision = "0007"
down_revision = "0006"

_COLUMNS = {
    "run": ("seed", "step_limit"),
    "event": ("seq", "episode", "step", "dictionary"),
    "dictionary": ("number",),
    "inbox": ("number",),
    "agent": ("lifetime_steps",),
    "evidence": ("times",),
    "achievement": ("times",),
    "world": ("seed", "failures"),
    "avatar": ("left_at",),
    "session": ("steps",),
    "metagoal": ("since",),
    "letter": ("id",),
    "answer": ("status",),
    "counter": ("value",),
    "game": ("failures",),
    "nexus_event": ("seq",),
    "listener": ("seq",),
}
_COUNTED = {"inbox": "number", "letter": "id", "nexus_event": "seq"}


def upgrade() -> None:
    """Widen every column, and the counters of those that count by themselves."""
    _alter("bigint")


def downgrade() -> None:
    """Narrow them again."""
    _alter("integer")


def _alter(name: str) -> None:
    if op.get_bind().dialect.name != "postgresql":
        return
    for table, columns in _COLUMNS.items():
        # One statement for a table, which is written anew.
        changes = ", ".join(f"ALTER COLUMN {column} TYPE {name}" for column in columns)
        op.execute(f"ALTER TABLE {table} {changes}")
    for table, column in _COUNTED.items():
        op.execute(f"ALTER SEQUENCE {table}_{column}_seq AS {name}")
