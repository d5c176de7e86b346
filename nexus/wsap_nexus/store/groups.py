"""Groups of events that the log writer commits together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from wsap_nexus.store.bodies import BodyEncoder, NewDictionary
from wsap_nexus.store.records import RunStatus


class Item(NamedTuple):
    """An event that waits to be committed; its fields are those of `EventRecord`."""

    run_id: str
    seq: int
    kind: str
    seat: str | None
    episode: int
    step: int | None
    time: float
    form: str
    """"json" or "bytes"."""
    body: bytes
    takes: int | None = None
    """The row of the inbox that goes with it."""


class State(NamedTuple):
    """A change of a run's status that waits to be committed."""

    run_id: str
    status: RunStatus
    summary: str | None
    """JSON text; None keeps the summary that is there."""
    time: float


EventValues = tuple[str, int, str, str | None, int, int | None, float, str, str, int | None, bytes]
"""A row of the event table, its columns in the table's order."""


@dataclass
class Group:
    """The rows of one commit."""

    events: list[EventValues] = field(default_factory=list)
    """New rows."""
    dictionaries: list[NewDictionary] = field(default_factory=list)
    """New dictionaries of the rows."""
    states: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    """Run -> new status, and the summary as JSON text or None to keep it."""
    taken: list[int] = field(default_factory=list)
    """Rows of the inbox that are deleted."""
    touched: dict[str, str] = field(default_factory=dict)
    """Run -> time of its last event, ISO 8601."""


def make_group(batch: Iterable[Item | State], encoder: BodyEncoder) -> Group:
    """Return the rows of a batch, with the bodies of one kind in one run compressed together."""
    group = Group()
    streams: dict[tuple[str, str], list[int]] = {}
    events: list[Item] = []
    latest: dict[str, float] = {}
    for item in batch:
        latest[item.run_id] = item.time
        if isinstance(item, State):
            _, summary = group.states.get(item.run_id, ("", None))
            group.states[item.run_id] = (item.status.value, item.summary or summary)
        else:
            streams.setdefault((item.run_id, item.kind), []).append(len(events))
            events.append(item)
            if item.takes is not None:
                group.taken.append(item.takes)
    group.touched = {run: datetime.fromtimestamp(t, UTC).isoformat() for run, t in latest.items()}
    rows: list[EventValues | None] = [None] * len(events)
    for (run_id, kind), places in streams.items():
        encoded, made = encoder.encode(run_id, kind, [events[place].body for place in places])
        if made is not None:
            group.dictionaries.append(made)
        for place, (codec, dictionary, body) in zip(places, encoded, strict=True):
            _, seq, _, seat, episode, step, when, form, _, _ = events[place]
            rows[place] = (run_id, seq, kind, seat, episode, step, when, form, codec, dictionary, body)
    group.events = [row for row in rows if row is not None]
    return group
