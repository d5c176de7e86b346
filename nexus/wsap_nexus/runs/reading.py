"""Reading a long run: counting what is recorded, with the progress told."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized

from wsap_core.errors import WireError
from wsap_core.protocol.wire import dumps
from wsap_nexus.runs.logged import read_decision
from wsap_nexus.runs.tally import SeatTally
from wsap_nexus.runs.trajectory import WORLD, line_of
from wsap_nexus.store.records import EventRecord
from wsap_nexus.store.repository import Repository

COUNTED = ("episode", "step", "decision", "tick")
"""Kinds of events that totals come from."""
AFTER = 2.0
"""Seconds of reading after which its progress is told; then again after twice as many, and so on."""

Tell = Callable[[str], None]


def silent(text: str) -> None:
    """Tell nobody."""


def count(tallies: Mapping[str, SeatTally], event: EventRecord) -> None:
    """Count a recorded event in the tallies of a run's seats.

    Raises:
        WireError: it is damaged.
    """
    try:
        if event.kind == "episode":
            for tally in tallies.values():
                tally.begin_episode(event.episode, int(event.data["seed"]))
        elif event.kind == "step":
            data, tally = json.loads(event.body), tallies[event.seat or ""]
            result = data["step"]["result"]
            tally.hash.add(line_of(event.body))
            tally.count(
                float(result["reward"]),
                result["achievements"],
                done=bool(result["done"]),
                info=read_decision(data["decision"]),
                outcome=str(result.get("outcome", "done")),
            )
            tally.count_worked(data["step"]["action"]["name"] if result["success"] else None, result["achievements"])
        elif event.kind == "tick":
            data = json.loads(event.body)
            data.pop("after", None)
            tallies[WORLD].add_tick(dumps(data), done=bool(data["done"]))
        elif event.kind == "decision" and (amended := read_decision(json.loads(event.body))) is not None:
            tallies[event.seat or ""].amend(amended.usage)
    except (ValueError, KeyError, TypeError) as error:
        raise WireError(f"Event {event.seq} of the run ({event.kind}) can't be counted: {error}.") from error


async def tell_repeating(history: Mapping[str, Sized], tell: Tell) -> None:
    """Tell now and then how many of the recorded steps, by seat, were gone through again; return when all were."""
    count, after = sum(map(len, history.values())), AFTER
    while any(map(len, history.values())):
        await asyncio.sleep(after)
        if left := sum(map(len, history.values())):
            tell(f"Going through the recorded steps again: {count - left:,} of {count:,}")
        after *= 2


def with_progress(
    events: Iterable[EventRecord],
    repository: Repository,
    run_id: str,
    tell: Tell,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[EventRecord]:
    """Give the events, and tell now and then how far reading has come."""
    began, after, last = clock(), AFTER, 0
    for event in events:
        if clock() - began >= after:
            if not last:
                newest = repository.last_event(run_id)
                last = event.seq if newest is None else newest.seq
            tell(f"Reading run {run_id}: {event.seq + 1:,} of {last + 1:,} events")
            after *= 2
        yield event
