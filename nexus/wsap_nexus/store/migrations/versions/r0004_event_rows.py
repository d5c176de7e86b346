"""The event table of SQLite with row ids.

Without row ids, bodies are in inner pages of the tree and each insertion at the end of a run splits pages in the middle
of the file, which makes the table half as large again.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from alembic import op

revision = "0004"
down_revision = "0003"

_PIECE = 1000  # events moved at once

_TABLE = (
    "CREATE TABLE event ("
    "run_id VARCHAR(200) NOT NULL, seq INTEGER NOT NULL, kind VARCHAR(200) NOT NULL, seat VARCHAR(200), "
    "episode INTEGER NOT NULL, step INTEGER, time FLOAT NOT NULL, form VARCHAR(10) NOT NULL, "
    "codec VARCHAR(20) NOT NULL, dictionary INTEGER, body BLOB NOT NULL, "
    "PRIMARY KEY (run_id, seq), CONSTRAINT event_seq_counts_from_0 CHECK (seq >= 0), "
    "FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE)"
)


def upgrade() -> None:
    """Rebuild the table; if the disk has no room for that, the old one stays in use."""
    if op.get_bind().dialect.name == "sqlite" and _has_room():
        _rebuild(_TABLE)


def downgrade() -> None:
    """Rebuild the table without row ids."""
    if op.get_bind().dialect.name == "sqlite":
        _rebuild(f"{_TABLE} WITHOUT ROWID")


def _has_room() -> bool:
    # The copy is in the write-ahead log until the checkpoint.
    connection = op.get_bind()
    (path,) = (row[2] for row in connection.exec_driver_sql("PRAGMA database_list") if row[1] == "main")
    pages, size = (connection.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in ("page_count", "page_size"))
    return bool(shutil.disk_usage(Path(path).parent).free > pages * size)


def _rebuild(table: str) -> None:
    connection = op.get_bind()
    connection.exec_driver_sql("ALTER TABLE event RENAME TO old_event")
    connection.exec_driver_sql(table)
    # Piece by piece, so that each reuses the pages freed by the previous one and the file does not grow.
    runs = connection.exec_driver_sql("SELECT run_id, max(seq) FROM old_event GROUP BY run_id").all()
    for run, last in runs:
        for first in range(0, last + 1, _PIECE):
            piece = (run, first, first + _PIECE - 1)
            some = "old_event WHERE run_id = ? AND seq BETWEEN ? AND ?"
            connection.exec_driver_sql(f"INSERT INTO event SELECT * FROM {some} ORDER BY seq", piece)  # noqa: S608
            connection.exec_driver_sql(f"DELETE FROM {some}", piece)  # noqa: S608
    connection.exec_driver_sql("DROP TABLE old_event")
