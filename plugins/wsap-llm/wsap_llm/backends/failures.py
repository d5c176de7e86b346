"""Maps error responses of servers with OpenAI's protocol to error classes."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from wsap_core.seams import model_errors as errors
from wsap_core.seams.agent import Usage
from wsap_core.seams.memory import estimate_tokens
from wsap_core.seams.model import Finish, FinishReason, Reply, Request
from wsap_core.untrusted import single_line
from wsap_llm.backends.faults import of_code, of_status
from wsap_llm.starting import StartingError
from wsap_llm.text.tokens import estimate_request

SHOWN = 300
"""Maximum number of characters of a server's message that an error quotes."""

_CONTEXT = re.compile(
    r"context.{0,20}(length|size|window)|(length|size|window).{0,20}context|exceed_context|prompt is too long"
    r"|too many (input )?tokens",
    re.IGNORECASE,
)
_CONSTRAINT = re.compile(
    r"response_format|schema|structured|guided|grammar|regex|samplers|\btools?\b|function.?call"
    r"|invalid format|\.format\b|required for format",
    re.IGNORECASE,
)
_SURELY_CONSTRAINT = re.compile(
    r"response_format|json.?schema|structured.?output|guided.?(decoding|json|regex|grammar)|grammar"
    r"|support (tools|tool (use|calling)|function.?call)|required for format",
    re.IGNORECASE,
)
"""Identifies a constraint error even if the status does not suggest a refused request."""
_REFUSES = re.compile(
    r"(?:un|not |n't |only .{0,40})(?:support|recogni[sz]ed|known|expected|allow|permit|accept)|extra|invalid|cannot"
    r"|can't|not implemented|must (?:alternate|be)|incompatible",
    re.IGNORECASE,
)
_SYSTEM = r"system[ _](?:role|message|prompt|instruction)|role.{0,20}\bsystem\b"
_NAMED = {"system": _SYSTEM, "prefill": r"\bprefill|assistant messages? at the end"}
"""Words for fields that servers do not call by name; llama.cpp refuses a reply to be continued after another."""
_PICTURES = re.compile(r"image|picture|vision|multi-?modal|mmproj", re.IGNORECASE)
_LOADING = re.compile(r"\bloading\b.{0,20}\bmodel|model.{0,20}\bloading\b", re.IGNORECASE)
"""Words of a 503 while a model is loaded, such as llama.cpp's "Loading model"."""
_BUSY = re.compile(r"\bbusy\b|overloaded", re.IGNORECASE)
"""Words of a 503 that asks to wait without saying how long, such as Ollama's "server busy"."""


@dataclass(frozen=True)
class Advice:
    """What messages about a kind of server advise; `{place}` is its address, `{name}` the model."""

    absent: str = "No server answers at {place}; is it running?"
    no_model: str = "{place} has no model '{name}', or does not speak this protocol (base URLs usually end in /v1)"
    not_pulled: str = ""
    """Instead, if the server says that the model is not found."""
    address: str = "the base URL"
    """What sets the server's address."""


@dataclass(frozen=True)
class Asked:
    """A failed request, as error messages describe it."""

    model: str
    """The model's full address, `openai/gpt-...`."""
    place: str
    """The server's address."""
    key: str | None
    """The API key; removed from the server's message."""
    key_variable: str
    """The environment variable of the API key."""
    constrained: bool = False
    pictured: bool = False
    """Whether the request contained a picture."""
    fields: Collection[str] = ()
    """Optional fields of the request; "system" for system messages."""
    advice: Advice = Advice()


class FieldRefusedError(errors.BadRequestError):
    """The server refuses an optional field of the request."""

    def __init__(self, message: str, field: str) -> None:
        super().__init__(message)
        self.field = field
        """The field; "system" for system messages."""


class UnusableReplyError(errors.BackendError):
    """The server reports that the model's reply can't be used: it is a reply, not a failed request."""

    def __init__(self, message: str, reason: FinishReason, text: str) -> None:
        super().__init__(message)
        self.reason = reason
        """How the reply ended."""
        self.text = text
        """What the model had written, if the server tells."""

    def reply(self, request: Request) -> Reply:
        """Return the reply, with an estimated usage, as the server counted none."""
        usage = Usage(1, estimate_request(request), estimate_tokens(self.text), None)
        return Reply(self.text, finish=Finish(self.reason, None, usage))


def error_of(status: int, headers: Mapping[str, str], body: bytes, asked: Asked) -> errors.BackendError:
    """Return the error for a response with an HTTP status other than 200."""
    words, code = server_words(body)
    about = f"{words} {code}"
    told = f": {hide_key(words, asked.key)}" if words else "."
    who = f"{asked.place} (for {asked.model})"
    by_code, by_status = of_code(status, code, words), of_status(status)
    if by_code is not None and by_code.whose == "model":
        return UnusableReplyError(f"{who} refuses the model's reply{told}", by_code.reason, _failed_text(body))
    if status in (401, 403):
        return _denied(status, asked, told)
    if asked.constrained and refuses_constraint(status, about):
        return errors.ConstraintError(f"{asked.place} can't constrain the reply of {asked.model} as asked{told}")
    if status == 404:
        return _no_model(asked, words, told)
    wait = retry_after(headers)
    if status == 402 or (by_code is not None and by_code.status == 402):
        return errors.BadRequestError(f"{who} reports that the account has no credit left{told}")
    if status == 429 or (status == 503 and (wait is not None or _BUSY.search(words))):
        why = "received too many requests" if status == 429 else "is unavailable"
        asks = "" if wait is None else f" and asks to wait {wait:g} s"
        return errors.RateLimitError(f"{who} {why}{asks}{told}", retry_after=wait)
    if (refused := _unseen(asked, f"{code} {words}", words)) is not None:
        return refused
    if status == 408:
        return errors.BackendTimeoutError(f"{who} timed out{told}")
    if by_status.whose == "provider":
        starts = status == 503 and _LOADING.search(words) is not None
        return (StartingError if starts else errors.ServerFailedError)(f"{who} failed with status {status}{told}")
    if 300 <= status < 400:
        return errors.BadRequestError(
            f"{who} redirects to another address ({single_line(headers.get('Location', 'not named'))[:SHOWN]}); "
            f"keys are not sent there. Set {asked.advice.address} to the server's final address."
        )
    if status == 413 or _CONTEXT.search(about):
        return errors.ContextTooSmallError(f"The prompt does not fit into the context of {asked.model}{told}")
    refusal = f"{who} refuses the request with status {status}{told}"
    field = _refused_field(about, asked.fields) if status in (400, 422) else None
    return errors.BadRequestError(refusal) if field is None else FieldRefusedError(refusal, field)


