"""Routes of the overview, agents, worlds and events."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from sqlalchemy import BigInteger, cast, func, select

from wsap_core.protocol.wire import encode
from wsap_nexus.agents.chronicle import failure_of
from wsap_nexus.dashboard.frames import Frames
from wsap_nexus.dashboard.guard import Private, spectator
from wsap_nexus.dashboard.mind import mind_of
from wsap_nexus.dashboard.serializers import events_json, json_response, rows_of, session_json, shortened
from wsap_nexus.dashboard.timeline import look_back, usage_by_session, usage_last_day
from wsap_nexus.http.auth import record_json
from wsap_nexus.hub.live_session import LiveSession
from wsap_nexus.hub.nexus import Nexus
from wsap_nexus.hub.served import Hub
from wsap_nexus.hub.storage import LOG_MOST
from wsap_nexus.hub.waits import ATTENTION_AFTER, waits
from wsap_nexus.store.entities import SessionRecord
from wsap_nexus.store.events import PUBLIC_KINDS, read_row, why_ended
from wsap_nexus.store.events.nexus import WorldRewound
from wsap_nexus.store.nexus_store import Transaction
from wsap_nexus.store.prune import DAY, size_of
from wsap_nexus.store.room import log_bytes
from wsap_nexus.store.tables import METADATA

_T = METADATA.tables
_AGENT, _SESSION, _WORLD, _EVENT = _T["agent"], _T["session"], _T["world"], _T["nexus_event"]
_AVATAR, _GAME = _T["avatar"], _T["game"]

router = APIRouter(prefix="/dashboard/data", dependencies=[Depends(spectator)])

WORLDS_SHOWN = 24
"""Maximum number of worlds on the overview."""

AWAKE_SHOWN = 200
"""Maximum number of occupied worlds in the list of all worlds."""

AGENTS_SHOWN = 60
"""Maximum number of agents in the nexus on the overview."""

Limit = Annotated[int, Query(ge=1, le=500)]
Id = Annotated[str, Query(max_length=200)]


@router.get("/overview")
async def overview(nexus: Hub, request: Request, private: Private) -> Response:
    """Numbers, occupied worlds, agents in the nexus, and what needs attention."""
    with nexus.nexus_store.look() as tx:
        counts = _counts(tx)
        here = _agents(tx, (_AGENT.c.place == "nexus") & (_AGENT.c.state != "removed"), AGENTS_SHOWN)
        tables = _by_run(nexus)
        shown = tables[:WORLDS_SHOWN]
        names = _names(tx, [stay.session.agent_id for _, stays in shown for stay in stays])
        recent = _events_of(tx, select(_EVENT).order_by(_EVENT.c.seq.desc()).limit(120), private)
        moving = tx.transfers("prepared", "unknown")[:100]
        body = {
            "now": time.time(),
            "seq": tx.last_seq(),
            "counts": {**counts, "on_the_way": len(moving), "playing": len(nexus.live.sessions)},
            "worlds": [_world_card(nexus, run, stays, private) for run, stays in shown],
            "more_worlds": len(tables) - len(shown),
            "nexus": here,
            "names": names,
            "transit": [{"agent": row.agent_id, "kind": row.kind, "world": row.world_id} for row in moving],
            "recent": recent,
            "attention": _held(nexus)
            + (_held_up(nexus) + _undeleted(nexus) + _waiting(nexus) + _attention(tx) if private else []),
            "spent": usage_last_day(nexus, tx),
            "health": _health(nexus, request),
            "games": [encode(info) for info in nexus.entrance.games()],
        }
    return json_response(body)


@router.get("/agents")
async def agents(nexus: Hub, private: Private, after: Id = "", limit: Limit = 100, search: Id = "") -> Response:
    """One page of agents by id, filtered by a text in id or name."""
    where = (_AGENT.c.id > after) & (_AGENT.c.state != "removed")
    if search:
        where &= _AGENT.c.id.contains(search, autoescape=True) | _AGENT.c.name.icontains(search, autoescape=True)
    with nexus.nexus_store.look() as tx:
        found = _agents(tx, where, limit)
    for row in found:
        stay = nexus.live.sessions.get(row["id"])
        row["stay"] = session_json(stay, private=private) if stay is not None else None
    return json_response({"agents": found})


@router.get("/agents/{agent_id}")
async def agent(nexus: Hub, agent_id: str, private: Private) -> Response:
    """All data of an agent's page; for spectators, only its identity and sessions."""
    stay = nexus.live.sessions.get(agent_id)
    with nexus.nexus_store.look() as tx:
        identity = tx.agent(agent_id)
        sessions = tx.sessions(agent_id=agent_id, limit=30)
        body: dict[str, Any] = {
            "agent": record_json(identity, private=private),
            "stay": session_json(stay, private=private) if stay is not None else None,
            "sessions": [_session(s, private) for s in sessions],
            "visits": _visits(tx, agent_id),
            "spent": usage_by_session(nexus, tx, sessions),
        }
        if private:
            body |= mind_of(tx, identity)
    return json_response(body)


