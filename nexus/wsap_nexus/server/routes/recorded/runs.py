"""Routes of runs: the list, their steps, their games' views and their model usage."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from wsap_core.errors import WsapError
from wsap_core.factories import load
from wsap_core.host import PluginHost
from wsap_core.protocol.wire import Codec, dumps
from wsap_core.seams.agent import NO_USAGE, Usage
from wsap_core.untrusted import single_line
from wsap_nexus.http.access.auth import is_owner, sees
from wsap_nexus.http.access.callers import Admin, Reader
from wsap_nexus.hub.agents.place import GAME, NEXUS_SPEC
from wsap_nexus.hub.nexus import Nexus
from wsap_nexus.hub.served import Hub
from wsap_nexus.runs.plan import game_of, with_model
from wsap_nexus.runs.views.restoring import Runs, spec_with_views, view_of_run
from wsap_nexus.server.bodies import watched
from wsap_nexus.server.deps import RunId, page_start, replies
from wsap_nexus.server.serializers import json_response, view_json
from wsap_nexus.server.watched.stage import Language
from wsap_nexus.store.entities import SessionRecord
from wsap_nexus.store.nexus_store import Transaction
from wsap_nexus.store.records import EVERYONE, EventRecord, MomentRecord, RunRecord, RunStatus
from wsap_nexus.store.step_index import StepIndexes
from wsap_nexus.terminal.recorded import game_to_read, note_of_event
from wsap_nexus.terminal.spending import spending_of, spending_so_far

# Any, in this module: JSON.

router = APIRouter(prefix="/runs", tags=["runs"])


@router.get("", responses=replies(watched.RunPage))
async def runs(
    nexus: Hub,
    who: Reader,
    before: Annotated[str, Query(max_length=300, description="`next` of the page before.")] = "",
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    game: Annotated[str | None, Query(max_length=200)] = None,
    visits: Annotated[bool, Query(description="Include what agents did in the nexus itself.")] = False,
) -> Response:
    """Runs, newest first, a page at a time; rewards and achievements are for the owner only."""
    found = nexus.store.repository.list_runs(
        limit=limit,
        games=None if game is None else (game,),
        without_visits=game is None and not visits,
        before=page_start(before),
    )
    with nexus.nexus_store.look() as tx:
        players = _players(tx, [record.id for record in found])
    rows = [_run_row(nexus, record, players, private=is_owner(who)) for record in found]
    last = f"{found[-1].created} {found[-1].id}" if len(found) == limit else None
    return json_response({"runs": rows, "next": last})


@router.get("/{run_id}", responses=replies(watched.RunAnswer))
async def run(nexus: Hub, request: Request, run_id: RunId, who: Reader) -> Response:
    """A run: its game, its agents, and its number of steps; its seed and its summary are for the owner only."""
    record = nexus.store.repository.get_run(run_id)
    index = await indexes_of(request).of(record.id)
    reading = reading_of(nexus.host, record)
    with nexus.nexus_store.look() as tx:
        players = _players(tx, [record.id])
    private = is_owner(who)
    return json_response(
        {
            "run": {
                "id": record.id,
                "game": record.game,
                "title": reading.title,
                "seed": record.seed if private else None,
                "status": record.status.value,
                "created": record.created,
                "updated": record.updated,
                "seats": seats_of(record),
                "summary": record.summary if private else None,
                "version": record.wsap_version,
                "look_back": look_back(nexus, record.id),
            },
            "playing": nexus.playing(record.id) is not None,
            "players": players.get(record.id, []),
            "steps": index.count,
            "views": spec_with_views(record, nexus.host) is not None,
            "remark": reading.remark,
        }
    )


@router.get("/{run_id}/steps", responses=replies(watched.StepPage))
async def steps(
    nexus: Hub,
    request: Request,
    run_id: RunId,
    by: Admin,
    position: Annotated[int | None, Query(ge=0, le=2**53)] = None,
    after: Annotated[int | None, Query(ge=-1, le=2**53)] = None,
    before: Annotated[int | None, Query(ge=0, le=2**53)] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 60,
) -> Response:
    """Summaries of steps, oldest first: from a position, after an event, or before one."""
    record = nexus.store.repository.get_run(run_id)
    indexes = indexes_of(request)
    index = await indexes.of(record.id)
    if position is not None:
        start = await indexes.seq_at(record.id, position)
        after = index.next_seq if start is None else start - 1
    found = indexes.seqs(record.id, after=after, before=before, limit=limit)
    if not found:
        return json_response({"steps": [], "first": None, "total": index.count})
    events = nexus.store.repository.read_events(record.id, from_seq=found[0], to_seq=found[-1] + 1, kinds=("step",))
    first = await indexes.position_of(record.id, found[0])
    return json_response({"steps": [step_in_short(e) for e in events], "first": first, "total": index.count})


@router.get("/{run_id}/moments", responses=replies(watched.MomentsOfRun))
async def moments(nexus: Hub, request: Request, run_id: RunId, who: Reader, language: Language = "en") -> Response:
    """What is worth telling of a run, in its order; if there is more, what weighs most.

    The owner reads everything, an agent what happened to it, and everybody else only what is public.
    """
    record = nexus.store.repository.get_run(run_id)
    with nexus.nexus_store.look() as tx:
        players = tx.players([record.id]).get(record.id, ())
    names = {agent: name for agent, name, _ in players}
    found = [
        one
        for one in nexus.store.repository.moments_of(record.id, limit=MOMENTS_READ)
        if is_owner(who) or one.audience == EVERYONE or (one.agent in names and sees(who, one.agent))
    ]
    rows = [
        moment_json(one, names, language, await indexes_of(request).position_of(record.id, one.seq + 1))
        for one in weightiest(found)
    ]
    return json_response({"moments": rows, "more": len(found) - len(rows)})


@router.get("/{run_id}/view", responses=replies(watched.ViewOfRun))
async def view(nexus: Hub, request: Request, run_id: RunId, by: Admin) -> Response:
    """The game's view of a run; the query's parameters are the view's selections."""
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