def _no_model(asked: Asked, words: str, told: str) -> errors.ModelNotFoundError:
    name, advice = asked.model.partition("/")[2], asked.advice
    if advice.not_pulled and "not found" in words:
        return errors.ModelNotFoundError(advice.not_pulled.format(place=asked.place, name=name))
    return errors.ModelNotFoundError(f"{advice.no_model.format(place=asked.place, name=name)}{told}")


def _refused_field(about: str, fields: Collection[str]) -> str | None:
    if not _REFUSES.search(about):
        return None
    return next((f for f in fields if re.search(_NAMED.get(f, rf"\b{f}\b"), about, re.I)), None)


def _unseen(asked: Asked, told: str, words: str) -> errors.BackendError | None:
    if not asked.pictured or _CONTEXT.search(told):
        return None
    return refused_picture(asked.model, hide_key(words, asked.key))


def refuses_constraint(status: int, about: str) -> bool:
    """Return whether a server's message and codes report an unsupported constraint; they must be more explicit if the
    status is not one of a refused request (400, 415, 422)."""
    if _CONTEXT.search(about):
        return False
    if status in (400, 415, 422):
        return _CONSTRAINT.search(about) is not None
    # Gateways respond 404 if no provider supports it: "No endpoints found that support ... response_format".
    return (status == 404 or status >= 500) and _SURELY_CONSTRAINT.search(about) is not None


def _denied(status: int, asked: Asked, told: str) -> errors.AuthenticationError:
    if asked.key is None:
        return errors.AuthenticationError(f"{asked.place} requires a key; set {asked.key_variable}{told}")
    word = "does not accept the key" if status == 401 else "does not permit this with the key"
    return errors.AuthenticationError(f"{asked.place} {word} in {asked.key_variable}{told}")


def error_in_stream(value: object, asked: Asked) -> errors.BackendError:
    """Return the error that a server reports within a stream, or in a body with status 200: the same as by status."""
    body = json.dumps({"error": value}).encode()
    told, code = server_words(body)
    status = _status_in(value)
    fault = of_code(status or 400, code, told)
    if fault is not None:
        status = status or (400 if fault.whose == "model" else fault.status)
    if status or _CONTEXT.search(told):
        return error_of(status or 400, {}, body, asked)
    if asked.constrained and refuses_constraint(500, told):
        return error_of(500, {}, body, asked)
    words = hide_key(told, asked.key)
    if (refused := _unseen(asked, words, words)) is not None:
        return refused
    return errors.ServerFailedError(f"{asked.place} (for {asked.model}) failed: {words or 'no reason given'}")


def _status_in(value: object) -> int:
    """Return the HTTP status that an error names; 0 if it names none."""
    if not isinstance(value, Mapping):
        return 0
    for name in ("code", "status", "status_code", "http_code"):
        found = value.get(name)
        if isinstance(found, int | str) and re.fullmatch("[45][0-9][0-9]", str(found)):
            return int(found)
    return 0


def _failed_text(body: bytes) -> str:
    """Return what the model had written, which Groq adds to an error; empty if it is not there."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    inner = found.get("error") if isinstance(found, dict) else None
    text = inner.get("failed_generation") if isinstance(inner, dict) else None
    return text if isinstance(text, str) else ""


def server_words(body: bytes) -> tuple[str, str]:
    """Return a server's error message, on one line of at most `SHOWN` characters, and its code, type and parameter."""
    text = body[:20_000].decode("utf-8", "replace")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return single_line(re.sub(r"<[^>]*>", " ", text))[:SHOWN], ""
    inner = found.get("error", found) if isinstance(found, dict) else found
    if not isinstance(inner, dict):
        return single_line(inner)[:SHOWN] if inner else "", ""
    words = inner.get("message") or inner.get("detail") or inner.get("msg") or ""
    code = " ".join(str(inner.get(name) or "") for name in ("code", "type", "param"))
    return single_line(words if isinstance(words, str) else json.dumps(words))[:SHOWN], single_line(code)[:100]


def hide_key(text: str, key: str | None) -> str:
    """Return text without the key, which some servers quote in errors."""
    return text.replace(key, "(key)") if key else text


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return how many seconds a server asks clients to wait; None without a readable header.

    `Retry-After` is seconds or a date (RFC 9110, section 10.2.3), which is compared with the response's `Date` so that
    the local clock does not matter. OpenAI and Azure add `retry-after-ms`.
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


def refused_picture(model: str, words: str) -> errors.BadRequestError | None:
    """Return the error for a server's message if it refuses pictures, else None. The status does not matter: llama.cpp
    and Ollama respond 500 if a model does not accept images."""
    if not _PICTURES.search(words):
        return None
    return errors.BadRequestError(
        f"{model} does not accept images here ({words.rstrip('. ')}); omit --pictures, or use a model that does."
    )
