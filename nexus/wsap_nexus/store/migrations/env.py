"""Alembic's environment: runs on the connection of `store.migrate`, without an ini file."""

from __future__ import annotations

from alembic import context

from wsap_nexus.store.tables import METADATA

connection = context.config.attributes["connection"]
# Batch mode: SQLite can't alter most properties of a table, so alembic copies it.
context.configure(connection=connection, target_metadata=METADATA, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
