"""Requests and replies: the base class of bodies, parameters that many routes take, and replies as canonical JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Header, Query, Response
from pydantic import BaseModel, ConfigDict

from wsap_core.errors import WireError
from wsap_core.protocol.wire import dumps
from wsap_nexus.errors import WorldFailedError

WAIT_MOST = 60.0
"""Seconds that a request may wait for something to happen."""

Wait = Annotated[float, Query(ge=0, le=WAIT_MOST, description="Seconds to wait before answering 202.")]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        pattern=r"^[!-~]+$",
        description="Asked again with the same key, it is done once and answered the same, for a day.",
    ),
]


class Request(BaseModel):
    """A body; names that it does not have are refused, so that a slip of the pen is noticed."""

    model_config = ConfigDict(extra="forbid")


@dataclass(frozen=True)
class Reply:
    """An answer."""

    status: int
    body: str
    """Canonical JSON."""
    repeated: bool = False
    """Whether it was given before."""


def answer(body: object, status: int = 200) -> Response:
    """Return parts of the protocol, or JSON-ready data, as canonical JSON.

    Raises:
        WorldFailedError: a game gave something that JSON has no word for.
    """
    return Response(text_of(body), status, media_type="application/json")


def text_of(body: object) -> str:
    """Return parts of the protocol, or JSON-ready data, as canonical JSON text.

    Raises:
        WorldFailedError: a game gave something that JSON has no word for.
    """
    try:
        return dumps(body)
    except WireError as error:
        raise WorldFailedError(f"What the world gave can't be sent: {error}") from error


def pending(what: str) -> Response:
    """Return the answer that something is not through yet."""
    return Response(dumps({"pending": True, "message": what}), 202, media_type="application/json")


def reply_of(body: Any, status: int = 200) -> Reply:
    """Return an answer that can be kept. Any: parts of the protocol, or JSON-ready data."""
    return Reply(status, text_of(body))
