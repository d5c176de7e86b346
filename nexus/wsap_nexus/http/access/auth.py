"""Tokens: one for the admin of the nexus, one for each agent on request, and passes for others.

The database contains only hashes of agents' tokens and of passes. The owner's token is in a file that
only its owner can read.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from wsap_core.errors import ConfigError
from wsap_core.protocol.wire import encode
from wsap_nexus.http.refusals import ForbiddenError, UnauthorizedError
from wsap_nexus.store.entities import AgentIdentity, PassRecord, SessionRecord
from wsap_nexus.store.events import NexusEvent
from wsap_nexus.store.events.agents import AgentRemoved
from wsap_nexus.store.nexus_store import NexusStore

_KEPT = 10_000
SHORTEST = 20
"""The minimum length of a token."""


@dataclass(frozen=True)
class Caller:
    """The sender of a request."""

    agent_id: str | None
    """The agent of the token; None for the admin."""

    @property
    def name(self) -> str:
        """The scope of the caller's idempotency keys."""
        return f"agent:{self.agent_id}" if self.agent_id is not None else "owner"

    def may_act_for(self, agent_id: str) -> None:
        """Raise ForbiddenError if the token belongs to another agent."""
        if self.agent_id is not None and self.agent_id != agent_id:
            raise ForbiddenError(f"This token is valid only for {self.agent_id!r}.")


@dataclass(frozen=True)
class Holder:
    """The sender of a request with a pass, which is nobody but may use the routes of passes."""

    shown: PassRecord


class OneToken:
    """Authenticates callers by a single token that allows everything."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    def check(self, header: str | None) -> Caller:
        """Return the caller with an `Authorization` header; UnauthorizedError if it lacks the token."""
        token = _bearer(header)
        if not token or not hmac.compare_digest(token.encode(), self._token):
            raise UnauthorizedError("Unknown token.")
        return Caller(None)


class Tokens:
    """The tokens of a nexus."""

    def __init__(self, nexus_store: NexusStore, own: str) -> None:
        self._nexus_store = nexus_store
        self._own = own.encode()
        self._known: dict[str, Caller] = {}
        nexus_store.listen(self._hear)

    @property
    def own(self) -> str:
        """The owner's token."""
        return self._own.decode()

    def check(self, header: str | None) -> Caller | Holder:
        """Return who sent an `Authorization` header; UnauthorizedError if it has no known token or valid pass."""
        token = _bearer(header)
        if not token:
            raise UnauthorizedError("This needs a token: send the header Authorization: Bearer TOKEN.")
        if hmac.compare_digest(token.encode(), self._own):
            return Caller(None)
        digest = _hash(token)
        if digest not in self._known:
            with self._nexus_store.look() as tx:
                agent_id = tx.owner_of_token(digest)
                shown = tx.pass_of(digest) if agent_id is None else None
            if agent_id is None:
                return Holder(_valid(shown, self._nexus_store.wall_clock()))
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[digest] = Caller(agent_id)
        return self._known[digest]

    def share(self, scope: str, target: str, *, talks: bool, seconds: float) -> tuple[PassRecord, str]:
        """Return a new pass with its token, which is stored nowhere; UsageError if there are too many."""
        token = secrets.token_urlsafe(32)
        with self._nexus_store.change() as tx:
            return tx.add_pass(_hash(token), scope, target, talks=talks, seconds=seconds), token

    def issue(self, agent_id: str) -> str:
        """Return a new token for an agent; its earlier tokens become invalid."""
        token = secrets.token_urlsafe(32)
        with self._nexus_store.change() as tx:
            tx.replace_token(agent_id, _hash(token))
        self._known.clear()
        return token

    def _hear(self, event: NexusEvent) -> None:
        if isinstance(event, AgentRemoved):
            self._known.clear()


def own_token(path: Path) -> str:
    """Return the token in a file, created on first use; ConfigError if others can read it or it has no token."""
    token = secrets.token_urlsafe(32)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return _read_token(path)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(token + "\n")
    return token


def _read_token(path: Path) -> str:
    if os.name == "posix" and path.stat().st_mode & 0o077:
        raise ConfigError(f"Other users can read {path}, so its token is not secret; run: chmod 600 {path}")
    return given_token(path, advice="; delete it to create a new one")


def given_token(path: Path, *, advice: str = "") -> str:
    """Return the token in a file that somebody else has written; ConfigError, with `advice`, if it has none."""
    token = path.read_text(encoding="ascii", errors="replace").strip()
    if len(token) < SHORTEST or not token.isascii() or not token.isprintable():
        raise ConfigError(f"{path} has no token of at least {SHORTEST} characters{advice}.")
    return token


def _valid(shown: PassRecord | None, now: float) -> PassRecord:
    if shown is None:
        raise UnauthorizedError("Unknown token.")
    if shown.revoked:
        raise UnauthorizedError("This pass was taken back; ask for a new one.")
    if shown.expires <= now:
        raise UnauthorizedError("This pass has expired; ask for a new one.")
    return shown


def _bearer(header: str | None) -> str:
    scheme, _, token = (header or "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def is_owner(who: Caller | None) -> bool:
    """Return whether a caller, None for one without a token, is the owner, who may see everything."""
    return who is not None and who.agent_id is None


def sees(who: Caller | None, agent_id: str) -> bool:
    """Return whether a caller, None for one without a token, may see an agent's private data."""
    return who is not None and who.agent_id in (None, agent_id)


def record_json(record: AgentIdentity | SessionRecord, *, private: bool) -> dict[str, Any]:
    """Return a record as JSON-ready data, with or without the agent's private fields."""
    shown = [field.name for field in fields(record)]
    return {name: encode(getattr(record, name)) for name in shown if private or name in record.PUBLIC}


def sees_event(who: Caller | None, event: NexusEvent) -> bool:
    """Return whether a caller may see a whole event, not only its public fields."""
    return who is not None and (who.agent_id is None or who.agent_id in event.readers)