@router.get("/agents/{agent_id}/sessions")
async def sessions(nexus: Hub, agent_id: str, private: Private, before: Id = "", limit: Limit = 30) -> Response:
    """An agent's sessions before an id, newest first."""
    query = select(_SESSION.c.id).where(_SESSION.c.agent_id == agent_id).order_by(_SESSION.c.id.desc()).limit(limit)
    if before:
        query = query.where(_SESSION.c.id < before)
    with nexus.nexus_store.look() as tx:
        found = [tx.session(key) for key in tx.connection.execute(query).scalars()]
        shown = [_session(s, private) for s in found]
        return json_response({"sessions": shown, "spent": usage_by_session(nexus, tx, found)})


@router.get("/worlds")
async def worlds(nexus: Hub, private: Private, before: Id = "", limit: Limit = 60) -> Response:
    """One page of worlds, newest first; the first page also has the occupied ones."""
    open_in: dict[str, list[LiveSession]] = {}
    for stay in nexus.live.sessions.values():
        open_in.setdefault(stay.session.world_id, []).append(stay)
    columns = (_WORLD.c.id, _WORLD.c.game, _WORLD.c.owner, _WORLD.c.created, _WORLD.c.failures)
    query = select(*columns).order_by(_WORLD.c.created.desc(), _WORLD.c.id.desc()).limit(limit)
    awake: list[dict[str, Any]] = []
    lives = {kept.record.id for kept in nexus.kept.open}
    with nexus.nexus_store.look() as tx:
        if before:
            created, _, world_id = before.partition(" ")
            same = (_WORLD.c.created == created) & (_WORLD.c.id < world_id)
            query = query.where((_WORLD.c.created < created) | same)
        elif open_in or lives:
            some = sorted(lives.union(open_in))[:AWAKE_SHOWN]
            awake = rows_of(tx, select(*columns).where(_WORLD.c.id.in_(some)).order_by(_WORLD.c.id))
        found = rows_of(tx, query)
        names = _names(tx, [row["owner"] for row in [*awake, *found]])
        names |= _names(tx, [stay.session.agent_id for row in awake for stay in open_in.get(row["id"], ())])
    for row in [*awake, *found]:
        row["agents"] = [stay.session.agent_id for stay in open_in.get(row["id"], ())]
        row["lives"] = row["id"] in lives
    return json_response({"awake": awake, "worlds": found, "names": names})


@router.get("/worlds/{world_id}")
async def world(nexus: Hub, world_id: str, private: Private) -> Response:
    """A world with its live sessions, avatars and past sessions; its seed, which determines roles, is private."""
    stays = [stay for stay in nexus.live.sessions.values() if stay.session.world_id == world_id]
    with nexus.nexus_store.look() as tx:
        record = tx.world(world_id)
        past = tx.sessions(world_id=world_id, limit=30)
        bodies = select(_AVATAR.c.id, _AVATAR.c.agent_id, _AVATAR.c.state, _AVATAR.c.data)
        found = rows_of(tx, bodies.where(_AVATAR.c.world_id == world_id).limit(100))
        # Without a stored state, no agent can enter again.
        kept = next((one.run_id for one in nexus.kept.open if one.record.id == world_id), None)
        over = bool(past) and not stays and kept is None and not tx.has_state(world_id)
        body: dict[str, Any] = {
            "over": over,
            "world": {
                "id": record.id,
                "game": record.game,
                "owner": record.owner,
                "seed": record.seed if private else None,
                "created": record.created,
                "failures": record.failures,
            },
            "run": stays[0].session.run_id if stays else kept or (past[0].run_id if past else None),
            "stays": [session_json(stay, private=private) for stay in stays],
            "avatars": [_body(row, private) for row in found],
            "sessions": [_session(s, private) for s in past],
            "names": _names(tx, [s.agent_id for s in past] + [row["agent_id"] for row in found]),
        }
    info = [game for game in nexus.entrance.games() if game.id == record.game]
    if over:
        body["look_back"] = look_back(nexus, past[0].run_id)
    return json_response({**body, "game": encode(info[0]) if info else None})


