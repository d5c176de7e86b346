"""Route parameters that check the caller's token."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPBearer

from wsap_nexus.http.access.auth import Caller, Tokens
from wsap_nexus.http.access.guard import CALLER
from wsap_nexus.http.refusals import ForbiddenError, UnauthorizedError

BEARER = HTTPBearer(
    auto_error=False,
    scheme_name="token",
    description="The owner's token, or an agent's, which is valid only for that agent.",
)


async def the_tokens(request: Request) -> Tokens:
    """Return the tokens of the application."""
    tokens: Tokens = request.app.state.tokens
    return tokens


async def reader(request: Request) -> Caller | None:
    """Return the caller authenticated by `Guard`; None without a token."""
    who: Caller | None = request.scope.get(CALLER)
    return who


async def caller(who: Annotated[Caller | None, Depends(reader)], _: Annotated[object, Depends(BEARER)]) -> Caller:
    """Return the caller; UnauthorizedError without a token."""
    if who is None:
        raise UnauthorizedError("This needs a token: send the header Authorization: Bearer TOKEN.")
    return who


async def admin(who: Annotated[Caller, Depends(caller)]) -> Caller:
    """Return the caller; ForbiddenError if it is not the admin."""
    if who.agent_id is not None:
        raise ForbiddenError("This needs the owner's token.")
    return who


Reader = Annotated[Caller | None, Depends(reader)]
"""The caller of a readable route; None without a token."""
Known = Annotated[Caller, Depends(caller)]
Admin = Annotated[Caller, Depends(admin)]
TokenStore = Annotated[Tokens, Depends(the_tokens)]