MOMENTS_READ = 5000
"""Maximum number of moments of a run that are looked through, the first ones."""
_MOMENTS_SHOWN = 200
"""Maximum number of moments of a run that are told."""


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


def weightiest(moments: Sequence[MomentRecord]) -> list[MomentRecord]:
    """Return the moments of a run that are told, in their order; if there are many, what weighs most."""
    top = sorted(moments, key=lambda one: -one.weight)[:_MOMENTS_SHOWN]
    return sorted(top, key=lambda one: (one.seq, one.number))


def moment_json(one: MomentRecord, names: Mapping[str, str], language: Language, position: int) -> dict[str, Any]:
    """Return a moment, with its words; `names` are those of the agents."""
    name = names.get(one.agent, one.seat)
    return {
        "position": position,
        "seat": one.seat,
        "step": one.step,
        "time": one.time,
        "kind": one.kind,
        "weight": one.weight,
        "words": f"{single_line(name)[:80]}{one.told(language)}",
    }


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
        "truncated": note.truncated,
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


@dataclass(frozen=True)
class Reading:
    """How a run's observations are read and drawn."""

    codec: Codec
    title: str
    """Its game's."""
    remark: str = ""
    """Why the game is missing."""
    meters: Mapping[str, float] = field(default_factory=dict)
    """Its game's."""


def reading_of(host: PluginHost, record: RunRecord) -> Reading:
    """Return how a run is read."""
    if record.game == GAME:
        return Reading(Codec([load(t) for t in NEXUS_SPEC.wire_types]), "The nexus")
    spec, codec, remark = game_to_read(record, host)
    if spec is None:
        return Reading(codec, record.game, remark)
    return Reading(codec, spec.display_title, remark, spec.meters)


def _players(tx: Transaction, run_ids: Sequence[str]) -> dict[str, list[dict[str, str]]]:
    """Return run -> the agents of the nexus that played it."""
    return {
        run: [{"id": agent, "name": name, "world": world} for agent, name, world in players]
        for run, players in tx.players(run_ids).items()
    }


def _run_row(
    nexus: Nexus, record: RunRecord, players: Mapping[str, list[dict[str, str]]], *, private: bool
) -> dict[str, Any]:
    summary = record.summary or {}
    gained = summary if private else {}
    return {
        "id": record.id,
        "game": record.game,
        "agent": record.agent,
        "status": "playing" if nexus.playing(record.id) is not None else record.status.value,
        "created": record.created,
        "players": players.get(record.id, []),
        "steps": summary.get("steps"),
        "reward": gained.get("reward"),
        "achievements": len(gained.get("achievements") or ()),
        "usage": summary.get("usage"),
    }


def seats_of(record: RunRecord) -> list[dict[str, str]]:
    """Return the name of each seat of a run, and who decided for it."""
    seats = record.config.get("seats")
    return [
        {
            "name": str(seat.get("name", "")),
            "agent": with_model(str(seat.get("agent", "")), (seat.get("options") or {}).get("model")),
        }
        for seat in (seats if isinstance(seats, list) else ())[:100]
        if isinstance(seat, dict)
    ]


# --- model usage --------------------------------------------------------------------------------------


_MOST_RUNS = 2000
"""Maximum number of runs of the last day that are added up; `partial` says that there may be more."""


def usage_last_day(nexus: Nexus) -> dict[str, Any]:
    """Return the usage in runs of the last 24 hours, running ones included."""
    since = datetime.fromtimestamp(nexus.nexus_store.wall_clock(), UTC) - timedelta(days=1)
    rows = nexus.store.repository.summaries(since=since, limit=_MOST_RUNS)
    total = sum((_usage(nexus, run_id, summary) for run_id, summary in rows), NO_USAGE)
    return {**asdict(total), "partial": len(rows) == _MOST_RUNS}


def usage_by_session(nexus: Nexus, sessions: Sequence[SessionRecord]) -> dict[str, Any]:
    """Return session -> usage in its run; sessions without model calls are left out."""
    rows = nexus.store.repository.summaries(ids=[session.run_id for session in sessions])
    by_run = {run_id: _usage(nexus, run_id, summary) for run_id, summary in rows}
    return {s.id: asdict(by_run[s.run_id]) for s in sessions if s.run_id in by_run and by_run[s.run_id].calls}


def _usage(nexus: Nexus, run_id: str, summary: Mapping[str, Any] | None) -> Usage:
    run = nexus.playing(run_id)
    if run is not None:
        return spending_so_far(run).usage
    return spending_of(summary).usage if isinstance(summary, dict) else NO_USAGE
