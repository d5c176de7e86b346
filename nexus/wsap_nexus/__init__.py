"""The runtime of the Wild Spaces Agent Protocol: plays, records and replays agents in worlds.

    import wsap_nexus

    summary = wsap_nexus.play("crafter", seed=7, steps=500)
    run = wsap_nexus.read_run(summary.run)

Names are imported on first use, to keep the start of the command line fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from wsap_nexus.api import RecordedRun as RecordedRun
    from wsap_nexus.api import RecordedStep as RecordedStep
    from wsap_nexus.api import RunSummary as RunSummary
    from wsap_nexus.api import evaluate as evaluate
    from wsap_nexus.api import list_runs as list_runs
    from wsap_nexus.api import play as play
    from wsap_nexus.api import read_run as read_run
    from wsap_nexus.api import resume_run as resume_run

__all__ = ["RecordedRun", "RecordedStep", "RunSummary", "evaluate", "list_runs", "play", "read_run", "resume_run"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("wsap_nexus.api"), name)
