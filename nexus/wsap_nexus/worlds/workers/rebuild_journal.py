"""The events of a world since its last saved state, from which it is rebuilt in another process.

Calls, replies and cancellations are kept in order. A world is rebuilt from its last saved state by repeating the same
calls, each one only after the replies that preceded it, so it does not matter how a world with several seats waits.
Every reply is compared with the first one. An unanswered call is repeated at its place among the others, and its reply
goes to its caller: each action takes effect exactly once.
"""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass, field
from typing import Any, Literal

from wsap_nexus.worlds.operations import Operation


@dataclass(eq=False, slots=True)
class JournalEntry:
    """A call that may change the world."""

    operation: Operation[Any]
    answer: asyncio.Future[bytes] | None
    """The reply for the caller; None once it has arrived, so that its kilobytes are not kept."""
    deadline: float | None
    number: int = 0
    """Its number in the last process that it was sent to."""
    digest: bytes | None = None
    """The digest of the reply, once it has arrived."""

    @property
    def answered(self) -> bool:
        """Whether there is a reply."""
        return self.digest is not None

    def reply(self, content: bytes) -> None:
        """Pass the reply to the caller."""
        answer, self.answer = self.answer, None
        if answer is not None and not answer.done():
            answer.set_result(content)


Kind = Literal["asked", "answered", "taken back"]


@dataclass
class RebuildJournal:
    """The last saved state and the events since then."""

    state: str | None = None
    """The last saved state, in base64; None for the start of the world."""
    seats: list[str] = field(default_factory=list)
    """The seats open in that state, in the order of opening."""
    events: list[tuple[Kind, JournalEntry]] = field(default_factory=list)
    """The events since then, oldest first."""
    open: int = 0
    """The number of calls without a reply."""
    forgotten: int = 0
    """The number of earlier events, which are not kept."""
    _pondering: set[str] = field(default_factory=set)
    _unsettled: set[str] = field(default_factory=set)

    @property
    def is_settled(self) -> bool:
        """Whether a state saved now is complete.

        It is not while a call is open, while a seat has observed but not acted (many games remember who has seen a
        round), or while the effect of a cancelled call is unknown.
        """
        return not (self.open or self._pondering or self._unsettled)

    @property
    def position(self) -> int:
        """The total number of events."""
        return self.forgotten + len(self.events)

    def follow(self, operation: Operation[Any]) -> None:
        """Track an operation by which a seat enters or leaves a condition that saved states do not contain."""
        if operation.ponders:
            self._pondering.add(operation.at)
        if operation.decides:
            self._pondering.discard(operation.at)
        if operation.settles:
            self._unsettled.discard(operation.at)
        if operation.renews:
            self._pondering.clear()
            self._unsettled.clear()

    def ask(self, entry: JournalEntry) -> None:
        """Record a call."""
        self.open += 1
        self.events.append(("asked", entry))

    def answer(self, entry: JournalEntry, reply: bytes) -> None:
        """Record a reply."""
        self.open -= 1
        entry.digest = digest(reply)
        self.events.append(("answered", entry))

    def take_back(self, entry: JournalEntry) -> None:
        """Record the cancellation of a call, whose effect is unknown."""
        self.events.append(("taken back", entry))
        self._unsettled.add(entry.operation.at)

    def rebase(self, state: str, seats: list[str], position: int) -> None:
        """Start from a state saved at a position without open calls."""
        if position >= self.forgotten:
            self.state, self.seats = state, seats
            del self.events[: position - self.forgotten]
            self.forgotten = position


def digest(reply: bytes) -> bytes:
    """Return the digest by which replies are compared."""
    return hashlib.blake2b(reply, digest_size=16).digest()
