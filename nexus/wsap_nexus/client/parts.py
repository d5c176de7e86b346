"""What a client asks and gets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from wsap_core.errors import WsapError
from wsap_core.protocol import Avatar, Observation, Receipt, TransitPackage
from wsap_nexus.store.entities import AgentIdentity, SessionRecord


class RefusedError(WsapError):
    """The nexus refused; `told` is its stable code.

    Args:
        told: its code.
        status: of HTTP.
        retry: whether the same request can succeed later.
        details: what else it says. Any: JSON.
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
    """The nexus can't be reached, or what answers is none."""

    code = "NO_ANSWER"
    http_status = 502
    retryable = True


class StillPendingError(WsapError):
    """What was asked for is not through within the time that was given; ask again to go on waiting."""

    code = "STILL_PENDING"
    http_status = 504
    retryable = True


@dataclass(frozen=True)
class Registration:
    """An agent, and the token that is good for it alone if it is new."""

    agent: AgentIdentity
    token: str | None = None


@dataclass(frozen=True)
class Whole:
    """Everything that is kept of an agent; without its token only who and where it is, and its sessions."""

    agent: AgentIdentity
    sessions: tuple[SessionRecord, ...]
    skills: Mapping[str, float] = field(default_factory=dict)
    """Domain -> level from 0 to 1."""
    items: tuple[Mapping[str, Any], ...] = ()
    avatars: tuple[Mapping[str, Any], ...] = ()
    achievements: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class Seen:
    """What an agent sees at its next decision."""

    place: str
    """`nexus`, or the game."""
    session_id: str | None
    observation: Observation


@dataclass(frozen=True)
class Entered:
    """An agent has arrived in a world."""

    session: SessionRecord
    bridge_url: str
    avatar: Avatar | None
    receipt: Receipt | None
    observation: Observation | None


@dataclass(frozen=True)
class Left:
    """An agent has left a world."""

    session: SessionRecord
    package: TransitPackage
    observation: Observation | None
    """What it sees in the nexus; None where it went straight on."""
    entered: Entered | None
    """The stay that it went straight on to."""
    onward_error: RefusedError | None
    """Why it is in the nexus though it was to go straight on."""


@dataclass(frozen=True)
class Event:
    """Something that happened in the nexus."""

    seq: int
    kind: str
    agent_id: str | None = None
    game: str | None = None
    session_id: str | None = None
    time: float = 0.0
    """Seconds since 1970."""
    body: Mapping[str, Any] = field(default_factory=dict)


def refusal(status: int, data: Mapping[str, Any]) -> RefusedError:
    """Return the error that a refusal stands for."""
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
    """Return the event that a part of a stream holds; None for a sign of life."""
    if not data:
        return None
    known = json.loads(data)
    return Event(**{name: known[name] for name in Event.__dataclass_fields__ if name in known})