@router.get("/worlds/{world_id}/view")
async def view(nexus: Hub, request: Request, world_id: str, private: Private) -> Response:
    """The current view of a world for spectators."""
    stays = (stay.session.run_id for stay in nexus.live.sessions.values() if stay.session.world_id == world_id)
    run = next((kept.run_id for kept in nexus.kept.open if kept.record.id == world_id), None) or next(stays, None)
    if run is None:
        with nexus.nexus_store.look() as tx:
            tx.world(world_id)
        return json_response({"view": None, "remark": "Nobody is in this world, so it is suspended."})
    frames: Frames = request.app.state.frames
    frame = await frames.of_run(run)
    remark = frame.remark if private or not frame.error else "The game's view failed."
    return json_response({"view": frame.view, "remark": remark}, request, etag=frame.etag)


@router.get("/events")
async def events(
    nexus: Hub,
    private: Private,
    before: Annotated[int | None, Query(ge=0)] = None,
    after: Annotated[int | None, Query(ge=0)] = None,
    limit: Limit = 100,
    agent: Id = "",
    kind: Id = "",
) -> Response:
    """The events of the nexus before or after a given one, newest first; for spectators, their public parts."""
    query = select(_EVENT).limit(limit)
    query = query.order_by(_EVENT.c.seq if after is not None else _EVENT.c.seq.desc())
    if before is not None:
        query = query.where(_EVENT.c.seq < before)
    if after is not None:
        query = query.where(_EVENT.c.seq > after)
    if agent:
        query = query.where(_EVENT.c.agent_id == agent)
    if kind:
        query = query.where(_EVENT.c.kind.in_(kind.split(",")[:20]))
    with nexus.nexus_store.look() as tx:
        found = _events_of(tx, query, private)
        if after is not None:
            found.reverse()
        return json_response({"events": found})


# --- parts ------------------------------------------------------------------------------------------


def _counts(tx: Transaction) -> dict[str, int]:
    read = tx.connection.execute
    found = {"in_nexus": 0, "in_worlds": 0, "paused": 0}
    grouped = select(_AGENT.c.place, _AGENT.c.state, func.count()).where(_AGENT.c.state != "removed")
    for place, state, count in read(grouped.group_by(_AGENT.c.place, _AGENT.c.state)):
        found["in_worlds" if place == "world" else "in_nexus"] += count
        found["paused"] += count if state == "paused" else 0
    found["agents"] = found["in_nexus"] + found["in_worlds"]
    # Reading the counter is faster than counting rows.
    number = select(_T["counter"].c.value).where(_T["counter"].c.name == "session")
    found["sessions"] = int(read(number).scalar() or 0)
    found["worlds"] = int(read(select(func.count()).select_from(_WORLD)).scalar_one())
    found["events"] = tx.last_seq()
    return found


def _agents(tx: Transaction, where: Any, limit: int) -> list[dict[str, Any]]:
    columns = (
        _AGENT.c.id, _AGENT.c.name, _AGENT.c.state, _AGENT.c.place, _AGENT.c.lifetime_steps, _AGENT.c.playtime,
        _AGENT.c.policies,
    )  # fmt: skip
    found = rows_of(tx, select(*columns).where(where).order_by(_AGENT.c.id).limit(limit))
    for row in found:
        row["decides"] = sorted({str(p.get("agent", "")) for p in row.pop("policies").values()})[:5]
    return found


def _by_run(nexus: Nexus) -> list[tuple[str, list[LiveSession]]]:
    """Return run -> live sessions, for occupied worlds and worlds that live."""
    found: dict[str, list[LiveSession]] = {}
    for stay in sorted(nexus.live.sessions.values(), key=lambda s: (s.session.world_id, s.session.agent_id)):
        found.setdefault(stay.session.run_id, []).append(stay)
    for kept in nexus.kept.open:
        found.setdefault(kept.run_id, [])
    return list(found.items())


def _world_card(nexus: Nexus, run: str, stays: list[LiveSession], private: bool) -> dict[str, Any]:
    kept = next((one.record for one in nexus.kept.open if one.run_id == run), None)
    world_id, game = (kept.id, kept.game) if kept is not None else (stays[0].session.world_id, stays[0].session.game)
    face = nexus.live.ports.get(run)
    draws = face is not None and "render" in face.spec.abilities
    title = face.spec.display_title if face is not None else game
    shown = [session_json(stay, private=private) for stay in stays[:16]]
    lives = kept is not None
    return {"id": world_id, "game": game, "title": title, "run": run, "draws": draws, "stays": shown, "lives": lives}


def _names(tx: Transaction, ids: Iterable[str | None]) -> dict[str, str]:
    wanted = sorted({key for key in ids if key})[:1000]
    if not wanted:
        return {}
    rows = tx.connection.execute(select(_AGENT.c.id, _AGENT.c.name).where(_AGENT.c.id.in_(wanted)))
    return {row.id: row.name for row in rows}


