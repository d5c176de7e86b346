"""Parameters of the routes of the API, and replies under idempotency keys."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request, Response
from pydantic import StringConstraints

from wsap_nexus.http.auth import Caller
from wsap_nexus.http.replies import pending
from wsap_nexus.server.idempotency import IdempotencyStore, IdempotentRequest
from wsap_nexus.store.entities import AGENT_ID


async def the_answers(request: Request) -> IdempotencyStore:
    """Return what was answered under idempotency keys."""
    answers: IdempotencyStore = request.app.state.idempotency
    return answers


Once = Annotated[IdempotencyStore, Depends(the_answers)]
AgentId = Annotated[str, StringConstraints(pattern=AGENT_ID, max_length=64)]
"""An agent's id."""


async def once(
    answers: IdempotencyStore, who: Caller, key: str | None, errand: IdempotentRequest, wait: float, what: str
) -> Response:
    """Have an errand done once, and return its answer, or that it is not through yet."""
    reply = await answers.once(who.name, key, errand, wait)
    if reply is None:
        return pending(what)
    response = Response(reply.body, reply.status, media_type="application/json")
    if reply.repeated:
        response.headers["Idempotent-Replayed"] = "true"
    return response
