"""The repository of runs and their events."""

from __future__ import annotations

import json
import secrets
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from importlib import metadata
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    Text,
    cast,
    exists,
    func,
    insert,
    or_,
    select,
    tuple_,
    update,
)
from sqlalchemy.exc import IntegrityError

from wsap_core.errors import StorageError, UnknownNameError, UsageError
from wsap_core.protocol.wire import dumps
from wsap_core.version import PROTOCOL_VERSION
from wsap_nexus.store.database import Database
from wsap_nexus.store.entities import check_run
from wsap_nexus.store.log.bodies import BodyDecoder, Encoded
from wsap_nexus.store.records import EventRecord, MomentRecord, NewRun, RunRecord, RunStatus, new_run_id
from wsap_nexus.store.tables import IS_SELDOM, METADATA, SELDOM

_RUN = METADATA.tables["run"]
_EVENT = METADATA.tables["event"]
_DICTIONARY = METADATA.tables["dictionary"]
_INBOX = METADATA.tables["inbox"]
_SAVED = METADATA.tables["saved_state"]
_SESSION = METADATA.tables["session"]
_COUNTER = METADATA.tables["counter"]
_MOMENT = METADATA.tables["moment"]

_IS_REPLAY: ColumnElement[bool] = _RUN.c.config["replay"].as_string().is_not(None)

NEXUS = "nexus"
"""The game of an agent's run in the nexus itself."""

# A page is about 1 MiB of stored bodies. Each is read in its own transaction, so that a slow reader does not prevent
# SQLite's checkpoints.
_PAGE_BYTES, _PAGE_EVENTS = 1 << 20, 256
_ATTEMPTS = 20
_DELETED_AT_ONCE = 2000

RUNS = "run"
"""The counter of runs."""
_FIRST_NUMBERS = 0x8000
# The numbers with which a database can begin; they have four digits for long.


def utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


