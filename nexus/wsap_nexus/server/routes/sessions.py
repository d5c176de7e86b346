"""Routes of an agent's session in a world, under its bridge URL.

A game in another process has routes of the same names (`wsap_nexus.worlds.remote.serve_world`), which the nexus calls.
Here an agent controls its own session. Admit, release, restore and reset are part of transit, which the nexus does
itself; otherwise a client could admit items that the agent does not have.
"""

from __future__ import annotations

import base64

from fastapi import APIRouter, Request, Response

from wsap_core.protocol import JackInResult
from wsap_core.protocol.values import JsonValue
from wsap_nexus.http.access.auth import record_json, sees
from wsap_nexus.http.access.callers import Admin, Known, Reader
from wsap_nexus.http.refusals import AbilityMissingError, SessionManagedError
from wsap_nexus.http.replies import Wait, answer
from wsap_nexus.hub.live_session import LiveSession
from wsap_nexus.hub.nexus import Nexus
from wsap_nexus.hub.served import Hub
from wsap_nexus.server.bodies import requests, responses
from wsap_nexus.server.deps import Live, Once10, OwnSession, SessionId, replies
from wsap_nexus.server.routes.transit import ON_ITS_WAY, idempotent_enter, idempotent_exit, receipts
from wsap_nexus.server.seats import (
    check_external,
    describe_seat,
    idempotent_act,
    observe,
    open_session,
    own_view,
    the_agent,
)
from wsap_nexus.worlds.port import WorldPort

router = APIRouter(prefix="/sessions/{session_id}", tags=["sessions"])


def _port(nexus: Nexus, live: LiveSession) -> WorldPort:
    return nexus.live.ports[live.session.run_id]


@router.get("", responses=replies(responses.Session))
async def session(nexus: Hub, session_id: SessionId, who: Reader) -> Response:
    """An agent's session in a world, open or closed; without the agent's token, only its public fields."""
    with nexus.nexus_store.look() as tx:
        found = tx.session(session_id)
    return answer(record_json(found, private=sees(who, found.agent_id)))


@router.get("/description", responses=replies(responses.Described, 200, 202))
async def description(nexus: Hub, live: Live, wait: Wait = 10.0) -> Response:
    """The game, its goals and mechanics."""
    return await describe_seat(nexus, live.session.agent_id, wait, "description", live.session.game)


@router.get("/action-space", responses=replies(responses.Spaces, 200, 202))
async def action_space(nexus: Hub, live: Live, wait: Wait = 10.0) -> Response:
    """All actions of the game; the observation says which are legal now."""
    return await describe_seat(nexus, live.session.agent_id, wait, "action_space", live.session.game)


@router.get("/observation", responses=replies(responses.Seen, 200, 202))
async def observation(nexus: Hub, live: Live, wait: Wait = 10.0) -> Response:
    """The agent's next observation; 202 if it has nothing to decide in time."""
    check_external(nexus, the_agent(nexus, live.session.agent_id))
    return await observe(nexus, live.session.agent_id, wait, live.session.id)


@router.post("/act", responses=replies(responses.Acted, 200, 202))
async def act(nexus: Hub, record: OwnSession, action: requests.ActRequest, once: Once10) -> Response:
    """Take an action; 202 if it is not resolved in time: repeat the request with the same key."""
    # The repetition of an action that ended the session gets its reply although the session is closed.
    if not once.known:
        open_session(nexus, record)
        check_external(nexus, the_agent(nexus, record.agent_id))
    request = idempotent_act(nexus, record.agent_id, action, record.id)
    return await once.reply(request, "The action is being resolved; repeat the request with the same key.")


@router.get("/avatars", responses=replies(responses.Avatars))
async def avatars(nexus: Hub, live: Live) -> Response:
    """The agent's avatars in that world."""
    return answer({"avatars": list(await _port(nexus, live).avatars(live.seat_name))})


@router.get("/view", responses=replies(responses.ViewAnswer))
async def view(nexus: Hub, live: Live, by: Known) -> Response:
    """The agent's view; for the owner, the view of the whole world."""
    port = _port(nexus, live)
    if "render" not in port.spec.abilities:
        raise AbilityMissingError(f"{port.spec.display_title} has no views.")
    if by.agent_id is None:
        return answer({"view": await port.render()})
    return answer({"view": await own_view(nexus, live)})


