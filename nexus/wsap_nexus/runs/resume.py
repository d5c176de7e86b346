"""The checkpoint from which a recorded run is resumed, and how it is read from the log."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from wsap_core.protocol.wire import Codec
from wsap_core.seams.clock import Clock
from wsap_core.specs import AdapterSpec, AgentSpec
from wsap_nexus.runs.memory import AT_END, MemorySnapshot
from wsap_nexus.runs.plan import RunPlan
from wsap_nexus.runs.record import logged
from wsap_nexus.runs.record.life_log import (
    PASSAGES,
    LifeEvent,
    LoggedRewind,
    LoggedTick,
    read_life,
    read_notes,
    read_whole_life,
)
from wsap_nexus.runs.record.replay_order import LogPosition, OpenChoices, ReplayOrder, position_of_event
from wsap_nexus.runs.record.tally import NO_WORLD_USAGE, SeatTally, WorldUsage
from wsap_nexus.runs.record.trajectory import WORLD
from wsap_nexus.runs.record.world_calls import WORLD_CALLS
from wsap_nexus.runs.totals import Tell, Totals, count, read_totals, read_world_usage, silent, with_progress
from wsap_nexus.store.history import TickPosition, late_events
from wsap_nexus.store.records import TOTALS, EventRecord
from wsap_nexus.store.repository import Repository


@dataclass
class Checkpoint:
    """The state from which a run is resumed; empty for a new one."""

    tallies: dict[str, SeatTally] = field(default_factory=dict)
    history: dict[str, deque[logged.Logged]] = field(default_factory=dict)
    """Items to replay, by seat."""
    looked: Mapping[str, LogPosition] = field(default_factory=dict)
    """Positions of observations without a decision, by seat, if other seats acted after them."""
    first_episode: int = 0
    """The episode in which play resumes, or the replay starts."""
    last_episode: int = -1
    totals: Totals | None = None
    open_choices: OpenChoices = field(default_factory=OpenChoices)
    """The recorded choices without a step."""
    saved: int = -1
    """The last event in the world's state; -1 for the start of the run."""
    world: bytes | None = None
    agents: Mapping[str, bytes] = field(default_factory=dict)
    seats: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The states of the seats' loops: goals and plan."""
    lessons: Mapping[str, Mapping[int, tuple[str, ...]]] = field(default_factory=dict)
    """The agents' lessons so far, by seat and decision."""
    life: deque[LifeEvent] = field(default_factory=deque)
    """Events to replay in a world that lives."""
    tick: int | None = None
    """The last tick of the world's state; None if unknown."""
    notes: Sequence[tuple[str, str]] = ()
    """The world's notes since, as kind and text."""
    memories: Mapping[str, MemorySnapshot] = field(default_factory=dict)
    """The agents' memories at the start of the run, by seat."""
    seconds: float = 0.0
    """Time spent before."""
    calls: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Recorded model calls that may be repeated, by seat."""
    world_calls: Iterable[EventRecord] = ()
    """Recorded events of the world's own model calls."""
    world_usage: WorldUsage = NO_WORLD_USAGE
    """The usage of those before."""
    offline: bool = False
    """Whether no model may be called: a recorded run is replayed."""
    again: bool = False
    """Whether the replay is recorded as a new run, rather than restoring an earlier state."""
    replays: str | None = None
    """The run that is replayed."""
    finished: bool = False
    """Whether that run was played to its end."""
    gone: frozenset[str] = frozenset()
    """The seats whose agents are not asked in a replay."""

    def order(self, clock: Clock) -> ReplayOrder:
        """Return the recorded order of the seats' actions."""
        marks: list[LogPosition] = []
        for items in self.history.values():
            for item in items:
                if isinstance(item, logged.LoggedLeave):
                    marks.append(item.made)
                elif choice := item.choice if isinstance(item, logged.LoggedStep) else item:
                    marks += (choice.seen, choice.made)
                    marks += () if choice.let_go is None else (choice.let_go,)
        for lived in self.life:
            if isinstance(lived, LoggedRewind):
                continue  # seats have no recorded steps in a world that went back
            if isinstance(lived, LoggedTick) and lived.begun is not None:
                marks.append(lived.begun)
            marks.append(position_of_event(lived.seq, WORLD))
        return ReplayOrder([*marks, *self.looked.values()], clock=clock)

    def next_decision(self, seat: str, steps: int) -> int:
        """Return the number, from 0, of a seat's next decision: the next one to replay, or `steps`."""
        history = self.history.get(seat)
        return history[0].step if history else steps

    def decided(self, seat: str) -> int:
        """Return the number of recorded decisions of a seat, including one without a step."""
        history = self.history.get(seat)
        return self.tallies[seat].steps + bool(history and isinstance(history[-1], logged.LoggedChoice))


