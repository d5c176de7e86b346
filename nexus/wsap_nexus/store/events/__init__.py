"""The events of the nexus: one class for each kind.

An event is written by `Transaction.note(Entered(agent_id="ada", ...))` in the transaction that it tells of, and
read back as the same class. `NexusEvent.sentence` tells it, for every reader alike.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from wsap_nexus.store.events import agents, nexus, sessions
from wsap_nexus.store.events.agents import (
    AchievementEarned,
    AgentFailed,
    AgentImported,
    AgentMovedAway,
    AgentPaused,
    AgentRegistered,
    AgentRemoved,
    AgentRenamed,
    AgentResumed,
    DiaryWritten,
    MessageSent,
    MetaGoalAbandoned,
    MetaGoalReached,
    MetaGoalSet,
    PersonaChanged,
    PolicyChanged,
    SkillGained,
    Talked,
    TeamChanged,
    Whispered,
)
from wsap_nexus.store.events.base import BY_ID, AgentEvent, Gain, GameEvent, Names, NexusEvent, OtherEvent, sentences
from wsap_nexus.store.events.endings import ENDINGS, why_ended
from wsap_nexus.store.events.nexus import (
    DiskFull,
    GameAvailable,
    GameFailed,
    GameInMaintenance,
    GameJoined,
    GameOffline,
    ListenerFailed,
    NexusStarted,
    NexusStopped,
    PruneFailed,
    RecordsPruned,
)
from wsap_nexus.store.events.sessions import (
    AvatarChanged,
    Died,
    Entered,
    EntryRefused,
    ItemFound,
    ItemMoved,
    ItemsMoved,
    ItemsRefused,
    Left,
    OnwardRefused,
    SessionForceClosed,
    SessionResumed,
    TransferCancelled,
    TransferSettled,
    TransferUnresolved,
    VisitStarted,
    WorldCrashed,
    WorldFailed,
)

KINDS: Mapping[str, type[NexusEvent]] = {
    str(found.model_fields["kind"].default): found
    for module in (agents, nexus, sessions)
    for found in vars(module).values()
    if isinstance(found, type) and issubclass(found, NexusEvent) and not found.model_fields["kind"].is_required()
}
"""Kind -> class, of every event that this version writes, or that a version before it wrote."""

PUBLIC_KINDS = frozenset(kind for kind, event in KINDS.items() if event.PUBLIC is not None)
"""The kinds of events of which anybody may learn."""


def kind_of(event: type[NexusEvent] | str) -> str:
    """Return the stored kind of the events of a class."""
    return event if isinstance(event, str) else str(event.model_fields["kind"].default)


def read_event(
    kind: str,
    body: Mapping[str, Any],
    *,
    seq: int = 0,
    agent_id: str | None = None,
    game: str | None = None,
    session_id: str | None = None,
    time: float = 0.0,
) -> NexusEvent:
    """Return an event as it was stored; one of an unknown kind, or with an unreadable body, as `OtherEvent`.

    Args:
        body: JSON-ready data.
        time: seconds since 1970.
    """
    envelope: dict[str, Any] = {
        "kind": kind,
        "seq": seq,
        "agent_id": agent_id,
        "game": game,
        "session_id": session_id,
        "time": time,
    }
    known = KINDS.get(kind)
    if known is not None:
        try:
            return known.model_validate({**body, **envelope})
        except ValidationError:
            pass  # a body as no version writes it
    return OtherEvent(**envelope, data=dict(body))


def read_row(row: Any) -> NexusEvent:
    """Return the event of a row of the table `nexus_event`. Any: the row."""
    return read_event(
        row.kind,
        json.loads(row.body),
        seq=row.seq,
        agent_id=row.agent_id,
        game=row.game,
        session_id=row.session_id,
        time=row.time,
    )


__all__ = [
    "BY_ID",
    "ENDINGS",
    "KINDS",
    "PUBLIC_KINDS",
    "AchievementEarned",
    "AgentEvent",
    "AgentFailed",
    "AgentImported",
    "AgentMovedAway",
    "AgentPaused",
    "AgentRegistered",
    "AgentRemoved",
    "AgentRenamed",
    "AgentResumed",
    "AvatarChanged",
    "DiaryWritten",
    "Died",
    "DiskFull",
    "Entered",
    "EntryRefused",
    "Gain",
    "GameAvailable",
    "GameEvent",
    "GameFailed",
    "GameInMaintenance",
    "GameJoined",
    "GameOffline",
    "ItemFound",
    "ItemMoved",
    "ItemsMoved",
    "ItemsRefused",
    "Left",
    "ListenerFailed",
    "MessageSent",
    "MetaGoalAbandoned",
    "MetaGoalReached",
    "MetaGoalSet",
    "Names",
    "NexusEvent",
    "NexusStarted",
    "NexusStopped",
    "OnwardRefused",
    "OtherEvent",
    "PersonaChanged",
    "PolicyChanged",
    "PruneFailed",
    "RecordsPruned",
    "SessionForceClosed",
    "SessionResumed",
    "SkillGained",
    "Talked",
    "TeamChanged",
    "TransferCancelled",
    "TransferSettled",
    "TransferUnresolved",
    "VisitStarted",
    "Whispered",
    "WorldCrashed",
    "WorldFailed",
    "kind_of",
    "read_event",
    "read_row",
    "sentences",
    "why_ended",
]
