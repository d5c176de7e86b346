"""What a backend can fail with, by class: what helps is decided from the class alone.

BackendError
├── BadRequestError          the request itself is wrong; fails at once
│   ├── AuthenticationError  no key, or a wrong one
│   ├── ModelNotFoundError   no such model there, or it is not pulled
│   ├── ContextTooSmallError the prompt does not fit
│   └── ConstraintError      the backend can't honour the constraint
├── BudgetReachedError       a limit in tokens, money or calls; pause and go on later
├── ForcedDecisionsError     no answer in a row could be used; pause and go on later
└── TransientError           trying again can help
    ├── RateLimitError       wait as told
    ├── ServerFailedError    the server failed, or sent what can't be read
    ├── BackendTimeoutError  nothing came in time
    └── NoServerError        nobody answers at the address
"""

from __future__ import annotations

from wsap_core.errors import WsapError


class BackendError(WsapError, code="BACKEND", exit_code=8, http_status=502):
    """A language model could not be asked, or did not answer."""


class BadRequestError(BackendError, code="BACKEND_BAD_REQUEST"):
    """The request is wrong as it stands; trying again gives the same."""


class AuthenticationError(BadRequestError, code="BACKEND_AUTH"):
    """There is no key, or it is not accepted; the message names the variable to set."""


class ModelNotFoundError(BadRequestError, code="BACKEND_NO_MODEL"):
    """The server does not have the model; the message says how to get it where that is known."""


class ContextTooSmallError(BadRequestError, code="BACKEND_CONTEXT"):
    """The prompt and the reply's reserve do not fit into the model's context."""


class ConstraintError(BadRequestError, code="BACKEND_CONSTRAINT"):
    """The backend can't constrain its replies as asked."""


class BudgetReachedError(BackendError, code="BUDGET", exit_code=9, http_status=402):
    """A limit in tokens, money or calls was reached; the run can be resumed when it is raised."""


class ForcedDecisionsError(BackendError, code="FORCED_DECISIONS", exit_code=11, http_status=409):
    """Many answers in a row could not be used; the message says why. The run can be resumed when that is mended."""


PAUSES = (BudgetReachedError, ForcedDecisionsError)
"""What pauses a run rather than fails it."""


class TransientError(BackendError, code="BACKEND_TRANSIENT", retryable=True):
    """Something that may be over in a moment."""


class RateLimitError(TransientError, code="BACKEND_RATE_LIMIT", http_status=429):
    """Too many requests."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """Seconds to wait, as the server asked; None where it did not say."""


class ServerFailedError(TransientError, code="BACKEND_SERVER"):
    """The server failed, broke off, or sent what can't be read."""


class BackendTimeoutError(TransientError, code="BACKEND_TIMEOUT"):
    """Nothing came in time."""


class NoServerError(TransientError, code="BACKEND_NO_SERVER"):
    """Nobody answers at the address."""