ASKED = ("call", "model", "refusal", "failure", "tool", "tools")
"""Kinds of events of agents' model and tool calls."""
KINDS = ("episode", "step", "decision", "run", "tick", "influence", "rewound", *PASSAGES)
"""Kinds of events to replay or count."""
AMONG_SEVERAL = ("chosen", "left", "observation")
"""Further kinds in runs of several seats, which give the order."""


def read_past(
    repository: Repository,
    run_id: str,
    plan: RunPlan,
    spec: AdapterSpec,
    agents: dict[str, AgentSpec],
    codec: Codec,
    *,
    tell: Tell = silent,
    until: TickPosition | None = None,
) -> Checkpoint:
    """Return the checkpoint of a run: its totals, and how to return to where it stopped.

    If the game and all agents have snapshots, that is the last recorded state and the steps after it; otherwise all
    steps from the start. Only events after the state and the last recorded totals are read.

    Args:
        tell: receives progress messages if reading takes long.
        until: the last tick to read, of a world that lives, for an offline checkpoint.

    Raises:
        WireError: an event is damaged.
    """
    if until is None:
        saved = newest_state(repository, run_id) if plan.lives else repository.last_event(run_id, "snapshot")
        snapshot = saved if _can_restore(spec, agents) else None
        latest = repository.last_event(run_id, TOTALS)
        totals = read_totals(repository, latest, plan.tallies())
    else:
        snapshot, latest = until.snapshot, None
        totals = Totals(plan.tallies(), -1 if snapshot is None else snapshot.seq)
    past = Checkpoint(tallies=totals.tallies, totals=totals, seconds=totals.seconds, offline=until is not None)
    past.last_episode = max(tally.episode for tally in totals.tallies.values()) if latest is not None else -1
    reading = _Reading(
        past, codec, after=-1 if snapshot is None else snapshot.seq, totals=totals, irreversible=plan.irreversible
    )
    kinds = (*KINDS, *AMONG_SEVERAL) if plan.in_order else KINDS
    to_seq = None if until is None else until.end + 1
    events = repository.read_events(run_id, from_seq=reading.first, to_seq=to_seq, kinds=kinds)
    for event in with_progress(events, repository, run_id, tell):
        reading.take(event)
        if event.seq > reading.after:
            past.life.extend(read_life(event))
    reading.end()
    if until is None:
        past.lessons = read_lessons(repository, run_id)
        past.memories = read_memories(repository, run_id)
        # Decisions already made in an irreversible world are not repeated.
        asked = reading.decided if plan.irreversible else 0 if snapshot is None else snapshot.seq
        past.calls = read_call_events(repository, run_id, from_seq=asked)
        past.world_usage = read_world_usage(repository, run_id, totals)
    past.world_calls = read_world_calls(repository, run_id, snapshot=snapshot)
    if plan.lives and until is None:
        past.notes = read_notes(repository, run_id, snapshot)
    if plan.irreversible:  # it resumes in the present
        past.first_episode = max(0, past.last_episode)
    if snapshot is not None:
        past.tick, past.saved = snapshot.step, snapshot.seq
        past.world, past.agents, past.seats = logged.read_snapshot(snapshot.body)
        past.first_episode = snapshot.episode
    return past


def read_again(repository: Repository, run_id: str, plan: RunPlan, past: Checkpoint) -> None:
    """Add everything that is recorded of a run to a checkpoint from which it is repeated from its start.

    Raises:
        WireError: an event is damaged.
    """
    read = Checkpoint(tallies=plan.tallies())
    reading = _Reading(read, Codec(), after=-1, totals=Totals(read.tallies, -1))
    for event in repository.read_events(run_id, kinds=(*KINDS, *AMONG_SEVERAL) if plan.in_order else KINDS):
        reading.take(event)
    reading.end()
    past.history, past.looked = read.history, read.looked
    if plan.lives:
        past.life.extend(read_whole_life(repository, run_id))


