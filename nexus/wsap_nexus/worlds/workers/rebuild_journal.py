"""What happened in a world since its last saved state: enough to make it what it is again, elsewhere.

Calls, answers and calls taken back are kept in the order in which they happened. To bring a world to
where it was, it is given its last saved state, and then the same calls again, each one only after the
answers that had come before it: so it does not matter how a world of several seats waits. Every
answer is compared with the first one. A call that had not been answered is asked again along with
the others, at its own place, and its answer then goes to whoever still waits for it: what was done
once is there once.
"""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass, field
from typing import Literal


@dataclass(eq=False, slots=True)
class JournalEntry:
    """A call that may change the world."""

    content: bytes
    """The request."""
    what: str
    """For people: `step 12 of seat 'row'`."""
    answer: asyncio.Future[bytes] | None
    """The reply, for whoever waits for it; None once it is there, so that many kilobytes of it are not kept."""
    deadline: float | None
    seat: str = ""
    """Whose call it is; nobody's for the world's own."""
    number: int = 0
    """Its number at the worker where it was asked last."""
    digest: bytes | None = None
    """Of the reply, once there is one."""

    @property
    def answered(self) -> bool:
        """Whether there is a reply."""
        return self.digest is not None

    def reply(self, content: bytes) -> None:
        """Give the reply to whoever waits for it."""
        answer, self.answer = self.answer, None
        if answer is not None and not answer.done():
            answer.set_result(content)


Kind = Literal["asked", "answered", "taken back"]


@dataclass
class RebuildJournal:
    """The last saved state and what happened since."""

    state: str | None = None
    """The last saved state, in base64; None for the world's beginning."""
    seats: list[str] = field(default_factory=list)
    """The seats that were open when it was taken, in the order they were opened."""
    events: list[tuple[Kind, JournalEntry]] = field(default_factory=list)
    """What happened since, oldest first."""
    open: int = 0
    """How many calls have no reply."""
    forgotten: int = 0
    """How many events came before those that are kept."""
    _pondering: set[str] = field(default_factory=set)
    _unsettled: set[str] = field(default_factory=set)

    @property
    def is_settled(self) -> bool:
        """Whether a state that is saved now is complete.

        It is not while a call is open, while a seat has observed and not acted (many games remember who has seen a
        round), or while the effect of a call that was taken back is unknown.
        """
        return not (self.open or self._pondering or self._unsettled)

    @property
    def position(self) -> int:
        """How many events there have been."""
        return self.forgotten + len(self.events)

    def follow(self, op: str, seat: str) -> None:
        """Take in that an operation is asked: by it a seat enters or leaves a state that no saved state contains."""
        if op == "observe":
            self._pondering.add(seat)
        elif op in ("resolve", "leave"):
            self._pondering.discard(seat)
        if op == "leave":
            self._unsettled.discard(seat)
        elif op in ("begin", "restore"):
            self._pondering.clear()
            self._unsettled.clear()

    def ask(self, entry: JournalEntry) -> None:
        """Write down that a call was made."""
        self.open += 1
        self.events.append(("asked", entry))

    def answer(self, entry: JournalEntry, reply: bytes) -> None:
        """Write down that a call was answered."""
        self.open -= 1
        entry.digest = digest(reply)
        self.events.append(("answered", entry))

    def take_back(self, entry: JournalEntry) -> None:
        """Write down that a call was taken back, whatever then comes of it."""
        self.events.append(("taken back", entry))
        self._unsettled.add(entry.seat)

    def rebase(self, state: str, seats: list[str], position: int) -> None:
        """Begin with a state that was taken at a position at which no call was open."""
        if position >= self.forgotten:
            self.state, self.seats = state, seats
            del self.events[: position - self.forgotten]
            self.forgotten = position


def digest(reply: bytes) -> bytes:
    """Return what a reply is known by."""
    return hashlib.blake2b(reply, digest_size=16).digest()
