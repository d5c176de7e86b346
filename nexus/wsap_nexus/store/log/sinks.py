"""Commits groups of events for the log writer: to files with plain sqlite3, to servers with SQLAlchemy."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, NamedTuple

from sqlalchemy import Connection, delete, insert, select, update
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import IntegrityError

from wsap_core.protocol.wire import dumps
from wsap_nexus.store.database import Database, replaced
from wsap_nexus.store.log.bodies import BodyEncoder, NewDictionary
from wsap_nexus.store.records import NewMoment, RunStatus
from wsap_nexus.store.tables import METADATA


class Item(NamedTuple):
    """An event to commit; its fields are those of `EventRecord`."""

    run_id: str
    seq: int
    kind: str
    seat: str | None
    episode: int
    step: int | None
    time: float
    form: str
    """"json" or "bytes"."""
    body: bytes
    takes: int | None = None
    """The inbox row to delete with it."""
    moments: Sequence[NewMoment] = ()
    """What is told of it."""
    agent: str = ""
    """The agent of the moments."""


class Made(NamedTuple):
    """A new run to commit."""

    run_id: str
    row: Mapping[str, Any]
    """Its columns. Any: strings, numbers, and JSON-ready data."""
    time: float


class State(NamedTuple):
    """A change of a run's status to commit."""

    run_id: str
    status: RunStatus
    summary: str | None
    """JSON text; None keeps the stored one."""
    time: float


class Kept(NamedTuple):
    """The newest state of a world that lives, which replaces the previous one."""

    run_id: str
    whole: bool
    seq: int
    step: int
    time: float
    body: bytes


Change = Made | Item | State | Kept
"""What is committed, in the order in which it was told."""

MomentValues = tuple[str, int, int, str, str, int, float, str, float, str, str]
"""A row of the table of moments, in the order of its columns."""

EventValues = tuple[str, int, str, str | None, int, int | None, float, str, str, int | None, bytes]
"""A row of the event table, in the order of its columns."""


@dataclass
class Group:
    """The rows of one commit."""

    made: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """New runs with their columns. Any: as in `Made`."""
    events: list[EventValues] = field(default_factory=list)
    dictionaries: list[NewDictionary] = field(default_factory=list)
    states: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    """Run -> new status, and the summary as JSON text or None to keep it."""
    moments: list[MomentValues] = field(default_factory=list)
    taken: list[int] = field(default_factory=list)
    """Inbox rows to delete."""
    kept: dict[tuple[str, bool], Kept] = field(default_factory=dict)
    """States that replace those before, by run and whether they are whole."""
    touched: dict[str, str] = field(default_factory=dict)
    """Run -> time of its last event, ISO 8601."""

    def of_runs(self, there: Collection[str]) -> Group:
        """Return the rows of these runs; the others were deleted meanwhile, and what is still told of them goes too."""
        if self.touched.keys() <= set(there):
            return self
        return Group(
            {run: row for run, row in self.made.items() if run in there},
            [row for row in self.events if row[0] in there],
            [row for row in self.dictionaries if row[0] in there],
            {run: state for run, state in self.states.items() if run in there},
            [row for row in self.moments if row[0] in there],
            self.taken,
            {key: kept for key, kept in self.kept.items() if kept.run_id in there},
            {run: when for run, when in self.touched.items() if run in there},
        )


def make_group(batch: Iterable[Change], encoder: BodyEncoder) -> Group:
    """Return the rows of a batch, compressing the bodies of one kind in one run together."""
    group = Group()
    streams: dict[tuple[str, str], list[int]] = {}
    events: list[Item] = []
    latest: dict[str, float] = {}
    for item in batch:
        latest[item.run_id] = item.time
        if isinstance(item, Made):
            group.made[item.run_id] = item.row
        elif isinstance(item, State):
            _, summary = group.states.get(item.run_id, ("", None))
            group.states[item.run_id] = (item.status.value, item.summary or summary)
        elif isinstance(item, Kept):
            group.kept[item.run_id, item.whole] = item
        else:
            streams.setdefault((item.run_id, item.kind), []).append(len(events))
            events.append(item)
            group.moments += _moments_of(item)
            if item.takes is not None:
                group.taken.append(item.takes)
    group.touched = {run: datetime.fromtimestamp(t, UTC).isoformat() for run, t in latest.items()}
    rows: list[EventValues | None] = [None] * len(events)
    for (run_id, kind), places in streams.items():
        encoded, made = encoder.encode(run_id, kind, [events[place].body for place in places])
        if made is not None:
            group.dictionaries.append(made)
        for place, (codec, dictionary, body) in zip(places, encoded, strict=True):
            told = events[place]
            head = (run_id, told.seq, kind, told.seat, told.episode, told.step, told.time, told.form)
            rows[place] = (*head, codec, dictionary, body)
    group.events = [row for row in rows if row is not None]
    return group


