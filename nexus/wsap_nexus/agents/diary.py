"""An agent's diary: an entry after each session, in its own words if it has any.

Entries are events `diary` of the nexus. They are written after the session, while the agent goes on; for an agent
without words of its own, or whose model fails, the entry is composed from the log.
"""

from __future__ import annotations

from datetime import UTC, datetime

from wsap_core.untrusted import single_line
from wsap_nexus.agents.chronicle import latest, session_facts
from wsap_nexus.store.entities import DiaryEntry, SessionRecord
from wsap_nexus.store.events import DiaryWritten
from wsap_nexus.store.nexus_store import Transaction

LONGEST = 2000
"""Characters of an entry."""
SECONDS = 120.0
"""Seconds that an agent has for an entry."""


def composed(tx: Transaction, session: SessionRecord) -> str:
    """Return an entry composed from the log of a session."""
    return " ".join(session_facts(tx, session))[:LONGEST]


def write_entry(tx: Transaction, session: SessionRecord, text: str, *, own_words: bool, error: str = "") -> None:
    """Add an entry to the diary of a session's agent, unless the session has one."""
    for event in latest(tx, session.agent_id, DiaryWritten, limit=50):
        if event.session_id == session.id:
            return
    entry = DiaryWritten(
        agent_id=session.agent_id,
        game=session.game,
        session_id=session.id,
        text=text.strip()[:LONGEST],
        own_words=own_words,
    )
    tx.note(entry.model_copy(update={"error": single_line(error)[:300]}) if error else entry)


def entries(tx: Transaction, agent_id: str, *, before: int | None = None, limit: int = 50) -> list[DiaryEntry]:
    """Return an agent's diary, newest first: at most `limit` entries, with numbers below `before` if given."""
    return [
        DiaryEntry(
            event.seq,
            datetime.fromtimestamp(event.time, UTC).isoformat(timespec="seconds"),
            event.text,
            event.game or "",
            event.session_id,
            event.own_words,
        )
        for event in latest(tx, agent_id, DiaryWritten, limit=limit, before=before)
    ]
