"""The ticks of a run as they now stand: what was rewound stays in the log, and is left out here."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from wsap_nexus.store.records import EventRecord
from wsap_nexus.store.repository import Repository

TICK = "tick"
"""The kind of event that a tick is; its step is the tick's number."""
REWOUND = "rewound"
"""The kind of event after which ticks with numbers above its `to` don't count."""

_LATE = 2
"""Ticks after which everything that belongs to one was recorded; its narration may come during the next."""


def newest_tick(repository: Repository, run_id: str) -> int:
    """Return the number of a run's newest tick that was not rewound; 0 before the first."""
    tick, rewound = repository.last_event(run_id, TICK), repository.last_event(run_id, REWOUND)
    if rewound is not None and (tick is None or rewound.seq > tick.seq):
        return int(rewound.data["to"])
    return tick.step or 0 if tick is not None else 0


def read_history(
    repository: Repository, run_id: str, kinds: Collection[str], first: int, last: int | None
) -> Iterator[EventRecord]:
    """Yield the events of some kinds that belong to ticks from the first to the last, without what was rewound.

    An event belongs to the tick that its step, or else `tick` in its body, says; another one to the tick after it.
    """
    rewound = [(event.seq, int(event.data["to"])) for event in repository.read_events(run_id, kinds=(REWOUND,))]

    def stands(seq: int, number: int) -> bool:
        return not any(seq < later and number > to for later, to in rewound)

    ticks = {number: seq for seq, number in repository.find_events(run_id, TICK) if stands(seq, number)}
    from_seq = ticks[first - 1] + 1 if first - 1 in ticks else 0
    to_seq = None if last is None else ticks.get(last + _LATE)
    done = first - 1
    for event in repository.read_events(run_id, from_seq=from_seq, to_seq=to_seq, kinds={*kinds, TICK}):
        number = event.step if event.step is not None else _told(event, done + 1)
        if event.kind == TICK and event.seq == ticks.get(number):
            done = number
        if event.kind in kinds and first <= number and (last is None or number <= last) and stands(event.seq, number):
            yield event


def _told(event: EventRecord, otherwise: int) -> int:
    body = event.data if event.is_text else None
    number = body.get("tick") if isinstance(body, dict) else None
    return number if isinstance(number, int) and not isinstance(number, bool) else otherwise
