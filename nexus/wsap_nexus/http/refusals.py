"""Why the wire API refuses a request: one error class for each stable code, with its HTTP status and meaning."""

from __future__ import annotations

from wsap_core.errors import UsageError, WireError, WsapError
from wsap_nexus.errors import TransitError


def _refusal(
    name: str, code: str, status: int, meaning: str, *, base: type[WsapError] = WsapError, retry: bool = False
) -> type[WsapError]:
    values = {"__doc__": meaning, "code": code, "http_status": status, "retryable": retry}
    return type(name, (base,), {"__module__": __name__, **values})


UnauthorizedError = _refusal("UnauthorizedError", "UNAUTHORIZED", 401, "The token is missing or unknown.")
ForbiddenError = _refusal(
    "ForbiddenError", "FORBIDDEN", 403, "The token belongs to another agent, or this is not allowed over the wire."
)
NotJsonError = _refusal(
    "NotJsonError",
    "INVALID_JSON",
    400,
    "The body is not JSON, or contains NaN, a duplicate key, a lone surrogate or a number that is too large.",
    base=WireError,
)
WrongTypeError = _refusal(
    "WrongTypeError", "UNSUPPORTED_MEDIA_TYPE", 415, "The body is not `application/json`.", base=WireError
)
TooLargeError = _refusal("TooLargeError", "TOO_LARGE", 413, "The body is too large.", base=WireError)
TooSlowError = _refusal("TooSlowError", "REQUEST_TIMEOUT", 408, "The body did not arrive in time.", retry=True)
TooManyStreamsError = _refusal(
    "TooManyStreamsError", "TOO_MANY_STREAMS", 503, "Too many event streams are open.", retry=True
)
TooManyConnectionsError = _refusal(
    "TooManyConnectionsError", "TOO_MANY_CONNECTIONS", 503, "Too many connections are open.", retry=True
)
HostRefusedError = _refusal(
    "HostRefusedError", "HOST_REFUSED", 421, "The Host header names another machine, as in a DNS rebinding attack."
)
KeyReusedError = _refusal(
    "KeyReusedError",
    "IDEMPOTENCY_KEY_REUSED",
    422,
    "The idempotency key was used for another request.",
    base=UsageError,
)
KeyInUseError = _refusal(
    "KeyInUseError",
    "TOO_MANY_PENDING",
    429,
    "Too many requests with idempotency keys are in progress.",
    base=UsageError,
    retry=True,
)
SessionClosedError = _refusal("SessionClosedError", "SESSION_CLOSED", 410, "The session has ended.", base=TransitError)
SessionManagedError = _refusal(
    "SessionManagedError",
    "SESSION_MANAGED",
    409,
    "The nexus does this itself for a session, as part of transit.",
    base=TransitError,
)
LeavingRefusedError = _refusal(
    "LeavingRefusedError",
    "LEAVING_REFUSED",
    409,
    "The world does not let the agent leave now; the message says why.",
    base=TransitError,
)
AbilityMissingError = _refusal(
    "AbilityMissingError", "ABILITY_MISSING", 501, "The game lacks this capability.", base=UsageError
)


class TooManyRequestsError(WsapError):
    """The caller exceeded its request rate; `Retry-After` says when to try again.

    Args:
        message: what to tell the caller.
        after: seconds until the next request is allowed.
    """

    code = "RATE_LIMITED"
    http_status = 429
    retryable = True

    def __init__(self, message: str, after: float = 1.0) -> None:
        super().__init__(message)
        self.after = after
