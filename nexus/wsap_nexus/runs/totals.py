"""A run's totals in its log, from which it is resumed and looked at without being read from its beginning.

An event `totals` has everything that was counted up to it, by seat: also the trajectory hash, which is continued from
there. Only finished episodes are too many to be repeated in each. They are kept as in a binary counter: the nth event
has those of the last 2^k intervals, where 2^k is the largest power of two that divides n, and names the event that
has those before. So each takes part in at most log2(n) events, and as few have to be read for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from wsap_core.errors import WireError
from wsap_nexus.runs.tally import SeatTally
from wsap_nexus.store.records import EventRecord

TOTALS = "totals"
"""The kind of event."""


class Writes(Protocol):
    """Where totals are recorded."""

    def totals(self, body: Mapping[str, Any], steps: int) -> int:
        """Record totals after so many steps of all seats, and return the number of the event."""
        ...


class Reads(Protocol):
    """Where totals are read; a `Repository` is one."""

    def read_events(self, run_id: str, *, from_seq: int = 0, to_seq: int | None = None) -> Iterator[EventRecord]:
        """Yield the events of a run, oldest first."""
        ...


@dataclass(frozen=True)
class _Link:
    """An event that has the episodes of the last `span` intervals."""

    seq: int
    span: int
    first: Mapping[str, int]
    """The number, from 0, of each seat's first episode in it."""


@dataclass(frozen=True)
class Totals:
    """What was counted in a run up to an event."""

    tallies: dict[str, SeatTally]
    seq: int = -1
    """The event; -1 for the beginning of the run."""
    seconds: float = 0.0
    """Time spent in the earlier parts of a resumed run."""
    links: Sequence[_Link] = field(default=())
    """The events that have all its finished episodes, oldest first."""

    @property
    def steps(self) -> int:
        """Decisions of all seats."""
        return sum(tally.steps for tally in self.tallies.values())


class TotalsWriter:
    """Records totals, every so often.

    Args:
        log: where.
        every: decisions of all seats between two records; 0 for none.
        past: the last that were recorded; those of a new run by default.
    """

    def __init__(self, log: Writes, every: int, past: Totals | None = None) -> None:
        self._log = log
        self._every = every
        self._links = list(past.links) if past is not None else []
        self._counted = past.steps if past is not None else 0
        self._finished = {} if past is None else {name: len(t.episodes) for name, t in past.tallies.items()}

    def update(self, tallies: Mapping[str, SeatTally], seconds: float) -> None:
        """Record the totals if enough was decided since the last; `seconds` were spent in earlier parts of the run."""
        steps = sum(tally.steps for tally in tallies.values())
        if not self._every or steps - self._counted < self._every:
            return
        first: Mapping[str, int] = self._finished
        span = 1
        while self._links and self._links[-1].span == span:
            first = self._links.pop().first
            span *= 2
        body = {
            "before": self._links[-1].seq if self._links else None,
            "span": span,
            "seconds": seconds,
            "seats": {name: tally.state(first.get(name, 0)) for name, tally in tallies.items()},
        }
        self._links.append(_Link(self._log.totals(body, steps), span, first))
        self._counted = steps
        self._finished = {name: len(tally.episodes) for name, tally in tallies.items()}


def read_totals(log: Reads, event: EventRecord | None, seats: Mapping[str, SeatTally]) -> Totals:
    """Return the totals that an event has, in the tallies of the seats; nothing for None.

    Raises:
        WireError: they are damaged.
    """
    if event is None:
        return Totals(dict(seats))
    read = {event.seq: event.data}
    try:
        for name, state in read[event.seq]["seats"].items():
            seats[name].restore(state)
        seconds = float(read[event.seq]["seconds"])
        at = event.seq
        while (before := read[at]["before"]) is not None:
            if not before < at:
                raise ValueError(f"{before} is not before {at}")
            (found,) = log.read_events(event.run_id, from_seq=before, to_seq=before + 1)
            read[before] = found.data
            for name, state in found.data["seats"].items():
                seats[name].prepend(state)
            at = before
        links, first = [], dict.fromkeys(seats, 0)
        for seq in sorted(read):
            links.append(_Link(seq, int(read[seq]["span"]), dict(first)))
            for name, state in read[seq]["seats"].items():
                first[name] += len(state["episodes"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise WireError(f"The totals in event {event.seq} of run {event.run_id!r} are damaged: {error}.") from error
    return Totals(dict(seats), event.seq, seconds, tuple(links))
