"""Queries on a command log: selection, statistics, and retention."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from pydantic import JsonValue
from sqlalchemy import ColumnElement, and_, case, delete, exists, func, or_, select

from wsap_tes3mp.log.log import CommandLog
from wsap_tes3mp.log.records import COMMAND, PERCEPTION, CommandRecord, record_of

YOUNGEST = 3600.0
"""Seconds before which commands are never deleted, since their idempotency keys may still be repeated."""
BATCH = 500
"""Maximum rows deleted in one transaction, so that a bridge that is writing hardly waits."""


@dataclass(frozen=True)
class Filter:
    """Which commands; empty or None selects all."""

    agents: Sequence[str] = ()
    episodes: Sequence[str] = ()
    commands: Sequence[str] = ()
    states: Sequence[str] = ()
    since: float | None = None
    """Seconds since 1970, by the time of receipt."""
    until: float | None = None
    """Seconds since 1970, exclusive."""

    def where(self) -> list[ColumnElement[bool]]:
        """Return the conditions of a query."""
        columns = COMMAND.c
        lists = {"agent_id": self.agents, "episode_id": self.episodes, "command": self.commands, "state": self.states}
        chosen: list[ColumnElement[bool]] = [columns[name].in_(list(v)) for name, v in lists.items() if v]
        if self.since is not None:
            chosen.append(columns.received >= self.since)
        if self.until is not None:
            chosen.append(columns.received < self.until)
        return chosen


def newest(log: CommandLog, chosen: Filter, limit: int) -> list[CommandRecord]:
    """Return the newest of the chosen commands, newest first."""
    statement = select(COMMAND).where(*chosen.where()).order_by(COMMAND.c.number.desc()).limit(limit)
    return [record_of(row) for row in log.read(statement)]


def all_agents(log: CommandLog) -> list[str]:
    """Return the ids of all agents in the log."""
    return [row[0] for row in log.read(select(COMMAND.c.agent_id).distinct()) if row[0]]


def all_players(log: CommandLog) -> Iterator[str]:
    """Give the names and ids of all players that were ever perceived, some of them many times."""
    for row in log.stream(select(PERCEPTION.c.body).where(PERCEPTION.c.body.contains('"player"'))):
        for entity in json.loads(row.body)["nearby_entities"]:
            if entity["entity_type"] == "player":
                yield from (entity["name"], entity["entity_id"])


def tags_of(note: CommandRecord) -> list[str]:
    """Return the tags of a journal note."""
    tags = note.params.get("tags")
    return [str(tag) for tag in tags] if isinstance(tags, list) else []


def notes(log: CommandLog, chosen: Filter, tags: Collection[str] = (), limit: int | None = None) -> list[CommandRecord]:
    """Return the newest journal notes with one of the tags (all without tags), oldest first."""
    statement = select(COMMAND).where(COMMAND.c.command == "journal_note", COMMAND.c.state == "confirmed")
    rows = log.stream(statement.where(*chosen.where()).order_by(COMMAND.c.number.desc()))
    found = (one for one in map(record_of, rows) if not tags or not set(tags).isdisjoint(tags_of(one)))
    return list(islice(found, limit))[::-1]


@dataclass(frozen=True)
class Logged:
    """A command and the perceptions around it."""

    record: CommandRecord
    perception: dict[str, JsonValue] | None
    """The one that led to it; None if none is stored."""
    next_hash: str | None
    """The one that led to the agent's next command in the same episode, in the same world since."""


def everything(log: CommandLog, chosen: Filter) -> Iterator[Logged]:
    """Yield the chosen commands in order of receipt, with their perceptions.

    A command has no next perception where the world was another one by then: it had been started anew, or gone back to
    an earlier state.
    """
    later, then = COMMAND.alias("later"), COMMAND.alias("then")
    following = (
        select(later.c.number)
        .where(later.c.agent_id == COMMAND.c.agent_id)
        .where(later.c.episode_id.is_not_distinct_from(COMMAND.c.episode_id))
        .where(later.c.number > COMMAND.c.number)
        .where(later.c.perception_hash.is_not(None))
        .order_by(later.c.number)
        .limit(1)
        .scalar_subquery()
    )
    statement = (
        select(
            COMMAND,
            PERCEPTION.c.body.label("body"),
            then.c.perception_hash.label("next_hash"),
            then.c.perception_moment.label("next_moment"),
        )
        .join(PERCEPTION, PERCEPTION.c.hash == COMMAND.c.perception_hash, isouter=True)
        .join(then, then.c.number == following, isouter=True)
        .where(*chosen.where())
        .order_by(COMMAND.c.number)
    )
    for row in log.stream(statement):
        record = record_of(row)
        body = None if row.body is None else {**json.loads(row.body), **record.perception_moment}
        goes_on = row.next_hash is not None and _goes_on(record.perception_moment, row.next_moment or {})
        yield Logged(record, body, row.next_hash if goes_on else None)


def _goes_on(before: Mapping[str, JsonValue], after: Mapping[str, JsonValue]) -> bool:
    """Return whether a perception can be a later one of the same world, by boot, sequence and time."""
    if before.get("boot_id") != after.get("boot_id"):
        return not before  # a command without a perception says nothing
    numbers = before.get("sequence"), after.get("sequence")
    if isinstance(numbers[0], int) and isinstance(numbers[1], int):
        return numbers[0] <= numbers[1]
    times = [datetime.fromisoformat(str(moment["timestamp"])) for moment in (before, after) if "timestamp" in moment]
    return len(times) < 2 or times[0] <= times[1]


