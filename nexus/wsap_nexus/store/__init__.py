"""The database: runs with their events, and the records of the nexus.

    Database      opens and migrates the file (or server), and explains its errors
    LogWriter     appends events: the hot path, a thread that compresses and commits in groups
    Repository    creates and reads runs and events, as `RunRecord` and `EventRecord`
    NexusStore    transactions on the records of the nexus
    export_jsonl  a run as JSON lines
    RecordedRuns  the same for plugins: the kernel's `RunReader`

Names are imported at first use, so that importing this package imports no database library.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wsap_nexus.store.database import Database as Database
    from wsap_nexus.store.eventlog import LogWriter as LogWriter
    from wsap_nexus.store.export import RecordedRuns as RecordedRuns
    from wsap_nexus.store.export import export_jsonl as export_jsonl
    from wsap_nexus.store.records import EventRecord as EventRecord
    from wsap_nexus.store.records import NewRun as NewRun
    from wsap_nexus.store.records import RunRecord as RunRecord
    from wsap_nexus.store.records import RunStatus as RunStatus
    from wsap_nexus.store.records import new_run_id as new_run_id
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
    "new_run_id": "records",
}

__all__ = sorted(_WHERE)


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)
