"""Why the wire API refuses a request: one class for each stable code.

UnauthorizedError             there is no token, or none that is known
ForbiddenError                the token is good for somebody else
NotJsonError                  the body is not JSON that can be read here
WrongTypeError                the body is of another content type
TooLargeError                 the body, or a part of the request, is larger than may be
TooSlowError                  the body did not come in time
TooManyRequestsError          more requests than a caller may make
TooManyStreamsError           as many streams are open as may be
HostRefusedError              the Host header names another machine
KeyReusedError                an idempotency key was used for another request
KeyInUseError                 an idempotency key stands for a request that is under way
SessionClosedError            the session is over
SessionManagedError           the nexus itself does this for a session
LeavingRefusedError           the world does not let the agent out now
AbilityMissingError           the game has no such ability
"""

from __future__ import annotations

from wsap_core.errors import UsageError, WireError, WsapError
from wsap_nexus.errors import TransitError


class UnauthorizedError(WsapError):
    """There is no token, or none that is known."""

    code = "UNAUTHORIZED"
    http_status = 401


class ForbiddenError(WsapError):
    """The token is good for somebody else, or this can't be had over the wire."""

    code = "FORBIDDEN"
    http_status = 403


class NotJsonError(WireError):
    """The body is not JSON, or holds what can't be kept: NaN, a key twice, half a character, a number too large."""

    code = "INVALID_JSON"


class WrongTypeError(WireError):
    """The body is not `application/json`."""

    code = "UNSUPPORTED_MEDIA_TYPE"
    http_status = 415


class TooLargeError(WireError):
    """The body is larger than may be."""

    code = "TOO_LARGE"
    http_status = 413


class TooSlowError(WsapError):
    """The body did not come in time."""

    code = "REQUEST_TIMEOUT"
    http_status = 408
    retryable = True


class TooManyRequestsError(WsapError):
    """More requests than a caller may make; `Retry-After` says when there is room again.

    Args:
        message: what to tell the caller.
        after: seconds until there is room again.
    """

    code = "RATE_LIMITED"
    http_status = 429
    retryable = True

    def __init__(self, message: str, after: float = 1.0) -> None:
        super().__init__(message)
        self.after = after


class TooManyStreamsError(WsapError):
    """As many streams of events are open as may be."""

    code = "TOO_MANY_STREAMS"
    http_status = 503
    retryable = True


class TooManyConnectionsError(WsapError):
    """As many connections are open as may be."""

    code = "TOO_MANY_CONNECTIONS"
    http_status = 503
    retryable = True


class HostRefusedError(WsapError):
    """The Host header names another machine: the page that asked was served under a name made to point here."""

    code = "HOST_REFUSED"
    http_status = 421


class KeyReusedError(UsageError):
    """The idempotency key was used for another request."""

    code = "IDEMPOTENCY_KEY_REUSED"
    http_status = 422


class KeyInUseError(UsageError):
    """More requests with idempotency keys are under way than may be."""

    code = "TOO_MANY_PENDING"
    http_status = 429
    retryable = True


class SessionClosedError(TransitError):
    """The session is over."""

    code = "SESSION_CLOSED"
    http_status = 410


class SessionManagedError(TransitError):
    """The nexus itself does this for a session, as part of transit."""

    code = "SESSION_MANAGED"


class LeavingRefusedError(TransitError):
    """The world does not let the agent out now; the message says why."""

    code = "LEAVING_REFUSED"


class AbilityMissingError(UsageError):
    """The game has no such ability."""

    code = "ABILITY_MISSING"
    http_status = 501
