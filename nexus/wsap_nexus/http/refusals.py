"""Refusals of the wire API: an error class for each stable code, with its HTTP status and meaning."""

from __future__ import annotations

from wsap_core.errors import UsageError, WireError, WsapError
from wsap_nexus.errors import TransitError


def _refusal(
    code: str, status: int, meaning: str, base: type[WsapError] = WsapError, *, retry: bool = False
) -> type[WsapError]:
    name = code.title().replace("_", "") + "Error"
    values = {"__module__": __name__, "code": code, "http_status": status, "retryable": retry}
    return type(name, (base,), {"__doc__": meaning, **values})


UnauthorizedError = _refusal("UNAUTHORIZED", 401, "The token is missing or unknown.")
ForbiddenError = _refusal("FORBIDDEN", 403, "The token belongs to another agent, or this is not allowed over the wire.")
HostRefusedError = _refusal("HOST_REFUSED", 421, "The Host header names another machine, as in a DNS rebinding attack.")
NotJsonError = _refusal(
    "INVALID_JSON",
    400,
    "The body is not JSON, or contains NaN, a duplicate key, an unpaired surrogate or a huge number.",
    WireError,
)
WrongTypeError = _refusal("UNSUPPORTED_MEDIA_TYPE", 415, "The body is not `application/json`.", WireError)
TooLargeError = _refusal("TOO_LARGE", 413, "The body is too large.", WireError)
TooSlowError = _refusal("REQUEST_TIMEOUT", 408, "The body did not arrive in time.", retry=True)
TooManyStreamsError = _refusal("TOO_MANY_STREAMS", 503, "Too many event streams are open.", retry=True)
TooManyConnectionsError = _refusal("TOO_MANY_CONNECTIONS", 503, "Too many connections are open.", retry=True)
NexusStoppingError = _refusal("NEXUS_STOPPING", 503, "The nexus stopped before it replied.", retry=True)
KeyReusedError = _refusal(
    "IDEMPOTENCY_KEY_REUSED", 422, "The idempotency key was used for another request.", UsageError
)
KeyInUseError = _refusal(
    "TOO_MANY_PENDING", 429, "Too many requests with idempotency keys are in progress.", UsageError, retry=True
)
SessionClosedError = _refusal("SESSION_CLOSED", 410, "The session has ended.", TransitError)
SessionManagedError = _refusal(
    "SESSION_MANAGED", 409, "The nexus does this itself for a session, as part of transit.", TransitError
)
LeavingRefusedError = _refusal(
    "LEAVING_REFUSED",
    409,
    "The world does not let the agent leave now; the message says why. Go on acting and leave later, or let the owner "
    "bring the agent back with `force`.",
    TransitError,
)
AbilityMissingError = _refusal("ABILITY_MISSING", 501, "The game lacks this capability.", UsageError)


EventsAheadError = _refusal(
    "EVENTS_AHEAD",
    409,
    "There is no event of that number to resume after: the database is another one, or an older copy was restored.",
    UsageError,
)


class TooManyRequestsError(WsapError):
    """The caller exceeded its request rate; `Retry-After` has the seconds until the next request is allowed."""

    code = "RATE_LIMITED"
    http_status = 429
    retryable = True

    def __init__(self, message: str, after: float = 1.0) -> None:
        super().__init__(message)
        self.after = after
