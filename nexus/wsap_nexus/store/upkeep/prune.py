"""Pruning old records, so that a nexus can run for months.

Pruned when old: recordings of nexus visits and closed sessions, events of the nexus' log, and settled transfers.

Kept at any age:

- everything about an open session;
- each agent's newest visit, which may still be in progress;
- recordings of worlds in play, also when only the game's own players are left in them;
- events since an agent set a meta-goal that is still active, because its progress is counted from them;
- runs outside the nexus (`wsap play`);
- an agent's own data: skills with their evidence, achievements, items, bodies, the worlds of dormant bodies, and the
  record of every session.

A world whose bodies are all dead ends as any other that no agent can enter: its state is deleted, its record kept.
"""

from __future__ import annotations

import json
import math
import shutil
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Select, and_, case, delete, func, or_, select
from sqlalchemy.exc import OperationalError

from wsap_core.protocol import AvatarState
from wsap_nexus.store.database import Database
from wsap_nexus.store.events.nexus import RecordsPruned
from wsap_nexus.store.nexus_store import NexusStore
from wsap_nexus.store.records import RunStatus
from wsap_nexus.store.repository import NEXUS, Repository
from wsap_nexus.store.tables import METADATA
from wsap_nexus.store.upkeep.room import used_bytes

_T = METADATA.tables
_RUN, _EVENT, _SESSION = _T["run"], _T["event"], _T["session"]
_NEXUS_EVENT, _TRANSFER, _WORLD, _METAGOAL = _T["nexus_event"], _T["transfer"], _T["world"], _T["metagoal"]
_AVATAR = _T["avatar"]

DAY = 86_400.0

_EVER = datetime(9999, 12, 31, tzinfo=UTC).timestamp()
# A time after which nothing is recorded.

_CHUNK = 2000
# Rows deleted in one transaction, which blocks SQLite's other writers.

_NAMES = 500
# Names in one query.

_BELOW = 0.95
# Prune to this share of the limit, so that a database at its limit is not pruned every minute.

_KEPT_KINDS = ("diary", "agent_registered")
# Events that are part of an agent's identity.

_UNSETTLED = ("prepared", "unknown")
# Transfers that may still take place.


@dataclass(frozen=True)
class Pruned:
    """The number of records that were, or would be, deleted."""

    runs: int = 0
    """Recordings of visits and sessions."""
    run_events: int = 0
    """Events in them."""
    nexus_events: int = 0
    """Events of the nexus' log."""
    transfers: int = 0
    worlds: int = 0
    """Worlds whose bodies are all dead."""
    bytes: int = 0
    """The approximate size of all these."""

    @property
    def anything(self) -> bool:
        """Whether anything was, or would be, deleted."""
        return bool(self.runs or self.nexus_events or self.transfers or self.worlds)


def measure(database: Database, keep_days: float, *, now: float | None = None) -> Pruned:
    """Return what pruning would delete."""
    cutoff = _cutoff(time.time() if now is None else now, keep_days)
    runs = run_events = size = 0
    with database.read() as connection:
        names = _old_runs(connection, cutoff)
        for some in _batches(names):
            query = select(func.count(), func.coalesce(func.sum(func.length(_EVENT.c.body)), 0)).where(
                _EVENT.c.run_id.in_(some)
            )
            count, length = connection.execute(query).one()
            run_events, size = run_events + count, size + int(length)
        runs = len(names)
        gains = _newest_gains(connection)
        old = _old_events(connection, cutoff)
        query = select(func.count(), func.coalesce(func.sum(func.length(_NEXUS_EVENT.c.body)), 0)).where(old)
        events, length = connection.execute(query).one()
        for some in _batches(gains):
            kept, bytes_kept = connection.execute(query.where(_NEXUS_EVENT.c.seq.in_(some))).one()
            events, length = events - kept, length - bytes_kept
        transfers = connection.execute(
            select(func.count()).select_from(_TRANSFER).where(_old_transfers(cutoff))
        ).scalar_one()
        worlds = _dead_worlds(connection, cutoff)
        for some in _batches(worlds):
            query = select(func.coalesce(func.sum(func.length(_WORLD.c.snapshot)), 0)).where(_WORLD.c.id.in_(some))
            size += int(connection.execute(query).scalar_one())
    return Pruned(runs, run_events, int(events), int(transfers), len(worlds), size + int(length))


