"""What alembic runs: always on a connection that `storage.migrate` hands in, never from an ini file."""

from __future__ import annotations

from alembic import context

from wsap_nexus.store.tables import METADATA

connection = context.config.attributes["connection"]
# Batch mode: SQLite can't alter most things of a table, so alembic copies the table instead.
context.configure(connection=connection, target_metadata=METADATA, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
