"""How to see more of a run that is over than its steps."""

from __future__ import annotations

from wsap_core.errors import WsapError
from wsap_core.references import load_adapter_spec
from wsap_nexus.hub.nexus import Nexus
from wsap_nexus.store.records import RunStatus


def look_back(nexus: Nexus, run_id: str) -> str:
    """Return the command that shows more of a run; empty where its game has none, or while it is not over."""
    try:
        record = nexus.store.repository.get_run(run_id)
        spec = load_adapter_spec(str(record.config.get("game", record.game)), nexus.host)
    except WsapError:  # the run is forgotten, or its game not installed any more, or the nexus itself
        return ""
    over = record.status is RunStatus.FINISHED and nexus.playing(run_id) is None
    return spec.look_back_at(run_id) if over else ""
