"""Everything experienced, searched by relevance, recency and importance (SQLite FTS5)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from typing_extensions import override

from wsap_core.errors import SnapshotError
from wsap_core.protocol import HistoryEntry
from wsap_core.seams.context import Context
from wsap_core.seams.memory import Recollection
from wsap_llm.memory.cells import Cell, CellMemory, cell_of, pack, unpack, within
from wsap_llm.memory.store import Lived, Store, words_of
from wsap_llm.options.declared import FILE, Kind, option_defs, read_table
from wsap_llm.options.table import Range

KEEP = 10_000
"""Maximum number of entries."""
CANDIDATES = 48
"""Maximum number of matches that are ranked."""
OPTIONS: Mapping[str, Range | Kind] = {"path": FILE, "keep": Range(KEEP, 1, 1_000_000)}
DECLARED = option_defs(OPTIONS)


@dataclass(frozen=True)
class Weights:
    """The weights in an entry's score, the weighted sum of relevance, recency and importance.

    relevance   BM25 of the entry divided by the best among the candidates: 1 for the best match, 0 for no match
    recency     0.5 ** (age / half_life), with the age in moments, the number of entries added since
    importance  from 0 to 1, set when the entry was added (see `cells.py`)

    SQLite finds the candidates by its BM25. They are ranked by BM25 with k1 = 1.2, b = 0.75, the average length of the
    candidates and the weight ln(1 + (N - n + 0.5) / (n + 0.5)) of a word in n of N entries, because SQLite's weight is
    0 for a word in half of the entries, which in a new memory is every word. Park et al., "Generative Agents" (2023),
    add the same three terms with equal weights.
    """

    relevance: float = 1.0
    recency: float = 0.5
    importance: float = 0.5
    half_life: int = 200
    """Number of moments after which the recency has halved."""


DEFAULT_WEIGHTS = Weights()


class FullTextMemory(CellMemory):
    """Stores everything, and recalls the entries with the best score (see `Weights`).

    Candidates are the best matches of the query's words, the newest and the most important entries. A query is plain
    words, without syntax. Of equal texts of one world only the best is recalled.

    There are at most `keep` entries. Close to this limit `compact`, or at the limit adding an entry, deletes a tenth of
    them: those with the smallest moment plus importance times `keep`, so that an entry of importance 1 outlives one of
    importance 0 by `keep` moments.

    The memory is stored in the file `path`; None for one that ends with the agent. Raises MissingServiceError if this
    Python's SQLite has no FTS5, and StorageError if the file can't be used.
    """

    def __init__(self, path: str | None = None, *, keep: int = KEEP, weights: Weights = DEFAULT_WEIGHTS) -> None:
        self._store = Store(path)
        self._keep = keep
        self._weights = weights

    def __len__(self) -> int:
        return len(self._store)

    def close(self) -> None:
        """Close the database."""
        self._store.close()

    @override
    def remember(self, entry: HistoryEntry) -> None:
        """Store a step; raise StorageError if the file can't be written."""
        self._add(cell_of(entry, self.run))

    @override
    def keep_note(self, cell: Cell) -> None:
        self._add(cell)

    @override
    def recall(self, query: str, *, budget: int) -> Sequence[Recollection]:
        """Return the best entries within the budget, best first; the newest and most important if nothing matches."""
        if budget <= 0:
            return []
        matches, counts = self._store.matching(query, CANDIDATES)
        rows = (*matches, *self._store.newest_rows(8), *self._store.weightiest_rows(8))
        found = list({row.moment: row for row in rows}.values())
        relevance = _relevance(found, counts, len(self._store))
        scored = [(self._score(row, how), row) for row, how in zip(found, relevance, strict=True)]
        scored.sort(key=lambda s: (-s[0], -s[1].moment))
        distinct = {(row.cell.text, row.cell.world): (score, row) for score, row in reversed(scored)}
        chosen = sorted(distinct.values(), key=lambda s: (-s[0], -s[1].moment))
        return within((row.cell.recollection(score) for score, row in chosen), budget)

    @override
    def compact(self) -> None:
        if len(self._store) >= self._keep - self._keep // 40:
            self._forget()

    @override
    def browse(self, kind: str | None = None, *, most: int = 50) -> Sequence[Recollection]:
        rows = self._store.newest_rows(most) if kind is None else self._store.rows_of(kind, most)
        return [row.cell.recollection() for row in rows]

    @override
    def snapshot(self) -> bytes:
        rows = [[row.moment, *row.cell.state()] for row in self._store.all_rows()]
        return pack("fulltext", {"newest": self._store.newest, "rows": rows})

    @override
    def restore(self, data: bytes) -> None:
        """Restore a snapshot, also in the file. Raises SnapshotError if it is damaged or of another kind of memory, and
        StorageError if the file can't be written, both without changes."""
        state = unpack("fulltext", data)
        try:
            rows, newest = state.get("rows"), state.get("newest")
            if not isinstance(rows, list) or not isinstance(newest, int) or isinstance(newest, bool):
                raise ValueError("rows or moments are missing")
            self._store.replace([_row(item) for item in rows], newest)
        except (ValueError, OverflowError) as error:
            raise SnapshotError(f"The full-text memory's snapshot is damaged: {error}.") from None

    def _add(self, cell: Cell) -> None:
        self._store.add(cell)
        if len(self._store) > self._keep:
            self._forget()

    def _forget(self) -> None:
        if (over := len(self._store) - (self._keep - self._keep // 10)) > 0:
            self._store.forget(over, float(self._keep))

    def _score(self, row: Lived, relevance: float) -> float:
        w = self._weights
        recency: float = 0.5 ** ((self._store.newest - row.moment) / w.half_life)
        return round(w.relevance * relevance + w.recency * recency + w.importance * row.cell.importance, 9)


def _relevance(rows: Sequence[Lived], counts: Mapping[str, int], total: int) -> list[float]:
    weights = {word: math.log(1 + (total - count + 0.5) / (count + 0.5)) for word, count in counts.items()}
    texts = [words_of(row.cell) for row in rows]
    average = sum(map(len, texts)) / max(1, len(texts)) or 1.0
    found = []
    for text in texts:
        often = Counter(word for word in text if word in weights)
        damping = 1.2 * (0.25 + 0.75 * len(text) / average)
        found.append(sum(weights[word] * n * 2.2 / (n + damping) for word, n in often.items()))
    best = max(found, default=0.0)
    return [value / best if best else 0.0 for value in found]


def _row(item: object) -> Lived:
    if not isinstance(item, list) or not item or not isinstance(item[0], int) or isinstance(item[0], bool):
        raise ValueError("a row is a moment and a cell")
    return Lived(item[0], Cell.from_state(item[1:]))


def create(context: Context) -> FullTextMemory:
    """Return a memory with full-text search.

    Options: `path`, a file for use across runs (one for each agent), and `keep` (10,000). Raises ConfigError if an
    option is invalid, MissingServiceError if SQLite has no FTS5, and StorageError if the file can't be used.
    """
    return FullTextMemory(**read_table("fulltext memory", context.config, OPTIONS))