class Repository:
    """Creates runs, and reads runs and events.

    Runs are numbered in hexadecimal digits, so that no id is used again, even of a deleted run; each database begins
    with a random number. `token` returns the last part of an id instead, for tests.
    """

    def __init__(
        self,
        database: Database,
        *,
        now: Callable[[], datetime] = utc_now,
        token: Callable[[], str] | None = None,
    ) -> None:
        self.database = database
        self._now = now
        self._token = token

    # --- runs --------------------------------------------------------------------------------

    def create_run(self, run: NewRun) -> RunRecord:
        """Commit a new run with status "running", and return it with its id.

        Raises:
            UsageError: the requested id is taken.
            StorageError: a value is out of range, or the database can't be written.
        """
        values = self._columns(run)
        for _ in range(_ATTEMPTS):
            taken = self._insert(values, run.id)
            if taken is not None:
                # As it would be read back, where a tuple is a list.
                config = json.loads(json.dumps(values["config"]))
                return RunRecord(**{**values, "id": taken, "config": config, "status": RunStatus.RUNNING})
            if run.id is not None:
                raise _taken(run.id)
        raise StorageError("No free run id was found; the source of ids repeats itself.")

    def refuse_taken(self, run_id: str) -> None:
        """Raise UsageError if there is a committed run with this id."""
        if self.has_run(run_id):
            raise _taken(run_id)

    def columns_of(self, run: NewRun) -> Mapping[str, Any]:
        """Return the columns of a new run with an id, for `LogWriter.create`; StorageError if a value is invalid."""
        values = self._columns(run)
        check_run(values)
        return values

    def _columns(self, run: NewRun) -> dict[str, Any]:
        now = self._now().isoformat()
        return {
            **vars(run),
            "config": dict(run.config),
            "status": RunStatus.RUNNING.value,
            "created": now,
            "updated": now,
            "wsap_version": _wsap_version(),
            "protocol_version": PROTOCOL_VERSION,
            "summary": None,
        }

    def set_config(self, run_id: str, config: Mapping[str, Any]) -> None:
        """Replace the configuration of a run, after an agent joined it during play."""
        with self.database.write() as connection:
            connection.execute(update(_RUN).where(_RUN.c.id == run_id).values(config=dict(config)))

    def _insert(self, values: Mapping[str, Any], name: str | None) -> str | None:
        """Insert a run by its name or a new id, and return that; None if it is taken."""
        try:
            with self.database.write() as connection:
                run_id = name or self._new_id(connection, values["game"])
                check_run({**values, "id": run_id})
                taken = connection.execute(select(_RUN.c.id).where(_RUN.c.id == run_id)).first()
                if taken is not None:
                    return None  # the number is used up nevertheless
                connection.execute(insert(_RUN).values(**{**values, "id": run_id}))
        except StorageError as error:
            # On a server two processes can insert the same id simultaneously.
            if isinstance(error.__cause__, IntegrityError):
                return None
            raise
        return run_id

    def _new_id(self, connection: Connection, game: str) -> str:
        token = self._token() if self._token is not None else f"{_next_number(connection):04x}"
        return new_run_id(game, self._now(), token)

    def set_status(self, run_id: str, status: RunStatus, summary: Mapping[str, Any] | None = None) -> None:
        """Set the status of a run at once, and its summary if given; UnknownNameError if the full id is unknown.

        While a `LogWriter` appends to the run, use its `set_status`.
        """
        values: dict[str, Any] = {"status": RunStatus(status).value, "updated": self._now().isoformat()}
        if summary is not None:
            values["summary"] = dict(summary)
        with self.database.write() as connection:
            changed = connection.execute(update(_RUN).where(_RUN.c.id == run_id).values(**values)).rowcount
        if not changed:
            raise self._unknown(run_id)

    def get_run(self, name: str) -> RunRecord:
        """Return a run by its id, a unique prefix or suffix of it, or "last": the newest, preferably outside the nexus.

        Raises:
            UnknownNameError: no run matches; the message lists similar ids.
            UsageError: several match; the message lists some.
        """
        if name != "last" and (whole := self.find_run(name)) is not None:
            return whole  # parts of an id are looked for in all runs, which takes longer the more there are
        rows = self._rows(_matching(name))
        if not rows:
            raise self._unknown(name)
        if len(rows) > 1 and rows[0].id != name:
            some = ", ".join(row.id for row in rows[:5])
            more = ", ..." if len(rows) > 5 else ""
            raise UsageError(f"Several runs match {name!r}: {some}{more}. Use a longer part of the id.")
        return _run_record(rows[0])

    def list_runs(
        self,
        *,
        limit: int | None = None,
        since: datetime | None = None,
        games: Collection[str] | None = None,
        agent: str | None = None,
        without_nexus: bool = False,
        without_visits: bool = False,
        without_replays: bool = False,
        before: tuple[str, str] | None = None,
    ) -> list[RunRecord]:
        """Return the runs, newest first.

        Args:
            without_visits: leave out what agents did in the nexus itself, but not in its worlds.
            before: only runs after this one in that order, by (created, id).
            since: only runs changed since then.
            games: only runs of games of these names; see `names_of`.
            agent: only runs of this installed agent or agent of the nexus.
            without_nexus: leave out runs in the nexus.
            without_replays: leave out replays, so that nothing is counted twice.
        """
        query = select(_RUN).order_by(_RUN.c.created.desc(), _RUN.c.id.desc()).limit(limit)
        if games is not None:
            query = query.where(_RUN.c.game.in_(games))
        if agent is not None:
            query = query.where(_played_by(agent))
        if without_nexus:
            query = query.where(~_of_nexus())
        if without_visits:
            query = query.where(_RUN.c.game != NEXUS)
        if before is not None:
            query = query.where(tuple_(_RUN.c.created, _RUN.c.id) < before)
        if without_replays:
            query = query.where(~_IS_REPLAY)
        if since is not None:
            query = query.where(_RUN.c.updated >= since.astimezone(UTC).isoformat())
        return [_run_record(row) for row in self._rows(query)]

    def summaries(
        self, *, since: datetime | None = None, ids: Collection[str] | None = None, limit: int | None = None
    ) -> list[tuple[str, Mapping[str, Any] | None]]:
        """Return id and summary of runs, newest first: of those created since then, and those with these ids."""
        query = select(_RUN.c.id, _RUN.c.summary).order_by(_RUN.c.created.desc()).limit(limit)
        if since is not None:
            query = query.where(_RUN.c.created >= since.astimezone(UTC).isoformat())
        if ids is not None:
            query = query.where(_RUN.c.id.in_(ids))
        return [(row.id, row.summary) for row in self._rows(query)]

    def is_of_nexus(self, run_id: str) -> bool:
        """Return whether a run was played in the nexus or one of its worlds."""
        return bool(self._rows(select(_RUN.c.id).where(_RUN.c.id == run_id, _of_nexus())))

    def count_left_out(self) -> tuple[int, int]:
        """Return the number of runs played in the nexus, and of replays elsewhere."""
        counted, nexus = select(func.count()).select_from(_RUN), _of_nexus()
        with self.database.read() as connection:
            of_nexus = connection.execute(counted.where(nexus)).scalar_one()
            return int(of_nexus), int(connection.execute(counted.where(_IS_REPLAY & ~nexus)).scalar_one())

    def branches_of(self, run_id: str) -> list[str]:
        """Return the ids of the runs branched from a run, which need its events."""
        query = select(_RUN.c.id).where(_RUN.c.config["branched_from"]["run"].as_string() == run_id)
        return [row.id for row in self._rows(query.order_by(_RUN.c.id))]

    def delete_run(self, *run_ids: str) -> None:
        """Delete runs and their events; UnknownNameError, deleting none, if one is missing.

        Events are deleted in pieces, newest first, between which others can write. If the process is killed, a run is
        left without its last events; delete it again.
        """
        for run_id in run_ids:
            if self.find_run(run_id) is None:
                raise self._unknown(run_id)
        for run_id in run_ids:
            while self._delete_newest(run_id):
                pass
        with self.database.write() as connection:
            for run_id in run_ids:
                for table in (_MOMENT, _EVENT, _DICTIONARY, _INBOX, _SAVED):
                    connection.execute(table.delete().where(table.c.run_id == run_id))
                if not connection.execute(_RUN.delete().where(_RUN.c.id == run_id)).rowcount:
                    raise self._unknown(run_id)

    def settle_cut_off(self) -> None:
        """Mark visits and sessions cut off by a kill as interrupted, and delete runs that no agent entered.

        Runs with an open session are left alone, since the nexus resumes them. Call it before the nexus plays.
        """
        stays = exists().where(_SESSION.c.run_id == _RUN.c.id)
        own = or_(
            _RUN.c.game == NEXUS,
            stays.where(_SESSION.c.world_id != _SESSION.c.run_id),
            cast(_RUN.c.config, Text).contains(f'"{NEXUS}":true'),
        )
        left = _RUN.c.status == RunStatus.RUNNING.value, own, ~stays.where(_SESSION.c.closed.is_(None))
        entered = or_(_RUN.c.game == NEXUS, stays)
        with self.database.write() as connection:
            connection.execute(update(_RUN).where(*left, entered).values(status=RunStatus.INTERRUPTED.value))
            never = connection.execute(select(_RUN.c.id).where(*left)).scalars().all()
        for run_id in never:
            self.delete_run(run_id)

    def newest_visit(self, agent_id: str) -> str | None:
        """Return the id of an agent's newest run in the nexus itself, if it is among the last 200 of all agents."""
        query = select(_RUN.c.id, _RUN.c.config).where(_RUN.c.game == NEXUS)
        for name, config in self._rows(query.order_by(_RUN.c.created.desc()).limit(200)):
            seats = config.get("seats") or [{}]
            if seats[0].get("name") == agent_id:
                return str(name)
        return None

    def count_runs(self) -> int:
        """Return the number of runs."""
        return int(self._rows(select(func.count()).select_from(_RUN))[0][0])

    def _delete_newest(self, run_id: str) -> bool:
        """Delete a piece of a run's events if there are more; return whether there were."""
        with self.database.write() as connection:
            of_run = _EVENT.c.run_id == run_id
            newest = select(_EVENT.c.seq).where(of_run).order_by(_EVENT.c.seq.desc())
            oldest = connection.execute(newest.offset(_DELETED_AT_ONCE).limit(1)).scalar()
            if oldest is None:
                return False
            connection.execute(_EVENT.delete().where(of_run, _EVENT.c.seq > oldest))
            return True

    def has_run(self, run_id: str) -> bool:
        """Return whether there is a committed run with exactly this id, in a small part of the time of `find_run`."""
        if self.database.is_sqlite:
            return self.database.look("SELECT 1 FROM run WHERE id = ?", run_id) is not None
        return bool(self._rows(select(_RUN.c.id).where(_RUN.c.id == run_id)))

    def find_run(self, run_id: str) -> RunRecord | None:
        """Return the run with exactly this id, or None."""
        rows = self._rows(select(_RUN).where(_RUN.c.id == run_id))
        return _run_record(rows[0]) if rows else None

    def kept_states(self, run_id: str) -> list[tuple[EventRecord, bool]]:
        """Return the kept states of a run, each as an event `snapshot` numbered as the last event in it.

        With each comes whether it is whole, so that the run can be resumed from it.
        """
        query = select(_SAVED).where(_SAVED.c.run_id == run_id).order_by(_SAVED.c.seq)
        return [
            (
                EventRecord(
                    run_id=run_id, seq=row.seq, kind="snapshot", seat=None, episode=0, step=row.step, time=row.time,
                    body=zlib.decompress(row.body), is_text=True,
                ),
                bool(row.whole),
            )
            for row in self._rows(query)
        ]  # fmt: skip

    def drop_kept_states(self, run_id: str) -> None:
        """Delete the kept states of a run, after which it resumes from an older one or its start."""
        with self.database.write() as connection:
            connection.execute(_SAVED.delete().where(_SAVED.c.run_id == run_id))

    # --- the inbox ---------------------------------------------------------------------------

    def add_to_inbox(self, run_id: str, body: Mapping[str, Any]) -> None:
        """Store an influence for the process that plays a run."""
        with self.database.write() as connection:
            connection.execute(insert(_INBOX).values(run_id=run_id, body=dict(body)))

    def inbox(self, run_id: str) -> list[tuple[int, Mapping[str, Any]]]:
        """Return the number and body of each influence that waits for a run, oldest first."""
        query = select(_INBOX.c.number, _INBOX.c.body).where(_INBOX.c.run_id == run_id).order_by(_INBOX.c.number)
        return [(row.number, row.body) for row in self._rows(query)]

    def _unknown(self, name: str) -> UnknownNameError:
        newest = self._rows(select(_RUN.c.id).order_by(_RUN.c.created.desc()).limit(1000))
        return UnknownNameError("run", name, [row.id for row in newest], hint="See them with: wsap runs")

    def _rows(self, query: Select[Any]) -> Sequence[Any]:  # Any: a row of any query
        with self.database.read() as connection:
            return connection.execute(query).all()

    # --- events ------------------------------------------------------------------------------

    def read_events(
        self,
        run_id: str,
        *,
        from_seq: int = 0,
        to_seq: int | None = None,
        kinds: Collection[str] | None = None,
        seat: str | None = None,
        skip: int = 0,
    ) -> Iterator[EventRecord]:
        """Yield the committed events of a run numbered below `to_seq`, oldest first, in bounded memory.

        `skip` is the number of matching events to leave out at the start.
        """
        decoder = BodyDecoder(f"Run {run_id!r} in {self.database.where}")
        query = select(_EVENT).where(_EVENT.c.run_id == run_id).order_by(_EVENT.c.seq)
        query = _of(query, kinds, seat)
        if to_seq is not None:
            query = query.where(_EVENT.c.seq < to_seq)
        count = 16
        while True:
            with self.database.read() as connection:
                page = query.where(_EVENT.c.seq >= from_seq).limit(count)
                rows = connection.execute(page.offset(skip) if skip else page).all()
                _add_dictionaries(connection, decoder, run_id, rows)
            for row in rows:
                yield _event_record(row, decoder)
            if len(rows) < count:
                return
            skip = 0
            from_seq = rows[-1].seq + 1
            mean = sum(len(row.body) for row in rows) // len(rows)
            count = max(1, min(_PAGE_EVENTS, _PAGE_BYTES // max(1, mean)))

    def last_event(
        self, run_id: str, kind: str | None = None, *, seat: str | None = None, before: int | None = None
    ) -> EventRecord | None:
        """Return the newest committed event of a run that matches, with a number below `before`, or None."""
        query = select(_EVENT).where(_EVENT.c.run_id == run_id).order_by(_EVENT.c.seq.desc()).limit(1)
        query = _of(query, None if kind is None else (kind,), seat)
        if before is not None:
            query = query.where(_EVENT.c.seq < before)
        decoder = BodyDecoder(f"Run {run_id!r} in {self.database.where}")
        with self.database.read() as connection:
            row = connection.execute(query).one_or_none()
            if row is None:
                return None
            _add_dictionaries(connection, decoder, run_id, [row])
        return _event_record(row, decoder)

    def find_events(self, run_id: str, kind: str) -> list[tuple[int, int]]:
        """Return number and step (0 if none) of a run's committed events of a kind, oldest first."""
        query = select(_EVENT.c.seq, _EVENT.c.step).where(_EVENT.c.run_id == run_id).order_by(_EVENT.c.seq)
        return [(seq, step or 0) for seq, step in self._rows(_of(query, (kind,), None))]

    def count_events(self, run_id: str, kind: str | None = None, *, from_seq: int = 0, seat: str | None = None) -> int:
        """Return the number of committed events of a run, numbered `from_seq` or higher: all, or of a kind or seat."""
        query = select(func.count()).select_from(_EVENT).where(_EVENT.c.run_id == run_id, _EVENT.c.seq >= from_seq)
        query = _of(query, None if kind is None else (kind,), seat)
        return int(self._rows(query)[0][0])

    # --- moments -----------------------------------------------------------------------------

    def moments_of(self, run_id: str, *, limit: int) -> list[MomentRecord]:
        """Return the first moments of a run, oldest first."""
        query = select(_MOMENT).where(_MOMENT.c.run_id == run_id)
        return [_moment(row) for row in self._rows(query.order_by(_MOMENT.c.seq, _MOMENT.c.number).limit(limit))]

    def moments_between(self, since: float, until: float, *, limit: int) -> list[MomentRecord]:
        """Return the last moments of all runs after one time and up to another, seconds since 1970, oldest first."""
        query = select(_MOMENT).where(_MOMENT.c.time > since, _MOMENT.c.time <= until)
        newest = query.order_by(
            _MOMENT.c.time.desc(), _MOMENT.c.run_id.desc(), _MOMENT.c.seq.desc(), _MOMENT.c.number.desc()
        )
        return [_moment(row) for row in self._rows(newest.limit(limit))][::-1]


def _moment(row: Row[Any]) -> MomentRecord:
    return MomentRecord(**{**row._asdict(), "words": json.loads(row.words)})


def _taken(run_id: str) -> UsageError:
    return UsageError(f"A run {run_id!r} already exists; choose another name.")


def _next_number(connection: Connection) -> int:
    counted = update(_COUNTER).where(_COUNTER.c.name == RUNS).values(value=_COUNTER.c.value + 1)
    if not connection.execute(counted).rowcount:
        connection.execute(insert(_COUNTER).values(name=RUNS, value=secrets.randbelow(_FIRST_NUMBERS)))
    return int(connection.execute(select(_COUNTER.c.value).where(_COUNTER.c.name == RUNS)).scalar_one())


def _of(query: Select[Any], kinds: Collection[str] | None, seat: str | None) -> Select[Any]:
    if kinds is not None:
        query = query.where(_EVENT.c.kind.in_(sorted(kinds)))
        if len(kinds) == 1 and SELDOM.issuperset(kinds):
            query = query.where(IS_SELDOM)
    return query if seat is None else query.where(_EVENT.c.seat == seat)


def _matching(name: str) -> Select[Any]:
    # An exact match first, then prefix and suffix matches.
    if name == "last":
        return select(_RUN).order_by(_of_nexus(), _RUN.c.created.desc(), _RUN.c.id.desc()).limit(1)
    close = (
        _RUN.c.id.startswith(name, autoescape=True) | _RUN.c.id.endswith("-" + name, autoescape=True)
        if name
        else _RUN.c.id == ""
    )
    exact_first = (_RUN.c.id == name).desc()
    return select(_RUN).where(close).order_by(exact_first, _RUN.c.created.desc()).limit(20)


def _of_nexus() -> ColumnElement[bool]:
    # Outside the nexus, the world of a session is the run itself.
    stays = select(_SESSION.c.run_id).where(_SESSION.c.world_id != _SESSION.c.run_id)
    return or_(_RUN.c.game == NEXUS, _RUN.c.id.in_(stays))


def _played_by(agent: str) -> ColumnElement[bool]:
    # Matches the installed agent or the name of any seat, and agents of the nexus by their sessions.
    config = cast(_RUN.c.config, Text)
    stays = select(_SESSION.c.run_id).where(_SESSION.c.agent_id == agent)
    quoted = dumps(agent)
    return or_(
        config.contains(f'"agent":{quoted}', autoescape=True),
        config.contains(f'"name":{quoted}', autoescape=True),
        _RUN.c.id.in_(stays),
    )


def _run_record(row: Row[Any]) -> RunRecord:
    values = row._asdict()
    return RunRecord(**{**values, "status": RunStatus(values["status"])})


def _event_record(row: Row[Any], decoder: BodyDecoder) -> EventRecord:
    return EventRecord(
        run_id=row.run_id,
        seq=row.seq,
        kind=row.kind,
        seat=row.seat,
        episode=row.episode,
        step=row.step,
        time=row.time,
        body=decoder.decode(Encoded(row.codec, row.dictionary, bytes(row.body))),
        is_text=row.form == "json",
    )


def _add_dictionaries(connection: Connection, decoder: BodyDecoder, run_id: str, rows: Collection[Row[Any]]) -> None:
    needed = sorted({row.dictionary for row in rows if row.dictionary is not None})
    lacking = [number for number in needed if not decoder.knows(number)]
    if lacking:
        query = select(_DICTIONARY.c.number, _DICTIONARY.c.body).where(
            _DICTIONARY.c.run_id == run_id, _DICTIONARY.c.number.in_(lacking)
        )
        for number, body in connection.execute(query):
            decoder.add(number, bytes(body))


@lru_cache(maxsize=1)
def _wsap_version() -> str:
    try:
        return metadata.version("wsap-nexus")
    except metadata.PackageNotFoundError:
        return "unknown"
