"""The memories of an agent of the database, across all its runs and worlds.

They are stored in the agent's row, one for each kind that its policies use (most use one): the same `fulltext` memory
serves all games, and each item has its world, step and run. The state at the start of a run is recorded in the run; the
new state is saved in the transaction in which the agent leaves.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from typing_extensions import override

from wsap_core.errors import StorageError, WsapError
from wsap_core.factories import build, load
from wsap_core.host import PluginHost
from wsap_core.installing import install_line
from wsap_core.seams.context import Context
from wsap_core.seams.memory import LESSON, AgentMemory, Browsable, Recollection
from wsap_llm.secrets import redacted
from wsap_nexus.runs.memory import MemorySnapshot, RunMemories, kind_of
from wsap_nexus.runs.plan import SeatPlan
from wsap_nexus.runs.record.recorder import Recorder

VERSION = 2
"""The version of the data in an agent's row; there was no release with an earlier one."""
RUNS = 1000
"""Maximum number of entries of `SavedMemory.runs`; the oldest are dropped."""
BUDGET = 60
"""Tokens per requested item of a memory that can be searched but not listed."""

_CLASSES = {
    "FactsMemory": "wsap_llm.memory.facts:FactsMemory",
    "FifoMemory": "wsap_llm.memory.fifo:FifoMemory",
    "FullTextMemory": "wsap_llm.memory.fulltext:FullTextMemory",
}
# An agent without a model creates its memory itself; then the class is saved as its kind.


@dataclass(frozen=True)
class SavedMemory:
    """A memory of one kind."""

    snapshot: bytes
    options: Mapping[str, Any] = field(default_factory=dict)
    revision: int = 0
    """Number of times it was saved."""
    saved_by: str = ""
    """The run that last saved it."""
    runs: Mapping[str, int] = field(default_factory=dict)
    """Run outside the nexus -> number of remembered decisions, oldest first."""

    def saved(self, snapshot: bytes, run: str, options: Mapping[str, Any], steps: int | None = None) -> SavedMemory:
        """Return it as saved by a run; `steps` is the number of decisions so far of a run outside the nexus."""
        runs = self.runs if steps is None else dict([*self.runs.items(), (run, steps)][-RUNS:])
        return SavedMemory(snapshot, dict(options), self.revision + 1, run, runs)


@dataclass(frozen=True)
class SavedMemories:
    """All memories of an agent."""

    lives: int = 0
    """The number of runs that the agent has started."""
    memories: Mapping[str, SavedMemory] = field(default_factory=dict)
    """Kind -> memory."""

    def of(self, kind: str) -> SavedMemory:
        """Return the memory of a kind; an empty one if there is none."""
        return self.memories.get(kind) or SavedMemory(b"")

    def having(self, kind: str, memory: SavedMemory, *, lives: int) -> SavedMemories:
        """Return a copy with the memory of a kind replaced."""
        return SavedMemories(max(self.lives, lives), {**self.memories, kind: memory})

    def to_bytes(self) -> bytes:
        """Return the bytes for the agent's row."""
        memories = {
            kind: {
                "snapshot": base64.b64encode(one.snapshot).decode("ascii"),
                "options": dict(one.options),
                "revision": one.revision,
                "saved_by": one.saved_by,
                "runs": dict(one.runs),
            }
            for kind, one in sorted(self.memories.items())
        }
        return json.dumps({"version": VERSION, "lives": self.lives, "memories": memories}).encode()

    @classmethod
    def from_bytes(cls, data: bytes | None) -> SavedMemories:
        """Return the memories of `to_bytes`; StorageError if they are damaged, or of a newer version."""
        if data is None:
            return cls()
        try:
            found = json.loads(data)
            if found["version"] > VERSION:
                upgrade = install_line("wsap-nexus", newer=True)
                raise StorageError(f"This agent's memories were written by a newer WSAP; upgrade with: {upgrade}")
            return cls(int(found["lives"]), {str(kind): _saved(one) for kind, one in found["memories"].items()})
        except (ValueError, KeyError, TypeError, AttributeError, binascii.Error) as error:
            raise StorageError(f"This agent's memories are damaged: {error}.") from error


