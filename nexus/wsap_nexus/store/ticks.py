"""Where the state after a tick is in the log of a run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from wsap_core.errors import UsageError
from wsap_nexus.store.history import LATE, REWOUND, TICK, branched_at, newest_tick
from wsap_nexus.store.records import EventRecord, RunRecord
from wsap_nexus.store.repository import Repository


@dataclass(frozen=True)
class TickPosition:
    """Where the state after a tick is in a run's log."""

    step: int
    snapshot: EventRecord | None
    """The last snapshot before it; None for the beginning of the world."""
    end: int
    """The event after which nothing belongs to it: the tick, or the snapshot."""


def find_tick(repository: Repository, record: RunRecord, step: int | None = None) -> TickPosition:
    """Return where a tick of a run is, the last one by default, as the run now stands.

    Raises:
        UsageError: there is no such tick.
    """
    newest, branched = newest_tick(repository, record), branched_at(record)
    wanted = newest if step is None else step
    rewound = [(event.seq, int(event.data["to"])) for event in repository.read_events(record.id, kinds=(REWOUND,))]
    since, until, base = -1, None, branched
    for seq, to in reversed(rewound):
        if wanted >= to:
            since, base = seq, to
            break
        until = seq
    at = [seq for seq, number in repository.find_events(record.id, TICK) if number == wanted and seq > since]
    tick = next((seq for seq in at if until is None or seq < until), None)
    if wanted < branched or (tick is None and wanted != base):
        raise UsageError(f"Run {record.id!r} has the ticks {branched} to {newest}, and no tick {step}.")
    saved = [
        seq
        for seq, number in repository.find_events(record.id, "snapshot")
        if seq > since and number <= wanted and (until is None or seq < until)
    ]
    if not saved:
        return TickPosition(wanted, None, -1 if tick is None else tick)
    (snapshot,) = repository.read_events(record.id, from_seq=saved[-1], to_seq=saved[-1] + 1)
    return TickPosition(wanted, snapshot, snapshot.seq if tick is None else max(tick, snapshot.seq))


def late_events(repository: Repository, snapshot: EventRecord, *kinds: str) -> Iterator[EventRecord]:
    """Give the events of some kinds, or all, that came late to the tick of a snapshot, and before the run was rewound.

    What belongs to a tick may be recorded until the one after the next. There is nothing where the run was not
    rewound to just this snapshot.
    """
    run_id, seq = snapshot.run_id, snapshot.seq
    (before,) = repository.read_events(run_id, from_seq=max(0, seq - 1), to_seq=max(1, seq))
    if before.kind != REWOUND:
        return
    ticks = [(at, number) for at, number in repository.find_events(run_id, TICK) if at < seq]
    since = next((at for at, number in reversed(ticks) if number == snapshot.step), 0)
    until = next((at for at, number in ticks if at > since and number == (snapshot.step or 0) + LATE), seq - 1)
    yield from repository.read_events(run_id, from_seq=since + 1, to_seq=until, kinds=kinds or None)
