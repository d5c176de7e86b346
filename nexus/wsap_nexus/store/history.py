"""The ticks of a run and their log positions, without the rewound ticks, which stay in the log."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from wsap_core.errors import UsageError, WsapError
from wsap_nexus.store.records import EventRecord, RunRecord
from wsap_nexus.store.repository import Repository

TICK = "tick"
"""The event kind of a tick; its step is the tick's number."""
REWOUND = "rewound"
"""The event kind that invalidates earlier ticks with numbers above its `to`."""

LATE = 2
"""Ticks after which all events of a tick are recorded; its narration may arrive during the next."""


def newest_tick(repository: Repository, run: RunRecord) -> int:
    """Return the number of a run's newest valid tick, else of the tick it was branched from, else 0."""
    tick, rewound = repository.last_event(run.id, TICK), repository.last_event(run.id, REWOUND)
    if rewound is not None and (tick is None or rewound.seq > tick.seq):
        return int(rewound.data["to"])
    return tick.step or 0 if tick is not None else branched_at(run)


def branched_at(run: RunRecord) -> int:
    """Return the tick of another run that a run was branched from; 0 if it was not."""
    return int((run.config.get("branched_from") or {}).get("step", 0))


def read_history(
    repository: Repository,
    run: RunRecord,
    kinds: Collection[str],
    first: int,
    last: int | None,
    before: int | None = None,
) -> Iterator[EventRecord]:
    """Yield the events of some kinds from the first to the last tick (None for the newest), without rewound ones.

    An event belongs to the tick in its step, else in `tick` of its body, else to the next tick. Ticks before a branch
    are read from the parent run as it was then, and left out if that run was deleted. Events from number `before` on
    do not count.
    """
    since = branched_at(run)
    parent = _parent(repository, run) if max(first, 1) <= since else None
    if parent is not None:
        end = since if last is None else min(last, since)
        yield from read_history(repository, parent, kinds, first, end, run.config["branched_from"].get("seq"))
    if last is None or last > since:
        yield from _own_history(repository, run.id, kinds, max(first, since + 1), last, before)


def _parent(repository: Repository, run: RunRecord) -> RunRecord | None:
    try:
        parent = repository.get_run(str(run.config["branched_from"]["run"]))
    except WsapError:
        return None
    return parent if parent.created <= run.created else None


def _own_history(
    repository: Repository, run_id: str, kinds: Collection[str], first: int, last: int | None, before: int | None
) -> Iterator[EventRecord]:
    rewound = [
        (event.seq, int(event.data["to"])) for event in repository.read_events(run_id, to_seq=before, kinds=(REWOUND,))
    ]

    def stands(seq: int, number: int) -> bool:
        return not any(seq < later and number > to for later, to in rewound)

    found = repository.find_events(run_id, TICK)
    ticks = {n: seq for seq, n in found if (before is None or seq < before) and stands(seq, n)}
    from_seq = ticks[first - 1] + 1 if first - 1 in ticks else 0
    to_seq = before if last is None else ticks.get(last + LATE, before)
    done = first - 1
    for event in repository.read_events(run_id, from_seq=from_seq, to_seq=to_seq, kinds={*kinds, TICK}):
        of = event.step if event.step is not None else told_tick(event)
        number = done + 1 if of is None else of
        if event.kind == TICK and event.seq == ticks.get(number):
            done = number
        if event.kind in kinds and first <= number and (last is None or number <= last) and stands(event.seq, number):
            yield event


def told_tick(event: EventRecord) -> int | None:
    """Return the tick that an event's body names; None if it names none."""
    body = event.data if event.is_text else None
    number = body.get("tick") if isinstance(body, dict) else None
    return number if isinstance(number, int) and not isinstance(number, bool) else None


@dataclass(frozen=True)
class TickPosition:
    """The log position of the state after a tick."""

    step: int
    snapshot: EventRecord | None
    """The last snapshot up to it; None for the start of the world."""
    end: int
    """The number of its last event: the tick or the snapshot."""


def find_tick(repository: Repository, record: RunRecord, step: int | None = None) -> TickPosition:
    """Return the position of a valid tick of a run, by default the newest; UsageError if there is no such tick."""
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
        raise UsageError(f"Run {record.id!r} has ticks {branched} to {newest}, but no tick {step}.")
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
    """Yield the events, of some kinds or all, of a snapshot's tick that were recorded late, before a rewind to it.

    Events of a tick can be recorded up to `LATE` ticks later. Nothing is yielded if the run was not rewound to exactly
    this snapshot.
    """
    run_id, seq = snapshot.run_id, snapshot.seq
    (before,) = repository.read_events(run_id, from_seq=max(0, seq - 1), to_seq=max(1, seq))
    if before.kind != REWOUND:
        return
    ticks = [(at, number) for at, number in repository.find_events(run_id, TICK) if at < seq]
    since = next((at for at, number in reversed(ticks) if number == snapshot.step), 0)
    until = next((at for at, number in ticks if at > since and number == (snapshot.step or 0) + LATE), seq - 1)
    yield from repository.read_events(run_id, from_seq=since + 1, to_seq=until, kinds=kinds or None)
