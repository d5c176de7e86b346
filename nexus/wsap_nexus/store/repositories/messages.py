"""The repository of messages: one row for each recipient, unread until the recipient has seen it and acted."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlalchemy import delete, func, insert, select, update

from wsap_nexus.store.entities import MessageRecord
from wsap_nexus.store.repositories.log import EventRepository, matching
from wsap_nexus.store.tables import METADATA

_LETTER = METADATA.tables["letter"]


class MessageRepository(EventRepository):
    """Reads and writes messages."""

    def add_messages(self, sender: str, recipients: Sequence[str], kind: str, content: str, *, most: int) -> None:
        """Store a message for some recipients, each of whom keeps the newest `most` read and `most` unread ones."""
        rows = [
            {
                "sender": sender,
                "recipient": each,
                "kind": kind,
                "content": content,
                "created": self.stamp,
                "read": False,
            }
            for each in recipients
        ]
        self.connection.execute(insert(_LETTER), rows)
        for recipient in recipients:
            self._forget_oldest(recipient, most)

    def _forget_oldest(self, recipient: str, most: int) -> None:
        for read in (False, True):
            own = (_LETTER.c.recipient == recipient) & _LETTER.c.read.is_(read)
            newest = select(_LETTER.c.id).where(own).order_by(_LETTER.c.id.desc()).offset(most).limit(1)
            last = self.connection.execute(newest).scalar_one_or_none()
            if last is not None:
                self.connection.execute(delete(_LETTER).where(own & (_LETTER.c.id <= last)))

    def unread(self, recipient: str, *, sender: str | None = None, limit: int) -> list[MessageRecord]:
        """Return an agent's unread messages, oldest first, from all senders or one."""
        query = select(_LETTER).where(_LETTER.c.read.is_(False), *matching(_LETTER, recipient=recipient, sender=sender))
        return self._all(MessageRecord, query.order_by(_LETTER.c.id).limit(limit))

    def count_unread(self, recipient: str, sender: str) -> int:
        """Return the number of an agent's unread messages from one sender."""
        where = (_LETTER.c.read.is_(False), *matching(_LETTER, recipient=recipient, sender=sender))
        return int(self.connection.execute(select(func.count()).select_from(_LETTER).where(*where)).scalar_one())

    def mark_read(self, recipient: str, ids: Collection[int]) -> None:
        """Mark some of an agent's messages as read."""
        if ids:
            where = (_LETTER.c.recipient == recipient) & _LETTER.c.id.in_(list(ids))
            self.connection.execute(update(_LETTER).where(where).values(read=True))

    def correspondence(self, agent_id: str, *, limit: int) -> list[MessageRecord]:
        """Return the newest messages between an agent and other agents, oldest first."""
        own = ((_LETTER.c.recipient == agent_id) | (_LETTER.c.sender == agent_id)) & (_LETTER.c.kind != "talk")
        query = select(_LETTER).where(own).order_by(_LETTER.c.id.desc()).limit(limit)
        return self._all(MessageRecord, query)[::-1]
