"""What a caller may see: the admin everything, an agent what is its own, everybody else what a spectator sees.

Who is where is public, and what a game draws for spectators. What an agent is told, sees, thinks, remembers, does and
earns is not: in a game of hidden information each of these can tell the role that it plays.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from wsap_core.protocol.wire import encode
from wsap_nexus.http.auth import Caller
from wsap_nexus.store.entities import AgentIdentity, SessionRecord
from wsap_nexus.store.events import NexusEvent

_PUBLIC = {
    AgentIdentity: ("id", "name", "created", "state", "place", "session_id", "lifetime_steps", "playtime"),
    SessionRecord: (
        "id", "agent_id", "game", "world_id", "avatar_id", "run_id", "opened", "closed", "reason", "steps"
    ),
}  # fmt: skip


def sees(who: Caller | None, agent_id: str) -> bool:
    """Return whether a caller, None for one without a token, may see what is an agent's own."""
    return who is not None and who.agent_id in (None, agent_id)


def record_json(record: AgentIdentity | SessionRecord, *, private: bool) -> dict[str, Any]:
    """Return a record as JSON-ready data, with what is the agent's own or without."""
    shown = [field.name for field in fields(record)] if private else _PUBLIC[type(record)]
    return {name: encode(getattr(record, name)) for name in shown}


def sees_event(who: Caller | None, event: NexusEvent) -> bool:
    """Return whether a caller may see the whole of an event, and not only what is public."""
    return who is not None and (who.agent_id is None or who.agent_id in event.readers)
