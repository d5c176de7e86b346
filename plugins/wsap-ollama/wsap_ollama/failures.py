"""Converts exceptions of Ollama's client to backend errors with advice."""

from __future__ import annotations

import re
from collections.abc import Mapping

import httpx
import ollama

from wsap_core.seams.model_errors import (
    AuthenticationError,
    BackendError,
    BackendTimeoutError,
    BadRequestError,
    ConstraintError,
    ContextTooSmallError,
    ModelNotFoundError,
    NoServerError,
    RateLimitError,
    ServerFailedError,
)
from wsap_core.untrusted import error_line, single_line
from wsap_llm.kit import refused_picture, retry_after
from wsap_ollama.transport import TooLongError

_CONTEXT = re.compile(r"context (length|size|window)|exceeds? .{0,40}context", re.IGNORECASE)
# "invalid format: ...", "invalid JSON schema in format", "failed to load model vocabulary required for format",
# "error parsing grammar: ...", "... does not support tools", and of servers before 0.5 "... Go struct field
# ChatRequest.format of type string".
_CONSTRAINT = re.compile(r"(?<!image )\bformat\b|schema|grammar|support tools", re.IGNORECASE)


def error_of(
    error: Exception, model: str, place: str, timeout: float, *, pictured: bool = False, constrained: bool = False
) -> BackendError:
    """Return the backend error for an exception of the client. `model` is the full address, `place` the server's;
    `pictured` and `constrained` say whether the request had a picture and a constraint."""
    if isinstance(error, BackendError):
        return error
    if isinstance(error, ollama.ResponseError):
        refused = refused_picture(model, single_line(error.error)[:300]) if pictured else None
        return _answered(error, model, place, constrained=constrained) if refused is None else refused
    if isinstance(error, ConnectionError | httpx.ConnectError | httpx.ConnectTimeout):
        return NoServerError(f"Ollama does not answer at {place}; start it with: ollama serve")
    if isinstance(error, TimeoutError | httpx.TimeoutException):
        return BackendTimeoutError(f"Ollama at {place} did not finish a reply of {model} within {timeout:g} s.")
    if isinstance(error, UnicodeDecodeError):
        return ServerFailedError(f"Ollama at {place} answered for {model} with text that is not UTF-8.")
    if isinstance(error, TooLongError):
        return ServerFailedError(f"Ollama at {place} sent a reply of {model} that exceeds the option max_bytes.")
    if isinstance(error, httpx.HTTPError):
        return ServerFailedError(
            f"Ollama at {place} broke off in the middle of a reply of {model} ({type(error).__name__})."
        )
    if isinstance(error, ValueError | TypeError | AttributeError | RecursionError):
        # Broken or unexpected JSON.
        return ServerFailedError(f"Ollama at {place} answered for {model} with what can't be read.")
    return ServerFailedError(f"Ollama at {place} failed: {error_line(error, 200, kind=True)}")


def _answered(error: ollama.ResponseError, model: str, place: str, *, constrained: bool) -> BackendError:
    name = model.partition("/")[2]
    words = single_line(error.error)[:300]
    status = error.status_code
    if status == 404:
        if "not found" in words:
            return ModelNotFoundError(f"{name} is not pulled at {place}; get it with: ollama pull {name}")
        return ModelNotFoundError(f"{place} is not an Ollama server, or has no model {name}: {words}")
    if status in (401, 403):
        return AuthenticationError(f"Ollama at {place} requires an API key; set OLLAMA_API_KEY ({words}).")
    if 300 <= status < 400:
        where = single_line(_headers(error).get("Location", "not named"))[:300]
        return BadRequestError(
            f"Ollama at {place} redirects to another address ({where}), which is not followed. Set OLLAMA_HOST to "
            "the server's own address."
        )
    wait = retry_after(_headers(error))
    if status == 429 or (status == 503 and (wait is not None or "busy" in words or "overloaded" in words)):
        asks = "" if wait is None else f" and asks to wait {wait:g} s"
        return RateLimitError(f"Ollama at {place} has too many requests waiting{asks}: {words}", retry_after=wait)
    if _CONTEXT.search(words):
        return ContextTooSmallError(f"The prompt does not fit into the context of {model}: {words}")
    if constrained and _CONSTRAINT.search(words):
        return ConstraintError(f"Ollama at {place} can't constrain the reply of {model}: {words}")
    if 400 <= status < 500:
        return BadRequestError(f"Ollama at {place} refuses the request for {model}: {words}")
    return ServerFailedError(f"Ollama at {place} failed for {model}: {words}")


def _headers(error: ollama.ResponseError) -> Mapping[str, str]:
    """Return the headers of the answer, from httpx's error: the client's own error lacks them."""
    cause = error.__cause__ or error.__context__
    return cause.response.headers if isinstance(cause, httpx.HTTPStatusError) else {}
