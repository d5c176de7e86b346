"""Errors over the wire: one form, stable codes.

    {"error": {"code": "...", "message": "...", "details": {}, "timestamp": "...", "retry": false}}

The form is that of the Morrowind perception protocol, section 7.1, with `retry` added.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from wsap_core.errors import WsapError
from wsap_core.untrusted import printable

_CODES = {400: "VALIDATION_ERROR", 401: "UNAUTHORIZED", 403: "FORBIDDEN", 404: "NOT_FOUND", 405: "METHOD_NOT_ALLOWED"}


def error_response(
    status: int, code: str, message: str, *, retry: bool = False, details: Mapping[str, Any] | None = None
) -> JSONResponse:
    """Return an error in the one form. Any: JSON-ready details."""
    body = {
        "error": {
            "code": code,
            "message": printable(message)[:2000],
            "details": dict(details or {}),
            "timestamp": datetime.now(UTC).isoformat(timespec="seconds"),
            "retry": retry,
        }
    }
    return JSONResponse(body, status)


def install(app: FastAPI) -> None:
    """Have every error of an app answered in the one form."""

    @app.exception_handler(WsapError)
    async def known(request: Request, error: WsapError) -> JSONResponse:
        return error_response(error.http_status, error.code, str(error), retry=error.retryable)

    @app.exception_handler(RequestValidationError)
    async def malformed(request: Request, error: RequestValidationError) -> JSONResponse:
        found = [
            {"where": ".".join(str(part) for part in e["loc"]), "what": str(e["msg"])} for e in error.errors()[:10]
        ]
        first = found[0] if found else {"where": "request", "what": "malformed"}
        message = f"The request can't be read: {first['where']}: {first['what']}."
        return error_response(400, "VALIDATION_ERROR", message, details={"problems": found})

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> JSONResponse:
        answer = error_response(error.status_code, _CODES.get(error.status_code, "REFUSED"), str(error.detail))
        answer.headers.update(error.headers or {})
        return answer

    @app.exception_handler(Exception)
    async def unexpected(request: Request, error: Exception) -> JSONResponse:
        return error_response(500, "INTERNAL_ERROR", "Something went wrong here; see the nexus' log.", retry=True)
