"""A run's totals in its log, so that resuming or showing it does not need all events.

An event `totals` has everything counted up to it, by seat, including the trajectory hash, which continues from there.
Only finished episodes are too many to be repeated in each event. They are stored as in a binary counter: the nth event
has those of the last 2^k intervals, where 2^k is the largest power of two that divides n, and refers to the event with
those before. So each episode is written at most log2(n) times, and reading all takes at most log2(n) events.
"""

from __future__ import annotations

import asyncio
import json
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import asdict, dataclass, field
from typing import Any

from wsap_core.errors import WireError
from wsap_core.protocol.wire import dumps
from wsap_nexus.runs.plan import RunPlan
from wsap_nexus.runs.record.logged import read_decision
from wsap_nexus.runs.record.recorder import Recorder
from wsap_nexus.runs.record.replay_order import OpenChoices
from wsap_nexus.runs.record.summary import SeatScore, counts, seats_json, with_world
from wsap_nexus.runs.record.tally import NO_WORLD_USAGE, SeatTally, WorldUsage
from wsap_nexus.runs.record.trajectory import WORLD, line_of
from wsap_nexus.store.records import TOTALS, EventRecord, RunRecord, RunStatus
from wsap_nexus.store.repository import Repository

COUNTED = ("episode", "step", "decision", "tick")
"""Kinds of counted events."""
AFTER = 2.0
"""Seconds until the first progress message; the interval doubles each time."""

Tell = Callable[[str], None]


def silent(text: str) -> None:
    """Do nothing."""


def count(tallies: Mapping[str, SeatTally], event: EventRecord) -> None:
    """Count a recorded event in the tallies of a run; WireError if it is damaged."""
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
                truncated=bool(result.get("truncated", False)),
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
    """Report the progress of a replay, given the remaining steps by seat, until all are replayed."""
    count, after = sum(map(len, history.values())), AFTER
    while any(map(len, history.values())):
        await asyncio.sleep(after)
        if left := sum(map(len, history.values())):
            tell(f"Replaying recorded steps: {count - left:,} of {count:,}")
        after *= 2


def with_progress(
    events: Iterable[EventRecord],
    repository: Repository,
    run_id: str,
    tell: Tell,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[EventRecord]:
    """Yield the events, and report the progress of reading."""
    began, after, last = clock(), AFTER, 0
    for event in events:
        if clock() - began >= after:
            if not last:
                newest = repository.last_event(run_id)
                last = event.seq if newest is None else newest.seq
            tell(f"Reading run {run_id}: {event.seq + 1:,} of {last + 1:,} events")
            after *= 2
        yield event


EVERY = 500
"""Steps between totals in memory, for a run without recorded ones."""


_FEW = 10_000
"""Maximum number of events after the last totals that are counted for a list of runs."""


@dataclass(frozen=True)
class _Link:
    """An event with the episodes of the last `span` intervals."""

    seq: int
    span: int
    first: Mapping[str, int]
    """The number, from 0, of the first episode in it, by seat."""


@dataclass(frozen=True)
class Totals:
    """The totals of a run up to an event."""

    tallies: dict[str, SeatTally]
    seq: int = -1
    """The event; -1 for the start of the run."""
    seconds: float = 0.0
    """Time spent before the run was resumed last."""
    world_usage: WorldUsage = NO_WORLD_USAGE
    """The world's own model usage."""
    since: int | None = None
    """The event of the first earlier choice without a step."""
    links: Sequence[_Link] = field(default=())
    """The events with all finished episodes, oldest first."""

    @property
    def steps(self) -> int:
        """Decisions of all seats."""
        return sum(tally.steps for tally in self.tallies.values())


class TotalsWriter:
    """Records totals at intervals, whenever the recorded steps are also the run's first in the order of choices.

    Args:
        every: decisions of all seats between two records; 0 for none.
        past: the last recorded totals; None for a new run.
    """

    def __init__(self, log: Recorder | _CountedTotals, every: int, past: Totals | None = None) -> None:
        self._log = log
        self._every = every
        self._links = list(past.links) if past is not None else []
        self._counted = past.steps if past is not None else 0
        self._finished = {} if past is None else {name: len(t.episodes) for name, t in past.tallies.items()}

    def update(
        self, tallies: Mapping[str, SeatTally], seconds: float, world_usage: WorldUsage = NO_WORLD_USAGE
    ) -> None:
        """Record the totals if they are due; `seconds` is the time spent before the run was resumed."""
        steps = sum(tally.steps for tally in tallies.values())
        if not self._every or steps - self._counted < self._every or not self._log.open_choices.are_last:
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
            "since": self._log.open_choices.first,
            **({"world_usage": asdict(world_usage)} if world_usage.usage.calls else {}),
            "seats": {name: tally.state(first.get(name, 0)) for name, tally in tallies.items()},
        }
        acted = sum(tally.steps for name, tally in tallies.items() if name != WORLD)
        self._links.append(_Link(self._log.totals(body, acted), span, first))
        self._counted = steps
        self._finished = {name: len(tally.episodes) for name, tally in tallies.items()}


