"""What every route is given: the nexus, and who asks."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Header, Request, Response

from wsap_core.wire import dumps
from wsap_nexus.hub.hub import Nexus
from wsap_nexus.server.auth import Caller, ForbiddenError, Tokens

WAIT_MOST = 60.0
"""Seconds that a request may wait for something to happen."""


def the_nexus(request: Request) -> Nexus:
    """Return the nexus that the application serves."""
    nexus: Nexus = request.app.state.nexus
    return nexus


def the_tokens(request: Request) -> Tokens:
    """Return the tokens of the nexus."""
    tokens: Tokens = request.app.state.tokens
    return tokens


def caller(
    tokens: Annotated[Tokens, Depends(the_tokens)], authorization: Annotated[str | None, Header()] = None
) -> Caller:
    """Return who asks, by the token."""
    return tokens.check(authorization)


def admin(who: Annotated[Caller, Depends(caller)]) -> Caller:
    """Return whoever runs the nexus, and nobody else."""
    if who.agent_id is not None:
        raise ForbiddenError("This needs the token of whoever runs the nexus.")
    return who


Hub = Annotated[Nexus, Depends(the_nexus)]
Known = Annotated[Caller, Depends(caller)]
Owner = Annotated[Caller, Depends(admin)]
Vault = Annotated[Tokens, Depends(the_tokens)]


def answer(body: object, status: int = 200) -> Response:
    """Return parts of the protocol, or JSON-ready data, as canonical JSON."""
    return Response(dumps(body), status, media_type="application/json")
