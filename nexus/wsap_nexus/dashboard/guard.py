"""Read access to the dashboard: anybody on this machine may read public data; the token gives access to everything.

From elsewhere, or with another host name in the `Host` header (DNS rebinding), all access needs the token.
"""

from __future__ import annotations

import hmac
import secrets
from typing import Annotated

from fastapi import Depends, Request

from wsap_nexus.http.callers import Reader
from wsap_nexus.http.listening import host_name, is_loopback
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


async def spectator(request: Request, who: Reader) -> bool:
    """Return whether a request may read private data, too.

    Raises:
        UnauthorizedError: it comes from elsewhere without a token.
        ForbiddenError: the token is an agent's.
    """
    if who is None and not is_local(request):
        raise UnauthorizedError("From another machine, reading needs the token, too.")
    if who is not None and who.agent_id is not None:
        raise ForbiddenError("The dashboard needs the owner's token.")
    return who is not None


Private = Annotated[bool, Depends(spectator)]
"""Whether the request may read private data: memories, messages, observations, and the roles of agents."""


def is_local(request: Request) -> bool:
    """Return whether a request came through the loopback interface and its Host header names this machine."""
    server = request.scope.get("server")
    name = host_name(request.headers.get("host", ""))
    return server is not None and is_loopback(str(server[0])) and name is not None and is_loopback(name)


class OneTimeKey:
    """A random key for one use, in the fragment of the address, which browsers do not send."""

    def __init__(self) -> None:
        self._key: str | None = secrets.token_urlsafe(16)

    @property
    def fragment(self) -> str:
        """The suffix of the dashboard's address; empty once the key has been used."""
        return f"#key={self._key}" if self._key else ""

    def use(self, given: str) -> bool:
        """Return whether a key is valid, and invalidate it if so."""
        if self._key is None or not hmac.compare_digest(given.encode(), self._key.encode()):
            return False
        self._key = None
        return True