def _moments_of(item: Item) -> Iterator[MomentValues]:
    seat, step = item.seat or "", (item.step or 0) + 1
    for number, told in enumerate(item.moments):
        where = (item.run_id, item.seq, number, seat, item.agent or seat, step, item.time)
        yield *where, told.kind, told.weight, told.audience, dumps(dict(told.words))


fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

BUSY_SECONDS = 30.0
"""Seconds that the writer waits for another process."""
WATCHED_SECONDS = 5.0
"""The same if `Database.on_fault` is set: the writer then retries anyway."""


def open_sink(database: Database, *, busy_seconds: float = BUSY_SECONDS) -> Sink:
    """Return the sink of a database, for use by one thread."""
    return SqliteSink(database, busy_seconds=busy_seconds) if database.is_sqlite else CoreSink(database)


_EVENT = METADATA.tables["event"]
_DICTIONARY = METADATA.tables["dictionary"]
_RUN = METADATA.tables["run"]
_INBOX = METADATA.tables["inbox"]
_SAVED = METADATA.tables["saved_state"]
_MOMENT = METADATA.tables["moment"]


_BLOCKS = (64, 16, 4, 1)
# Rows per statement. sqlite3 releases the GIL for each statement, and getting it back takes 5 ms while another thread
# is computing; row by row the log would fall behind.


def _blocks(count: int) -> Iterator[tuple[int, int]]:
    start = 0
    for size in _BLOCKS:
        while count - start >= size:
            yield start, size
            start += size


def _insert_sql(table: str, columns: Sequence[str], *, rows: int = 1) -> str:
    # The names are from the table definitions.
    row = f"({', '.join('?' * len(columns))})"
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES {', '.join([row] * rows)}"  # noqa: S608


class SqliteSink:
    """Commits to a file; `LogWriter` describes its durability."""

    _EVENTS: ClassVar = {size: _insert_sql("event", _EVENT.columns.keys(), rows=size) for size in _BLOCKS}
    _RUNS: ClassVar = {size: _insert_sql("run", _RUN.columns.keys(), rows=size) for size in _BLOCKS}
    _DICTIONARIES = _insert_sql("dictionary", _DICTIONARY.columns.keys())
    _KEPT = _insert_sql("saved_state", _SAVED.columns.keys())
    _MOMENTS = _insert_sql("moment", _MOMENT.columns.keys())

    def __init__(self, database: Database, *, busy_seconds: float) -> None:
        self._database = database
        self._wal = Path(database.where + "-wal")
        self._pooled = database.engine.raw_connection()
        raw = self._pooled.driver_connection
        assert isinstance(raw, sqlite3.Connection)
        self._raw = raw
        self._busy_seconds = busy_seconds
        self._waits = 0.0
        # The writer checks each run before its first event.
        self._raw.execute("PRAGMA foreign_keys = OFF")

    def commit(self, group: Group) -> None:
        """Commit a group to the operating system."""
        raw = self._raw
        self._wait_for_others()
        with self._database.turn_to_write():
            self._database.check_file()
            raw.execute("BEGIN IMMEDIATE")
            try:
                self._make(group)
                asked = f"SELECT id FROM run WHERE id IN ({', '.join('?' * len(group.touched))})"  # noqa: S608
                there = {row[0] for row in raw.execute(asked, list(group.touched))}
                self._write(group.of_runs(there))
                raw.execute("COMMIT")
            except BaseException:
                if raw.in_transaction:
                    raw.execute("ROLLBACK")
                raise

    def _wait_for_others(self) -> None:
        # Where somebody else goes on waiting, as a nexus does, the other threads must not wait behind this one.
        watched = self._database.on_fault is not None
        seconds = min(WATCHED_SECONDS, self._busy_seconds) if watched else self._busy_seconds
        if seconds != self._waits:
            self._raw.execute(f"PRAGMA busy_timeout = {int(seconds * 1000)}")
            self._waits = seconds

    def force(self) -> None:
        """Return when every commit has reached the disk.

        Until a checkpoint, which syncs them itself, commits are in the write-ahead log, so its file is synced here.
        `synchronous = FULL` would sync each commit, which is too slow. SQLite holds no lock on the file, so closing it
        releases none.
        """
        self._database.check_file()
        try:
            opened = self._wal.open("r+b")
        except FileNotFoundError:  # it is there as long as a connection is open: somebody took it away
            raise replaced(self._database.where) from None
        with opened as file:
            if fcntl is not None and hasattr(fcntl, "F_FULLFSYNC"):  # macOS: fsync stops at the drive's cache
                fcntl.fcntl(file.fileno(), fcntl.F_FULLFSYNC)
            else:
                os.fsync(file.fileno())

    def close(self) -> None:
        """Close the connection; it does not return to the pool, because its settings differ."""
        self._pooled.invalidate()

    def _make(self, group: Group) -> None:
        """Insert the new runs, with what else the group tells of them."""
        rows = list[list[Any]]()
        for run_id, row in group.made.items():
            status, summary = group.states.get(run_id, (row["status"], None))
            whole = {**row, "config": dumps(row["config"]), "updated": group.touched[run_id], "status": status}
            whole["summary"] = summary
            rows.append([whole[column.name] for column in _RUN.columns])
        for start, size in _blocks(len(rows)):
            self._raw.execute(self._RUNS[size], [value for row in rows[start : start + size] for value in row])

    def _write(self, group: Group) -> None:
        raw = self._raw
        if group.dictionaries:
            raw.executemany(self._DICTIONARIES, group.dictionaries)
        for start, size in _blocks(len(group.events)):
            rows = group.events[start : start + size]
            raw.execute(self._EVENTS[size], [value for row in rows for value in row])
        if group.moments:
            raw.executemany(self._MOMENTS, group.moments)
        for number in group.taken:
            raw.execute("DELETE FROM inbox WHERE number = ?", (number,))
        for kept in group.kept.values():
            raw.execute("DELETE FROM saved_state WHERE run_id = ? AND whole = ?", kept[:2])
            raw.execute(self._KEPT, kept)
        for run_id, when in group.touched.items():
            if run_id not in group.made:
                raw.execute(
                    "UPDATE run SET updated = ?, status = coalesce(?, status), summary = coalesce(?, summary)"
                    " WHERE id = ?",
                    (when, *group.states.get(run_id, (None, None)), run_id),
                )


