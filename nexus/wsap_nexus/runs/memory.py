"""The memories and skills of agents at the start of a run.

They are recorded, and a resumed or replayed run starts from the recording, not from what the agents have learned
since, so that the same steps follow.
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
from wsap_nexus.runs.record.recorder import Recorder

Prepare = Callable[[str, AgentMemory], None]
AT_END = "end"
"""Marks the content of a prepared memory at the end of the run."""
Lessons = Mapping[int, tuple[str, ...]]
"""Lessons by the number (from 0) of the decision they follow."""


@dataclass(frozen=True)
class MemorySnapshot:
    """An agent's memory and skills at the start of a run."""

    agent: str
    number: int
    """The number of the agent's run, from 1, which marks its memories ("run 3")."""
    revision: int
    """How many times the memory had been saved."""
    memory: bytes = b""
    """The memory's snapshot; empty for a new one."""
    skills: Mapping[str, float] = field(default_factory=dict)
    """Domain -> level, in a run outside the nexus."""

    def to_json(self) -> dict[str, Any]:
        """Return the snapshot for the log."""
        memory = base64.b64encode(self.memory).decode("ascii")
        data = {"mind": self.agent, "number": self.number, "revision": self.revision, "memory": memory}
        return {**data, **({"skills": dict(self.skills)} if self.skills else {})}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> MemorySnapshot:
        """Return a recorded snapshot; WireError if it is damaged."""
        try:
            memory = base64.b64decode(data["memory"], validate=True)
            skills = {str(domain): float(level) for domain, level in data.get("skills", {}).items()}
            return cls(str(data["mind"]), int(data["number"]), int(data["revision"]), memory, skills)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise WireError(f"The recorded memory of an agent is damaged: {error}.") from error


class RunMemories:
    """The memories of a run's seats; this base class restores recorded ones and saves nothing.

    Args:
        owners: seat -> agent, for agents of the database.
        past: the recorded memories at the start of the run, by seat.
        again: the run replays another, and also records that run's memories.
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
        """The memories at the start of the run, by seat."""
        self._recorder = recorder or Recorder(None, None)
        self._again = again
        self.ready: dict[str, tuple[SeatPlan, AgentMemory]] = {}
        """The memories in use, by seat."""

    def skills(self, seat: str) -> Mapping[str, float]:
        """Return the skills of a seat's agent at the start of the run."""
        return self.begun[seat].skills if seat in self.begun else {}

    def begin(self, plan: SeatPlan, agent: object) -> None:
        """Restore the memory of a seat's agent, if it has one.

        Raises:
            UsageError: its memory can't restore the saved state.
            StorageError: the saved state can't be read.
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
        """Return the memory with which a seat's agent starts a new run; None to record none."""
        return None

    def keep(self, seat: str, steps: int, lessons: Lessons, error: BaseException | None = None) -> None:
        """Save the memory of a seat's agent; this base class saves nothing.

        Args:
            steps: the number of its decisions in the run.
            error: the error that ended the run, if any.
        """


class PreparedMemories(RunMemories):
    """Memories prepared by the caller, recorded at the start and end of the run, and saved nowhere else.

    `prepare` is called with each seat and its memory before the first decision of a new run.
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
    """Return an agent's memory; None if it has none."""
    memory = getattr(agent, "memory", None)
    return memory if isinstance(memory, AgentMemory) else None


def kind_of(plan: SeatPlan, memory: AgentMemory) -> str:
    """Return the kind of a seat's memory."""
    return str(plan.options.get("memory") or type(memory).__name__)


def take_in(memory: AgentMemory, data: bytes, owner: str) -> None:
    """Restore a memory's saved state; UsageError if it does not fit the memory."""
    try:
        memory.restore(data)
    except SnapshotError as error:
        raise UsageError(
            f"The saved memory of {owner!r} can't be restored: {error} "
            "Use the memory and options it was saved with, or another kind of memory."
        ) from error
