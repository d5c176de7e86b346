"""What a backend can fail with, by class: what helps is decided from the class alone.

BackendError
├── BadRequestError          the request itself is wrong; fails at once
│   ├── AuthenticationError  no key, or a wrong one
│   ├── ModelNotFoundError   no such model there, or it is not pulled
│   ├── ContextTooSmallError the prompt does not fit
│   └── ConstraintError      the backend can't honour the constraint
├── BudgetReachedError       a limit in tokens, money or calls; pause and go on later
└── TransientError           trying again can help
    ├── RateLimitError       wait as told
    ├── ServerFailedError    the server failed, or sent what can't be read
    ├── BackendTimeoutError  nothing came in time
    └── NoServerError        nobody answers at the address
"""

from __future__ import annotations

from wsap_core.errors import WsapError


class BackendError(WsapError):
    """A language model could not be asked, or did not answer."""

    code = "BACKEND"
    exit_code = 8
    http_status = 502


class BadRequestError(BackendError):
    """The request is wrong as it stands; trying again gives the same."""

    code = "BACKEND_BAD_REQUEST"


class AuthenticationError(BadRequestError):
    """There is no key, or it is not accepted; the message names the variable to set."""

    code = "BACKEND_AUTH"


class ModelNotFoundError(BadRequestError):
    """The server does not have the model; the message says how to get it where that is known."""

    code = "BACKEND_NO_MODEL"


class ContextTooSmallError(BadRequestError):
    """The prompt and the reply's reserve do not fit into the model's context."""

    code = "BACKEND_CONTEXT"


class ConstraintError(BadRequestError):
    """The backend can't constrain its replies as asked."""

    code = "BACKEND_CONSTRAINT"


class BudgetReachedError(BackendError):
    """A limit in tokens, money or calls was reached; the run can be resumed when it is raised."""

    code = "BUDGET"
    exit_code = 9
    http_status = 402


class TransientError(BackendError):
    """Something that may be over in a moment."""

    code = "BACKEND_TRANSIENT"
    retryable = True


class RateLimitError(TransientError):
    """Too many requests."""

    code = "BACKEND_RATE_LIMIT"
    http_status = 429

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """Seconds to wait, as the server asked; None where it did not say."""


class ServerFailedError(TransientError):
    """The server failed, broke off, or sent what can't be read."""

    code = "BACKEND_SERVER"


class BackendTimeoutError(TransientError):
    """Nothing came in time."""

    code = "BACKEND_TIMEOUT"


class NoServerError(TransientError):
    """Nobody answers at the address."""

    code = "BACKEND_NO_SERVER"
