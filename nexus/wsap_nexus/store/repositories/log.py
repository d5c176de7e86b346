"""The repository of the nexus' events, and the base of all repositories."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from sqlalchemy import Connection, Row, Select, Table, and_, bindparam, func, insert, select, update
from sqlalchemy.sql import ColumnElement

from wsap_core.protocol.wire import dumps
from wsap_nexus.store.entities import checked
from wsap_nexus.store.events import NexusEvent, kind_of, read_row
from wsap_nexus.store.tables import METADATA

_EVENT, _COUNTER = METADATA.tables["nexus_event"], METADATA.tables["counter"]
_LISTENER = METADATA.tables["listener"]
_LAST = 2**63 - 1
# Built once: building the query takes longer than running it.
_LATEST = (
    select(_EVENT)
    .where(_EVENT.c.agent_id == bindparam("agent"))
    .where(_EVENT.c.kind == bindparam("kind"))
    .where(_EVENT.c.seq < bindparam("before"))
    .order_by(_EVENT.c.seq.desc())
    .limit(bindparam("most"))
)

E = TypeVar("E", bound=NexusEvent)
R = TypeVar("R")


def matching(table: Table, **wanted: str | None) -> list[ColumnElement[bool]]:
    """Return the conditions that columns have these values; None matches anything."""
    return [table.c[name] == value for name, value in wanted.items() if value is not None]


def event_row(event: NexusEvent) -> dict[str, Any]:
    """Return the values of an event's columns but its number and time; StorageError if one does not fit."""
    return checked(
        _EVENT,
        {
            "kind": event.kind,
            "agent_id": event.agent_id,
            "game": event.game,
            "session_id": event.session_id,
            "body": dumps(event.body),
        },
    )


