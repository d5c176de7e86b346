"""What the agents of a run remember and can do when it begins, as the run has it recorded.

Resuming a run, or replaying it, begins with what was recorded and not with what the agents have
learned since; so the same steps follow.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from typing_extensions import override

from wsap_core.errors import SnapshotError, UsageError, WireError
from wsap_core.seams.memory import AgentMemory, OutlivesRuns
from wsap_nexus.runs.plan import SeatPlan
from wsap_nexus.runs.recorder import Recorder

Prepare = Callable[[str, AgentMemory], None]
AT_END = "end"
"""Marks what a prepared memory held when the run was over."""
Lessons = Mapping[int, tuple[str, ...]]
"""Lessons by the number of the decision (from 0) after which they were drawn."""


@dataclass(frozen=True)
class MemorySnapshot:
    """What the agent in a seat was when the run began."""

    agent: str
    number: int
    """Counts the agent's runs, from 1; memories of this one are marked "run 3"."""
    revision: int
    """How often the memory had been saved."""
    memory: bytes = b""
    """The memory's snapshot; empty for a new one."""
    skills: Mapping[str, float] = field(default_factory=dict)
    """Domain -> level, in a run outside the nexus."""

    def to_json(self) -> dict[str, Any]:
        """Return it for the log."""
        memory = base64.b64encode(self.memory).decode("ascii")
        data = {"mind": self.agent, "number": self.number, "revision": self.revision, "memory": memory}
        return {**data, **({"skills": dict(self.skills)} if self.skills else {})}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> MemorySnapshot:
        """Return what was recorded; WireError if it is damaged."""
        try:
            memory = base64.b64decode(data["memory"], validate=True)
            skills = {str(domain): float(level) for domain, level in data.get("skills", {}).items()}
            return cls(str(data["mind"]), int(data["number"]), int(data["revision"]), memory, skills)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise WireError(f"What was recorded of an agent's memory is damaged: {error}.") from error


class RunMemories:
    """The memories of a run's seats; this one restores what was recorded and saves nothing.

    Args:
        owners: seat -> the agent that sits there, for seats of agents of the database.
        past: what was recorded when the run began, by seat.
        again: the run replays another, whose recorded memories it records, too.
    """

    def __init__(
        self,
        owners: Mapping[str, str] | None = None,
        past: Mapping[str, MemorySnapshot] | None = None,
        *,
        recorder: Recorder | None = None,
        again: bool = False,
    ) -> None:
        self.owners = dict(owners or {})
        """Seat -> agent."""
        self.begun = dict(past or {})
        """What the agents were when the run began, by seat."""
        self._recorder = recorder or Recorder(None, None)
        self._again = again
        self.ready: dict[str, tuple[SeatPlan, AgentMemory]] = {}
        """The memories in use, by seat."""

    def skills(self, seat: str) -> Mapping[str, float]:
        """Return the skills that the agent in a seat began with."""
        return self.begun[seat].skills if seat in self.begun else {}

    def begin(self, plan: SeatPlan, agent: object) -> None:
        """Give a seat's agent what it remembers; nothing to one without a memory.

        Raises:
            UsageError: its memory can't take that in.
            StorageError: what it remembers can't be read.
        """
        if plan.name not in self.owners and plan.name not in self.begun:
            return
        memory = memory_of(agent)
        recorded = plan.name in self.begun
        if not recorded:
            begun = self.first(plan, memory)
            if begun is None:
                return
            self.begun[plan.name] = begun
        begun = self.begun[plan.name]
        if memory is not None:
            if begun.memory:
                take_in(memory, begun.memory, begun.agent)
            if isinstance(memory, OutlivesRuns):
                memory.begin_run(f"run {begun.number}")
            self.ready[plan.name] = (plan, memory)
        if not recorded or self._again:
            self._recorder.write("mind", begun.to_json(), seat=plan.name)

    def first(self, plan: SeatPlan, memory: AgentMemory | None) -> MemorySnapshot | None:
        """Return what a seat's agent begins a new run with; None if nothing is to be recorded of it."""
        return None

    def keep(self, seat: str, steps: int, lessons: Lessons, error: BaseException | None = None) -> None:
        """Save what a seat's agent remembers now; this one saves nothing.

        Args:
            steps: how many decisions it has made in the run.
            error: what ended the run, if something did.
        """


class PreparedMemories(RunMemories):
    """Memories that whoever plays the run prepares. What they hold at both ends of it is recorded, and kept nowhere
    else.

    Args:
        prepare: is given a seat and its memory, before the first decision of a new run.
        past: what was recorded when the run began, by seat.
    """

    def __init__(
        self, prepare: Prepare, seats: Iterable[str], past: Mapping[str, MemorySnapshot] | None, recorder: Recorder
    ) -> None:
        super().__init__({seat: seat for seat in seats}, past, recorder=recorder)
        self._prepare, self._to = prepare, recorder

    @override
    def first(self, plan: SeatPlan, memory: AgentMemory | None) -> MemorySnapshot | None:
        if memory is None:
            return None
        self._prepare(plan.name, memory)
        return MemorySnapshot(plan.name, 1, 0, memory.snapshot())

    @override
    def keep(self, seat: str, steps: int, lessons: Lessons, error: BaseException | None = None) -> None:
        if error is None and seat in self.ready:
            snapshot = MemorySnapshot(seat, 1, 1, self.ready[seat][1].snapshot())
            self._to.write("mind", {**snapshot.to_json(), AT_END: True}, seat=seat)


def memory_of(agent: object) -> AgentMemory | None:
    """Return an agent's memory, None if it has none."""
    memory = getattr(agent, "memory", None)
    return memory if isinstance(memory, AgentMemory) else None


def kind_of(plan: SeatPlan, memory: AgentMemory) -> str:
    """Return the kind of a seat's memory."""
    return str(plan.options.get("memory") or type(memory).__name__)


def take_in(memory: AgentMemory, data: bytes, owner: str) -> None:
    """Have a memory become what was saved; UsageError if it can't take that in."""
    try:
        memory.restore(data)
    except SnapshotError as error:
        raise UsageError(
            f"What {owner!r} remembers can't be taken in by its memory: {error} "
            "Give it the memory and the options that it had, or another kind of memory."
        ) from error