def read_totals(log: Repository | _CountedTotals, event: EventRecord | None, seats: Mapping[str, SeatTally]) -> Totals:
    """Return the totals of an event, restored into the tallies `seats`; WireError if they are damaged."""
    if event is None:
        return Totals(dict(seats))
    read = {event.seq: event.data}
    try:
        for name, state in read[event.seq]["seats"].items():
            if name != WORLD or WORLD in seats:
                seats[name].restore(state)
        seconds, since = float(read[event.seq]["seconds"]), read[event.seq].get("since")
        used = WorldUsage.of_json(read[event.seq].get("world_usage", asdict(NO_WORLD_USAGE)))
        at = event.seq
        while (before := read[at]["before"]) is not None:
            if not before < at:
                raise ValueError(f"{before} is not before {at}")
            (found,) = log.read_events(event.run_id, from_seq=before, to_seq=before + 1)
            read[before] = found.data
            for name, state in found.data["seats"].items():
                if name in seats:
                    seats[name].prepend(state)
            at = before
        links, first = [], dict.fromkeys(seats, 0)
        for seq in sorted(read):
            links.append(_Link(seq, int(read[seq]["span"]), dict(first)))
            for name in first:
                # A seat may have been taken for the first time after these totals.
                first[name] += len(read[seq]["seats"].get(name, {}).get("episodes", ()))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise WireError(f"The totals in event {event.seq} of run {event.run_id!r} are damaged: {error}.") from error
    return Totals(dict(seats), event.seq, seconds, used, since, tuple(links))


def summary_now(repository: Repository, run: RunRecord) -> Mapping[str, Any] | None:
    """Return the summary of a run, or its totals so far while it is running or if its process was killed."""
    if run.status is not RunStatus.RUNNING:
        return run.summary
    try:
        return _totals_now(repository, run) or run.summary
    except WireError:
        return run.summary


def _totals_now(repository: Repository, run: RunRecord) -> dict[str, Any]:
    """Return the totals of a run without a summary, in the summary's form; empty if too many events are uncounted."""
    plan = RunPlan.from_config(run.config)
    totals = read_totals(repository, repository.last_event(run.id, TOTALS), plan.tallies())
    last = repository.last_event(run.id)
    if last is None or last.seq - totals.seq > _FEW:
        return {}
    for event in repository.read_events(run.id, from_seq=totals.seq + 1, kinds=COUNTED):
        count(totals.tallies, event)
    world = totals.tallies.pop(WORLD, None)
    seats = list(totals.tallies.values())
    scores = {seat.name: SeatScore.of(seat, "stopped") for seat in seats}
    counted = with_world(counts(seats, world), read_world_usage(repository, run.id, totals))
    return {**counted, "seats": seats_json(seats, scores)}


def read_world_usage(repository: Repository, run_id: str, totals: Totals) -> WorldUsage:
    """Return the model usage of a run's world: up to the totals, and since."""
    usage = totals.world_usage
    for event in repository.read_events(run_id, from_seq=totals.seq + 1, kinds=("call",)):
        if event.seat is None:
            usage = usage.call(event.data)
    return usage


