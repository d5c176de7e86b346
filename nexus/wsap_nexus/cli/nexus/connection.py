"""The connection of a command to a nexus: over HTTP to a running one, else to its database."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from wsap_core.errors import UnknownNameError, UsageError
from wsap_nexus import state
from wsap_nexus.paths import database_location

if TYPE_CHECKING:
    from wsap_nexus.cli.nexus.nexus_http import NexusHttp
    from wsap_nexus.store.nexus_store import NexusStore, Transaction


def running_on(database: str | None) -> state.Running | None:
    """Return the nexus that is running on a database; None if there is none."""
    return state.read(state.state_file(database_location(database, os.environ), os.environ))


@contextmanager
def reading(database: str | None) -> Iterator[NexusStore | None]:
    """Give the store of the nexus for reading; None if there is none yet."""
    from wsap_nexus.cli.runs import open_for_reading
    from wsap_nexus.store.nexus_store import NexusStore

    opened = open_for_reading(database)
    if opened is None:
        yield None
        return
    with opened:
        yield NexusStore(opened)


@contextmanager
def looking(database: str | None, name: str) -> Iterator[Transaction]:
    """Give a transaction in which an agent can be read; UnknownNameError if there is no nexus yet, and so no agent."""
    with reading(database) as nexus_store:
        if nexus_store is None:
            raise UnknownNameError("agent", name, ())
        with nexus_store.look() as tx:
            yield tx


@contextmanager
def writing(database: str | None, *, lock: bool) -> Iterator[NexusStore]:
    """Give the store of the nexus for writing; with `lock` no nexus can be started meanwhile.

    Raises:
        NexusRunningError: a nexus is running, and `lock` is asked for.
    """
    from wsap_nexus.runs.store import open_database
    from wsap_nexus.store.lock import instance_lock
    from wsap_nexus.store.nexus_store import NexusStore

    with open_database(database) as opened:
        instance = instance_lock(opened)
        if lock:
            instance.acquire()
        try:
            nexus_store = NexusStore(opened)
            if lock:
                _settle(nexus_store)
            yield nexus_store
        finally:
            if lock:
                instance.release()


def _settle(nexus_store: NexusStore) -> None:
    """Close the sessions of runs outside the nexus whose process was killed."""
    with nexus_store.look() as tx:
        if not tx.run_sessions():
            return
    from wsap_core.host import PluginHost
    from wsap_nexus.hub.run_sessions import settle_runs
    from wsap_nexus.store.repository import Repository

    settle_runs(nexus_store, Repository(nexus_store.database), PluginHost.discovered())


def locked(database: str | None) -> Any:
    """Give the store of the nexus for writing; no nexus can be started meanwhile."""
    # Any: a context manager over a `NexusStore`.
    return writing(database, lock=True)


def http_to(running: state.Running) -> NexusHttp:
    """Return the HTTP client of a running nexus."""
    from wsap_nexus.cli.nexus.nexus_http import NexusHttp

    return NexusHttp(running)


def require_nexus(database: str | None, what: str) -> NexusHttp:
    """Return the HTTP client of the nexus that runs on a database.

    Args:
        what: what the nexus is needed for, in the message.

    Raises:
        UsageError: none is running.
    """
    running = running_on(database)
    if running is None:
        raise UsageError(f"No nexus is running, and one is needed to {what}; start it with: wsap nexus start")
    return http_to(running)
