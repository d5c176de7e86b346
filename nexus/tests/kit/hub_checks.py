"""What has to hold in the books of a nexus at any moment, read with plain SQL and told again from its own log.

Nothing here uses the code that writes the books; only worlds are asked in their own way what lies in them.
"""

from __future__ import annotations

import base64
import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import zstandard
from sqlalchemy import Connection, text

from wsap_nexus.store.database import Database

LEGAL = {
    None: {"unbound"},
    "unbound": {"bound"},
    "bound": {"dormant", "suspended", "destroyed", "unbound"},
    "dormant": {"bound", "destroyed"},
    "suspended": {"bound", "destroyed"},
    "destroyed": {"bound"},
}


def rows(connection: Connection, query: str, **values: Any) -> list[Any]:
    return list(connection.execute(text(query), values))


def reading(database: Database) -> Database:
    """Return a database opened once more, only to read it, whether or not it was closed meanwhile."""
    return Database.open(database.where, create=False, read_only=True)


def problems(database: Database, *, settled: bool = False) -> list[str]:
    """Return everything that is not as it has to be; `settled` if nothing may be under way."""
    with reading(database) as opened, opened.read() as connection:
        return [
            *_places(connection),
            *_items(connection),
            *_bodies(connection),
            *_log(connection),
            *_inside(connection),
            *(_settled(connection) if settled else ()),
        ]


def _places(connection: Connection) -> Iterator[str]:
    """Every agent is in exactly one place, and its sessions say the same."""
    open_sessions = defaultdict(list)
    for row in rows(connection, "SELECT id, agent_id FROM session WHERE closed IS NULL"):
        open_sessions[row.agent_id].append(row.id)
    for row in rows(connection, "SELECT id, place, session_id FROM agent"):
        wanted = open_sessions.pop(row.id, [])
        found = [row.session_id] if row.place == "world" else []
        if wanted != found or (row.place == "nexus") == bool(row.session_id):
            yield f"agent {row.id} is in {row.place} ({row.session_id}), its open sessions are {wanted}"
    for agent, left in open_sessions.items():
        yield f"sessions {left} are of {agent}, who is not there"


def _items(connection: Connection) -> Iterator[str]:
    """Every item is in one place that there is, and it came there as the log tells."""
    told: dict[str, tuple[str, str | None]] = {}
    owner: dict[str, str] = {}
    query = (
        "SELECT seq, kind, agent_id, body FROM nexus_event WHERE kind IN ('item_found', 'item_moved', 'items_moved')"
    )
    for row in rows(connection, query + " ORDER BY seq"):
        body = json.loads(row.body)
        if row.kind == "item_found":
            item = body["item"]["item_id"]
            if item in told:
                yield f"item {item} was found twice (event {row.seq})"
            told[item], owner[item] = ("escrow", None), row.agent_id
            continue
        for item in body.get("items", [body.get("item_id")]):
            if item not in told or owner[item] != row.agent_id:
                yield f"item {item} moved before it was found, or was another's (event {row.seq})"
            told[item] = (body["to"], body["to_id"])
    open_ways = {row.id for row in rows(connection, "SELECT id FROM transfer WHERE state IN ('prepared', 'unknown')")}
    worlds = {row.id for row in rows(connection, "SELECT id FROM world")}
    for row in rows(connection, "SELECT id, agent_id, place, place_id FROM item"):
        if told.pop(row.id, None) != (row.place, row.place_id):
            yield f"item {row.id} is in {row.place} {row.place_id}, the log tells otherwise"
        there = {"escrow": {None}, "lost": {None}, "transfer": open_ways, "world": worlds}[row.place]
        if row.place_id not in there:
            yield f"item {row.id} is in {row.place} {row.place_id}, which there is not"
    yield from (f"item {item} is gone without a word" for item in told)


