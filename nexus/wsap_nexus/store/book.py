"""Who is where and with what: every change in one transaction, together with the event that tells of it.

`Ledger.change()` gives a `Book` within a transaction; what is written in it is committed as one or
not at all. Listeners hear of its events after the commit, never before.
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

_WRITERS_TURN = 0x57534151
# The advisory lock's number on PostgreSQL under which changes are made, one after the other.

_LOGGER = logging.getLogger(__name__)

Listener = Callable[[NexusEvent], None]


class Book(SessionRepository, WorldRepository, ItemRepository):
    """The nexus' records within one transaction. Made by a `Ledger`."""


class Ledger:
    """The nexus' part of a database.

    Args:
        database: where it is.
        wall_clock: seconds since 1970.
    """

    def __init__(self, database: Database, *, wall_clock: Callable[[], float] = time.time) -> None:
        self.database = database
        """Where it is."""
        self.wall_clock = wall_clock
        """Seconds since 1970."""
        self._listeners: list[Listener] = []

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Tell a listener of each event once it is committed; call what is returned to stop."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    @contextmanager
    def change(self) -> Iterator[Book]:
        """Give a book to write in; committed as one at the end, or undone by an exception."""
        with self.database.write() as connection:
            if not self.database.is_sqlite:
                # Numbers of events must become visible in their order, and what is checked must still hold when it is
                # written: as in a file, one change after the other.
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _WRITERS_TURN})
            book = Book(connection, self.wall_clock())
            yield book
        for event in book.noted:
            for listener in list(self._listeners):
                try:
                    listener(event)
                except Exception:  # what is committed has happened, whoever stumbles over hearing of it
                    _LOGGER.exception("A listener failed over event %d.", event.seq)

    @contextmanager
    def look(self) -> Iterator[Book]:
        """Give a book to read in: one state of everything."""
        with self.database.read() as connection:
            yield Book(connection, self.wall_clock())
