"""The arrivals of agents in a world in play, with their outcomes, as the log of the run has them.

An arrival is recorded (`joined`) when the world has admitted the agent, and committed by the nexus afterwards. Its
outcome is an event of the same log: `arrived` once it is committed, `withdrawn` if it never was because the nexus died
in between, and `departed` with the transfer of the arrival if the nexus refused it. So a replay needs nothing but the
log to tell which arrivals took place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wsap_nexus.runs.record.life_log import ARRIVED, OUTCOMES, PASSAGES, WITHDRAWN, LoggedPassage, read_life
from wsap_nexus.store.nexus_store import Transaction
from wsap_nexus.store.repository import Repository

# Any, in this module: JSON.

ARRIVAL = "joined"
"""Where the state of a seat names the event of its agent's arrival."""


@dataclass(frozen=True)
class Arrivals:
    """The arrivals and departures in a part of a run's log, by the number of the arrival's event."""

    all: Mapping[int, LoggedPassage]
    """The arrivals, oldest first."""
    outcomes: Mapping[int, str]
    """`ARRIVED` or `WITHDRAWN`, where recorded. What was withdrawn may arrive again by the same transfer."""
    departures: Mapping[int, LoggedPassage] = field(default_factory=dict)
    """The departure that follows an arrival in its seat."""

    def outcome(self, arrival: LoggedPassage) -> str | None:
        """Return the outcome of an arrival; None if it is not recorded, as after a kill."""
        return self.outcomes.get(arrival.seq)

    def leaves(self, arrival: LoggedPassage) -> bool:
        """Return whether the agent's departure is recorded."""
        return arrival.seq in self.departures

    def plays(self, arrival: LoggedPassage) -> bool:
        """Return whether the agent got to play: the nexus did not refuse it, and its decider could be created."""
        left = self.departures.get(arrival.seq)
        return left is None or not (self.refused(arrival) or left.body["reason"] == "failed")

    def refused(self, arrival: LoggedPassage) -> bool:
        """Return whether the nexus refused an agent that the world had admitted, and took it out again."""
        left = self.departures.get(arrival.seq)
        return left is not None and left.transfer == arrival.transfer

    def is_last(self, arrival: LoggedPassage) -> bool:
        """Return whether the agent of an arrival did not arrive again."""
        agent = arrival.body["agent"]
        return not any(
            later.body["agent"] == agent and self.outcome(later) != WITHDRAWN and not self.refused(later)
            for seq, later in self.all.items()
            if seq > arrival.seq
        )

    def settled(self, took_place: Callable[[LoggedPassage], bool]) -> Arrivals:
        """Return the arrivals with an outcome for each; a function tells those that are not recorded."""
        found = {each.seq: ARRIVED if took_place(each) else WITHDRAWN for each in self.unsettled}
        return Arrivals(self.all, {**self.outcomes, **found}, self.departures)

    @property
    def unsettled(self) -> Sequence[LoggedPassage]:
        """The arrivals without a recorded outcome, oldest first."""
        return [each for each in self.all.values() if not self.leaves(each) and self.outcome(each) is None]


def read_arrivals(
    repository: Repository,
    run_id: str,
    *,
    there: Iterable[LoggedPassage] = (),
    from_seq: int = 0,
    to_seq: int | None = None,
) -> Arrivals:
    """Return the arrivals in a run's log from event `from_seq` up to `to_seq`, and their outcomes.

    Args:
        there: the arrivals of the agents who are there before; they are not among the arrivals, but may depart.

    Raises:
        WireError: an event is damaged.
    """
    # Each kind is read by its own index. Outcomes of older arrivals may come long after them.
    passages = [
        event
        for kind in PASSAGES
        for event in repository.read_events(run_id, from_seq=from_seq, to_seq=to_seq, kinds=(kind,))
    ]
    told = [event for kind in OUTCOMES for event in repository.read_events(run_id, from_seq=from_seq, kinds=(kind,))]
    here = {logged.seat: logged.seq for logged in there}
    arrivals: dict[int, LoggedPassage] = {}
    departures: dict[int, LoggedPassage] = {}
    outcomes: dict[int, str] = {}
    last_by: dict[str, int] = {}  # transfer -> its last arrival so far
    for event in sorted([*passages, *told], key=lambda event: event.seq):
        if event.kind in OUTCOMES:
            if (arrived := last_by.get(str(event.data["transfer"]))) is not None:
                # Later ones belong to another attempt, which may be after `to_seq`.
                outcomes.setdefault(arrived, event.kind)
            continue
        for logged in read_life(event):
            if not isinstance(logged, LoggedPassage):
                continue
            if logged.arrives:
                arrivals[logged.seq] = logged
                here[logged.seat] = last_by[logged.transfer] = logged.seq
            elif (arrived := here.pop(logged.seat, None)) is not None:
                departures[arrived] = logged
    return Arrivals(arrivals, outcomes, departures)


def read_there(repository: Repository, run_id: str, seats: Mapping[str, Mapping[str, Any]]) -> list[LoggedPassage]:
    """Return the arrivals of the agents who were there when a state was saved, given the states of their seats.

    Args:
        seats: the saved states of the seats' loops, by seat.

    Raises:
        WireError: an event is damaged.
    """
    joined = [int(state[ARRIVAL]) for state in seats.values()]
    events = [event for at in joined for event in repository.read_events(run_id, from_seq=at, to_seq=at + 1)]
    return [logged for event in events for logged in read_life(event) if isinstance(logged, LoggedPassage)]


def took_place(tx: Transaction, repository: Repository, run_id: str, arrival: LoggedPassage) -> bool:
    """Return whether an arrival whose outcome is not in the log was committed."""
    state = tx.transfer_state(arrival.transfer)
    if state is not None:
        return state == "done"
    # The transfer was pruned. An agent that was let in has acted at least once, or is still there.
    seat, agent = arrival.seat, str(arrival.body["agent"])
    later = repository.read_events(run_id, from_seq=arrival.seq + 1, kinds=("joined",))
    next_one = next((event.seq for event in later if event.seat == seat), None)
    acts = repository.read_events(
        run_id, from_seq=arrival.seq + 1, to_seq=next_one, kinds=("observation", "chosen", "left", "step"), seat=seat
    )
    if next(iter(acts), None) is not None:
        return True
    return next_one is None and any(s.run_id == run_id for s in tx.sessions(agent_id=agent, only_open=True))
