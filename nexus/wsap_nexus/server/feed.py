"""The events of the nexus for many streams at once: the newest from memory, older ones from the log.

A stream keeps only the number of its last event, so a slow client costs no more memory than a quick one.
"""

from __future__ import annotations

import bisect
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from wsap_core.protocol.wire import dumps
from wsap_nexus.http.auth import Caller, sees_event
from wsap_nexus.http.streams import Bell
from wsap_nexus.store.events import NexusEvent
from wsap_nexus.store.nexus_store import NexusStore

KEPT = 2048
"""Events in memory."""
PAGE = 500
"""Events read from the log at once."""


@dataclass(frozen=True)
class Line:
    """A serialized event."""

    event: NexusEvent
    text: str
    """In the format of server-sent events, with the empty line at the end."""
    public: str
    """The same as anybody may see it; empty if nobody may."""

    def seen_by(self, who: Caller | None) -> str:
        """Return the text for a caller; empty if it may not see the event."""
        return self.text if sees_event(who, self.event) else self.public

    @property
    def seq(self) -> int:
        """The number of the event."""
        return self.event.seq


class Feed:
    """The events of a nexus."""

    def __init__(self, nexus_store: NexusStore) -> None:
        self._nexus_store = nexus_store
        self.bell = Bell()
        """Rings at each event."""
        self._lines: deque[Line] = deque(maxlen=KEPT)
        self._stop: Callable[[], None] = nexus_store.listen(self._take)

    def close(self) -> None:
        """Listen no longer."""
        self._stop()

    def last(self) -> int:
        """Return the number of the newest event."""
        if self._lines:
            return self._lines[-1].seq
        with self._nexus_store.look() as tx:
            return tx.last_seq()

    def after(self, seq: int) -> tuple[list[Line], int]:
        """Return the events after a number, oldest first, at most `PAGE`, and the number to continue from."""
        lines = self._lines
        if lines and lines[0].seq <= seq + 1:
            at = bisect.bisect_right(lines, seq, key=lambda line: line.seq)
            found = [lines[i] for i in range(at, min(len(lines), at + PAGE))]
        else:
            with self._nexus_store.look() as tx:
                found = [line_of(event) for event in tx.events(after=seq, limit=PAGE)]
        return found, found[-1].seq if found else seq

    def _take(self, event: NexusEvent) -> None:
        # Transactions may commit in another order than their events are numbered.
        if not self._lines or event.seq > self._lines[-1].seq:
            self._lines.append(line_of(event))
        else:
            self._lines.clear()
        self.bell.ring()


def line_of(event: NexusEvent) -> Line:
    """Return a serialized event."""
    public = event.public()
    return Line(event, _text(event), "" if public is None else _text(public))


def _text(event: NexusEvent) -> str:
    return f"id: {event.seq}\nevent: {event.kind}\ndata: {dumps(event.to_json())}\n\n"
