"""Routes of the details of one decision: observation, reasoning and model calls. Only for the administrator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Request, Response

from wsap_core.errors import UnknownNameError, WireError, WsapError
from wsap_core.protocol import Observation
from wsap_nexus.http.access.callers import admin
from wsap_nexus.http.replies import BROWSER_HEADERS
from wsap_nexus.hub.served import Hub
from wsap_nexus.runs.record.journal import chances_of, read_picture, read_reply, recorded_text
from wsap_nexus.server.bodies import watched
from wsap_nexus.server.deps import RunId, Seq, replies
from wsap_nexus.server.routes.recorded.runs import Reading, indexes_of, reading_of, step_in_short
from wsap_nexus.server.serializers import json_response, observation_json, shortened
from wsap_nexus.store.records import EventRecord, RunRecord
from wsap_nexus.store.repository import Repository

router = APIRouter(prefix="/runs/{run_id}", tags=["runs"], dependencies=[Depends(admin)])

BEHIND = ("call", "tool", "refusal", "failure", "picture", "tools", "lessons", "death", "decision", "plan")
"""Kinds of events with details of a decision, besides its step."""

MOST_BEHIND = 200
"""Maximum number of such events per decision."""

WALK = 3000
"""Maximum number of earlier calls that are read to complete a conversation."""

LONGEST_PROMPT = 200_000
"""Maximum characters of a prompt's message."""


@router.get("/steps/{seq}", responses=replies(watched.StepAnswer))
async def step(nexus: Hub, request: Request, run_id: RunId, seq: Seq) -> Response:
    """One decision with the observations before and after it, its reasoning, and its model calls."""
    repository = nexus.store.repository
    record = repository.get_run(run_id)
    event = _event(repository, record, seq)
    reading = reading_of(nexus.host, record)
    position = await indexes_of(request).position_of(record.id, seq)
    return json_response(step_in_full(repository, record, event, position, reading))


def step_in_full(
    repository: Repository, record: RunRecord, event: EventRecord, position: int, reading: Reading
) -> dict[str, Any]:
    """Return one decision with all that is known of it; `position` is the number of steps before it."""
    data = event.data
    line = data["step"]
    before = repository.last_event(record.id, "step", seat=event.seat, before=event.seq)
    earlier = 0 if before is None else before.seq
    return {
        "step": step_in_short(event),
        "position": position,
        "time": event.time,
        "action": {"name": line["action"]["name"], "parameters": line["action"]["parameters"]},
        "reasoning": shortened(data.get("reasoning") or ""),
        "message": shortened(line["result"]["message"]),
        "decision": data.get("decision"),
        "seen": _seen_before(repository, record, event, earlier, reading),
        "after": _decoded(reading, line["observation"]),
        "behind": [_behind(e) for e in _events_behind(repository, record, event, earlier)],
        "plan": _plan(repository, record, event),
    }


@router.get("/calls/{seq}", responses=replies(watched.Conversation))
async def call(nexus: Hub, run_id: RunId, seq: Seq) -> Response:
    """The whole conversation of one model call."""
    repository = nexus.store.repository
    record = repository.get_run(run_id)
    messages, whole = conversation(repository, record, _event(repository, record, seq, kind="call"))
    return json_response({"messages": messages, "whole": whole})


@router.get(
    "/pictures/{name}",
    response_class=Response,
    responses={200: {"description": "The picture.", "content": {"image/png": {"schema": {"type": "string"}}}}},
)
async def picture(nexus: Hub, run_id: RunId, name: Annotated[str, Path(max_length=100)]) -> Response:
    """A picture that was sent to a model, by its hash."""
    record = nexus.store.repository.get_run(run_id)
    for event in nexus.store.repository.read_events(record.id, kinds=("picture",)):
        data = event.data
        if data.get("sha256") == name and data.get("media_type") == "image/png":
            _, content = read_picture(data)
            return Response(content, media_type="image/png", headers=BROWSER_HEADERS)
    raise UnknownNameError("picture", name, ())


# --- parts ------------------------------------------------------------------------------------------


def _event(repository: Repository, record: RunRecord, seq: int, kind: str = "step") -> EventRecord:
    event = next(iter(repository.read_events(record.id, from_seq=max(0, seq), to_seq=max(0, seq) + 1)), None)
    if event is None or event.kind != kind:
        raise UnknownNameError(kind, str(seq), ())
    return event


def _seen_before(
    repository: Repository, record: RunRecord, event: EventRecord, earlier: int, reading: Reading
) -> dict[str, Any] | None:
    """Return the observation of a decision: the recorded one, else that of the seat's last step."""
    seen = None
    kinds = ("observation", "step")
    for found in repository.read_events(record.id, from_seq=earlier, to_seq=event.seq, kinds=kinds, seat=event.seat):
        seen = found.data if found.kind == "observation" else found.data["step"]["observation"]
    return None if seen is None else _decoded(reading, seen)


def _decoded(reading: Reading, data: Any) -> dict[str, Any] | None:
    try:
        return observation_json(reading.codec.decode(Observation, data, where="recorded observation"), reading.meters)
    except WireError:
        return None


def _events_behind(
    repository: Repository, record: RunRecord, event: EventRecord, earlier: int
) -> Iterator[EventRecord]:
    """Yield the events of one decision, from after the seat's last step to the reflection after this one."""
    count = 0
    for found in repository.read_events(record.id, from_seq=earlier, kinds=(*BEHIND, "step"), seat=event.seat):
        if found.seq in (earlier, event.seq) and found.kind == "step":
            continue
        late = found.seq > event.seq
        if late and found.kind in ("step", "call", "plan", "tool"):
            return  # belongs to the next decision
        # These belong to the previous step.
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
        "reply": shortened(read_reply(reply).message.text(), LONGEST_PROMPT),
        "chances": [[shortened(str(option)), chance] for option, chance in chances_of(data)],
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


def conversation(repository: Repository, record: RunRecord, event: EventRecord) -> tuple[list[dict[str, str]], bool]:
    """Return the messages of a call, and whether they are all there."""
    data = event.data
    # A call is recorded without the messages that it shares with the previous one; a world's, without its prompt.
    parts = [[_message(m) for m in data.get("messages", ())]]
    need, seq, walked = int(data.get("shared", 0)), event.seq, 0
    while need > 0 and walked < WALK:
        earlier = repository.last_event(record.id, "call", seat=event.seat, before=seq)
        if earlier is None:
            break
        seq, walked = earlier.seq, walked + 1
        shared = int(earlier.data["shared"])
        if need > shared:
            parts.append([_message(m) for m in earlier.data["messages"][: need - shared]])
            need = shared
    return [message for part in reversed(parts) for message in part], need == 0 and "messages" in data


def _plan(repository: Repository, record: RunRecord, event: EventRecord) -> list[str]:
    """Return the agent's last plan before a step, if it is among the 5,000 events before it."""
    lines: list[str] = []
    low = max(0, event.seq - 5000)
    for found in repository.read_events(record.id, from_seq=low, to_seq=event.seq, kinds=("plan",), seat=event.seat):
        lines = [shortened(line, 300) for line in found.data.get("plan", ())][:40]
    return lines


def _bounded(data: Any) -> Any:
    """Return JSON data with long texts and collections cut."""
    if isinstance(data, str):
        return shortened(data)
    if isinstance(data, list):
        return [_bounded(item) for item in data[:200]]
    if isinstance(data, dict):
        return {str(key)[:200]: _bounded(value) for key, value in list(data.items())[:200] if key != "base64"}
    return data
