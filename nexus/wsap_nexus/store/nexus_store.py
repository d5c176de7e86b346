"""The nexus' records: each change and the event that reports it are one transaction.

`NexusStore.change()` yields a `Transaction`, committed as a whole or rolled back. Listeners get its events after the
commit, never before. Whatever changes or deletes records does so there: on a server, `Database.write()` alone does not
keep what was read from being changed by others before it is written.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy import text

from wsap_nexus.store.database import Database
from wsap_nexus.store.events import NexusEvent
from wsap_nexus.store.repositories.answers import AnswerRepository
from wsap_nexus.store.repositories.games import GameRepository
from wsap_nexus.store.repositories.goals import GoalRepository
from wsap_nexus.store.repositories.items import ItemRepository
from wsap_nexus.store.repositories.messages import MessageRepository
from wsap_nexus.store.repositories.passes import PassRepository
from wsap_nexus.store.repositories.sessions import SessionRepository
from wsap_nexus.store.repositories.worlds import WorldRepository

_WRITE_LOCK = 0x57534151  # the PostgreSQL advisory lock that serializes changes

_LOGGER = logging.getLogger(__name__)

Listener = Callable[[NexusEvent], None]


class Transaction(
    SessionRepository,
    WorldRepository,
    ItemRepository,
    GoalRepository,
    MessageRepository,
    GameRepository,
    AnswerRepository,
    PassRepository,
):
    """Reads and writes the nexus' records; created by `NexusStore`."""


class NexusStore:
    """Transactions on the nexus' tables of a database."""

    def __init__(self, database: Database, *, wall_clock: Callable[[], float] = time.time) -> None:
        self.database = database
        self.wall_clock = wall_clock
        """Seconds since 1970."""
        self._listeners: list[Listener] = []

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call a listener with each event after its commit; returns a function that removes the listener."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    @contextmanager
    def change(self) -> Iterator[Transaction]:
        """Yield a transaction for writing: committed at the end of the block, rolled back on an exception."""
        with self.database.write() as connection:
            if not self.database.is_sqlite:
                # Event numbers must become visible in order, and checks must still hold at the write.
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _WRITE_LOCK})
            tx = Transaction(connection, self.wall_clock())
            yield tx
        for event in tx.noted:
            for listener in list(self._listeners):
                try:
                    listener(event)
                except Exception:  # the change is committed, whatever a listener does
                    _LOGGER.exception("A listener failed on event %d.", event.seq)

    @contextmanager
    def look(self) -> Iterator[Transaction]:
        """Yield a transaction for reading, which sees one state of the database."""
        with self.database.read() as connection:
            yield Transaction(connection, self.wall_clock())
