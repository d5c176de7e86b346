"""Routes of runs, past and present: the list, their steps, and the details of each decision."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from sqlalchemy import select

from wsap_core.errors import UnknownNameError, WireError, WsapError
from wsap_core.factories import load
from wsap_core.protocol import Observation
from wsap_core.protocol.wire import Codec
from wsap_core.references import load_adapter_spec
from wsap_nexus.dashboard.guard import HEADERS, Private, spectator
from wsap_nexus.dashboard.serializers import json_response, observation_json, shortened
from wsap_nexus.dashboard.steps import StepIndexes
from wsap_nexus.http.callers import Admin
from wsap_nexus.hub.nexus import Nexus
from wsap_nexus.hub.place import GAME, NEXUS_SPEC
from wsap_nexus.hub.served import Hub
from wsap_nexus.runs.pictures import read_picture, recorded_text
from wsap_nexus.store.records import EventRecord, RunRecord, RunStatus
from wsap_nexus.store.repository import Repository
from wsap_nexus.store.tables import METADATA
from wsap_nexus.terminal.recorded import note_of_event
from wsap_nexus.terminal.story import Note

router = APIRouter(prefix="/dashboard/data", dependencies=[Depends(spectator)])

_RUN, _EVENT, _SESSION = METADATA.tables["run"], METADATA.tables["event"], METADATA.tables["session"]

BEHIND = ("call", "tool", "refusal", "failure", "picture", "tools", "lessons", "death", "decision", "plan")
"""Kinds of events that give details of a decision, besides its step."""

MOST_BEHIND = 200
"""Most events of these kinds shown with one decision."""

WALK = 3000
"""Most earlier calls read to complete a conversation."""

LONGEST_PROMPT = 200_000
"""Most characters shown of a message of a prompt."""

Seq = Annotated[int, Query(ge=0)]


@router.get("/runs")
async def runs(
    nexus: Hub,
    private: Private,
    before: Annotated[str, Query(max_length=300)] = "",
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    game: Annotated[str, Query(max_length=200)] = "",
    visits: bool = False,
) -> Response:
    """Runs, newest first; visits to the nexus are left out unless asked for."""
    columns = (_RUN.c.id, _RUN.c.game, _RUN.c.agent, _RUN.c.status, _RUN.c.created, _RUN.c.summary)
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
    index = await _indexes(request).of(record.id)
    _, title, remark = _reading(nexus, record)
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
    """Summaries of steps, oldest first: from a position on, after an event, or before one."""
    record = nexus.store.repository.get_run(run_id)
    indexes = _indexes(request)
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


@router.get("/runs/{run_id}/steps/{seq}")
async def step(nexus: Hub, request: Request, run_id: str, seq: int, by: Admin) -> Response:
    """One decision with its observations before and after, its reasoning, and the calls of models."""
    repository = nexus.store.repository
    record = repository.get_run(run_id)
    event = _event(repository, record, seq)
    codec, _, _ = _reading(nexus, record)
    data = event.data
    line = data["step"]
    earlier = _seq_before(nexus, record, event.seat, event.seq, "step")
    body = {
        "step": step_in_short(event),
        "position": await _indexes(request).position_of(record.id, seq),
        "time": event.time,
        "action": {"name": line["action"]["name"], "parameters": line["action"]["parameters"]},
        "reasoning": shortened(data.get("reasoning") or ""),
        "message": shortened(line["result"]["message"]),
        "decision": data.get("decision"),
        "seen": _seen_before(nexus, record, event, earlier, codec),
        "after": _decoded(codec, line["observation"]),
        "behind": [_behind(e) for e in _events_behind(repository, record, event, earlier)],
        "plan": _plan(repository, record, event),
    }
    return json_response(body)


@router.get("/runs/{run_id}/calls/{seq}")
async def call(nexus: Hub, run_id: str, seq: int, by: Admin) -> Response:
    """The whole conversation that a model got in one call."""
    repository = nexus.store.repository
    record = repository.get_run(run_id)
    messages, whole = _conversation(nexus, record, _event(repository, record, seq, kind="call"))
    return json_response({"messages": messages, "whole": whole})


@router.get("/runs/{run_id}/pictures/{name}")
async def picture(nexus: Hub, run_id: str, name: str, by: Admin) -> Response:
    """A picture that a model got, by its hash."""
    record = nexus.store.repository.get_run(run_id)
    for event in nexus.store.repository.read_events(record.id, kinds=("picture",)):
        data = event.data
        if data.get("sha256") == name and data.get("media_type") == "image/png":
            _, content = read_picture(data)
            return Response(content, media_type="image/png", headers=HEADERS)
    raise UnknownNameError("picture", name, ())


# --- parts ------------------------------------------------------------------------------------------


def look_back(nexus: Nexus, run_id: str) -> str:
    """Return the command that shows more of a finished run; empty if its game has none."""
    try:
        record = nexus.store.repository.get_run(run_id)
        spec = load_adapter_spec(str(record.config.get("game", record.game)), nexus.host)
    except WsapError:  # the run was deleted, is the nexus itself, or its game is not installed
        return ""
    over = record.status is RunStatus.FINISHED and nexus.playing(run_id) is None
    return spec.look_back_at(run_id) if over else ""


def step_in_short(event: EventRecord) -> dict[str, Any]:
    """Return a recorded step as a row of a list."""
    note: Note = note_of_event(event)
    usage = note.info.usage if note.info is not None else None
    return {
        "seq": event.seq,
        "seat": note.seat,
        "episode": event.episode,
        "number": (event.step or 0) + 1,
        "action": note.action[:300],
        "reasoning": note.reasoning[:200],
        "success": note.success,
        "message": note.message[:300],
        "reward": note.reward,
        "achievements": list(note.achievements[:20]),
        "done": note.done,
        "forced": note.forced,
        "repaired": bool(note.info and note.info.repaired),
        "tokens": None if usage is None or not usage.calls else usage.prompt_tokens + usage.completion_tokens,
        "cost": None if usage is None else usage.cost,
    }


def _indexes(request: Request) -> StepIndexes:
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
        "agent": row.agent,
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
        {"name": str(seat.get("name", "")), "agent": str(seat.get("agent", ""))}
        for seat in (seats if isinstance(seats, list) else ())[:100]
        if isinstance(seat, dict)
    ]


def _reading(nexus: Nexus, record: RunRecord) -> tuple[Codec, str, str]:
    """Return the codec of a run's observations, its game's title, and a remark if the game is missing."""
    if record.game == GAME:
        return Codec([load(t) for t in NEXUS_SPEC.wire_types]), "The nexus", ""
    try:
        spec = load_adapter_spec(str(record.config.get("game", record.game)), nexus.host)
        return Codec([load(t) for t in spec.wire_types]), spec.display_title, ""
    except WsapError as error:
        return Codec(), record.game, f"Shown without what the game adds: {error}"


def _event(repository: Repository, record: RunRecord, seq: int, kind: str = "step") -> EventRecord:
    event = next(iter(repository.read_events(record.id, from_seq=max(0, seq), to_seq=max(0, seq) + 1)), None)
    if event is None or event.kind != kind:
        raise UnknownNameError(kind, str(seq), ())
    return event


def _seq_before(nexus: Nexus, record: RunRecord, seat: str | None, seq: int, kind: str) -> int | None:
    """Return the number of a seat's last event of a kind before another event."""
    query = (
        select(_EVENT.c.seq)
        .where(_EVENT.c.run_id == record.id, _EVENT.c.seq < seq, _EVENT.c.kind == kind, _EVENT.c.seat == seat)
        .order_by(_EVENT.c.seq.desc())
        .limit(1)
    )
    with nexus.store.database.read() as connection:
        found: int | None = connection.execute(query).scalar_one_or_none()
    return found


