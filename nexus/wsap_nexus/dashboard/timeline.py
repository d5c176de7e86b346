"""Routes of runs: the list, their steps, their games' views and their model usage."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from sqlalchemy import select

from wsap_core.errors import WsapError
from wsap_core.factories import load
from wsap_core.protocol.wire import Codec, dumps
from wsap_core.seams.agent import NO_USAGE, Usage
from wsap_nexus.dashboard.guard import Private, spectator
from wsap_nexus.dashboard.serializers import json_response, view_json
from wsap_nexus.dashboard.steps import StepIndexes
from wsap_nexus.http.callers import Admin
from wsap_nexus.hub.nexus import Nexus
from wsap_nexus.hub.place import GAME, NEXUS_SPEC
from wsap_nexus.hub.served import Hub
from wsap_nexus.runs.listed import label_of
from wsap_nexus.runs.plan import game_of, with_model
from wsap_nexus.runs.restoring import Runs, spec_with_views, view_of_run
from wsap_nexus.store.entities import SessionRecord
from wsap_nexus.store.nexus_store import Transaction
from wsap_nexus.store.records import EventRecord, RunRecord, RunStatus
from wsap_nexus.store.tables import METADATA
from wsap_nexus.terminal.recorded import game_to_read, note_of_event
from wsap_nexus.terminal.spending import spending_of, spending_so_far

router = APIRouter(prefix="/dashboard/data", dependencies=[Depends(spectator)])

_RUN, _EVENT, _SESSION = METADATA.tables["run"], METADATA.tables["event"], METADATA.tables["session"]


@router.get("/runs")
async def runs(
    nexus: Hub,
    private: Private,
    before: Annotated[str, Query(max_length=300)] = "",
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    game: Annotated[str, Query(max_length=200)] = "",
    visits: bool = False,
) -> Response:
    """Runs, newest first; sessions in the nexus are left out unless requested."""
    columns = (_RUN.c.id, _RUN.c.game, _RUN.c.agent, _RUN.c.status, _RUN.c.created, _RUN.c.summary, _RUN.c.config)
    query = select(*columns).order_by(_RUN.c.created.desc(), _RUN.c.id.desc()).limit(limit)
    if before:
        created, _, run_id = before.partition(" ")
        query = query.where((_RUN.c.created < created) | ((_RUN.c.created == created) & (_RUN.c.id < run_id)))
    if game:
        query = query.where(_RUN.c.game == game)
    elif not visits:
        query = query.where(_RUN.c.game != GAME)
    with nexus.store.database.read() as connection:
        rows = connection.execute(query).all()
        who = _players(connection, [row.id for row in rows])
    return json_response({"runs": [_run_row(nexus, row, who, private) for row in rows]})


@router.get("/runs/{run_id}")
async def run(nexus: Hub, request: Request, run_id: str, private: Private) -> Response:
    """A run: its game, its agents, and its number of steps."""
    record = nexus.store.repository.get_run(run_id)
    index = await indexes_of(request).of(record.id)
    _, title, remark = reading_of(nexus, record)
    with nexus.store.database.read() as connection:
        who = _players(connection, [record.id])
    return json_response(
        {
            "run": {
                "id": record.id,
                "game": record.game,
                "title": title,
                "seed": record.seed if private else None,
                "status": record.status.value,
                "created": record.created,
                "updated": record.updated,
                "seats": _seats(record),
                "summary": record.summary if private else None,
                "version": record.wsap_version,
                "look_back": look_back(nexus, record.id),
            },
            "playing": nexus.playing(record.id) is not None,
            "players": who.get(record.id, []),
            "steps": index.count,
            "views": spec_with_views(record, nexus.host) is not None,
            "remark": remark,
        }
    )


@router.get("/runs/{run_id}/steps")
async def steps(
    nexus: Hub,
    request: Request,
    run_id: str,
    by: Admin,
    position: Annotated[int | None, Query(ge=0)] = None,
    after: Annotated[int | None, Query(ge=-1)] = None,
    before: Annotated[int | None, Query(ge=0)] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 60,
) -> Response:
    """Summaries of steps, oldest first: from a position, after an event, or before one."""
    record = nexus.store.repository.get_run(run_id)
    indexes = indexes_of(request)
    index = await indexes.of(record.id)
    if position is not None:
        start = await indexes.seq_at(record.id, position)
        after = index.next_seq if start is None else start - 1
    query = select(_EVENT.c.seq).where(_EVENT.c.run_id == record.id, _EVENT.c.kind == "step").limit(limit)
    if before is not None:
        query = query.where(_EVENT.c.seq < before).order_by(_EVENT.c.seq.desc())
    else:
        query = query.where(_EVENT.c.seq > (-1 if after is None else after)).order_by(_EVENT.c.seq)
    with nexus.store.database.read() as connection:
        found = sorted(connection.execute(query).scalars().all())
    if not found:
        return json_response({"steps": [], "first": None, "total": index.count})
    events = nexus.store.repository.read_events(record.id, from_seq=found[0], to_seq=found[-1] + 1, kinds=("step",))
    first = await indexes.position_of(record.id, found[0])
    return json_response({"steps": [step_in_short(e) for e in events], "first": first, "total": index.count})


@router.get("/runs/{run_id}/view")
async def view(nexus: Hub, request: Request, run_id: str, by: Admin) -> Response:
    """The game's view of a run; the query's parameters are the selections."""
    record = nexus.store.repository.get_run(run_id)
    spec = spec_with_views(record, nexus.host)
    if spec is None:
        return json_response({"view": None, "remark": "This game has no view of its runs."})
    selection = {key: value[:200] for key, value in list(request.query_params.items())[:10]}
    runs = Runs(nexus.host, nexus.store.repository)
    try:
        found = view_json(await asyncio.to_thread(view_of_run, spec, runs, record.id, selection))
    except WsapError as error:  # the game's own code failed
        return json_response({"view": None, "remark": str(error)})
    etag = hashlib.sha256(dumps(found).encode()).hexdigest()[:24]
    return json_response({"view": found, "remark": "" if found else "Nothing has happened yet."}, request, etag=etag)


# --- parts ------------------------------------------------------------------------------------------


def look_back(nexus: Nexus, run_id: str) -> str:
    """Return the game's command that shows a finished run; empty if there is none."""
    try:
        record = nexus.store.repository.get_run(run_id)
        spec = game_of(record, nexus.host)
    except WsapError:  # the run was deleted, is the nexus itself, or its game is not installed
        return ""
    over = record.status is RunStatus.FINISHED and nexus.playing(run_id) is None
    return spec.look_back_at(run_id) if over else ""


