"""Runs and their events, kept in a database.

    Database      opens the file (or server), brings it up to date, says clearly what is wrong
    LogWriter     appends events: the hot path, a thread that compresses and commits in groups
    Repository    creates and reads back runs and events, as `RunRecord` and `EventRecord`
    export_jsonl  a run as JSON lines
    RecordedRuns  the same for plugins: the kernel's `RunReader`

The names are loaded at first use, so that importing this package brings in no database library.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wsap_nexus.store.database import Database as Database
    from wsap_nexus.store.eventlog import LogWriter as LogWriter
    from wsap_nexus.store.export import RecordedRuns as RecordedRuns
    from wsap_nexus.store.export import export_jsonl as export_jsonl
    from wsap_nexus.store.ids import new_run_id as new_run_id
    from wsap_nexus.store.records import EventRecord as EventRecord
    from wsap_nexus.store.records import NewRun as NewRun
    from wsap_nexus.store.records import RunRecord as RunRecord
    from wsap_nexus.store.records import RunStatus as RunStatus
    from wsap_nexus.store.repository import Repository as Repository

_WHERE = {
    "Database": "database",
    "EventRecord": "records",
    "LogWriter": "eventlog",
    "NewRun": "records",
    "RecordedRuns": "export",
    "Repository": "repository",
    "RunRecord": "records",
    "RunStatus": "records",
    "export_jsonl": "export",
    "new_run_id": "ids",
}

__all__ = sorted(_WHERE)


def __getattr__(name: str) -> Any:
    # Any: the names are classes and functions; TYPE_CHECKING above tells the type checker which.
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)
