"""An agent's diary: an entry after each stay, in its own words where it has some.

Entries are events `diary` of the nexus' log. They are written after the agent has left, beside
whatever it does next; an agent without words of its own, or whose model can't be asked, gets an
entry put together from what the log says of the stay.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from wsap_core.untrusted import one_line
from wsap_nexus.agents.chronicle import latest, session_facts
from wsap_nexus.store.entities import SessionRecord
from wsap_nexus.store.events import DiaryWritten
from wsap_nexus.store.nexus_store import Transaction

LONGEST = 2000
"""Characters of an entry."""
SECONDS = 120.0
"""How long an agent may think about what to write."""


@dataclass(frozen=True)
class Entry:
    """An entry of a diary."""

    number: int
    """The event's."""
    time: str
    """ISO 8601, UTC."""
    text: str
    game: str
    session: str | None
    own_words: bool
    """Whether the agent wrote it; False where it was put together from the log."""


def composed(book: Transaction, session: SessionRecord) -> str:
    """Return an entry from what the log says of a session."""
    return " ".join(session_facts(book, session))[:LONGEST]


def write_entry(book: Transaction, session: SessionRecord, text: str, *, own_words: bool, error: str = "") -> None:
    """Put an entry into the diary of a session's agent, unless there is one of that session."""
    for event in latest(book, session.agent_id, DiaryWritten, limit=50):
        if event.session_id == session.id:
            return
    entry = DiaryWritten(
        agent_id=session.agent_id,
        game=session.game,
        session_id=session.id,
        text=text.strip()[:LONGEST],
        own_words=own_words,
    )
    book.note(entry.model_copy(update={"error": one_line(error)[:300]}) if error else entry)


def entries(book: Transaction, agent_id: str, *, before: int | None = None, limit: int = 50) -> list[Entry]:
    """Return an agent's diary, newest first, a page at a time.

    Args:
        book: where.
        agent_id: whose.
        before: only entries with smaller numbers.
        limit: how many at most.
    """
    return [
        Entry(
            event.seq,
            datetime.fromtimestamp(event.time, UTC).isoformat(timespec="seconds"),
            event.text,
            event.game or "",
            event.session_id,
            event.own_words,
        )
        for event in latest(book, agent_id, DiaryWritten, limit=limit, before=before)
    ]