def _seen_before(
    nexus: Nexus, record: RunRecord, event: EventRecord, earlier: int | None, codec: Codec
) -> dict[str, Any] | None:
    """Return the observation of a decision: the recorded one, or else the result of the seat's last step."""
    repository = nexus.store.repository
    low = 0 if earlier is None else earlier
    seen = None
    for found in repository.read_events(
        record.id, from_seq=low, to_seq=event.seq, kinds=("observation", "step"), seat=event.seat
    ):
        seen = found.data if found.kind == "observation" else found.data["step"]["observation"]
    return None if seen is None else _decoded(codec, seen)


def _decoded(codec: Codec, data: Any) -> dict[str, Any] | None:
    try:
        return observation_json(codec.decode(Observation, data, where="recorded observation"))
    except WireError:
        return None


def _events_behind(
    repository: Repository, record: RunRecord, event: EventRecord, earlier: int | None
) -> Iterator[EventRecord]:
    """Give the events of one decision, since the seat's last step, and the reflection after it."""
    count = 0
    kinds = (*BEHIND, "step")
    low = 0 if earlier is None else earlier + 1
    for found in repository.read_events(record.id, from_seq=low, kinds=kinds, seat=event.seat):
        if found.seq == event.seq:
            continue
        late = found.seq > event.seq
        if late and found.kind in ("step", "call", "plan", "tool"):
            return  # of the next decision
        # These belong to the step before.
        if not late and found.kind in ("lessons", "death", "decision"):
            continue
        if found.kind != "step":
            count += 1
            yield found
        if count >= MOST_BEHIND:
            return


