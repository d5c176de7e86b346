"""How a command gets at a nexus: over HTTP where one runs, in its database otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wsap_nexus.cli.nexus.wire import Wire
    from wsap_nexus.store.nexus_store import NexusStore


@contextmanager
def looking(database: str | None) -> Iterator[NexusStore | None]:
    """Give the nexus' records for reading; None where there are none yet."""
    from wsap_nexus.cli.runs import open_for_reading
    from wsap_nexus.store.nexus_store import NexusStore

    opened = open_for_reading(database)
    if opened is None:
        yield None
        return
    with opened:
        yield NexusStore(opened)


@contextmanager
def writing(database: str | None, *, lead: bool) -> Iterator[NexusStore]:
    """Give the nexus' records for writing; nobody else leads them meanwhile, if that is asked for.

    Raises:
        NexusRunningError: a nexus leads them.
    """
    from wsap_nexus.runs.store import open_database
    from wsap_nexus.store.lock import instance_lock as lead_of
    from wsap_nexus.store.nexus_store import NexusStore

    with open_database(database) as opened:
        right = lead_of(opened)
        if lead:
            right.acquire()
        try:
            ledger = NexusStore(opened)
            if lead:
                _settle(ledger)
            yield ledger
        finally:
            if lead:
                right.release()


def _settle(ledger: NexusStore) -> None:
    """Free the agents of runs outside the nexus whose process was killed."""
    with ledger.look() as book:
        if not book.run_sessions():
            return
    from wsap_core.host import PluginHost
    from wsap_nexus.hub.run_sessions import settle_runs
    from wsap_nexus.store.repository import Repository

    settle_runs(ledger, Repository(ledger.database), PluginHost.discovered())


def leading(database: str | None) -> Any:
    """Give the nexus' records for writing, with nobody else to lead them meanwhile."""
    # Any: a context manager over a ledger.
    return writing(database, lead=True)


def wire_to(running: Any) -> Wire:
    """Return the way to a running nexus."""
    # Any: the state of a running nexus, whose module is not needed for anything else here.
    from wsap_nexus.cli.nexus.wire import Wire

    return Wire(running)


def needed(database: str | None, what: str) -> Wire:
    """Return the way to the nexus that runs on a database; `what` says what it is needed for.

    Raises:
        UsageError: none runs.
    """
    from wsap_core.errors import UsageError
    from wsap_nexus.cli.nexus.report import running_on

    running = running_on(database)
    if running is None:
        raise UsageError(f"No nexus runs, and it takes one to {what}; start it with: wsap nexus start")
    return wire_to(running)
