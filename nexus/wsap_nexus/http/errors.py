"""Error responses of one form, with stable codes.

    {"error": {"code": "...", "message": "...", "details": {}, "timestamp": "...", "retry": false}}

The form is from the Morrowind perception protocol, section 7.1, plus `retry`: whether the same request can succeed
later. `wsap_nexus.http.refusals` has the API's own codes.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response

from wsap_core.errors import UnknownNameError, WsapError
from wsap_core.protocol.wire import dumps
from wsap_core.untrusted import strip_control

CODES: Mapping[int, tuple[str, str]] = {
    400: ("VALIDATION_ERROR", "A field of the request is missing, invalid or unknown."),
    404: ("NOT_FOUND", "There is nothing at this path."),
    405: ("METHOD_NOT_ALLOWED", "The path has other methods, listed in `Allow`."),
    500: ("INTERNAL_ERROR", "An unexpected error; the server's log has details under the id in `details`."),
}
"""Status -> code and meaning of errors raised by the framework."""

_LOG = logging.getLogger("wsap_nexus.server")


def error_body(
    code: str, message: str, *, retry: bool = False, details: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return an error as JSON-ready data."""
    return {
        "error": {
            "code": code,
            "message": strip_control(message)[:2000],
            "details": dict(details or {}),
            "timestamp": datetime.now(UTC).isoformat(timespec="seconds"),
            "retry": retry,
        }
    }


def error_response(
    status: int,
    code: str,
    message: str,
    *,
    retry: bool = False,
    details: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return a response with an error."""
    body = error_body(code, message, retry=retry, details=details)
    return Response(dumps(body), status, headers=dict(headers or {}), media_type="application/json")


def of_error(error: WsapError) -> Response:
    """Return the response for an error."""
    details: dict[str, Any] = {}
    headers: dict[str, str] = {}
    if isinstance(said := getattr(error, "details", None), Mapping):
        details.update(said)
    after = getattr(error, "after", None)
    if isinstance(after, float):
        headers["Retry-After"] = str(max(1, round(after + 0.5)))
        details["retry_after"] = round(after, 3)
    elif error.retryable:
        headers["Retry-After"] = "1"
    if error.http_status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, UnknownNameError):
        details.update(kind=error.kind, name=strip_control(error.name)[:200], suggestions=list(error.suggestions))
    return error_response(
        error.http_status, error.code, str(error), retry=error.retryable, details=details, headers=headers
    )


def unexpected(error: Exception, what: str) -> Response:
    """Log an unexpected error, and return a response with only its id in the log."""
    error_id = secrets.token_hex(6)
    _LOG.error("Error %s at %s", error_id, what, exc_info=error)
    code = CODES[500][0]
    message = f"An unexpected error; the server's log has details under {error_id}."
    return error_response(500, code, message, retry=True, details={"id": error_id})


def install(app: FastAPI) -> None:
    """Make an application respond to errors in this form; `Guard` handles unexpected ones."""

    @app.exception_handler(WsapError)
    async def known(request: Request, error: WsapError) -> Response:
        return of_error(error)

    @app.exception_handler(RequestValidationError)
    async def malformed(request: Request, error: RequestValidationError) -> Response:
        found = [
            {
                "where": strip_control(".".join(str(part) for part in e["loc"]))[:300],
                "what": strip_control(str(e["msg"]))[:300],
            }
            for e in error.errors()[:10]
        ]
        first = found[0] if found else {"where": "request", "what": "malformed"}
        message = f"The request can't be read: {first['where']}: {first['what']}."
        return error_response(400, CODES[400][0], message, details={"problems": found})

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> Response:
        return _of_status(error.status_code, str(error.detail), error.headers)

    # The router raises Starlette's HTTPException, the base class of FastAPI's.
    app.add_exception_handler(HTTPException.__mro__[1], refused)  # type: ignore[arg-type]


def _of_status(status: int, detail: str, headers: Mapping[str, str] | None) -> Response:
    code, meaning = CODES.get(status, ("VALIDATION_ERROR", detail)) if status != 404 else CODES[404]
    return error_response(status, code, meaning, headers=headers)
