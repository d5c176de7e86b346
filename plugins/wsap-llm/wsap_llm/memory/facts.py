"""Facts, plans and history: the protocol's plain `Memory`."""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import override

from wsap_core.errors import SnapshotError, WireError
from wsap_core.protocol import HistoryEntry, Memory, wire
from wsap_core.protocol.values import JsonValue
from wsap_core.seams.context import Context
from wsap_core.seams.memory import Recollection
from wsap_core.untrusted import error_line
from wsap_llm.memory.cells import FACT, Cell, CellMemory, cell_of, cut, listed, pack, unpack, within
from wsap_llm.memory.words import overlap, words
from wsap_llm.options.declared import option_defs, read_table
from wsap_llm.options.table import Range

FACTS, PLANS, HISTORY = 200, 20, 50
"""Maximum number of facts, plans and steps; the oldest are dropped first."""
OPTIONS = {"facts": Range(FACTS, 1, 5000), "plans": Range(PLANS, 1, 1000), "history": Range(HISTORY, 1, 1000)}
DECLARED = option_defs(OPTIONS)


class FactsMemory(CellMemory):
    """Stores facts, plans and the last steps, dropping the oldest of each when there are too many.

    A note of the kind "plan" is a plan, any other a fact; repeating a note makes it the newest. Each new achievement
    becomes a fact, with its action. Facts and plans from the initial `memory` have no provenance.
    """

    def __init__(
        self, memory: Memory | None = None, *, facts: int = FACTS, plans: int = PLANS, history: int = HISTORY
    ) -> None:
        self._most = (facts, plans, history)
        self._facts: list[Cell] = []
        self._plans: list[Cell] = []
        self._history: list[HistoryEntry] = []
        self._lived: list[Cell] = []
        if memory is not None:
            for kind, texts in (("fact", memory.facts), ("plan", memory.plans)):
                for text in texts:
                    self.note(text, kind=kind)
            self._history = list(memory.history)
            self._lived = [cell_of(entry) for entry in self._history]
            self._trim()

    @property
    def memory(self) -> Memory:
        """The content as the protocol's `Memory`, oldest first."""
        return Memory([c.text for c in self._facts], [c.text for c in self._plans], self._history)

    @override
    def remember(self, entry: HistoryEntry) -> None:
        lived = cell_of(entry, self.run)
        self._history.append(entry)
        self._lived.append(lived)
        for name in entry.result.achievements if entry.result is not None else ():
            text = f"I achieved {cut(name, 80)} by doing {cut(entry.action.name, 60)}."
            self._put(self._facts, Cell(text, lived.world, lived.step, "fact", FACT, run=lived.run))
        self._trim()

    @override
    def keep_note(self, cell: Cell) -> None:
        self._put(self._plans if cell.kind == "plan" else self._facts, cell)
        self._trim()

    @override
    def recall(self, query: str, *, budget: int) -> Sequence[Recollection]:
        """Return the best matches of the query; ties are ordered by plans, facts, steps, then newest first.

        The score is the share of a text's words that are in the query (0 to 1) plus its importance (0 to 1) plus up to
        0.1 for its recency among its kind.
        """
        asked = frozenset(words(query))
        scored: list[tuple[float, int, Recollection]] = []
        for cells in (self._plans, self._facts, self._lived):
            for age, cell in enumerate(reversed(cells)):
                score = round(overlap(words(cell.text), asked) + cell.importance + 0.1 / (1 + age), 6)
                scored.append((-score, len(scored), cell.recollection(score)))
        return within((found for _, _, found in sorted(scored, key=lambda s: s[:2])), budget)

    @override
    def compact(self) -> None:
        pass  # entries are dropped when others are added

    @override
    def browse(self, kind: str | None = None, *, most: int = 50) -> Sequence[Recollection]:
        """Return plans, facts and steps, each newest first."""
        cells = [cell for kept in (self._plans, self._facts, self._lived) for cell in reversed(kept)]
        return [cell.recollection() for cell in cells if kind in (None, cell.kind)][:most]

    @override
    def snapshot(self) -> bytes:
        state = {
            "facts": [cell.state() for cell in self._facts],
            "plans": [cell.state() for cell in self._plans],
            "history": [wire.dumps(entry) for entry in self._history],
            "runs": [cell.run for cell in self._lived],
        }
        return pack("facts", state)

    @override
    def restore(self, data: bytes) -> None:
        """Restore a snapshot; the extra fields of a game's own observation type are kept. Raises SnapshotError, without
        changes, if it is damaged or of another kind of memory."""
        state = unpack("facts", data)
        codec = wire.Codec()
        try:
            facts = [Cell.from_state(item) for item in listed(state, "facts")]
            plans = [Cell.from_state(item) for item in listed(state, "plans")]
            history = [codec.loads(HistoryEntry, _text(item)) for item in listed(state, "history")]
            runs = [_text(run) for run in listed(state, "runs")] if "runs" in state else [""] * len(history)
            lived = [cell_of(entry, run) for entry, run in zip(history, runs, strict=True)]
        except (ValueError, OverflowError, WireError) as error:
            raise SnapshotError(f"The facts memory's snapshot is damaged: {error_line(error, 200)}") from None
        self._facts, self._plans, self._history, self._lived = facts, plans, history, lived
        self._trim()

    @staticmethod
    def _put(cells: list[Cell], cell: Cell) -> None:
        cells[:] = [old for old in cells if (old.text, old.world) != (cell.text, cell.world)]
        cells.append(cell)

    def _trim(self) -> None:
        facts, plans, history = self._most
        del self._facts[: max(0, len(self._facts) - facts)]
        del self._plans[: max(0, len(self._plans) - plans)]
        del self._history[: max(0, len(self._history) - history)]
        del self._lived[: max(0, len(self._lived) - history)]


def _text(item: JsonValue) -> str:
    if not isinstance(item, str):
        raise ValueError("a step or a run is not text")
    return item


def create(context: Context) -> FactsMemory:
    """Return a memory of facts, plans and history, at most as many as the options `facts` (200), `plans` (20) and
    `history` (50). Raises ConfigError if an option is invalid."""
    return FactsMemory(**read_table("facts memory", context.config, OPTIONS))