def prune(
    database: Database,
    keep_days: float,
    *,
    limit: int | None = None,
    share: float = 1.0,
    now: float | None = None,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> Pruned:
    """Delete old records in small transactions, and return what was deleted.

    With a limit, pruning ends as soon as the database is small enough. The order is: recordings, oldest first; worlds
    without living bodies; events of the nexus' log, oldest first.

    If the process is killed, the next pruning deletes the rest; a recording half deleted then is one that `replay`
    finds shortened, and that nothing resumes.

    Args:
        keep_days: the age in days from which records are old; 0 for any age, whatever the clock says.
        limit: the size in bytes that is small enough; None to delete everything old.
        share: the largest part to delete of the recordings, and of the events, that could be deleted at any age.
        now: seconds since 1970; by default from the wall clock.
        progress: called with the numbers of deleted recordings and of all to delete.
    """
    moment = time.time() if now is None else now
    cutoff = _cutoff(moment, keep_days)
    store = NexusStore(database, wall_clock=lambda: moment)

    def enough() -> bool:
        return limit is not None and used_bytes(database) <= _BELOW * limit

    most_worlds = most_events = most_transfers = None
    with database.read() as connection:
        names = _old_runs(connection, cutoff)
        if share < 1.0:
            names = names[: math.ceil(share * len(_old_runs(connection, _EVER)))]
            most_worlds = math.ceil(share * len(_dead_worlds(connection, _EVER)))
            all_events = select(func.count()).select_from(_NEXUS_EVENT).where(_old_events(connection, _EVER))
            most_events = math.ceil(share * connection.execute(all_events).scalar_one())
            settled = select(func.count()).select_from(_TRANSFER).where(_old_transfers(_EVER))
            most_transfers = math.ceil(share * connection.execute(settled).scalar_one())
    runs = run_events = size = worlds = freed = 0
    for name in names:
        if enough():
            break
        events, length = _delete_run(database, name)
        runs, run_events, size = runs + 1, run_events + events, size + length
        progress(runs, len(names))
    if not enough():
        worlds, freed = _end_dead_worlds(store, cutoff, most_worlds)
    nexus_events, length = _delete_events(store, cutoff, enough, most_events)
    transfers = 0
    if limit is None:
        oldest = select(_TRANSFER.c.id).where(_old_transfers(cutoff)).order_by(_TRANSFER.c.created, _TRANSFER.c.id)
        with store.change() as tx:
            some = delete(_TRANSFER).where(_TRANSFER.c.id.in_(oldest.limit(most_transfers)))
            transfers = tx.connection.execute(some).rowcount
    done = Pruned(runs, run_events, nexus_events, transfers, worlds, size + freed + length)
    if done.anything:
        with store.change() as tx:
            tx.note(
                RecordsPruned(
                    runs=done.runs,
                    run_events=done.run_events,
                    nexus_events=done.nexus_events,
                    worlds=done.worlds,
                    bytes=done.bytes,
                )
            )
    return done


def day_before(keep_days: float, now: float | None = None) -> str:
    """Return the day before which records are old, as ISO 8601; `now` is by default from the wall clock."""
    return datetime.fromtimestamp((time.time() if now is None else now) - keep_days * DAY, UTC).date().isoformat()


def size_of(database: Database) -> int:
    """Return a database's size on disk in bytes, including its write-ahead log if it is a file."""
    if not database.is_sqlite:
        return used_bytes(database)
    paths = [Path(database.where), Path(f"{database.where}-wal")]
    return sum(path.stat().st_size for path in paths if path.exists())


def compact(database: Database) -> bool:
    """Shrink the database file; return whether that was possible.

    This needs disk space for a copy of the database, and no other process may be using it.
    """
    if not database.is_sqlite or shutil.disk_usage(Path(database.where).parent).free < 2 * size_of(database):
        return False
    try:
        with database.engine.connect().execution_options(wsap_begin="SELECT 1") as connection:
            connection.exec_driver_sql("VACUUM")
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    except OperationalError:
        return False  # another process uses it
    return True


# --- what is old ------------------------------------------------------------------------------


def _cutoff(now: float, keep_days: float) -> float:
    return now - keep_days * DAY if keep_days else _EVER


def _old_runs(connection: Connection, cutoff: float) -> list[str]:
    stamp = datetime.fromtimestamp(cutoff, UTC).isoformat()
    kept: set[str] = set()
    for query in (
        select(_SESSION.c.run_id).where(or_(_SESSION.c.closed.is_(None), _SESSION.c.closed >= stamp)),
        select(_WORLD.c.run_id).where(_WORLD.c.run_id.is_not(None)),
    ):
        kept.update(connection.execute(query).scalars())
    # A run outside the nexus, whose world is the run itself, is deleted by its player only.
    ended = (_SESSION.c.closed < stamp, _SESSION.c.world_id != _SESSION.c.run_id)
    stays = select(_SESSION.c.run_id).where(*ended).distinct()
    candidates: Select[Any] = (
        select(_RUN.c.id, _RUN.c.game, _RUN.c.status, _RUN.c.config)
        .where(_RUN.c.updated < stamp)
        .where(or_(_RUN.c.game == NEXUS, _RUN.c.id.in_(stays)))
        .order_by(_RUN.c.created, _RUN.c.id)
    )
    rows = connection.execute(candidates).all()
    maybe_open = [row for row in rows if row.status == RunStatus.RUNNING.value]
    # The agents may have left a game whose own players go on.
    kept.update(row.id for row in maybe_open if row.game != NEXUS)
    # Only an agent's newest visit can be running; older ones with that status ended when the nexus was killed.
    visits = [row for row in maybe_open if row.game == NEXUS]
    if visits:
        newest = _newest_visits(connection)
        kept.update(row.id for row in visits if newest.get(_visitor(row.config)) == row.id)
    return [row.id for row in rows if row.id not in kept]


def _newest_visits(connection: Connection) -> dict[str, str]:
    query = select(_RUN.c.id, _RUN.c.config).where(_RUN.c.game == NEXUS).order_by(_RUN.c.created, _RUN.c.id)
    return {_visitor(config): name for name, config in connection.execute(query)}


def _visitor(config: Any) -> str:
    # Any: a run's recorded configuration.
    try:
        return str(config["seats"][0]["name"])
    except (KeyError, IndexError, TypeError):
        return ""


def _old_events(connection: Connection, cutoff: float) -> Any:
    """Return the condition for old events of the nexus. Any: SQLAlchemy's condition."""
    condition = and_(_NEXUS_EVENT.c.time < cutoff, _NEXUS_EVENT.c.kind.not_in(_KEPT_KINDS))
    opened = connection.execute(select(_SESSION.c.id).where(_SESSION.c.closed.is_(None))).scalars().all()
    if opened:
        condition &= or_(_NEXUS_EVENT.c.session_id.is_(None), _NEXUS_EVENT.c.session_id.not_in(opened))
    goals = select(_METAGOAL.c.agent_id, func.min(_METAGOAL.c.since)).where(_METAGOAL.c.state == "active")
    for agent_id, since in connection.execute(goals.group_by(_METAGOAL.c.agent_id)):
        condition &= ~and_(_NEXUS_EVENT.c.agent_id == agent_id, _NEXUS_EVENT.c.seq >= since)
    return condition


def _old_transfers(cutoff: float) -> Any:
    """Return the condition for old transfers. Any: SQLAlchemy's condition."""
    stamp = datetime.fromtimestamp(cutoff, UTC).isoformat(timespec="milliseconds")
    return and_(_TRANSFER.c.state.in_(("done", "cancelled")), _TRANSFER.c.created < stamp)


def _dead_worlds(connection: Connection, cutoff: float) -> list[str]:
    """Return the worlds whose bodies have all been dead since before the cutoff."""
    stamp = datetime.fromtimestamp(cutoff, UTC).isoformat(timespec="milliseconds")
    bodies = select(_AVATAR.c.world_id).group_by(_AVATAR.c.world_id)
    dead = bodies.having(func.sum(case((_AVATAR.c.state != AvatarState.DESTROYED.value, 1), else_=0)) == 0)
    lately = select(_SESSION.c.world_id).where(or_(_SESSION.c.closed.is_(None), _SESSION.c.closed >= stamp))
    on_the_way = select(_TRANSFER.c.world_id).where(
        _TRANSFER.c.world_id.is_not(None), or_(_TRANSFER.c.state.in_(_UNSETTLED), _TRANSFER.c.created >= stamp)
    )
    query = (
        select(_WORLD.c.id)
        .where(_WORLD.c.snapshot.is_not(None), _WORLD.c.created < stamp, _WORLD.c.id.in_(dead))
        .where(_WORLD.c.id.not_in(lately), _WORLD.c.id.not_in(on_the_way))
        .order_by(_WORLD.c.id)
    )
    return list(connection.execute(query).scalars())


# --- deleting ---------------------------------------------------------------------------------


def _delete_run(database: Database, name: str) -> tuple[int, int]:
    """Delete a recording, and return the number of its events and their approximate size."""
    events = size = 0
    while True:
        with database.write() as connection:
            query = select(_EVENT.c.seq, func.length(_EVENT.c.body)).where(_EVENT.c.run_id == name)
            rows = connection.execute(query.order_by(_EVENT.c.seq.desc()).limit(_CHUNK)).all()
            if len(rows) == _CHUNK:
                connection.execute(delete(_EVENT).where(_EVENT.c.run_id == name, _EVENT.c.seq >= rows[-1][0]))
        events, size = events + len(rows), size + sum(int(row[1]) for row in rows)
        if len(rows) < _CHUNK:
            Repository(database).delete_run(name)
            return events, size


def _end_dead_worlds(store: NexusStore, cutoff: float, most: int | None) -> tuple[int, int]:
    """Delete the states of worlds whose bodies are all dead; return their number and approximate size."""
    with store.look() as tx:
        names = _dead_worlds(tx.connection, cutoff)[:most]
    count = size = 0
    for name in names:
        with store.change() as tx:
            if name not in _dead_worlds(tx.connection, cutoff):
                continue  # an agent has set out for it meanwhile
            query = select(func.length(_WORLD.c.snapshot)).where(_WORLD.c.id == name)
            size += int(tx.connection.execute(query).scalar_one())
            for owner in tx.connection.execute(
                select(_AVATAR.c.agent_id).where(_AVATAR.c.world_id == name).distinct().order_by(_AVATAR.c.agent_id)
            ).scalars():
                tx.lose_items(owner, name)
            tx.end_world(name)
        count += 1
    return count, size


def _delete_events(store: NexusStore, cutoff: float, enough: Callable[[], bool], most: int | None) -> tuple[int, int]:
    count = size = after = 0
    if enough():
        return count, size
    with store.look() as tx:
        gains = _newest_gains(tx.connection)
    while True:
        with store.change() as tx:
            query = select(_NEXUS_EVENT.c.seq, func.length(_NEXUS_EVENT.c.body))
            query = query.where(_old_events(tx.connection, cutoff), _NEXUS_EVENT.c.seq > after)
            at_most = _CHUNK if most is None else min(_CHUNK, most - count)
            found = tx.connection.execute(query.order_by(_NEXUS_EVENT.c.seq).limit(at_most)).all()
            rows = [row for row in found if row[0] not in gains]
            for some in _batches([row[0] for row in rows]):
                tx.connection.execute(delete(_NEXUS_EVENT).where(_NEXUS_EVENT.c.seq.in_(some)))
        count, size = count + len(rows), size + sum(int(row[1]) for row in rows)
        if len(found) < at_most or count == most or enough():
            return count, size
        after = found[-1][0]


def _newest_gains(connection: Connection) -> set[int]:
    """Return each agent's newest skill gain in each domain, which a goal for a level needs at any age."""
    query = select(_NEXUS_EVENT.c.seq, _NEXUS_EVENT.c.agent_id, _NEXUS_EVENT.c.body)
    newest: dict[tuple[str, str], int] = {}
    for seq, agent_id, body in connection.execute(
        query.where(_NEXUS_EVENT.c.kind == "skill_gained").order_by(_NEXUS_EVENT.c.seq)
    ):
        newest[agent_id or "", str(json.loads(body).get("domain"))] = int(seq)
    return set(newest.values())


def _batches(names: Collection[Any]) -> Iterator[list[Any]]:
    # Any: names or numbers.
    listed = list(names)
    for first in range(0, len(listed), _NAMES):
        yield listed[first : first + _NAMES]
