"""What every route is given: the nexus, who asks, and how to answer."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Header, Query, Request, Response
from fastapi.security import HTTPBearer
from pydantic import StringConstraints

from wsap_core.errors import WireError
from wsap_core.protocol.wire import dumps
from wsap_nexus.errors import WorldFailedError
from wsap_nexus.http.auth import Caller, Tokens
from wsap_nexus.http.guard import CALLER
from wsap_nexus.http.refusals import ForbiddenError, UnauthorizedError
from wsap_nexus.hub.hub import Nexus
from wsap_nexus.server.answers import Answers, Errand, Reply
from wsap_nexus.store.entities import AGENT_ID

WAIT_MOST = 60.0
"""Seconds that a request may wait for something to happen."""

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
Wait = Annotated[float, Query(ge=0, le=WAIT_MOST, description="Seconds to wait before answering 202.")]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        pattern=r"^[!-~]+$",
        description="Asked again with the same key, it is done once and answered the same, for a day.",
    ),
]


def answer(body: object, status: int = 200) -> Response:
    """Return parts of the protocol, or JSON-ready data, as canonical JSON.

    Raises:
        WorldFailedError: a game gave something that JSON has no word for.
    """
    return Response(text_of(body), status, media_type="application/json")


def text_of(body: object) -> str:
    """Return parts of the protocol, or JSON-ready data, as canonical JSON text.

    Raises:
        WorldFailedError: a game gave something that JSON has no word for.
    """
    try:
        return dumps(body)
    except WireError as error:
        raise WorldFailedError(f"What the world gave can't be sent: {error}") from error


def pending(what: str) -> Response:
    """Return the answer that something is not through yet."""
    return Response(dumps({"pending": True, "message": what}), 202, media_type="application/json")


async def once(answers: Answers, who: Caller, key: str | None, errand: Errand, wait: float, what: str) -> Response:
    """Have an errand done once, and return its answer, or that it is not through yet."""
    reply = await answers.once(who.name, key, errand, wait)
    if reply is None:
        return pending(what)
    response = Response(reply.body, reply.status, media_type="application/json")
    if reply.repeated:
        response.headers["Idempotent-Replayed"] = "true"
    return response


def reply_of(body: Any, status: int = 200) -> Reply:
    """Return an answer that can be kept. Any: parts of the protocol, or JSON-ready data."""
    return Reply(status, text_of(body))