class TotalsIndex:
    """Finds any step of a run from the totals before it; `seats` returns empty tallies of its seats."""

    def __init__(self, repository: Repository, run_id: str, seats: Callable[[], dict[str, SeatTally]]) -> None:
        self._repository = repository
        self._log: Repository | _CountedTotals = repository
        self._run_id = run_id
        self._seats = seats
        found = repository.find_events(run_id, TOTALS)
        self._take(found)
        self.steps = self.positions[-1] + repository.count_events(run_id, "step", from_seq=self.seqs[-1] + 1)
        """Steps of all seats when the index was created."""

    def _take(self, found: Sequence[tuple[int, int]]) -> None:
        self.seqs = [-1, *(seq for seq, _ in found)]
        """The events with totals; -1 for the start of the run."""
        self.positions = [0, *(step for _, step in found)]
        """The number of steps up to each."""

    def complete(self, tell: Tell) -> None:
        """Create totals in memory for a long run without any; WireError if an event is damaged."""
        if len(self.seqs) > 1 or self.steps <= EVERY:
            return
        self._log = _CountedTotals(self._run_id)
        counted, writer = self._seats(), TotalsWriter(self._log, EVERY)
        events = self._repository.read_events(self._run_id, kinds=(*COUNTED, "chosen"))
        for event in with_progress(events, self._repository, self._run_id, tell):
            if event.kind == "chosen":
                self._log.open_choices.chosen(event.seat or "", event.seq)
                continue
            count(counted, event)
            if event.kind == "step":
                self._log.open_choices.resolved(event.seat or "")
            self._log.at = event.seq
            writer.update(counted, 0.0)
        self._take([(event.seq, event.step or 0) for event in self._log.events.values()])

    def before(self, position: int) -> int:
        """Return the index of the last totals with at most so many steps."""
        return bisect_right(self.positions, position) - 1

    def read(self, index: int) -> Totals:
        """Return totals by their index."""
        return read_totals(self._log, self._event(index), self._seats())

    def unlocking(self, index: int) -> int:
        """Return how many steps up to these totals unlocked an achievement."""
        event = self._event(index)
        return 0 if event is None else sum(int(state["unlocking"]) for state in event.data["seats"].values())

    def events(
        self, index: int, kinds: Sequence[str], *, last: int | None = None, skip: int = 0
    ) -> Iterator[EventRecord]:
        """Yield earlier choices without a step, then events after the totals up to `last`, without the first `skip`."""
        seq, event = self.seqs[index], self._event(index)
        if event is not None and (since := event.data.get("since")) is not None:
            yield from self._repository.read_events(self._run_id, from_seq=since, to_seq=seq, kinds=("chosen",))
        to_seq = None if last is None else last + 1
        yield from self._repository.read_events(self._run_id, from_seq=seq + 1, to_seq=to_seq, kinds=kinds, skip=skip)

    def _event(self, index: int) -> EventRecord | None:
        seq = self.seqs[index]
        return next(self._log.read_events(self._run_id, from_seq=seq, to_seq=seq + 1)) if seq >= 0 else None


class _CountedTotals:
    """Totals in memory, as events."""

    def __init__(self, run_id: str) -> None:
        self.at = -1
        """The last counted event."""
        self.open_choices = OpenChoices()
        self.events: dict[int, EventRecord] = {}
        self._run_id = run_id

    def totals(self, body: Mapping[str, Any], steps: int) -> int:
        self.events[self.at] = EventRecord(
            run_id=self._run_id, seq=self.at, kind=TOTALS, seat=None, episode=0, step=steps, time=0.0,
            body=dumps(body).encode(), is_text=True,
        )  # fmt: skip
        return self.at

    def read_events(self, run_id: str, *, from_seq: int = 0, to_seq: int | None = None) -> Iterator[EventRecord]:
        return iter([self.events[from_seq]])
