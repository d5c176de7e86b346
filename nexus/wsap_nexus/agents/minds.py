"""What an agent of the nexus remembers, through all its worlds and the nexus itself.

A mind is a row's column, keyed by the agent. It holds the memory of each kind that the agent's
policies use (most use one): the same `fulltext` memory goes along into every game, and each thing
in it says in which world, at which step and in which of the agent's runs it was. What it was when
a run began is recorded in the run, so that going on with the run begins with the same; what it has
become is given to whoever commits the agent's leaving, and is written there, in that transaction.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from wsap_core.errors import SnapshotError, StorageError, UsageError
from wsap_core.seams.memory import AgentMemory, OutlivesRuns
from wsap_nexus.runs.minds import Beginning, Lessons, RunMinds
from wsap_nexus.runs.plan import SeatPlan
from wsap_nexus.runs.recorder import Recorder

VERSION = 1


@dataclass(frozen=True)
class KeptMind:
    """Everything that an agent remembers."""

    lives: int = 0
    """How many of its runs are remembered from."""
    memories: Mapping[str, bytes] = field(default_factory=dict)
    """Kind of memory -> its snapshot."""

    def to_bytes(self) -> bytes:
        """Return it for the agent's row."""
        memories = {kind: base64.b64encode(data).decode("ascii") for kind, data in sorted(self.memories.items())}
        return json.dumps({"version": VERSION, "lives": self.lives, "memories": memories}).encode()

    @classmethod
    def from_bytes(cls, data: bytes | None) -> KeptMind:
        """Return what was kept; an empty mind for None.

        Raises:
            StorageError: it is damaged, or of a newer version.
        """
        if data is None:
            return cls()
        try:
            found = json.loads(data)
            if found["version"] != VERSION:
                raise StorageError(
                    "A newer WSAP wrote what this agent remembers; upgrade with: pip install -U wsap-nexus"
                )
            memories = {str(k): base64.b64decode(v, validate=True) for k, v in found["memories"].items()}
            return cls(int(found["lives"]), memories)
        except (ValueError, KeyError, TypeError, AttributeError, binascii.Error) as error:
            raise StorageError(f"What this agent remembers is damaged: {error}.") from error


def kind_of(plan: SeatPlan, memory: AgentMemory) -> str:
    """Return the kind of a seat's memory."""
    return str(plan.options.get("memory") or type(memory).__name__)


def memory_of(agent: object) -> AgentMemory | None:
    """Return an agent's memory, None if it has none."""
    memory = getattr(agent, "memory", None)
    return memory if isinstance(memory, AgentMemory) else None


class AgentMinds(RunMinds):
    """The minds of a run's seats, for a run of the nexus.

    Args:
        read: gives what the agent in a seat remembers, for a seat that an agent of the nexus takes.
        owners: seat -> agent.
        past: what was recorded of them when the run began, by seat.
        recorder: where that is recorded.
    """

    def __init__(
        self,
        read: Callable[[str], KeptMind],
        owners: Mapping[str, str],
        past: Mapping[str, Beginning] | None = None,
        *,
        recorder: Recorder | None = None,
    ) -> None:
        super().__init__(past=past, recorder=recorder)
        self._read = read
        self._owners = owners
        self._past_of = dict(past or {})
        self._log = recorder or Recorder(None, None)
        self._of: dict[str, tuple[SeatPlan, AgentMemory, int]] = {}

    def begin(self, plan: SeatPlan, agent: object) -> None:
        """Give a seat's agent what it remembers, or what was recorded of that; nothing to one without a memory.

        Raises:
            UsageError: its memory can't take that in.
            StorageError: it can't be read.
        """
        owner, memory = self._owners.get(plan.name), memory_of(agent)
        if owner is None or memory is None:
            return
        begun = self._past_of.get(plan.name)
        if begun is None:
            kept = self._read(owner)
            begun = Beginning(owner, kept.lives + 1, kept.lives, kept.memories.get(kind_of(plan, memory), b""))
            self._log.mind(plan.name, begun.to_json())
        if begun.memory:
            take_in(memory, begun.memory, owner)
        if isinstance(memory, OutlivesRuns):
            memory.begin_run(f"run {begun.number}")
        self._of[plan.name] = (plan, memory, begun.number)

    def keep(self, seat: str, steps: int, lessons: Lessons) -> None:
        """Do nothing: what is remembered is written in the transaction in which the agent leaves."""

    def remembered(self, seat: str) -> bytes | None:
        """Return what a seat's agent remembers now, for its row; None where there is nothing to keep."""
        found = self._of.get(seat)
        if found is None:
            return None
        plan, memory, number = found
        kept = self._read(self._owners[seat])
        memories = {**kept.memories, kind_of(plan, memory): memory.snapshot()}
        return replace(kept, lives=max(kept.lives, number), memories=memories).to_bytes()

    def remembered_by(self, owner: str) -> bytes | None:
        """Return what an agent remembers now, in whichever seat it is."""
        found = [seat for seat, agent in self._owners.items() if agent == owner]
        return self.remembered(found[0]) if found else None


def take_in(memory: AgentMemory, data: bytes, owner: str) -> None:
    """Have a memory become what was kept.

    Raises:
        UsageError: it can't take that in.
    """
    try:
        memory.restore(data)
    except SnapshotError as error:
        raise UsageError(
            f"What {owner!r} remembers can't be taken in by its memory: {error} "
            "Give it the memory and the options that it had, or another kind of memory."
        ) from error
