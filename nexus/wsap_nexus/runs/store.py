"""Where a run is recorded: the database and its writer."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from wsap_core.errors import StorageReadOnlyError
from wsap_nexus.paths import database_location, prepare_home
from wsap_nexus.store.database import Database
from wsap_nexus.store.errors import OutdatedDatabaseError
from wsap_nexus.store.log.eventlog import LogWriter
from wsap_nexus.store.repository import Repository


@dataclass(frozen=True)
class Store:
    """An open database with its repository and log writer."""

    database: Database
    repository: Repository
    writer: LogWriter


def open_database(
    location: str | None = None, *, read_only: bool = False, environ: Mapping[str, str] | None = None
) -> Database:
    """Open the database at a location or the default one, migrating it if needed; StorageError if it can't be used."""
    variables = os.environ if environ is None else environ
    where = database_location(location, variables)
    if not read_only:
        prepare_home(where, variables)
    try:
        return Database.open(where, read_only=read_only)
    except OutdatedDatabaseError:
        with suppress(StorageReadOnlyError):
            Database.open(where).close()
        return Database.open(where, read_only=read_only)


@contextmanager
def open_store(location: str | None = None, *, environ: Mapping[str, str] | None = None) -> Iterator[Store]:
    """Open the database for recording, all committed when the block ends; StorageError if it can't be used."""
    with open_database(location, environ=environ) as database, LogWriter(database) as writer:
        yield Store(database, Repository(database), writer)