def _behind(event: EventRecord) -> dict[str, Any]:
    shown: dict[str, Any] = {"seq": event.seq, "kind": event.kind, "time": event.time}
    try:
        data = event.data
        if event.kind == "call":
            return shown | _call(data)
        if event.kind == "picture":
            return shown | {"sha256": data["sha256"], "width": data["width"], "height": data["height"]}
        return shown | {"data": _bounded(data)}
    except (WsapError, KeyError, TypeError, ValueError):
        return shown | {"damaged": True}


def _call(data: Any) -> dict[str, Any]:
    reply = data["reply"]
    finish = reply["finish"]
    return {
        "purpose": data.get("purpose", ""),
        "shared": data["shared"],
        "messages": [_message(message) for message in data["messages"][-100:]],
        "prefill": shortened(data.get("prefill") or ""),
        "constraint": _constraint(data.get("constraint")),
        "sampling": data.get("sampling"),
        "thinking": shortened(reply.get("thinking") or "", LONGEST_PROMPT),
        "reply": shortened(reply.get("text") or "", LONGEST_PROMPT),
        "finish": finish["reason"],
        "usage": finish["usage"],
    }


def _constraint(constraint: Any) -> str:
    if not isinstance(constraint, dict):
        return ""
    kind = str(constraint.get("$type") or constraint.get("kind") or "")
    return kind or "bound"


def _message(message: Any) -> dict[str, str]:
    return {"role": str(message["role"]), "text": shortened(recorded_text(message), LONGEST_PROMPT)}


def _conversation(nexus: Nexus, record: RunRecord, event: EventRecord) -> tuple[list[dict[str, str]], bool]:
    """Return the messages of a call, and whether they are complete.

    A call is recorded without the messages that it shares with the call before it.
    """
    data = event.data
    parts = [[_message(m) for m in data["messages"]]]
    need, seq, walked = int(data["shared"]), event.seq, 0
    while need > 0 and walked < WALK:
        found = _seq_before(nexus, record, event.seat, seq, "call")
        if found is None:
            break
        seq, walked = found, walked + 1
        earlier = _event(nexus.store.repository, record, found, kind="call").data
        shared = int(earlier["shared"])
        if need > shared:
            parts.append([_message(m) for m in earlier["messages"][: need - shared]])
            need = shared
    return [message for part in reversed(parts) for message in part], need == 0


def _plan(repository: Repository, record: RunRecord, event: EventRecord) -> list[str]:
    """Return the agent's last plan before a step, if it is among the 5,000 events before it."""
    lines: list[str] = []
    low = max(0, event.seq - 5000)
    for found in repository.read_events(record.id, from_seq=low, to_seq=event.seq, kinds=("plan",), seat=event.seat):
        lines = [shortened(line, 300) for line in found.data.get("plan", ())][:40]
    return lines


def _bounded(data: Any) -> Any:
    """Return JSON data with long texts and lists cut."""
    if isinstance(data, str):
        return shortened(data)
    if isinstance(data, list):
        return [_bounded(item) for item in data[:200]]
    if isinstance(data, dict):
        return {str(key)[:200]: _bounded(value) for key, value in list(data.items())[:200] if key != "base64"}
    return data
