"""The repository of answers to requests with an idempotency key, by caller and key."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, delete, func, insert, select, update

from wsap_nexus.store.entities import AnswerRecord
from wsap_nexus.store.repositories.log import EventRepository
from wsap_nexus.store.tables import METADATA

_ANSWER = METADATA.tables["answer"]


class AnswerRepository(EventRepository):
    """Reads and writes answers. Times are seconds since 1970, as the caller counts them."""

    def newest_answer(self) -> float | None:
        """Return the time of the newest answer; None if there is none."""
        found = self.connection.execute(select(func.max(_ANSWER.c.created))).scalar()
        return None if found is None else float(found)

    def answer(self, scope: str, key: str, *, since: float) -> AnswerRecord | None:
        """Return an answer that is not older than `since`, if there is one."""
        query = select(_ANSWER).where(_of(scope, key), _ANSWER.c.created >= since)
        found = self._all(AnswerRecord, query)
        return found[0] if found else None

    def put_answer(self, scope: str, key: str, *, created: float, **values: Any) -> None:
        """Store an answer, in place of an earlier one under that key."""
        self.connection.execute(delete(_ANSWER).where(_of(scope, key)))
        self.connection.execute(insert(_ANSWER).values(scope=scope, key=key, created=created, **values))

    def change_answer(self, scope: str, key: str, **values: Any) -> None:
        """Change columns of an answer."""
        self.connection.execute(update(_ANSWER).where(_of(scope, key)).values(**values))

    def drop_answer(self, scope: str, key: str) -> None:
        """Delete an answer."""
        self.connection.execute(delete(_ANSWER).where(_of(scope, key)))

    def drop_answers_before(self, moment: float) -> None:
        """Delete the answers from before a time."""
        self.connection.execute(delete(_ANSWER).where(_ANSWER.c.created < moment))


def _of(scope: str, key: str) -> ColumnElement[bool]:
    return (_ANSWER.c.scope == scope) & (_ANSWER.c.key == key)
