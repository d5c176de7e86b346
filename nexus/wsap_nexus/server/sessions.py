"""The face of a world for an agent's session in it: what a bridge URL begins.

The same names are used by a game in another process (`wsap_nexus.worlds.serve_world`), which the nexus
drives. Here an agent drives its own stay: what belongs to transit (admit, release, restore, reset)
the nexus does itself, and says so; otherwise an agent could bring in things that it does not have.
"""

from __future__ import annotations

import base64
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response
from sqlalchemy import select

from wsap_core.protocol import JackInResult
from wsap_nexus.http.auth import Caller
from wsap_nexus.http.callers import Admin, Known
from wsap_nexus.http.refusals import AbilityMissingError, SessionManagedError
from wsap_nexus.http.replies import Key, Wait, answer
from wsap_nexus.hub.live_session import LiveSession
from wsap_nexus.hub.nexus import Nexus
from wsap_nexus.hub.served import Hub
from wsap_nexus.server import shapes
from wsap_nexus.server.deps import Once, once
from wsap_nexus.server.seats import act_errand, check_external, observe, open_session, seat_says, the_agent
from wsap_nexus.server.transit import enter_errand, exit_errand, receipt_of, terms_of
from wsap_nexus.store.entities import SessionRecord
from wsap_nexus.store.tables import METADATA
from wsap_nexus.worlds.port import WorldPort