def read_call_events(repository: Repository, run_id: str, *, from_seq: int = 0) -> dict[str, list[dict[str, Any]]]:
    """Return the recorded model and tool calls, by seat, oldest first, so that no call is paid for twice."""
    calls: dict[str, list[dict[str, Any]]] = {}
    # The tools are recorded once in a run.
    for event in repository.read_events(run_id, to_seq=from_seq, kinds=("tools",)):
        calls.setdefault(event.seat or "", []).append(event.data)
    for event in repository.read_events(run_id, from_seq=from_seq, kinds=ASKED):
        if event.seat is not None:
            calls.setdefault(event.seat, []).append(event.data)
    return calls


def read_world_calls(
    repository: Repository, run_id: str, *, snapshot: EventRecord | None = None
) -> Iterator[EventRecord]:
    """Yield the events that replay a world's model calls, oldest first, read lazily.

    Calls with a key are also taken from the tick before the snapshot's: they may still have been in flight then.
    """
    if snapshot is None:
        for event in repository.read_events(run_id, kinds=WORLD_CALLS):
            yield event
            if event.kind == "rewound":
                (saved,) = repository.read_events(run_id, from_seq=event.seq + 1, to_seq=event.seq + 2)
                yield from _late_calls(repository, saved)
        return
    yield from repository.read_events(run_id, to_seq=snapshot.seq, kinds=("model",))
    yield from _late_calls(repository, snapshot)
    first = snapshot.seq
    if (tick := repository.last_event(run_id, "tick", before=snapshot.seq)) is not None:
        before = repository.last_event(run_id, "tick", before=tick.seq)
        rewound = repository.last_event(run_id, "rewound", before=snapshot.seq)
        first = max(before.seq if before else 0, rewound.seq + 1 if rewound else 0)
    for event in repository.read_events(run_id, from_seq=first, kinds=WORLD_CALLS):
        if event.seq >= snapshot.seq or event.kind not in ("call", "failure") or event.data["key"]:
            yield event


def _late_calls(repository: Repository, snapshot: EventRecord) -> Iterator[EventRecord]:
    """Yield the calls for a tick that were made after it, in a run that was rewound to it: they may be repeated."""
    for event in late_events(repository, snapshot, "call", "failure"):
        if event.data["key"].rpartition(":")[2].startswith(f"{snapshot.step}/"):
            yield event


def read_lessons(repository: Repository, run_id: str) -> dict[str, dict[int, tuple[str, ...]]]:
    """Return the lessons in a run, by seat and the number (from 0) of the decision they follow."""
    found: dict[str, dict[int, tuple[str, ...]]] = {}
    for event in repository.read_events(run_id, kinds=("lessons",)):
        lines = tuple(str(line) for line in event.data.get("lessons", ()))
        found.setdefault(event.seat or "", {})[event.step or 0] = lines
    return found


def read_memories(repository: Repository, run_id: str) -> dict[str, MemorySnapshot]:
    """Return the agents' memories at the start of a run, by seat; WireError if an event is damaged."""
    events = repository.read_events(run_id, kinds=("mind",))
    begun = (event for event in events if AT_END not in event.data)
    return {event.seat or "": MemorySnapshot.from_json(event.data) for event in begun}


def newest_state(repository: Repository, run_id: str, *, whole: bool = True) -> EventRecord | None:
    """Return the newest saved state of a run as an event `snapshot`; None if there is none.

    Args:
        whole: whether it must have the states of all agents, so that the run can be resumed from it.
    """
    kept = [state for state, is_whole in repository.kept_states(run_id) if is_whole or not whole]
    saved = repository.last_event(run_id, "snapshot")
    return max([*kept, *([] if saved is None else [saved])], key=lambda state: state.seq, default=None)


def can_be_saved(agent: AgentSpec) -> bool:
    """Return whether an agent's state can be saved; one that decides elsewhere, as a person does, has none."""
    return agent.interactive or "snapshot" in agent.abilities


def _can_restore(spec: AdapterSpec, agents: dict[str, AgentSpec]) -> bool:
    return "snapshot" in spec.abilities and all(can_be_saved(agent) for agent in agents.values())


