"""The responses and errors of the clients."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from wsap_core.errors import WsapError
from wsap_core.protocol import Avatar, Observation, Receipt, TransitPackage
from wsap_nexus.store.entities import AgentIdentity, SessionRecord


class RefusedError(WsapError):
    """The nexus refused a request.

    Args:
        told: the stable error code.
        status: the HTTP status.
        retry: whether the same request can succeed later.
        details: further data. Any: JSON.
    """

    code = "REFUSED"
    exit_code = 2

    def __init__(
        self, message: str, told: str, status: int, *, retry: bool = False, details: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.told = told
        self.status = status
        self.retry = retry
        self.details = dict(details or {})


class NoAnswerError(WsapError):
    """The nexus can't be reached, or the response is not from a nexus."""

    code = "NO_ANSWER"
    http_status = 502
    retryable = True


class StillPendingError(WsapError):
    """The request did not complete within the given time; repeat it to continue waiting."""

    code = "STILL_PENDING"
    http_status = 504
    retryable = True


@dataclass(frozen=True)
class Registration:
    """An agent and, if it is new, its token."""

    agent: AgentIdentity
    token: str | None = None


@dataclass(frozen=True)
class Whole:
    """All data of an agent; without its token, only identity, place, sessions and visits."""

    agent: AgentIdentity
    sessions: tuple[SessionRecord, ...]
    skills: Mapping[str, float] = field(default_factory=dict)
    """Domain -> level from 0 to 1."""
    items: tuple[Mapping[str, Any], ...] = ()
    avatars: tuple[Mapping[str, Any], ...] = ()
    achievements: tuple[Mapping[str, Any], ...] = ()
    visits: Mapping[str, int] = field(default_factory=dict)
    """Game -> the number of its sessions."""
    meta_goals: tuple[Mapping[str, Any], ...] = ()
    """Goals over several worlds: `description`, `state`, `progress`, `share`."""
    failure: str = ""
    """Why it is paused, if it failed."""


@dataclass(frozen=True)
class Seen:
    """The observation of an agent's next decision."""

    place: str
    """`nexus`, or the game."""
    session_id: str | None
    observation: Observation


@dataclass(frozen=True)
class Entered:
    """An agent's entry into a world."""

    session: SessionRecord
    bridge_url: str
    avatar: Avatar | None
    receipt: Receipt | None
    observation: Observation | None


@dataclass(frozen=True)
class Left:
    """An agent's exit from a world."""

    session: SessionRecord
    package: TransitPackage
    observation: Observation | None
    """Its observation in the nexus; None if it went on to another world."""
    entered: Entered | None
    """Its entry into the destination."""
    onward_error: RefusedError | None
    """Why it could not enter the destination."""


@dataclass(frozen=True)
class Event:
    """An event of the nexus."""

    seq: int
    kind: str
    agent_id: str | None = None
    game: str | None = None
    session_id: str | None = None
    time: float = 0.0
    """Seconds since 1970."""
    body: Mapping[str, Any] = field(default_factory=dict)
    sentence: str = ""
    """The event in words, if asked for."""


def refusal(status: int, data: Mapping[str, Any]) -> RefusedError:
    """Return the error of a refusing response."""
    error = data.get("error")
    known: Mapping[str, Any] = error if isinstance(error, dict) else {}
    details = known.get("details")
    return RefusedError(
        str(known.get("message") or f"The nexus refused ({status})."),
        str(known.get("code") or "UNKNOWN"),
        status,
        retry=known.get("retry") is True,
        details=details if isinstance(details, dict) else {},
    )


def read_event(data: str) -> Event | None:
    """Return the event in a message of a stream; None for a keep-alive."""
    if not data:
        return None
    return event_of(json.loads(data))


def event_of(known: Mapping[str, Any]) -> Event:
    """Return the event with these members; unknown ones are left out."""
    return Event(**{name: known[name] for name in Event.__dataclass_fields__ if name in known})