class EventRepository:
    """Reads and writes events within one transaction."""

    def __init__(self, connection: Connection, now: float) -> None:
        self.connection = connection
        self.now = now
        """Seconds since 1970."""
        self.noted: list[NexusEvent] = []
        """The events of this transaction."""

    @property
    def stamp(self) -> str:
        """The time as ISO 8601, in UTC."""
        return datetime.fromtimestamp(self.now, UTC).isoformat(timespec="milliseconds")

    def _all(self, kind: type[R], query: Select[Any]) -> list[R]:
        """Return the rows of a query over one table as records with the same fields."""
        return [kind(**row._mapping) for row in self.connection.execute(query)]

    def _has(self, *where: ColumnElement[bool]) -> bool:
        return self.connection.execute(select(1).where(*where).limit(1)).first() is not None

    def _insert(self, table: Table, **values: Any) -> None:
        self.connection.execute(insert(table).values(**checked(table, values)))

    def _update(self, table: Table, where: ColumnElement[bool], **values: Any) -> int:
        return self.connection.execute(update(table).where(where).values(**checked(table, values))).rowcount

    def _put(self, table: Table, key: Mapping[str, Any], *, changed: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
        # Updates the row of a key with `changed`, else inserts it with `new`; returns whether it is new.
        if self._update(table, and_(*(table.c[name] == value for name, value in key.items())), **changed):
            return False
        self._insert(table, **key, **new)
        return True

    def note(self, event: NexusEvent) -> int:
        """Write an event and return its number."""
        inserted = self.connection.execute(
            insert(_EVENT).values(**event_row(event), **checked(_EVENT, {"time": self.now}))
        ).inserted_primary_key
        seq = int(inserted[0]) if inserted else 0
        self.noted.append(event.model_copy(update={"seq": seq, "time": self.now}))
        return seq

    def note_rows(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write many events from `event_row` at once; listeners are not told of them. Any: the values of columns."""
        self.connection.execute(insert(_EVENT), [{**row, "time": self.now} for row in rows])

    def events(
        self,
        *,
        after: int = 0,
        agent: str | None = None,
        kinds: Sequence[type[NexusEvent] | str] = (),
        limit: int = 500,
    ) -> list[NexusEvent]:
        """Return events with numbers above `after`, oldest first, at most `limit`."""
        query = select(_EVENT).where(_EVENT.c.seq > after, *matching(_EVENT, agent_id=agent))
        query = query.order_by(_EVENT.c.seq).limit(limit)
        if kinds:
            query = query.where(_EVENT.c.kind.in_([kind_of(kind) for kind in kinds]))
        return [read_row(row) for row in self.connection.execute(query)]

    def event_page(
        self,
        *,
        before: int | None = None,
        after: int | None = None,
        agent: str | None = None,
        kinds: Collection[str] = (),
        limit: int,
    ) -> list[tuple[NexusEvent, int]]:
        """Return the last events before one or the first after one, newest first, each with the length of its body.

        Args:
            kinds: only events of these kinds; empty for all.
        """
        query = select(_EVENT).where(*matching(_EVENT, agent_id=agent)).limit(limit)
        query = query.order_by(_EVENT.c.seq if after is not None else _EVENT.c.seq.desc())
        if before is not None:
            query = query.where(_EVENT.c.seq < before)
        if after is not None:
            query = query.where(_EVENT.c.seq > after)
        if kinds:
            query = query.where(_EVENT.c.kind.in_(sorted(kinds)))
        found = [(read_row(row), len(row.body)) for row in self.connection.execute(query)]
        return found[::-1] if after is not None else found

    def latest(self, agent_id: str, *kinds: type[E], limit: int = 20, before: int | None = None) -> list[E]:
        """Return an agent's latest events of some kinds, newest first, with numbers below `before` if given."""
        rows: list[Row[Any]] = []
        # One query for each kind reads only the rows that it returns.
        for kind in kinds:
            given = {"agent": agent_id, "kind": kind_of(kind), "before": before or _LAST, "most": limit}
            rows += self.connection.execute(_LATEST, given)
        rows.sort(key=lambda row: -int(row.seq))
        found = (read_row(row) for row in rows[:limit])
        return [event for event in found if isinstance(event, kinds)]

    def count_events(self) -> int:
        """Return the number of events."""
        return int(self.connection.execute(select(func.count()).select_from(_EVENT)).scalar_one())

    def time_before_start(self, *, within: float) -> float | None:
        """Return the time of the newest event from more than `within` seconds before the newest start of the nexus.

        Seconds since 1970; None if there is no start, or nothing before it.
        """
        newest = select(_EVENT.c.seq, _EVENT.c.time).where(_EVENT.c.kind == "started")
        started = self.connection.execute(newest.order_by(_EVENT.c.seq.desc()).limit(1)).one_or_none()
        if started is None:
            return None
        earlier = select(_EVENT.c.time).where(_EVENT.c.seq < started.seq, _EVENT.c.time < started.time - within)
        found = self.connection.execute(earlier.order_by(_EVENT.c.seq.desc()).limit(1)).scalar()
        return None if found is None else float(found)

    def last_seq(self, kind: str | None = None) -> int:
        """Return the number of the newest event, of all kinds or one; 0 if there is none."""
        query = select(func.max(_EVENT.c.seq)).where(*matching(_EVENT, kind=kind))
        return int(self.connection.execute(query).scalar() or 0)

    def place_of_listener(self, name: str, *, new_after: str | None = None) -> int:
        """Return the number of the last event delivered to a listener.

        A new one starts after the newest event, or the newest of the kind `new_after`; so does one whose event is not
        there, because the log was replaced by an older one.
        """
        found = self.connection.execute(select(_LISTENER.c.seq).where(_LISTENER.c.name == name)).scalar()
        if found is not None and found > (last := self.last_seq()):
            found = last
            self.keep_place_of_listener(name, last)
        if found is None:
            found = self.last_seq(new_after)
            self._insert(_LISTENER, name=name, seq=found)
        return int(found)

    def keep_place_of_listener(self, name: str, seq: int) -> None:
        """Store the number of the last event delivered to a listener."""
        self._update(_LISTENER, _LISTENER.c.name == name, seq=seq)

    def next_number(self, what: str) -> int:
        """Return the next number of a kind of ids, each number once."""
        self._put(_COUNTER, {"name": what}, changed={"value": _COUNTER.c.value + 1}, new={"value": 1})
        return self.number(what) or 0

    def number(self, what: str) -> int | None:
        """Return the number stored by a name; None if there is none."""
        found = self.connection.execute(select(_COUNTER.c.value).where(_COUNTER.c.name == what)).scalar()
        return None if found is None else int(found)

    def put_number(self, what: str, value: int) -> None:
        """Store a number by a name."""
        self._put(_COUNTER, {"name": what}, changed={"value": value}, new={"value": value})