def _bodies(connection: Connection) -> Iterator[str]:
    """Bodies became what they are by legal steps, and are bound where somebody is in them and nowhere else."""
    told: dict[tuple[str, str], str] = {}
    dropped = set()
    revived = 0
    for row in rows(connection, "SELECT seq, body FROM nexus_event WHERE kind = 'avatar_changed' ORDER BY seq"):
        body = json.loads(row.body)
        key = (body["world"], body["avatar"])
        if body["state"] not in LEGAL[told.get(key)]:
            yield f"avatar {key} went from {told.get(key)} to {body['state']} (event {row.seq})"
        revived += told.get(key) == "destroyed"
        told[key] = body["state"]
    for row in rows(connection, "SELECT body FROM nexus_event WHERE kind = 'buried'"):
        dropped.add(json.loads(row.body)["world"])
    back = rows(connection, "SELECT body FROM nexus_event WHERE kind = 'entered'")
    respawns = sum(bool(json.loads(row.body)["respawned"]) for row in back)
    died_asleep = rows(connection, "SELECT seq FROM nexus_event WHERE kind = 'died' AND session_id IS NULL")
    if revived > respawns + len(died_asleep):
        yield f"{revived} bodies live again, by {respawns} respawns"
    bound = {(row.world_id, row.avatar_id) for row in rows(
        connection, "SELECT world_id, avatar_id FROM session WHERE closed IS NULL")}  # fmt: skip
    for row in rows(connection, "SELECT world_id, id, state FROM avatar"):
        key = (row.world_id, row.id)
        if told.pop(key, None) != row.state:
            yield f"avatar {key} is {row.state}, the log tells otherwise"
        if (row.state == "bound") != (key in bound):
            yield f"avatar {key} is {row.state}, its open sessions say otherwise"
        bound.discard(key)
    yield from (f"a session is open in {key}, which there is not" for key in bound)
    yield from (f"avatar {key} is gone without a word" for key in told if key[0] not in dropped)


def _log(connection: Connection) -> Iterator[str]:
    """No event happened twice, and none is missing."""
    happened = Counter((row.kind, row.session_id) for row in rows(
        connection, "SELECT kind, session_id FROM nexus_event WHERE kind IN ('entered', 'left')"))  # fmt: skip
    for row in rows(connection, "SELECT id, closed FROM session"):
        wanted = (1, 0 if row.closed is None else 1)
        found = (happened.pop(("entered", row.id), 0), happened.pop(("left", row.id), 0))
        if found != wanted:
            yield f"session {row.id} was entered and left {found} times, not {wanted}"
    yield from (f"{key} tells of no session" for key in happened)
    done = {row.id for row in rows(connection, "SELECT id FROM transfer WHERE kind = 'enter' AND state = 'done'")}
    if len(done) != len(rows(connection, "SELECT id FROM session")):
        yield "there are not as many sessions as ways that led into a world"
    for row in rows(connection, "SELECT run_id, count(*) AS n, max(seq) AS last FROM event GROUP BY run_id"):
        if row.last != row.n - 1:
            yield f"run {row.run_id} has {row.n} events and the last is {row.last}"
    query = "SELECT run_id, count(*) AS n, count(DISTINCT seat) AS seats FROM event WHERE kind = 'step' GROUP BY run_id"
    counted = rows(connection, query)
    steps = Counter({row.run_id: row.n for row in counted})
    shared = {row.run_id for row in counted if row.seats > 1}
    total: Counter[str] = Counter()
    over = defaultdict(list)
    for row in rows(connection, "SELECT run_id, steps, closed FROM session"):
        total[row.run_id] += row.steps
        over[row.run_id].append(row.closed is not None)
    for run, number in total.items():
        if run not in shared and over[run] == [True] and number != steps[run]:
            yield f"the session of run {run} counts {number} steps, the log has {steps[run]}"


def _inside(connection: Connection) -> Iterator[str]:
    """What lies in sleeping worlds, by their own account, is what the books say lies there."""
    query = (
        "SELECT id, game, snapshot FROM world WHERE snapshot IS NOT NULL AND id NOT IN"
        " (SELECT world_id FROM session WHERE closed IS NULL)"
    )
    for row in rows(connection, query):
        kept = _kept(row.game, zstandard.decompress(bytes(row.snapshot)))
        if kept is None:
            continue
        found = {r.id for r in rows(connection, "SELECT id FROM item WHERE place_id = :world", world=row.id)}
        if kept != found:
            yield f"world {row.id} holds {sorted(kept)}, the books say {sorted(found)}"


def _kept(game: str, snapshot: bytes) -> set[str] | None:
    """Return the items brought along that a world says it holds or has lost and not told; None if it can't be asked."""
    state = base64.b64decode(json.loads(snapshot)["state"])
    if game.endswith("quarry"):  # wherever it runs
        inner = json.loads(state)["state"]
        return {*inner["kept"], *inner["lost"]}
    if game == "crafter":
        from wsap_core.authoring.packing import unpack
        from wsap_crafter.snapshot import MAGIC

        items: Any = unpack(MAGIC, state, "crafter")["ledger"] or {"kept": [], "lost": {}}
        return {item["item_id"] for _, item in items["kept"]} | {i for gone in items["lost"].values() for i in gone}
    return None


def _settled(connection: Connection) -> Iterator[str]:
    for row in rows(connection, "SELECT id, agent_id FROM transfer WHERE state IN ('prepared', 'unknown')"):
        yield f"transfer {row.id} of {row.agent_id} is not settled"
    for row in rows(connection, "SELECT id FROM item WHERE place = 'transfer'"):
        yield f"item {row.id} is still under way"
