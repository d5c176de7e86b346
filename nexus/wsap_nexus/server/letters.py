"""Messages between agents: a row for each who gets one."""

from __future__ import annotations

from typing import Any

from sqlalchemy import insert, select, update

from wsap_nexus.hub.book import Book
from wsap_nexus.storage.tables import METADATA

_AGENT, _LETTER = METADATA.tables["agent"], METADATA.tables["letter"]


def send(book: Book, sender: str, recipient: str | None, content: str) -> int:
    """Send a message to an agent, or to all others; return how many get it.

    Raises:
        UnknownNameError: there is no such agent.
    """
    if recipient is not None:
        to = [book.agent(recipient).id]
    else:
        others = select(_AGENT.c.id).where((_AGENT.c.id != sender) & (_AGENT.c.state != "removed"))
        to = list(book.connection.execute(others.order_by(_AGENT.c.id)).scalars())
    kind = "broadcast" if recipient is None else "direct"
    common = {"sender": sender, "kind": kind, "content": content, "created": book.stamp, "read": False}
    if to:
        book.connection.execute(insert(_LETTER), [{"recipient": name, **common} for name in to])
    # What was said is the recipients' affair; that something was said is for everybody.
    book.note("message_sent", agent=sender, to=recipient, form=kind, recipients=len(to))
    return len(to)


def received(book: Book, agent_id: str, *, after: int = 0, limit: int = 100) -> list[dict[str, Any]]:
    """Return an agent's messages with numbers above `after`, oldest first, and count them as read. Any: JSON."""
    query = select(_LETTER).where((_LETTER.c.recipient == agent_id) & (_LETTER.c.id > after))
    rows = [dict(row._mapping) for row in book.connection.execute(query.order_by(_LETTER.c.id).limit(limit))]
    unread = [row["id"] for row in rows if not row["read"]]
    if unread:
        book.connection.execute(update(_LETTER).where(_LETTER.c.id.in_(unread)).values(read=True))
    return rows
