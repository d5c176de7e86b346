"""Routes by which agents enter worlds, leave them, and go directly to others."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, Request, Response

from wsap_core.errors import WsapError
from wsap_core.protocol import Action, TransitPackage
from wsap_core.protocol.wire import dumps, encode
from wsap_nexus.errors import NotInWorldError
from wsap_nexus.http.access.callers import Known
from wsap_nexus.http.errors import error_body
from wsap_nexus.http.refusals import ForbiddenError, LeavingRefusedError
from wsap_nexus.http.replies import Reply, reply_of
from wsap_nexus.hub.nexus import Nexus
from wsap_nexus.hub.served import Hub
from wsap_nexus.server.bodies import requests, responses
from wsap_nexus.server.deps import Once30, replies
from wsap_nexus.server.idempotency import IdempotentRequest, Intent
from wsap_nexus.server.seats import next_observation, the_agent
from wsap_nexus.store.entities import EntryRequest, SessionRecord

router = APIRouter(tags=["transit"])
_FIRST_SECONDS = 10.0
"""Seconds to wait for an agent's first observation."""
ON_ITS_WAY = "The agent is in transit; repeat the request with the same key."


@router.post("/transit/enter", responses=replies(responses.Entered, 201, 202))
async def enter(nexus: Hub, wanted: requests.EnterRequest, request: Request, by: Known, once: Once30) -> Response:
    """Send an agent into a game; returns its session, bridge URL and first observation."""
    by.may_act_for(wanted.agent_id)
    return await once.reply(idempotent_enter(nexus, wanted, "enter", str(request.base_url)), ON_ITS_WAY)


@router.post("/transit/exit", responses=replies(responses.Left, 200, 202))
async def leave(nexus: Hub, wanted: requests.ExitRequest, request: Request, by: Known, once: Once30) -> Response:
    """Bring an agent back with its items, and send it to the destination, if any."""
    by.may_act_for(wanted.agent_id)
    if wanted.force and by.agent_id is not None:
        raise ForbiddenError("Leaving by force needs the owner's token.")
    if wanted.destination is not None and wanted.destination.agent_id != wanted.agent_id:
        raise ForbiddenError("The destination is for another agent.")
    return await once.reply(idempotent_exit(nexus, wanted, str(request.base_url)), ON_ITS_WAY)


def idempotent_enter(nexus: Nexus, wanted: requests.EnterRequest, what: str, base: str) -> IdempotentRequest:
    """Return the idempotent request to send an agent into a game, identified by `what` and its body."""

    async def do() -> Reply:
        return reply_of(await _enter(nexus, wanted, base), 201)

    def recall(intent: Intent) -> Reply | None:
        newest = _newest(nexus, wanted.agent_id)
        if newest is None or newest.id == intent["last"]:
            return None
        return reply_of(_arrival(nexus, newest, base), 201)

    def intend() -> Intent:
        last = _newest(nexus, wanted.agent_id)
        return {"last": last.id if last else None}

    return IdempotentRequest(f"{what} {dumps(wanted.model_dump())}", intend, do, recall)


def idempotent_exit(nexus: Nexus, wanted: requests.ExitRequest, base: str) -> IdempotentRequest:
    """Return the idempotent request to bring an agent back, and send it to its destination."""

    def departure(session: SessionRecord) -> dict[str, Any]:
        package = receipts(nexus, session.id, "leave").get("package") or encode(TransitPackage(""))
        return {"session": session, "package": package, "observation": None, "entered": None, "onward_error": None}

    async def do() -> Reply:
        body = departure(await _leave(nexus, wanted))
        if wanted.destination is not None:
            try:
                body["entered"] = await _enter(nexus, wanted.destination, base)
            except WsapError as error:
                # The agent has left nevertheless, and the reply must say so.
                body["onward_error"] = error_body(error.code, str(error), retry=error.retryable)["error"]
        if body["entered"] is None and _decides_outside(nexus, wanted.agent_id, "nexus"):
            body["observation"] = await next_observation(nexus, wanted.agent_id, _FIRST_SECONDS)
        return reply_of(body)

    def intend() -> Intent:
        stay = nexus.live.sessions.get(wanted.agent_id)
        return {"session": stay.session.id if stay else None}

    def recall(intent: Intent) -> Reply | None:
        if intent["session"] is None:
            return None
        with nexus.nexus_store.look() as tx:
            session = tx.session(intent["session"])
        return None if session.closed is None else reply_of(departure(session))

    return IdempotentRequest(f"exit {dumps(wanted.model_dump())}", intend, do, recall)