@router.post("/jack-in", responses=replies(responses.JackedIn))
async def jack_in(nexus: Hub, live: Live, request: requests.JackInRequest) -> Response:
    """Enter the avatar of this session; other avatars are entered by transit."""
    if request.avatar_id != live.session.avatar_id:
        raise SessionManagedError("An agent controls one avatar at a time: leave this one, then enter the other.")
    bodies = await _port(nexus, live).avatars(live.seat_name)
    body = next((b for b in bodies if b.avatar_id == request.avatar_id), None)
    bonuses = (receipts(nexus, live.session.id, "enter").get("receipt") or {}).get("bonuses_applied", {})
    return answer({"jack_in": JackInResult(True, body, "You control this avatar.", bonuses_applied=bonuses)})


@router.post("/jack-out", responses=replies(responses.Left, 200, 202))
async def jack_out(nexus: Hub, record: OwnSession, request: requests.JackOutRequest, once: Once10) -> Response:
    """Leave the avatar and the world, if the world says that it is safe."""
    if not once.known:
        open_session(nexus, record)
    wanted = requests.ExitRequest(agent_id=record.agent_id, mode=request.mode)
    return await once.reply(idempotent_exit(nexus, wanted, ""), ON_ITS_WAY)


@router.post("/respawn", responses=replies(responses.Entered, 201, 202))
async def respawn(
    nexus: Hub, record: OwnSession, http: Request, once: Once10, request: requests.RespawnRequest | None = None
) -> Response:
    """Respawn the avatar that died in this session, and enter it in a new session.

    The request has the respawn option, goals, exit condition and step limit. Without a request body, the first option
    is used.
    """
    if record.closed is None:
        raise SessionManagedError("The session is open, so its avatar is alive.")
    if record.reason != "death":
        raise SessionManagedError(f"The session ended by {record.reason}, not by death; enter the game again.")
    asked = request or requests.RespawnRequest()
    wanted = requests.EnterRequest(
        agent_id=record.agent_id,
        game=record.game,
        avatar=record.world_id,
        respawn=asked.option,
        **asked.model_dump(exclude={"option"}),
    )
    return await once.reply(idempotent_enter(nexus, wanted, f"respawn {record.id}", str(http.base_url)), ON_ITS_WAY)


@router.post("/admit", responses=replies(responses.ReceiptAnswer))
async def admit(nexus: Hub, record: OwnSession, request: requests.TransferRequest) -> Response:
    """The receipt of the transfer that started the session; nothing else can be admitted."""
    data = _transfer(nexus, request.transfer_id, record.id)
    if "receipt" not in data:
        raise SessionManagedError("Skills and items are admitted when an agent enters: POST /nexus/transit/enter.")
    return answer({"receipt": data["receipt"]})


@router.post("/release", responses=replies(responses.PackageAnswer))
async def release(nexus: Hub, record: OwnSession, request: requests.TransferRequest) -> Response:
    """The package of the transfer that ended the session; nothing else can be released."""
    data = _transfer(nexus, request.transfer_id, record.id)
    if "package" not in data:
        raise SessionManagedError("Items are released when an agent leaves: POST /nexus/transit/exit.")
    return answer({"package": data["package"]})


@router.get("/snapshot", responses=replies(responses.SnapshotAnswer))
async def snapshot(nexus: Hub, live: Live, by: Admin) -> Response:
    """The whole state of the world, for the owner."""
    port = _port(nexus, live)
    if not port.can_snapshot:
        raise AbilityMissingError(f"{port.spec.display_title} can't be saved during an episode.")
    return answer({"state": base64.b64encode(await port.snapshot()).decode("ascii")})


@router.post("/restore", responses={409: {"model": responses.ErrorAnswer}})
async def restore(live: Live, by: Admin) -> Response:
    """Refused: restoring the world would contradict the record of the session."""
    raise SessionManagedError("A session is recorded, so its world can't be restored; leave it, then enter again.")


@router.post("/reset", responses={409: {"model": responses.ErrorAnswer}})
async def reset(live: Live) -> Response:
    """Refused: a session is one episode."""
    raise SessionManagedError("A session in a world is one episode; leave it, then enter again.")


def _transfer(nexus: Nexus, transfer_id: str, session_id: str) -> dict[str, JsonValue]:
    with nexus.nexus_store.look() as tx:
        transfer = tx.transfer(transfer_id)
    if transfer is None or transfer.data.get("session") != session_id or transfer.state != "done":
        return {}
    return dict(transfer.data)
