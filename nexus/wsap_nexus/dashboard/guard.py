"""Read access to the dashboard: free on this machine, with the token from elsewhere.

Requests with another machine's name in their `Host` header need the token, too (DNS rebinding).
"""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Header, Request, Response

from wsap_nexus.http.auth import Tokens
from wsap_nexus.http.callers import the_tokens
from wsap_nexus.http.listening import is_loopback
from wsap_nexus.http.refusals import ForbiddenError, UnauthorizedError

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
"""Sent with every response."""


def reader(
    request: Request,
    response: Response,
    tokens: Annotated[Tokens, Depends(the_tokens)],
    authorization: Annotated[str | None, Header()] = None,
) -> None:
    """Check that a request may read.

    Raises:
        UnauthorizedError: it comes from elsewhere without a known token.
        ForbiddenError: the token is an agent's.
    """
    if authorization is None:
        if not is_local(request):
            raise UnauthorizedError("From another machine, looking needs the token, too.")
        return
    if tokens.check(authorization).agent_id is not None:
        raise ForbiddenError("The dashboard needs the token of whoever runs the nexus.")


def is_local(request: Request) -> bool:
    """Return whether a request came through the loopback interface and its Host header names this machine."""
    server = request.scope.get("server")
    name = urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
    return server is not None and is_loopback(str(server[0])) and is_loopback(name)