def _events_of(tx: Transaction, query: Any, private: bool) -> list[dict[str, Any]]:
    if not private:
        query = query.where(_EVENT.c.kind.in_(sorted(PUBLIC_KINDS)))
    rows = tx.connection.execute(query).all()
    events = [read_row(row) for row in rows]
    # Bodies can be very large.
    large = {row.seq for row in rows if len(row.body) >= 100_000}
    found = events_json(events, tx.names(events), private=private)
    return [event | ({"body": {}} if event["seq"] in large else {}) for event in found]


def _held(nexus: Nexus) -> list[dict[str, Any]]:
    """Return the public message that a fault of the machine holds agents, if one does."""
    why = nexus.live.held
    return [{"kind": "machine", "id": "machine", "name": "Agents are held", "what": why}] if why else []


def _held_up(nexus: Nexus) -> list[dict[str, Any]]:
    """Return the message that a reader makes the write-ahead log grow, if one does."""
    log = log_bytes(nexus.store.database)
    if log is None or log <= LOG_MOST:
        return []
    what = (
        f"Its write-ahead log has grown to {log >> 20} MiB, because a program has been reading it for very long; it "
        "shrinks once that program ends."
    )
    return [{"kind": "machine", "id": "log", "name": "The database", "what": what}]


def _undeleted(nexus: Nexus) -> list[dict[str, Any]]:
    why = nexus.live.undeleted
    return [{"kind": "clock", "id": "clock", "name": "Old records are kept", "what": why}] if why else []


def _waiting(nexus: Nexus) -> list[dict[str, Any]]:
    """Return who has been waiting for whom for long; private, as whose turn it is may be a secret of the game."""
    return [
        {"kind": wait.kind, "id": wait.whom, "name": wait.whom, "what": shortened(f"{wait.text}.", 500)}
        if wait.kind != "model"
        else {"kind": "world", "id": wait.who, "name": wait.who, "what": shortened(f"{wait.text}.", 500)}
        for wait in waits(nexus.live, ATTENTION_AFTER)[:20]
    ]


def _attention(tx: Transaction) -> list[dict[str, Any]]:
    failed = select(_AGENT).where(_AGENT.c.state == "paused").order_by(_AGENT.c.id).limit(20)
    found: list[dict[str, Any]] = []
    for row in tx.connection.execute(failed).all():
        why = failure_of(tx, row.id)
        if why:
            found.append({"kind": "agent", "id": row.id, "name": row.name, "what": why})
    for move in tx.transfers("unknown")[:20]:
        what = f"The outcome of its transfer to {move.data.get('game')} is unknown: {move.data.get('why')}"
        found.append({"kind": "agent", "id": move.agent_id, "name": move.agent_id, "what": shortened(what, 500)})
    found += [
        {"kind": "world", "id": event.world, "name": event.world, "what": event.sentence()}
        for event in tx.events(kinds=(WorldRewound,), limit=1000)[-20:]
        if isinstance(event, WorldRewound) and event.time > tx.now - DAY
    ]
    games = tx.connection.execute(select(_GAME).where(_GAME.c.status != "available").limit(20))
    return found + [
        {"kind": "game", "id": row.name, "name": row.name, "what": f"{row.status}: {row.reason}"[:500]} for row in games
    ]


def _health(nexus: Nexus, request: Request) -> dict[str, Any]:
    from importlib.metadata import version

    return {
        "since": request.app.state.started,
        "database_bytes": size_of(nexus.store.database),
        "version": version("wsap-nexus"),
        "held": nexus.live.held,
        "decisions": request.app.state.board.decisions,
        "rate": round(request.app.state.board.rate(), 1),
    }


def _session(session: SessionRecord, private: bool) -> dict[str, Any]:
    found = record_json(session, private=private)
    found["ended"] = why_ended(session.reason) if session.closed else None
    if private:  # single actions are in the run
        found["stats"] = {key: value for key, value in session.stats.items() if key != "done"}
    return found


def _body(row: dict[str, Any], private: bool) -> dict[str, Any]:
    data = row["data"] or {}
    return row if private else {**row, "data": {"name": data.get("name")}}


def _visits(tx: Transaction, agent_id: str) -> list[dict[str, Any]]:
    query = (
        select(
            _SESSION.c.game, func.count().label("times"), cast(func.sum(_SESSION.c.steps), BigInteger).label("steps")
        )
        .where(_SESSION.c.agent_id == agent_id)
        .group_by(_SESSION.c.game)
        .order_by(_SESSION.c.game)
        .limit(100)
    )
    return rows_of(tx, query)
