"""The recorded past of a resumed run."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wsap_core.seams.clock import Clock
from wsap_nexus.runs.life_log import LifeEvent, LoggedTick
from wsap_nexus.runs.logged import Logged, LoggedChoice, LoggedLeave, LoggedStep
from wsap_nexus.runs.memory import MemorySnapshot
from wsap_nexus.runs.recorded_agent import Decided
from wsap_nexus.runs.replay_order import LogPosition, OpenChoices, ReplayOrder, position_of_event
from wsap_nexus.runs.tally import NO_WORLD_USAGE, SeatTally, WorldUsage
from wsap_nexus.runs.totals import Totals
from wsap_nexus.runs.trajectory import WORLD
from wsap_nexus.store.records import EventRecord


@dataclass
class Checkpoint:
    """What a run goes on from; empty for a new one."""

    tallies: dict[str, SeatTally] = field(default_factory=dict)
    history: dict[str, deque[Logged]] = field(default_factory=dict)
    """What to go through again, by seat."""
    looked: Mapping[str, LogPosition] = field(default_factory=dict)
    """When seats looked at the world for decisions that they did not come to, if others went on after that."""
    first_episode: int = 0
    """The episode that play goes on in (or history begins in)."""
    last_episode: int = -1
    """The last episode that was recorded."""
    totals: Totals | None = None
    """The last totals in the log."""
    open_choices: OpenChoices = field(default_factory=OpenChoices)
    """The recorded choices of several seats that have not led to a step."""
    world: bytes | None = None
    """The world's state to go on from."""
    agents: Mapping[str, bytes] = field(default_factory=dict)
    """The agents' states to go on from."""
    seats: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What is around the agents, likewise: their goals, and the plan."""
    lessons: Mapping[str, Mapping[int, tuple[str, ...]]] = field(default_factory=dict)
    """What the agents learned before, by seat and decision."""
    life: deque[LifeEvent] = field(default_factory=deque)
    """What a world that lives goes through again."""
    tick: int | None = None
    """The last tick of the world's state; None where that is not known."""
    notes: Sequence[tuple[str, str]] = ()
    """What the world has noted since, as kind and text."""
    memories: Mapping[str, MemorySnapshot] = field(default_factory=dict)
    """What the agents remembered when the run began, by seat."""
    seconds: float = 0.0
    """Time spent before."""
    calls: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Recorded calls to models that may be made again, by seat."""
    world_calls: Iterable[EventRecord] = ()
    """Recorded events from which the world's own calls to models are had again."""
    world_usage: WorldUsage = NO_WORLD_USAGE
    """What those took before."""
    offline: bool = False
    """Whether no model may be asked: a recorded run is played again."""
    again: bool = False
    """Whether the run that is played again is recorded anew, rather than gone back to."""
    replays: str | None = None
    """The run that is played again."""
    script: Mapping[str, Sequence[Decided]] = field(default_factory=dict)
    """Recorded decisions of a run that is played again, of seats whose prompts an older version made."""

    def order(self, clock: Clock) -> ReplayOrder:
        """Return the recorded order of its seats."""
        marks: list[LogPosition] = []
        for items in self.history.values():
            for item in items:
                if isinstance(item, LoggedLeave):
                    marks.append(item.made)
                elif choice := item.choice if isinstance(item, LoggedStep) else item:
                    marks += (choice.seen, choice.made)
                    marks += () if choice.let_go is None else (choice.let_go,)
        for lived in () if self.again else self.life:
            if isinstance(lived, LoggedTick) and lived.begun is not None:
                marks.append(lived.begun)
            marks.append(position_of_event(lived.seq, WORLD))
        return ReplayOrder([*marks, *self.looked.values()], clock=clock)

    def next_decision(self, seat: str, steps: int) -> int:
        """Return the number, from 0, of a seat's next decision: of the first that is gone through again, or `steps`."""
        history = self.history.get(seat)
        return history[0].step if history else steps

    def decided(self, seat: str) -> int:
        """Return how many decisions of a seat are recorded, including one without a step."""
        history = self.history.get(seat)
        return self.tallies[seat].steps + bool(history and isinstance(history[-1], LoggedChoice))
