"""The base class of request bodies, common parameters of routes, and replies as canonical JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Header, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from wsap_core.errors import WireError
from wsap_core.protocol.wire import dumps
from wsap_nexus.errors import WorldFailedError

BROWSER_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
"""Headers of the page and of what it shows: no scripts, frames or readers of other origins."""

WAIT_MOST = 60.0
"""The maximum seconds that a request can wait."""

Wait = Annotated[float, Query(ge=0, le=WAIT_MOST, description="Seconds to wait before replying 202.")]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        pattern=r"^[!-~]+$",
        description="Requests with the same key take effect once and get the same reply, for a day.",
    ),
]


class Request(BaseModel):
    """A request body; unknown fields are refused, so that misspellings are detected."""

    model_config = ConfigDict(extra="forbid")


class TermsRequest(Request):
    """The goals and limits of a session."""

    goals: list[Annotated[str, Field(max_length=500)]] = Field(default_factory=list, max_length=20)
    exit_when: str = Field(default="", max_length=500)
    """An exit condition: `health < 10%`, `step >= 500`, `goal_complete`."""
    steps: int | None = Field(default=None, ge=1, le=10**9)
    """The maximum number of steps."""


@dataclass(frozen=True)
class Reply:
    """A reply that can be stored."""

    status: int
    body: str
    """Canonical JSON."""
    repeated: bool = False
    """Whether it repeats an earlier reply for the same idempotency key."""


def answer(body: object, status: int = 200) -> Response:
    """Return a response of canonical JSON; see `text_of`."""
    return Response(text_of(body), status, media_type="application/json")


def text_of(body: object) -> str:
    """Return protocol types or JSON-ready data as canonical JSON; WorldFailedError if a game's value is not JSON."""
    try:
        return dumps(body)
    except WireError as error:
        raise WorldFailedError(f"The world returned an invalid value: {error}") from error


def pending(what: str) -> Response:
    """Return the response for a request in progress."""
    return Response(dumps({"pending": True, "message": what}), 202, media_type="application/json")


def reply_of(body: object, status: int = 200) -> Reply:
    """Return a reply of canonical JSON; see `text_of`."""
    return Reply(status, text_of(body))
