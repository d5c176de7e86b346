"""The nexus' records: each change is one transaction, together with the event that reports it.

`NexusStore.change()` gives a `Transaction`, which is committed as a whole or rolled back. Listeners are
called with its events after the commit, never before.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy import text

from wsap_nexus.store.database import Database
from wsap_nexus.store.events import NexusEvent
from wsap_nexus.store.repositories.items import ItemRepository
from wsap_nexus.store.repositories.sessions import SessionRepository
from wsap_nexus.store.repositories.worlds import WorldRepository

_WRITE_LOCK = 0x57534151
# The number of the advisory lock on PostgreSQL that serializes changes.

_LOGGER = logging.getLogger(__name__)

Listener = Callable[[NexusEvent], None]


class Transaction(SessionRepository, WorldRepository, ItemRepository):
    """Reads and writes the nexus' records. Made by a `NexusStore`."""


class NexusStore:
    """Gives transactions on the nexus' tables of a database."""

    def __init__(self, database: Database, *, wall_clock: Callable[[], float] = time.time) -> None:
        self.database = database
        self.wall_clock = wall_clock
        """Seconds since 1970."""
        self._listeners: list[Listener] = []

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call a listener with each event after its commit; call the function that is returned to stop."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    @contextmanager
    def change(self) -> Iterator[Transaction]:
        """Give a transaction to write in; it is committed at the end and rolled back by an exception."""
        with self.database.write() as connection:
            if not self.database.is_sqlite:
                # Event numbers must become visible in order, and what was checked must still hold when it is written.
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _WRITE_LOCK})
            tx = Transaction(connection, self.wall_clock())
            yield tx
        for event in tx.noted:
            for listener in list(self._listeners):
                try:
                    listener(event)
                except Exception:  # a listener must not undo what is committed
                    _LOGGER.exception("A listener failed on event %d.", event.seq)

    @contextmanager
    def look(self) -> Iterator[Transaction]:
        """Give a transaction to read in; it sees one state of the database."""
        with self.database.read() as connection:
            yield Transaction(connection, self.wall_clock())