router = APIRouter(tags=["sessions"])
SessionId = Annotated[str, Path(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")]
_TRANSFER = METADATA.tables["transfer"]


def _record(nexus: Nexus, session_id: str) -> SessionRecord:
    with nexus.ledger.look() as book:
        return book.session(session_id)


def _stay(nexus: Nexus, session_id: str, by: Caller) -> LiveSession:
    record = _record(nexus, session_id)
    by.may_act_for(record.agent_id)
    return open_session(nexus, session_id, record)


def _face(nexus: Nexus, stay: LiveSession) -> WorldPort:
    return nexus.live.ports[stay.session.run_id]


@router.get("/nexus/sessions/{session_id}", responses={200: {"model": shapes.Session}})
async def session(nexus: Hub, session_id: SessionId) -> Response:
    """A stay of an agent in a world, open or over."""
    return answer(_record(nexus, session_id))


@router.get(
    "/nexus/sessions/{session_id}/description",
    responses={200: {"model": shapes.Described}, 202: {"model": shapes.Pending}},
)
async def description(nexus: Hub, session_id: SessionId, by: Known, wait: Wait = 10.0) -> Response:
    """The game, its goals and mechanics."""
    stay = _stay(nexus, session_id, by)
    return await seat_says(nexus, stay.session.agent_id, wait, "description", stay.session.game)


@router.get(
    "/nexus/sessions/{session_id}/action-space",
    responses={200: {"model": shapes.Spaces}, 202: {"model": shapes.Pending}},
)
async def action_space(nexus: Hub, session_id: SessionId, by: Known, wait: Wait = 10.0) -> Response:
    """All actions there are; what is legal now is in the observation."""
    stay = _stay(nexus, session_id, by)
    return await seat_says(nexus, stay.session.agent_id, wait, "action_space", stay.session.game)


@router.get(
    "/nexus/sessions/{session_id}/observation",
    responses={200: {"model": shapes.Seen}, 202: {"model": shapes.Pending}},
)
async def observation(nexus: Hub, session_id: SessionId, by: Known, wait: Wait = 10.0) -> Response:
    """What the agent sees at its next decision; 202 when it has nothing to decide in time."""
    stay = _stay(nexus, session_id, by)
    check_external(nexus, the_agent(nexus, stay.session.agent_id))
    return await observe(nexus, stay.session.agent_id, wait, session_id)


@router.post(
    "/nexus/sessions/{session_id}/act", responses={200: {"model": shapes.Acted}, 202: {"model": shapes.Pending}}
)
async def act(
    nexus: Hub,
    session_id: SessionId,
    action: shapes.ActRequest,
    by: Known,
    answers: Once,
    key: Key = None,
    wait: Wait = 10.0,
) -> Response:
    """Hand in the agent's action; 202 when it is not resolved in time, and the same key asks again."""
    record = _record(nexus, session_id)
    by.may_act_for(record.agent_id)
    errand = act_errand(nexus, record.agent_id, action, session_id)
    # An action that ended the session is answered again after it.
    if key is None or not answers.knows(by.name, key):
        open_session(nexus, session_id, record)
        check_external(nexus, the_agent(nexus, record.agent_id))
    return await once(answers, by, key, errand, wait, "The action is being resolved; ask again with the same key.")


@router.get("/nexus/sessions/{session_id}/avatars", responses={200: {"model": shapes.Avatars}})
async def avatars(nexus: Hub, session_id: SessionId, by: Known) -> Response:
    """The agent's bodies in that world."""
    stay = _stay(nexus, session_id, by)
    return answer({"avatars": list(await _face(nexus, stay).avatars(stay.seat_name))})


@router.get("/nexus/sessions/{session_id}/view", responses={200: {"model": shapes.ViewAnswer}})
async def view(nexus: Hub, session_id: SessionId, by: Known) -> Response:
    """What can be drawn: what the agent sees; for whoever runs the nexus, the world as onlookers see it."""
    stay = _stay(nexus, session_id, by)
    face = _face(nexus, stay)
    if "render" not in face.spec.abilities:
        raise AbilityMissingError(f"{face.spec.display_title} draws nothing.")
    if by.agent_id is None:
        return answer({"view": await face.render()})
    run = nexus.playing(stay.session.run_id)
    return answer({"view": None if run is None else await run.seat(stay.seat_name).look()})


@router.post("/nexus/sessions/{session_id}/jack-in", responses={200: {"model": shapes.JackedIn}})
async def jack_in(nexus: Hub, session_id: SessionId, request: shapes.JackInRequest, by: Known) -> Response:
    """Be in a body: the one the session is about; another one is entered by transit."""
    stay = _stay(nexus, session_id, by)
    if request.avatar_id != stay.session.avatar_id:
        raise SessionManagedError("An agent controls one body at a time: leave this one, and enter the other.")
    bodies = await _face(nexus, stay).avatars(stay.seat_name)
    body = next((b for b in bodies if b.avatar_id == request.avatar_id), None)
    receipt = receipt_of(nexus, session_id)
    bonuses = (receipt or {}).get("bonuses_applied", {})
    result = JackInResult(True, body, "You are in this body.", bonuses_applied=bonuses)
    return answer({"jack_in": result})


@router.post(
    "/nexus/sessions/{session_id}/jack-out",
    responses={200: {"model": shapes.Left}, 202: {"model": shapes.Pending}},
)
async def jack_out(
    nexus: Hub,
    session_id: SessionId,
    request: shapes.JackOutRequest,
    by: Known,
    answers: Once,
    key: Key = None,
    wait: Wait = 10.0,
) -> Response:
    """Leave the body and the world, if the world says that it is safe."""
    record = _record(nexus, session_id)
    by.may_act_for(record.agent_id)
    if key is None or not answers.knows(by.name, key):
        open_session(nexus, session_id, record)
    errand = exit_errand(nexus, by, shapes.ExitRequest(agent_id=record.agent_id, mode=request.mode), "")
    return await once(answers, by, key, errand, wait, "The agent is on its way; ask again with the same key.")


@router.post(
    "/nexus/sessions/{session_id}/respawn",
    responses={201: {"model": shapes.Entered}, 202: {"model": shapes.Pending}},
)
async def respawn(
    nexus: Hub,
    session_id: SessionId,
    http: Request,
    by: Known,
    answers: Once,
    request: shapes.RespawnRequest | None = None,
    key: Key = None,
    wait: Wait = 10.0,
) -> Response:
    """Bring the body back that died in this session, and be in it again, in a session of its own.

    The way back to life, goals, exit condition and most decisions can be named; without a body it is the first way
    there is, and nothing else is asked for.
    """
    record = _record(nexus, session_id)
    by.may_act_for(record.agent_id)
    if record.closed is None:
        raise SessionManagedError("The body of an open session is alive.")
    if record.reason != "death":
        raise SessionManagedError(f"The session ended by {record.reason}, not by death; enter the game again.")
    asked = request or shapes.RespawnRequest()
    wanted = shapes.EnterRequest(
        agent_id=record.agent_id,
        game=record.game,
        avatar=record.world_id,
        respawn=asked.option,
        goals=asked.goals,
        exit_when=asked.exit_when,
        steps=asked.steps,
    )
    errand = enter_errand(nexus, wanted, terms_of(wanted), f"respawn {session_id}", str(http.base_url))
    return await once(answers, by, key, errand, wait, "The agent is on its way; ask again with the same key.")


@router.post("/nexus/sessions/{session_id}/admit", responses={200: {"model": shapes.ReceiptAnswer}})
async def admit(nexus: Hub, session_id: SessionId, request: shapes.TransferRequest, by: Known) -> Response:
    """What the world let in under a transfer: the receipt of the session's beginning; nothing else is let in."""
    record = _record(nexus, session_id)
    by.may_act_for(record.agent_id)
    data = _transfer(nexus, request.transfer_id, session_id)
    if "receipt" not in data:
        raise SessionManagedError("Skills and items are let in when an agent enters: POST /nexus/transit/enter.")
    return answer({"receipt": data["receipt"]})


@router.post("/nexus/sessions/{session_id}/release", responses={200: {"model": shapes.PackageAnswer}})
async def release(nexus: Hub, session_id: SessionId, request: shapes.TransferRequest, by: Known) -> Response:
    """What the world let out under a transfer: the package of the session's end; nothing else is let out."""
    record = _record(nexus, session_id)
    by.may_act_for(record.agent_id)
    data = _transfer(nexus, request.transfer_id, session_id)
    if "package" not in data:
        raise SessionManagedError("Items are let out when an agent leaves: POST /nexus/transit/exit.")
    return answer({"package": data["package"]})


@router.get("/nexus/sessions/{session_id}/snapshot", responses={200: {"model": shapes.SnapshotAnswer}})
async def snapshot(nexus: Hub, session_id: SessionId, by: Admin) -> Response:
    """The world's whole state, for whoever runs the nexus."""
    stay = _stay(nexus, session_id, by)
    face = _face(nexus, stay)
    if not face.can_snapshot:
        raise AbilityMissingError(f"{face.spec.display_title} can't be saved in the middle of an episode.")
    return answer({"state": base64.b64encode(await face.snapshot()).decode("ascii")})


@router.post("/nexus/sessions/{session_id}/restore", responses={409: {"model": shapes.ErrorAnswer}})
async def restore(nexus: Hub, session_id: SessionId, by: Admin) -> Response:
    """Refused: a stay is recorded, and a world that is set back would no longer be what the record says."""
    _stay(nexus, session_id, by)
    raise SessionManagedError("A stay is recorded, so its world can't be set back; leave it, and enter again.")


@router.post("/nexus/sessions/{session_id}/reset", responses={409: {"model": shapes.ErrorAnswer}})
async def reset(nexus: Hub, session_id: SessionId, by: Known) -> Response:
    """Refused: a stay is one episode."""
    _stay(nexus, session_id, by)
    raise SessionManagedError("A stay in a world is one episode; leave it, and enter again.")


def _transfer(nexus: Nexus, transfer_id: str, session_id: str) -> dict[str, Any]:
    # Any: JSON.
    with nexus.ledger.look() as book:
        row = book.connection.execute(select(_TRANSFER).where(_TRANSFER.c.id == transfer_id)).one_or_none()
    if row is None or row.data.get("session") != session_id or row.state != "done":
        return {}
    return dict(row.data)
