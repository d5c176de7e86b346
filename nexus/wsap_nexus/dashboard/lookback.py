"""The command that shows more of a finished run than its steps."""

from __future__ import annotations

from wsap_core.errors import WsapError
from wsap_core.references import load_adapter_spec
from wsap_nexus.hub.nexus import Nexus
from wsap_nexus.store.records import RunStatus


def look_back(nexus: Nexus, run_id: str) -> str:
    """Return the command that shows more of a finished run; empty if its game has none."""
    try:
        record = nexus.store.repository.get_run(run_id)
        spec = load_adapter_spec(str(record.config.get("game", record.game)), nexus.host)
    except WsapError:  # the run was deleted, is the nexus itself, or its game is not installed
        return ""
    over = record.status is RunStatus.FINISHED and nexus.playing(run_id) is None
    return spec.look_back_at(run_id) if over else ""