@dataclass(frozen=True)
class Latency:
    """Seconds from receipt to outcome."""

    count: int
    median: float
    p95: float
    most: float


@dataclass(frozen=True)
class LogStats:
    """The statistics of a log."""

    commands: int
    agents: dict[str, int]
    """Agent -> commands."""
    kinds: dict[str, dict[str, int]]
    """Command -> state -> count."""
    codes: dict[str, int]
    """Code of failure or rejection -> count."""
    episodes: int
    perceptions: int
    """Distinct ones among those that led to them."""
    first: float | None
    """Seconds since 1970."""
    last: float | None
    latencies: dict[str, Latency]
    """Command -> latency of those confirmed or failed."""


def stats(log: CommandLog, chosen: Filter) -> LogStats:
    """Return the statistics of the chosen commands."""
    columns = COMMAND.c
    where = chosen.where()
    agents: Counter[str] = Counter()
    kinds: dict[str, Counter[str]] = {}
    codes: Counter[str] = Counter()
    keys = (columns.agent_id, columns.command, columns.state, columns.code)
    for agent, command, state, code, count in log.read(select(*keys, func.count()).where(*where).group_by(*keys)):
        agents[agent] += count
        kinds.setdefault(command, Counter())[state] += count
        if code is not None:
            codes[code] += count
    took = case((columns.finished > columns.received, columns.finished - columns.received), else_=0.0)
    ended = and_(columns.finished.is_not(None), columns.state.in_(("confirmed", "failed")))
    seconds: dict[str, list[float]] = {}
    for command, value in log.read(select(columns.command, took).where(ended, *where)):
        seconds.setdefault(command, []).append(value)
    whole = select(
        func.count(columns.episode_id.distinct()),
        func.count(columns.perception_hash.distinct()),
        func.min(columns.received),
        func.max(columns.received),
    )
    ((episodes, perceptions, first, last),) = log.read(whole.where(*where))
    by_state = {command: dict(sorted(states.items())) for command, states in sorted(kinds.items())}
    latencies = {command: _latency(values) for command, values in sorted(seconds.items())}
    told = dict(agents.most_common()), by_state, dict(codes.most_common())
    return LogStats(agents.total(), *told, episodes, perceptions, first, last, latencies)


def _latency(values: list[float]) -> Latency:
    ordered = sorted(values)
    rank = max(0, -(-95 * len(ordered) // 100) - 1)  # the nearest rank
    return Latency(len(ordered), statistics.median(ordered), ordered[rank], ordered[-1])


@dataclass(frozen=True)
class Pruned:
    """The number of rows deleted, or that would be."""

    commands: int = 0
    perceptions: int = 0
    """Not counted in a dry run."""


def prune(
    log: CommandLog,
    now: float,
    *,
    older_than: float | None = None,
    keep: int | None = None,
    journal: bool = False,
    dry_run: bool = False,
) -> Pruned:
    """Delete old commands, and perceptions that no command needs any longer; a bridge may be writing.

    Episodes are deleted as a whole, once their newest command is old enough, so that no export starts in the middle of
    one. Running commands, those of the last hour, and the journal are kept.

    Args:
        now: seconds since 1970.
        older_than: seconds; None for any age.
        keep: minimum number of commands to keep; None for any number.
        journal: delete journal notes, too.
        dry_run: only count.
    """
    columns, other = COMMAND.c, COMMAND.alias("other")
    before = now - max(YOUNGEST, older_than or 0.0)
    border = None
    if keep is not None:
        found = log.read(select(columns.number).order_by(columns.number.desc()).offset(keep).limit(1))
        border = found[0][0] if found else 0

    def old(table: Any) -> ColumnElement[bool]:  # Any: a table or an alias of it
        old_enough: ColumnElement[bool] = table.c.received < before
        return old_enough if border is None else and_(old_enough, table.c.number <= border)

    done = columns.state.not_in(("accepted", "dispatched"))
    goes_on = exists().where(
        other.c.agent_id == columns.agent_id, other.c.episode_id == columns.episode_id, ~old(other)
    )
    goes = and_(old(COMMAND), done, or_(columns.episode_id.is_(None), ~goes_on))
    if not journal:
        goes = and_(goes, ~and_(columns.command == "journal_note", columns.state == "confirmed"))
    numbers = [row[0] for row in log.read(select(columns.number).where(goes))]
    if dry_run:
        return Pruned(len(numbers))
    for start in range(0, len(numbers), BATCH):
        log.write(delete(COMMAND).where(columns.number.in_(numbers[start : start + BATCH])).where(done))
    perceptions = 0
    unused = ~exists().where(columns.perception_hash == PERCEPTION.c.hash)
    while True:
        hashes = [row[0] for row in log.read(select(PERCEPTION.c.hash).where(unused).limit(BATCH))]
        gone = log.write(delete(PERCEPTION).where(PERCEPTION.c.hash.in_(hashes)).where(unused)) if hashes else 0
        perceptions += gone
        if not gone:
            break
    log.shrink()
    return Pruned(len(numbers), perceptions)
