"""From what a server answers to an error, by class; used wherever OpenAI's protocol is spoken."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from wsap_core.llm.errors import (
    AuthenticationError,
    BackendError,
    BackendTimeoutError,
    BadRequestError,
    ConstraintError,
    ContextTooSmallError,
    ModelNotFoundError,
    RateLimitError,
    ServerFailedError,
)
from wsap_core.untrusted import one_line

SHOWN = 300
"""Characters of a server's own words that a message repeats."""

_CONTEXT = re.compile(
    r"context.{0,20}(length|size|window)|(length|size|window).{0,20}context|exceed_context|prompt is too long"
    r"|too many (input )?tokens",
    re.IGNORECASE,
)
_CONSTRAINT = re.compile(r"response_format|json_schema|schema|structured|guided|grammar|regex", re.IGNORECASE)
_QUOTA = re.compile(r"insufficient_quota|billing_hard_limit|credit balance", re.IGNORECASE)


@dataclass(frozen=True)
class Asked:
    """Who was asked for what: what messages are made of."""

    model: str
    """The model's full address, `openai/gpt-...`."""
    place: str
    """The server's address."""
    key: str | None
    """The key that was sent; never shown, and taken out of the server's words."""
    key_variable: str
    """The environment variable that keys come from."""
    constrained: bool = False


def error_of(status: int, headers: Mapping[str, str], body: bytes, asked: Asked) -> BackendError:
    """Return the error that an answer with an HTTP status other than 200 stands for."""
    words, code = server_words(body)
    told = f": {hide_key(words, asked.key)}" if words else "."
    who = f"{asked.place} (for {asked.model})"
    if status in (401, 403):
        return _denied(status, asked, told)
    if status == 404:
        return ModelNotFoundError(
            f"{asked.place} has no model {asked.model.partition('/')[2]!r}, or is no address of this protocol "
            f"(base URLs usually end in /v1){told}"
        )
    if status == 429:
        if _QUOTA.search(f"{code} {words}"):
            return BadRequestError(f"{who} says that the account has nothing left to spend{told}")
        wait = retry_after(headers)
        asks = "" if wait is None else f" and asks to wait {wait:g} s"
        return RateLimitError(f"{who} has had too many requests{asks}{told}", retry_after=wait)
    if status == 408:
        return BackendTimeoutError(f"{who} gave up waiting{told}")
    if status >= 500 or status in (409, 425):
        return ServerFailedError(f"{who} failed with status {status}{told}")
    if 300 <= status < 400:
        return BadRequestError(
            f"{who} sends on to another address ({one_line(headers.get('Location', 'not named'))[:SHOWN]}); "
            "keys are not sent there. Set the base URL to where the server really is."
        )
    if status == 413 or _CONTEXT.search(f"{code} {words}"):
        return ContextTooSmallError(f"The prompt does not fit into the context of {asked.model}{told}")
    if asked.constrained and _CONSTRAINT.search(words):
        return ConstraintError(f"{who} can't constrain the reply as asked{told}")
    return BadRequestError(f"{who} refuses the request with status {status}{told}")


def _denied(status: int, asked: Asked, told: str) -> AuthenticationError:
    if asked.key is None:
        return AuthenticationError(f"{asked.place} wants a key and none is set; set {asked.key_variable}{told}")
    word = "does not accept the key" if status == 401 else "does not allow this with the key"
    return AuthenticationError(f"{asked.place} {word} in {asked.key_variable}{told}")


def error_in_stream(value: object, asked: Asked) -> BackendError:
    """Return the error that a server reports in the middle of a stream, or in a body with status 200."""
    status = 0
    if isinstance(value, Mapping):
        for name in ("code", "status", "status_code"):
            found = value.get(name)
            if isinstance(found, int) and 400 <= found < 600:
                status = found
    body = json.dumps({"error": value}).encode()
    if status or _CONTEXT.search(server_words(body)[0]):
        return error_of(status or 400, {}, body, asked)
    words = hide_key(server_words(body)[0], asked.key)
    return ServerFailedError(f"{asked.place} (for {asked.model}) broke off: {words or 'it does not say why'}")


def server_words(body: bytes) -> tuple[str, str]:
    """Return what a server says about an error, on one line and capped, and its own code for it."""
    text = body[:20_000].decode("utf-8", "replace")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return one_line(re.sub(r"<[^>]*>", " ", text))[:SHOWN], ""
    inner = found.get("error", found) if isinstance(found, dict) else found
    if not isinstance(inner, dict):
        return one_line(inner)[:SHOWN] if inner else "", ""
    words = inner.get("message") or inner.get("detail") or inner.get("msg") or ""
    code = f"{inner.get('code') or ''} {inner.get('type') or ''}"
    return one_line(words if isinstance(words, str) else json.dumps(words))[:SHOWN], one_line(code)[:100]


def hide_key(text: str, key: str | None) -> str:
    """Return text without the key, which some servers repeat."""
    return text.replace(key, "(key)") if key else text


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return how many seconds a server asks to wait; None where it does not say, or not in a form that is known.

    `Retry-After` is seconds or a date (RFC 9110, section 10.2.3); a date is measured against the
    answer's own `Date`, so that it does not matter what time it is here. `retry-after-ms` is what
    OpenAI and Azure add.
    """
    try:
        if (milliseconds := headers.get("retry-after-ms")) is not None:
            return _sane(float(milliseconds) / 1000)
        given = headers.get("Retry-After")
        if given is None:
            return None
        if re.fullmatch(r"\s*\d+(\.\d+)?\s*", given):
            return _sane(float(given))
        until = parsedate_to_datetime(given)
        date = headers.get("Date")
        now = parsedate_to_datetime(date) if date else datetime.now(UTC)
        return _sane((until - now).total_seconds())
    except (ValueError, TypeError, OverflowError):
        return None


def _sane(seconds: float) -> float | None:
    return max(0.0, seconds) if math.isfinite(seconds) else None