def step_in_short(event: EventRecord) -> dict[str, Any]:
    """Return a recorded step as a row of a list."""
    note = note_of_event(event)
    usage = note.info.usage if note.info is not None else None
    return {
        "seq": event.seq,
        "seat": note.seat,
        "episode": event.episode,
        "number": (event.step or 0) + 1,
        "action": note.action[:300],
        "reasoning": note.reasoning[:200],
        "success": note.success,
        "outcome": note.outcome,
        "message": note.message[:300],
        "reward": note.reward,
        "achievements": list(note.achievements[:20]),
        "done": note.done,
        "forced": note.forced,
        "cause": note.info.cause[:200] if note.info else "",
        "repaired": bool(note.info and note.info.repaired),
        "chosen": bool(note.info and note.info.chosen),
        "tokens": None if usage is None or not usage.calls else usage.prompt_tokens + usage.completion_tokens,
        "cost": None if usage is None else usage.cost,
    }


def indexes_of(request: Request) -> StepIndexes:
    """Return the indexes of runs."""
    indexes: StepIndexes = request.app.state.steps
    return indexes


def _players(connection: Any, runs: Iterable[str]) -> dict[str, list[dict[str, str]]]:
    """Return run -> the agents of the nexus that played it."""
    wanted = sorted(runs)
    if not wanted:
        return {}
    agent = METADATA.tables["agent"]
    query = (
        select(_SESSION.c.run_id, agent.c.id, agent.c.name, _SESSION.c.world_id)
        .join(agent, agent.c.id == _SESSION.c.agent_id)
        .where(_SESSION.c.run_id.in_(wanted))
        .order_by(agent.c.id)
    )
    found: dict[str, list[dict[str, str]]] = {}
    for row in connection.execute(query):
        found.setdefault(row.run_id, []).append({"id": row.id, "name": row.name, "world": row.world_id})
    return found


