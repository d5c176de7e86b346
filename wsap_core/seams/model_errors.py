"""The errors of model backends. Their class alone decides how they are handled: fail, pause the run, or retry."""

from __future__ import annotations

from wsap_core.errors import WsapError


class BackendError(WsapError, code="BACKEND", exit_code=8, http_status=502):
    """A language model could not be called, or did not answer."""


class BadRequestError(BackendError, code="BACKEND_BAD_REQUEST"):
    """The request is invalid; a retry fails again."""


class AuthenticationError(BadRequestError, code="BACKEND_AUTH"):
    """The API key is missing or rejected; the message names the variable to set."""


class ModelNotFoundError(BadRequestError, code="BACKEND_NO_MODEL"):
    """The server does not have the model; the message says how to get it, if known."""


class ContextTooSmallError(BadRequestError, code="BACKEND_CONTEXT"):
    """The prompt and the tokens reserved for the reply exceed the model's context window."""


class ConstraintError(BadRequestError, code="BACKEND_CONSTRAINT"):
    """The backend does not support the constraint on the reply."""


class BudgetReachedError(BackendError, code="BUDGET", exit_code=9, http_status=402):
    """A limit in tokens, money or calls was reached; the run can be resumed once it is raised."""


class ForcedDecisionsError(BackendError, code="FORCED_DECISIONS", exit_code=11, http_status=409):
    """Many answers in a row were unusable; the message says why. The run can be resumed once that is fixed."""


PAUSES = (BudgetReachedError, ForcedDecisionsError)
"""The errors that pause a run."""


class TransientError(BackendError, code="BACKEND_TRANSIENT", retryable=True):
    """A temporary failure."""


class RateLimitError(TransientError, code="BACKEND_RATE_LIMIT", http_status=429):
    """Too many requests."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """Seconds to wait, if the server said so."""


class ServerFailedError(TransientError, code="BACKEND_SERVER"):
    """The server failed, closed the connection, or sent an unreadable reply."""


class BackendTimeoutError(TransientError, code="BACKEND_TIMEOUT"):
    """The request timed out."""


class NoServerError(TransientError, code="BACKEND_NO_SERVER"):
    """No server answers at the address."""
