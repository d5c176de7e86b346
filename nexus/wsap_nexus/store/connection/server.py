"""Connections to a PostgreSQL server that end in time, whatever becomes of the server or of the way to it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Generator
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from sqlalchemy import Connection, Engine, PoolProxiedConnection, create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.exc import DisconnectionError, NoSuchModuleError

from wsap_core import errors
from wsap_nexus.store.json_values import JSON_COLUMNS

if TYPE_CHECKING:
    import psycopg

ANSWER_SECONDS = 5.0
"""Seconds to wait for an answer on an event loop, which waits too, and in the log writer."""
LONGEST_SECONDS = 300.0
"""Seconds to wait for an answer elsewhere, such as in a thread that deletes much."""
LOCK_SECONDS = 5.0
"""Seconds that the server lets a statement wait for a lock of another."""
IDLE_SECONDS = 2.0
"""Seconds after which a connection that was idle is tried before it is used."""

# Any, in this module: psycopg's generators, and the parameters of its connections.

_DEFAULTS: dict[str, Any] = {
    "connect_timeout": 5,
    # A peer that is gone without a word is noticed, by silence and by what it does not acknowledge.
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
    "application_name": "wsap",
}


class Connections:
    """The connections of the driver to one database: once it is closed, all of them are, and no more can be opened.

    A pool closes only those that are in it. One that a thread uses meanwhile, or opens just then, would stay open.
    """

    def __init__(self, where: str) -> None:
        self._where = where
        self._open: WeakSet[Any] = WeakSet()
        self._closed = False
        self._lock = threading.Lock()

    def connect(self, *words: Any, **values: Any) -> Any:
        """Open a connection; StorageError if the database was closed, also meanwhile."""
        driver = None if self._closed else _class().connect(*words, **values)
        with self._lock:
            if driver is not None and not self._closed:
                self._open.add(driver)
                return driver
        if driver is not None:
            driver.close()
        raise errors.StorageError(f"The database {self._where} was closed.")

    def close(self) -> None:
        """Close them all; from now on `connect` refuses."""
        with self._lock:
            self._closed = True
        for driver in list(self._open):
            driver.close()


def server_engine(url: URL, where: str, connections: Connections) -> Engine:
    """Return an engine for a server; what the URL says about a connection takes precedence over the defaults here.

    Args:
        connections: opens them, and can close them.

    Raises:
        MissingServiceError: the driver is not installed.
    """
    given = {name: value for name, value in _DEFAULTS.items() if name not in url.query}
    if "options" not in url.query:
        given["options"] = f"-c lock_timeout={int(LOCK_SECONDS * 1000)}"
    try:
        engine = create_engine(url, connect_args=given, **JSON_COLUMNS)
    except (ImportError, NoSuchModuleError):
        raise errors.MissingServiceError(
            f"The database {where} needs a driver that is not installed; "
            "install it with: pip install 'psycopg[binary]>=3.1'"
        ) from None
    event.listen(engine, "do_connect", lambda dialect, record, words, values: connections.connect(*words, **values))
    event.listen(engine, "checkin", _left)
    event.listen(engine, "checkout", _try_if_idle)
    return engine


def limit(connection: Connection, seconds: float = ANSWER_SECONDS) -> None:
    """Let every statement on a connection end within a time."""
    driver: Any = connection.connection.driver_connection
    driver.longest = seconds


def _left(driver: Any, record: Any) -> None:
    record.info["left"] = time.monotonic()
    if driver is not None:
        driver.longest = None


def _try_if_idle(driver: Any, record: Any, proxy: PoolProxiedConnection) -> None:
    # One after each pause finds out that the server was started again; each time would cost a round trip.
    if time.monotonic() - record.info.get("left", time.monotonic()) < IDLE_SECONDS:
        return
    try:
        driver.execute("SELECT 1")
        driver.rollback()
    except Exception as error:
        raise DisconnectionError from error


@lru_cache(maxsize=1)
def _class() -> type[psycopg.Connection[Any]]:
    # Deferred: the driver is optional.
    import psycopg

    class InTime(psycopg.Connection[Any]):
        """A connection that is closed, with an OperationalError, if the server does not answer in time."""

        longest: float | None = None

        def wait(self, gen: Any, *words: Any, **values: Any) -> Any:
            return super().wait(self._limited(gen), *words, **values)

        def _limited(self, gen: Any) -> Generator[Any, Any, Any]:
            seconds = self.longest or (ANSWER_SECONDS if _on_a_loop() else LONGEST_SECONDS)
            end = time.monotonic() + seconds
            try:
                wanted = next(gen)
                while True:
                    ready = yield wanted
                    if not ready and time.monotonic() > end:
                        self.pgconn.finish()
                        raise psycopg.OperationalError(f"the server did not answer for {seconds:.0f} seconds")
                    wanted = gen.send(ready)
            except StopIteration as done:
                return done.value

    return InTime


def _on_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
