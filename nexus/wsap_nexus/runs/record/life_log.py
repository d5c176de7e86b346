"""The events of a world that lives: ticks, influences, arrivals and departures, and notes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wsap_core.errors import UsageError, WireError
from wsap_core.protocol.values import JsonValue
from wsap_core.protocol.wire import dumps
from wsap_nexus.runs.record.logged import read_snapshot
from wsap_nexus.runs.record.recorder import Recorder
from wsap_nexus.runs.record.replay_order import LogPosition
from wsap_nexus.runs.record.trajectory import WORLD
from wsap_nexus.store.history import late_events, told_tick
from wsap_nexus.store.records import EventRecord
from wsap_nexus.store.repository import Repository

OWN_KINDS = frozenset({
    "arrived", "asked", "call", "chosen", "death", "decision", "departed", "episode", "failure", "given", "influence",
    "joined", "left", "lessons", "mind", "model", "observation", "picture", "plan", "refusal", "rewound",
    "run", "session", "snapshot", "step", "tick", "tool", "tools", "totals", "whisper", "withdrawn",
})  # fmt: skip
"""The kinds of events that are not a world's notes."""


@dataclass(frozen=True)
class LoggedTick:
    """A recorded tick."""

    seq: int
    number: int
    line: str
    """Its canonical line in the trajectory hash."""
    after: int | None = None
    """The last event before it started; None in a run without seats."""

    @property
    def begun(self) -> LogPosition | None:
        """When it started, before the observations on which seats decided in it."""
        return None if self.after is None else (self.after, 1, "")


@dataclass(frozen=True)
class LoggedInfluence:
    """A recorded influence that the world accepted."""

    seq: int
    body: Mapping[str, JsonValue]


@dataclass(frozen=True)
class LoggedRewind:
    """A recorded return to an earlier tick."""

    seq: int
    to: int
    world: bytes
    """The world's state after that tick."""
    notes: Sequence[tuple[str, str]] = ()
    """The world's notes on ticks up to that one, as kind and text."""


@dataclass(frozen=True)
class LoggedPassage:
    """A recorded arrival or departure of an agent in a world in play."""

    seq: int
    seat: str
    arrives: bool
    body: Mapping[str, Any]
    """Any: JSON."""

    @property
    def transfer(self) -> str:
        """The transfer that brings the agent in, or takes it out."""
        return str(self.body["entry"]["transfer_id"] if self.arrives else self.body["transfer"])


LifeEvent = LoggedTick | LoggedInfluence | LoggedRewind | LoggedPassage
PASSAGES = ("joined", "departed")
"""The kinds of events of arrivals and departures."""
ARRIVED, WITHDRAWN = "arrived", "withdrawn"
OUTCOMES = (ARRIVED, WITHDRAWN)
"""The kinds of events that tell whether a recorded arrival took place; they name its `transfer`."""


class Notes:
    """The kernel's `WorldLog`: a world's notes in the log of its run, each recorded once.

    A note whose `tick` is not recorded yet is held back until then, since that tick may still turn out differently.

    Args:
        past: the notes recorded after the state from which the run resumes, as kind and text.
    """

    def __init__(self, recorder: Recorder, past: Iterable[tuple[str, str]] = (), *, tick: int = 0) -> None:
        self._recorder = recorder
        self._past = Counter(past)
        self._tick = tick
        self._held: list[tuple[int, str, str]] = []

    def note(self, kind: str, body: Mapping[str, JsonValue]) -> None:
        """Record a note, on which nothing depends; UsageError if its kind is one of the run's own."""
        if kind in OWN_KINDS:
            raise UsageError(f"The event kind {kind!r} is reserved for the run; choose another for a world's note.")
        text, of = dumps(body), body.get("tick")
        if self._past[kind, text]:
            self._past[kind, text] -= 1
        elif isinstance(of, int) and of > self._tick:
            self._held.append((of, kind, text))
        else:
            self._recorder.write(kind, text, seat=WORLD)

    def went_back(self, tick: int, past: Iterable[tuple[str, str]]) -> None:
        """Go back to an earlier tick with its recorded notes."""
        self._past = Counter(past)
        self.reached(tick)

    def reached(self, tick: int) -> None:
        """Set the last recorded tick, and record the notes held back for it."""
        self._tick = tick
        for _, kind, text in [held for held in self._held if held[0] <= tick]:
            self._recorder.write(kind, text, seat=WORLD)
        self._held = [held for held in self._held if held[0] > tick]


def read_life(event: EventRecord) -> Iterator[LifeEvent]:
    """Yield the tick, accepted influence, arrival or departure in an event, if any; WireError if it is damaged."""
    try:
        if event.kind not in ("tick", "influence", *PASSAGES):
            return
        data = json.loads(event.body)
        if event.kind in PASSAGES:
            yield LoggedPassage(event.seq, event.seat or "", event.kind == "joined", data)
            return
        if event.kind == "influence":
            if "refused" not in data:
                yield LoggedInfluence(event.seq, data["body"])
            return
        after = data.pop("after", None)
        yield LoggedTick(event.seq, int(data["number"]), dumps(data), None if after is None else int(after))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise WireError(f"Event {event.seq} of the run ({event.kind}) is damaged: {error}.") from error


def read_whole_life(repository: Repository, run_id: str) -> Iterator[LifeEvent]:
    """Yield a run's ticks, influences and rewinds; WireError if damaged."""
    rewound: int | None = None
    for event in repository.read_events(run_id, kinds=("tick", "influence", "rewound", "snapshot")):
        if event.kind == "rewound":
            rewound = int(event.data["to"])
        elif event.kind == "snapshot" and rewound is not None:
            notes = _notes_in(e for e in late_events(repository, event) if not _after(e, rewound))
            yield LoggedRewind(event.seq, rewound, read_snapshot(event.body)[0], notes)
            rewound = None
        yield from read_life(event)


def _after(event: EventRecord, tick: int) -> bool:
    of = told_tick(event)
    return of is not None and of > tick


def read_notes(repository: Repository, run_id: str, snapshot: EventRecord | None) -> Sequence[tuple[str, str]]:
    """Return a world's notes since a snapshot, and late ones before it, as kind and text."""
    late = list(late_events(repository, snapshot)) if snapshot is not None else []
    if (rewound := repository.last_event(run_id, "rewound")) is not None:
        # Notes on ticks that were undone are recorded again.
        late = [event for event in late if event.seq > rewound.seq or not _after(event, rewound.data["to"])]
    events = repository.read_events(run_id, from_seq=0 if snapshot is None else snapshot.seq, seat=WORLD)
    return _notes_in((*late, *events))


def _notes_in(events: Iterable[EventRecord]) -> Sequence[tuple[str, str]]:
    return [(e.kind, e.body.decode()) for e in events if e.seat == WORLD and e.kind not in OWN_KINDS]