class CoreSink:
    """Commits to a server, which syncs each commit itself."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._connection: Connection = database.engine.connect()
        self._in_doubt = False

    def commit(self, group: Group) -> None:
        """Commit a group as a whole, once: if the last attempt broke off, its commit may have reached the server."""
        try:
            if not (self._in_doubt and self._has(group)):
                self._write(group)
        except IntegrityError:
            # The server was still busy with that attempt.
            if not (self._in_doubt and self._has(group)):
                raise
        except BaseException:
            self._in_doubt = True
            raise
        self._in_doubt = False

    def _has(self, group: Group) -> bool:
        if not group.events:
            return False  # the rest can be done twice
        last = dict(zip(_EVENT.columns.keys(), group.events[-1], strict=True))
        query = select(_EVENT.c.time, _EVENT.c.body)
        query = query.where(_EVENT.c.run_id == last["run_id"], _EVENT.c.seq == last["seq"])
        with self._connection.begin():
            found = self._connection.execute(query).one_or_none()
        return found is not None and (found.time, bytes(found.body)) == (last["time"], last["body"])

    def _write(self, group: Group) -> None:
        connection = self._connection
        with connection.begin():
            self._database.limit(connection)
            if self._database.fence is not None:
                self._database.fence(connection)
            if group.made:
                # Where a commit is in doubt, they may be there already.
                new = postgresql.insert(_RUN).on_conflict_do_nothing()
                connection.execute(new, [dict(row) for row in group.made.values()])
            # Locked, so that none is deleted before the commit.
            asked = select(_RUN.c.id).where(_RUN.c.id.in_(list(group.touched)))
            there = connection.execute(asked.with_for_update(read=True, key_share=True)).scalars()
            group = group.of_runs(set(there))
            for table, rows in ((_DICTIONARY, group.dictionaries), (_EVENT, group.events), (_MOMENT, group.moments)):
                if rows:
                    names = table.columns.keys()
                    connection.execute(insert(table), [dict(zip(names, row, strict=True)) for row in rows])
            if group.taken:
                connection.execute(delete(_INBOX).where(_INBOX.c.number.in_(group.taken)))
            for kept in group.kept.values():
                one = _SAVED.c.run_id == kept.run_id, _SAVED.c.whole == kept.whole
                connection.execute(delete(_SAVED).where(*one))
                connection.execute(insert(_SAVED).values(kept._asdict()))
            for run_id, when in group.touched.items():
                connection.execute(update(_RUN).where(_RUN.c.id == run_id).values(updated=when))
            for run_id, (status, summary) in group.states.items():
                changed = {"status": status} | ({} if summary is None else {"summary": json.loads(summary)})
                connection.execute(update(_RUN).where(_RUN.c.id == run_id).values(**changed))

    def force(self) -> None:
        """Do nothing: the server syncs each commit."""

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


Sink = SqliteSink | CoreSink