async def _enter(nexus: Nexus, wanted: requests.EnterRequest, base: str) -> dict[str, Any]:
    terms = EntryRequest.from_json(wanted.model_dump(exclude={"agent_id", "game"}))
    stay = await nexus.enter(wanted.agent_id, wanted.game, terms)
    body = _arrival(nexus, stay.session, base)
    if _decides_outside(nexus, wanted.agent_id, wanted.game):
        body["observation"] = await next_observation(nexus, wanted.agent_id, _FIRST_SECONDS)
    return body


def _arrival(nexus: Nexus, session: SessionRecord, base: str) -> dict[str, Any]:
    with nexus.nexus_store.look() as tx:
        bodies = [b.avatar for b in tx.avatars(session.agent_id, session.game) if b.world_id == session.world_id]
    return {
        "session": session,
        "bridge_url": f"{base.rstrip('/')}/nexus/sessions/{session.id}",
        "avatar": next((body for body in bodies if body.avatar_id == session.avatar_id), None),
        "receipt": receipts(nexus, session.id, "enter").get("receipt"),
        "observation": None,
    }


async def _leave(nexus: Nexus, wanted: requests.ExitRequest) -> SessionRecord:
    # Unless forced, a client's agent asks the world whether leaving is safe.
    agent_id = wanted.agent_id
    if wanted.force and agent_id in nexus.live.entering:
        return await _called_off(nexus, agent_id)
    stay = nexus.live.sessions.get(agent_id)
    if wanted.force or (stay is not None and not _decides_outside(nexus, agent_id, stay.session.game)):
        return await asyncio.shield(asyncio.ensure_future(nexus.exit(agent_id)))
    leaving = nexus.await_exit(agent_id)
    seat, _ = await nexus.live.external.observation(agent_id)
    result = await seat.act(Action("jack_out", {"mode": wanted.mode}))
    if not result.success:
        raise LeavingRefusedError(
            f"{result.message.rstrip('. ')}. The agent is still there: go on from its observation, and leave once it "
            "is safe; or the owner brings it back (wsap nexus agents recall, or force)"
        )
    return await asyncio.shield(leaving)


async def _called_off(nexus: Nexus, agent_id: str) -> SessionRecord:
    """Call off an agent's entry into a world that does not let it in, or bring it back if it has just arrived."""
    game = nexus.live.entering[agent_id].game
    arriving = nexus.live.arriving.wait(agent_id)
    nexus.recall(agent_id)
    try:
        await asyncio.shield(arriving)
    except WsapError as error:
        raise NotInWorldError(f"{agent_id!r} is back in the nexus and did not enter {game!r}: {error}") from error
    return await nexus.exit(agent_id)


def _decides_outside(nexus: Nexus, agent_id: str, place: str) -> bool:
    policy = the_agent(nexus, agent_id).policy(place)
    return policy is not None and policy.external


def _newest(nexus: Nexus, agent_id: str) -> SessionRecord | None:
    with nexus.nexus_store.look() as tx:
        found = tx.sessions(agent_id=agent_id, limit=1)
    return found[0] if found else None


def receipts(nexus: Nexus, session_id: str, kind: str) -> dict[str, Any]:
    """Return the data of a session's completed transfer ("enter" or "leave"); empty if there is none."""
    with nexus.nexus_store.look() as tx:
        session = tx.session(session_id)
        made = tx.transfers("done", agent_id=session.agent_id, kind=kind)
    return next((dict(each.data) for each in reversed(made) if each.data.get("session") == session_id), {})
