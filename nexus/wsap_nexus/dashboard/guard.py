"""Who may look: anybody at this machine itself, and elsewhere whoever has the token.

A page of another site can have its name resolve to this machine and ask from a visitor's browser
(DNS rebinding). Its requests carry that name in their `Host`, and are refused for it.
"""

from __future__ import annotations

import ipaddress
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Header, Request, Response

from wsap_nexus.http.auth import Tokens
from wsap_nexus.http.callers import the_tokens
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
"""Sent with everything that a browser may show."""


def reader(
    request: Request,
    response: Response,
    tokens: Annotated[Tokens, Depends(the_tokens)],
    authorization: Annotated[str | None, Header()] = None,
) -> None:
    """Let a request look.

    Raises:
        UnauthorizedError: it comes from elsewhere without a token that is known.
        ForbiddenError: the token is an agent's, which is good for that agent alone.
    """
    if authorization is None:
        if not is_local(request):
            raise UnauthorizedError("From another machine, looking needs the token, too.")
        return
    if tokens.check(authorization).agent_id is not None:
        raise ForbiddenError("The dashboard needs the token of whoever runs the nexus.")


def is_local(request: Request) -> bool:
    """Return whether a request came in on the loopback interface and means this machine by its name."""
    server = request.scope.get("server")
    if not server or not _is_loopback(str(server[0])):
        return False
    name = urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
    return name == "localhost" or _is_loopback(name)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