def _run_row(nexus: Nexus, row: Any, who: dict[str, list[dict[str, str]]], private: bool) -> dict[str, Any]:
    summary = row.summary or {}
    gained = summary if private else {}
    return {
        "id": row.id,
        "game": row.game,
        "agent": label_of(row.agent, row.config),
        "status": "playing" if nexus.playing(row.id) is not None else row.status,
        "created": row.created,
        "players": who.get(row.id, []),
        "steps": summary.get("steps"),
        "reward": gained.get("reward"),
        "achievements": len(gained.get("achievements") or ()),
        "usage": summary.get("usage"),
    }


def _seats(record: RunRecord) -> list[dict[str, str]]:
    seats = record.config.get("seats")
    return [
        {
            "name": str(seat.get("name", "")),
            "agent": with_model(str(seat.get("agent", "")), (seat.get("options") or {}).get("model")),
        }
        for seat in (seats if isinstance(seats, list) else ())[:100]
        if isinstance(seat, dict)
    ]


def reading_of(nexus: Nexus, record: RunRecord) -> tuple[Codec, str, str]:
    """Return the codec of a run's observations, its game's title, and a remark if the game is missing."""
    if record.game == GAME:
        return Codec([load(t) for t in NEXUS_SPEC.wire_types]), "The nexus", ""
    spec, codec, remark = game_to_read(record, nexus.host)
    return codec, record.game if spec is None else spec.display_title, remark


# --- model usage --------------------------------------------------------------------------------------


_MOST_RUNS = 2000
"""Maximum number of runs of the last day that are added up; `partial` says that there may be more."""


def usage_last_day(nexus: Nexus, tx: Transaction) -> dict[str, Any]:
    """Return the usage in runs of the last 24 hours, running ones included."""
    since = (datetime.fromtimestamp(tx.now, UTC) - timedelta(days=1)).isoformat()
    query = select(_RUN.c.id, _RUN.c.summary).where(_RUN.c.created >= since)
    rows = tx.connection.execute(query.order_by(_RUN.c.created.desc()).limit(_MOST_RUNS)).all()
    total = NO_USAGE
    for row in rows:
        total += _usage(nexus, row.id, row.summary)
    return {**asdict(total), "partial": len(rows) == _MOST_RUNS}


def usage_by_session(nexus: Nexus, tx: Transaction, sessions: Sequence[SessionRecord]) -> dict[str, Any]:
    """Return session -> usage in its run; sessions without model calls are left out."""
    wanted = [s.run_id for s in sessions]
    rows = tx.connection.execute(select(_RUN.c.id, _RUN.c.summary).where(_RUN.c.id.in_(wanted)))
    by_run = {row.id: _usage(nexus, row.id, row.summary) for row in rows}
    return {s.id: asdict(by_run[s.run_id]) for s in sessions if s.run_id in by_run and by_run[s.run_id].calls}


def _usage(nexus: Nexus, run_id: str, summary: Any) -> Usage:
    run = nexus.playing(run_id)
    if run is not None:
        return spending_so_far(run).usage
    return spending_of(summary).usage if isinstance(summary, dict) else NO_USAGE
