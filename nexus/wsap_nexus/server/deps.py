"""What every route is given: the nexus, who asks, and how to answer."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request, Response
from fastapi.security import HTTPBearer
from pydantic import StringConstraints

from wsap_nexus.http.auth import Caller, Tokens
from wsap_nexus.http.guard import CALLER
from wsap_nexus.http.refusals import ForbiddenError, UnauthorizedError
from wsap_nexus.http.replies import pending
from wsap_nexus.hub.hub import Nexus
from wsap_nexus.server.answers import Answers, Errand
from wsap_nexus.store.entities import AGENT_ID

_BEARER = HTTPBearer(
    auto_error=False,
    scheme_name="token",
    description="The token of whoever runs the nexus, or one agent's, which is good for that agent alone.",
)


async def the_nexus(request: Request) -> Nexus:
    """Return the nexus that the application serves."""
    nexus: Nexus = request.app.state.nexus
    return nexus


async def the_tokens(request: Request) -> Tokens:
    """Return the tokens of the nexus."""
    tokens: Tokens = request.app.state.tokens
    return tokens


async def the_answers(request: Request) -> Answers:
    """Return what was answered under idempotency keys."""
    answers: Answers = request.app.state.answers
    return answers


async def caller(request: Request, _: Annotated[object, Depends(_BEARER)]) -> Caller:
    """Return who asks, by the token that `Guard` found."""
    who: Caller | None = request.scope.get(CALLER)
    if who is None:
        raise UnauthorizedError("This needs a token: send the header Authorization: Bearer TOKEN.")
    return who


async def admin(who: Annotated[Caller, Depends(caller)]) -> Caller:
    """Return whoever runs the nexus, and nobody else."""
    if who.agent_id is not None:
        raise ForbiddenError("This needs the token of whoever runs the nexus.")
    return who


Hub = Annotated[Nexus, Depends(the_nexus)]
Known = Annotated[Caller, Depends(caller)]
Owner = Annotated[Caller, Depends(admin)]
Vault = Annotated[Tokens, Depends(the_tokens)]
Once = Annotated[Answers, Depends(the_answers)]
AgentId = Annotated[str, StringConstraints(pattern=AGENT_ID, max_length=64)]
"""An agent's id."""


async def once(answers: Answers, who: Caller, key: str | None, errand: Errand, wait: float, what: str) -> Response:
    """Have an errand done once, and return its answer, or that it is not through yet."""
    reply = await answers.once(who.name, key, errand, wait)
    if reply is None:
        return pending(what)
    response = Response(reply.body, reply.status, media_type="application/json")
    if reply.repeated:
        response.headers["Idempotent-Replayed"] = "true"
    return response