def _saved(data: Mapping[str, Any]) -> SavedMemory:
    return SavedMemory(
        base64.b64decode(data["snapshot"], validate=True),
        dict(data["options"]),
        int(data["revision"]),
        str(data["saved_by"]),
        {str(run): int(steps) for run, steps in data["runs"].items()},
    )


class AgentMemories(RunMemories):
    """The memories of the seats of a run in the nexus.

    Args:
        owners: seat -> agent.
        past: seat -> memory recorded at the start of the run.
    """

    def __init__(
        self,
        read: Callable[[str], SavedMemories],
        owners: Mapping[str, str],
        past: Mapping[str, MemorySnapshot] | None = None,
        *,
        recorder: Recorder | None = None,
        run_id: str = "",
    ) -> None:
        super().__init__(owners, past, recorder=recorder)
        self.read = read
        """Returns the saved memories of an agent."""
        self.run_id = run_id

    @override
    def first(self, plan: SeatPlan, memory: AgentMemory | None) -> MemorySnapshot | None:
        if memory is None:
            return None
        owner = self.owners[plan.name]
        saved = self.read(owner)
        found = saved.of(kind_of(plan, memory))
        return MemorySnapshot(owner, saved.lives + 1, found.revision, found.snapshot)

    def remembered(self, seat: str) -> bytes | None:
        """Return the memories of a seat's agent, for its row; None if there is nothing to save."""
        if seat not in self.ready:
            return None
        plan, memory = self.ready[seat]
        saved, kind = self.read(self.owners[seat]), kind_of(plan, memory)
        now = saved.of(kind).saved(memory.snapshot(), self.run_id, options_of(plan))
        return saved.having(kind, now, lives=self.begun[seat].number).to_bytes()

    def remembered_by(self, owner: str) -> bytes | None:
        """Return the memories of an agent, for its row; None if it has no seat or nothing to save."""
        found = [seat for seat, agent in self.owners.items() if agent == owner]
        return self.remembered(found[0]) if found else None


def merged(
    saved: SavedMemory, begun: MemorySnapshot, memory: AgentMemory, lessons: Mapping[int, tuple[str, ...]],
    *, run_id: str, world: str,
) -> bytes:  # fmt: skip
    """Return the snapshot to save at the end of a run outside the nexus.

    If another run has saved the memory since this one started, it is the saved memory with this run's missing lessons.

    Raises:
        SnapshotError: the saved memory is damaged.
    """
    if not saved.snapshot or saved.revision == begun.revision or saved.saved_by == run_id:
        return memory.snapshot()
    memory.restore(saved.snapshot)
    for number in sorted(n for n in lessons if n >= saved.runs.get(run_id, 0)):
        for line in lessons[number]:
            memory.note(line, kind=LESSON, world=world, step=number + 1)
    return memory.snapshot()


def options_of(plan: SeatPlan) -> dict[str, Any]:
    """Return the options of a seat's memory, without secrets."""
    return redacted({n.removeprefix("memory."): v for n, v in plan.options.items() if n.startswith("memory.")})


def recollections(
    saved: SavedMemories, host: PluginHost, *, search: str = "", limit: int = 30
) -> tuple[list[Recollection], list[str]]:
    """Return items of an agent's memories, and the kinds that can't be read, each with the reason.

    The items are the best matches for `search`; if it is empty, lessons and then the newest items.
    """
    found: list[Recollection] = []
    missing: list[str] = []
    for kind, one in saved.memories.items():
        try:
            memory = _opened(kind, one, host)
        except WsapError as error:
            missing.append(f"{kind}: {error}")
            continue
        if search or not isinstance(memory, Browsable):
            found += list(memory.recall(search, budget=BUDGET * limit + 200))[:limit]
            continue
        lessons = list(memory.browse(LESSON, most=limit))
        others = [item for item in memory.browse(most=limit + len(lessons)) if item.kind != LESSON]
        found += [*lessons, *others][:limit]
    return found[:limit], missing


def _opened(kind: str, saved: SavedMemory, host: PluginHost) -> AgentMemory:
    if kind in _CLASSES:
        made: AgentMemory = load(_CLASSES[kind])()
    else:
        factory = host.memories.get(kind).factory
        try:
            made = build(factory, Context.create(config=dict(saved.options)))
        except WsapError:  # an option that only works in a run, such as a model for summaries
            made = build(factory, Context.create())
    if saved.snapshot:
        made.restore(saved.snapshot)
    return made