class _Reading:
    """Builds a checkpoint, event by event.

    Args:
        past: the checkpoint to build, with a tally for each seat.
        after: the event of the saved state; the events to replay come after it.
        totals: the totals in the tallies.
        irreversible: whether the world can't be rewound: only a choice without a result is replayed.
    """

    def __init__(
        self, past: Checkpoint, codec: Codec, *, after: int, totals: Totals, irreversible: bool = False
    ) -> None:
        self._since = totals.seq + 1 if totals.since is None else totals.since
        self._irreversible = irreversible
        self.first = self._since if irreversible else min(after + 1, self._since)
        """The first event to read."""
        self.decided = self.first
        """The event of the last choice, in runs where choices are recorded before their steps."""
        self._past = past
        self._codec = codec
        self.after = after
        """The event of the saved state."""
        self._counted = totals.seq
        self._history: dict[str, deque[logged.Logged]] = {seat: deque() for seat in past.tallies}
        self._choices: dict[str, logged.LoggedChoice] = {}  # whose steps have not come yet
        self._looked: dict[str, int] = {}
        self._left: set[str] = set()
        self._over: set[str] = set()
        """The seats whose last step ended their episode."""

    def take(self, event: EventRecord) -> None:
        seat = event.seat or ""
        self._begin(event.kind, seat)
        match event.kind:
            case "run" | "episode" | "tick" if event.seq <= self._counted:
                pass
            case "run":
                self._past.seconds += float(event.data.get("seconds", 0.0))
            case "episode" | "tick":
                self._past.last_episode = event.episode
                count(self._past.tallies, event)
            case "step":
                self._step(event)
            case "decision":
                self._amend(event, seat)
            case "rewound":
                # Choices that were not resolved then never will be.
                self._choices.clear()
                self._looked.clear()
                self._past.open_choices.clear()
            case "observation" if seat not in self._left:  # once such a look was recorded; nobody repeats it
                self._looked[seat] = event.seq
            case "chosen":
                self.decided = event.seq
                self._choices[seat] = logged.read_choice(event.seq, seat, event.episode, event.step or 0, event.body)
                self._looked.pop(seat, None)
                if event.seq >= self._since:
                    self._past.open_choices.chosen(seat, event.seq)
            case "joined":
                self._left.discard(seat)
            case "left":
                self._leave(event, seat)

    def _begin(self, kind: str, seat: str) -> None:
        """Note that a seat plays again, or that all do."""
        if kind in ("episode", "rewound"):
            self._over.clear()
        elif kind == "joined":
            self._over.discard(seat)

    def end(self) -> None:
        """Add the choices without a step, and the observations without a choice."""
        for choice in self._choices.values():
            self._add(choice)
        self._past.history = self._history
        # An observation needs a position only if others acted after it.
        latest = max((_done(items[-1]) for items in self._history.values() if items), default=-1)
        looked = {seat: seq for seat, seq in self._looked.items() if self.after < seq < latest}
        self._past.looked = {seat: position_of_event(seq, seat) for seat, seq in looked.items()}

    def _add(self, item: logged.Logged) -> None:
        self._looked.pop(item.seat, None)
        if item.seq > self.after:
            self._history[item.seat].append(item)

    def _step(self, event: EventRecord) -> None:
        seat = event.seat or ""
        choice = self._choices.pop(seat, None)
        if event.seq > self._counted:
            count(self._past.tallies, event)
            self._past.open_choices.resolved(seat)
        if event.seq > self.after and not self._irreversible:
            step = logged.read_step(event.seq, event.episode, event.step or 0, event.body, self._codec)
            self._add(replace(step, choice=choice))
            (self._over.add if step.result.done else self._over.discard)(seat)
        else:
            self._looked.pop(seat, None)

    def _leave(self, event: EventRecord, seat: str) -> None:
        self._left.add(seat)
        if seat in self._choices:
            self._choices[seat] = replace(self._choices[seat], left=event.seq)
        elif seat not in self._over:  # once such a removal was recorded; nobody repeats it
            self._add(logged.LoggedLeave(event.seq, seat, event.episode, event.step or 0))

    def _amend(self, event: EventRecord, seat: str) -> None:
        if event.seq > self._counted:
            count(self._past.tallies, event)
        items = self._history.get(seat)
        if items and isinstance(last := items[-1], logged.LoggedStep):
            items[-1] = replace(last, info=logged.read_decision(event.data))


def _done(item: logged.Logged) -> int:
    """Return the event at which the world was told of an item."""
    choice = item.choice if isinstance(item, logged.LoggedStep) else item
    return item.seq if choice is None else choice.seq
