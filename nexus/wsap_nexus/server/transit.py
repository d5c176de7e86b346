"""Moving agents over the wire: into worlds, out of them, and straight on to others."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, Request, Response
from sqlalchemy import select

from wsap_core.errors import WsapError
from wsap_core.protocol import Action, TransitPackage
from wsap_core.protocol.wire import dumps, encode
from wsap_nexus.http.auth import Caller
from wsap_nexus.http.callers import Known
from wsap_nexus.http.errors import error_body
from wsap_nexus.http.refusals import ForbiddenError, LeavingRefusedError
from wsap_nexus.http.replies import Key, Reply, Wait, reply_of
from wsap_nexus.hub.nexus import Nexus
from wsap_nexus.hub.served import Hub
from wsap_nexus.server import shapes
from wsap_nexus.server.deps import Once, once
from wsap_nexus.server.idempotency import IdempotentRequest, Intent
from wsap_nexus.server.seats import next_observation, the_agent
from wsap_nexus.store.entities import EntryRequest, SessionRecord
from wsap_nexus.store.tables import METADATA

router = APIRouter(tags=["transit"])
_TRANSFER = METADATA.tables["transfer"]
_FIRST_SECONDS = 10.0
"""How long an answer waits for the first observation."""
_ON_ITS_WAY = "The agent is on its way; ask again with the same idempotency key."


@router.post(
    "/nexus/transit/enter",
    responses={201: {"model": shapes.Entered}, 202: {"model": shapes.Pending}},
)
async def enter(
    nexus: Hub,
    wanted: shapes.EnterRequest,
    request: Request,
    by: Known,
    answers: Once,
    key: Key = None,
    wait: Wait = 30.0,
) -> Response:
    """Send an agent into a game: its session, where its world is reached, and what it sees first."""
    by.may_act_for(wanted.agent_id)
    errand = enter_errand(nexus, wanted, terms_of(wanted), "enter", str(request.base_url))
    return await once(answers, by, key, errand, wait, _ON_ITS_WAY)


@router.post(
    "/nexus/transit/exit",
    responses={200: {"model": shapes.Left}, 202: {"model": shapes.Pending}},
)
async def leave(
    nexus: Hub,
    wanted: shapes.ExitRequest,
    request: Request,
    by: Known,
    answers: Once,
    key: Key = None,
    wait: Wait = 30.0,
) -> Response:
    """Bring an agent back with what it carries, and send it straight on if a destination is given."""
    by.may_act_for(wanted.agent_id)
    if wanted.force and by.agent_id is not None:
        raise ForbiddenError("Leaving by force needs the token of whoever runs the nexus.")
    if wanted.destination is not None and wanted.destination.agent_id != wanted.agent_id:
        raise ForbiddenError("The destination is another agent's.")
    errand = exit_errand(nexus, by, wanted, str(request.base_url))
    return await once(answers, by, key, errand, wait, _ON_ITS_WAY)


def terms_of(wanted: shapes.EnterRequest) -> EntryRequest:
    """Return what is asked for on entering a world."""
    return EntryRequest(
        tuple(wanted.goals),
        wanted.exit_when,
        wanted.steps,
        wanted.spawn,
        wanted.difficulty,
        wanted.avatar,
        wanted.respawn,
    )


def enter_errand(
    nexus: Nexus, wanted: shapes.EnterRequest, terms: EntryRequest, what: str, base: str = ""
) -> IdempotentRequest:
    """Return what it is to send an agent into a game, for it to be done once."""
    agent_id = wanted.agent_id

    async def do() -> Reply:
        return reply_of(await _enter(nexus, wanted, terms, base), 201)

    def recall(intent: Intent) -> Reply | None:
        newest = _newest(nexus, agent_id)
        if newest is None or newest.id == intent["last"]:
            return None
        return reply_of(_arrival(nexus, newest, base), 201)

    def intend() -> Intent:
        last = _newest(nexus, agent_id)
        return {"last": last.id if last else None}

    return IdempotentRequest(f"{what} {dumps(wanted.model_dump())}", intend, do, recall)


def exit_errand(nexus: Nexus, by: Caller, wanted: shapes.ExitRequest, base: str) -> IdempotentRequest:
    """Return what it is to bring an agent back, for it to be done once."""

    async def do() -> Reply:
        session = await _leave(nexus, by, wanted)
        body: dict[str, Any] = {
            "session": session,
            "package": package_of(nexus, session.id),
            "observation": None,
            "entered": None,
            "onward_error": None,
        }
        if wanted.destination is not None:
            try:
                body["entered"] = await _enter(nexus, wanted.destination, terms_of(wanted.destination), base)
            except WsapError as error:
                # It has left all the same, and that must be told.
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
        with nexus.ledger.look() as book:
            session = book.session(intent["session"])
        if session.closed is None:
            return None
        body = {"session": session, "package": package_of(nexus, session.id), "observation": None}
        return reply_of({**body, "entered": None, "onward_error": None})

    return IdempotentRequest(f"exit {dumps(wanted.model_dump())}", intend, do, recall)


async def _enter(nexus: Nexus, wanted: shapes.EnterRequest, terms: EntryRequest, base: str) -> dict[str, Any]:
    stay = await nexus.enter(wanted.agent_id, wanted.game, terms)
    body = _arrival(nexus, stay.session, base)
    if _decides_outside(nexus, wanted.agent_id, wanted.game):
        body["observation"] = await next_observation(nexus, wanted.agent_id, _FIRST_SECONDS)
    return body


def _arrival(nexus: Nexus, session: SessionRecord, base: str) -> dict[str, Any]:
    # Any, here and above: parts of the protocol, and JSON.
    with nexus.ledger.look() as book:
        bodies = [b.avatar for b in book.avatars(session.agent_id, session.game) if b.world_id == session.world_id]
    return {
        "session": session,
        "bridge_url": f"{base.rstrip('/')}/nexus/sessions/{session.id}",
        "avatar": next((body for body in bodies if body.avatar_id == session.avatar_id), None),
        "receipt": receipt_of(nexus, session.id),
        "observation": None,
    }


async def _leave(nexus: Nexus, by: Caller, wanted: shapes.ExitRequest) -> SessionRecord:
    """Bring an agent back; one that decides over the wire asks the world whether it is safe, unless forced."""
    agent_id = wanted.agent_id
    leaving = nexus.await_exit(agent_id)
    game = nexus.live.sessions[agent_id].session.game
    if wanted.force or not _decides_outside(nexus, agent_id, game):
        nexus.live.sessions[agent_id].stop("kicked")
        return await asyncio.shield(leaving)
    seat, _ = await nexus.live.external.observation(agent_id)
    result = await seat.act(Action("jack_out", {"mode": wanted.mode}))
    if not result.success:
        raise LeavingRefusedError(result.message)
    return await asyncio.shield(leaving)


def _decides_outside(nexus: Nexus, agent_id: str, place: str) -> bool:
    policy = the_agent(nexus, agent_id).policy(place)
    return policy is not None and policy.external


def _newest(nexus: Nexus, agent_id: str) -> SessionRecord | None:
    with nexus.ledger.look() as book:
        found = book.sessions(agent_id=agent_id, limit=1)
    return found[0] if found else None


def receipt_of(nexus: Nexus, session_id: str) -> dict[str, Any] | None:
    """Return what the world let in at the beginning of a session. Any: a `Receipt` as JSON."""
    return _settled(nexus, session_id, "enter").get("receipt")


def package_of(nexus: Nexus, session_id: str) -> dict[str, Any]:
    """Return what the world let out at the end of a session. Any: a `TransitPackage` as JSON."""
    package: dict[str, Any] = _settled(nexus, session_id, "leave").get("package") or encode(TransitPackage(""))
    return package


def _settled(nexus: Nexus, session_id: str, kind: str) -> dict[str, Any]:
    with nexus.ledger.look() as book:
        session = book.session(session_id)
        where = (_TRANSFER.c.agent_id == session.agent_id) & (_TRANSFER.c.kind == kind) & (_TRANSFER.c.state == "done")
        rows = book.connection.execute(select(_TRANSFER.c.data).where(where).order_by(_TRANSFER.c.id.desc())).all()
    return next((dict(row.data) for row in rows if row.data.get("session") == session_id), {})
