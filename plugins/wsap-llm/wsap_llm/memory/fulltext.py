"""Everything lived through, searched by relevance, recency and importance (SQLite FTS5)."""

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
from wsap_llm.option_reading import NAME, read_table
from wsap_llm.option_table import Range

KEEP = 10_000
"""Most things that are remembered."""
CANDIDATES = 48
"""How many of those that match are weighed against each other."""


@dataclass(frozen=True)
class Weights:
    """What counts how much when memories are ranked: score = relevance + recency + importance, each weighed.

    relevance   the BM25 of this memory divided by the best in the answer: 1 for the best match, 0 without any
    recency     0.5 ** (age / half_life), the age in moments: things remembered since
    importance  from 0 to 1, as set when it was remembered (`cells.py` says by what)

    SQLite finds the matches, by its own BM25. They are weighed by BM25 with k1 = 1.2 and b = 0.75, the
    average length taken over the candidates, and ln(1 + (N - n + 0.5) / (n + 0.5)) for the weight of
    a word that n of N memories have; SQLite's weight is nothing for a word that half of them have,
    which in a young memory is every word. The three are those of Park et al., "Generative Agents"
    (2023), which adds them with equal weights.
    """

    relevance: float = 1.0
    recency: float = 0.5
    importance: float = 0.5
    half_life: int = 200
    """After how many moments the recency of a memory has halved."""


DEFAULT_WEIGHTS = Weights()


class FullTextMemory(CellMemory):
    """Remembers everything, and recalls what fits the moment.

    The candidates are the best matches of the query's words, the newest memories and the most important ones; they are
    ranked as `Weights` says. A query is words and nothing else: there is no syntax in it that a text could use. Of
    equal texts of one world the best is recalled alone.

    At most `keep` things are remembered, so a life may last as long as it likes. Shortly before that `compact` (or,
    where nobody calls it, remembering itself) forgets a tenth: those whose moment plus importance times `keep` is
    least, so that something of importance 1 outlives what does not matter by `keep` moments.

    It lives across runs in the file `path`; None for memory that ends with the agent. Raises MissingServiceError if
    this Python's SQLite has no FTS5, and StorageError if the file can't be used.
    """

    def __init__(self, path: str | None = None, *, keep: int = KEEP, weights: Weights = DEFAULT_WEIGHTS) -> None:
        self._store = Store(path)
        self._keep = keep
        self._weights = weights

    def __len__(self) -> int:
        return len(self._store)

    def close(self) -> None:
        """Close the database; nothing can be remembered afterwards."""
        self._store.close()

    @override
    def remember(self, entry: HistoryEntry) -> None:
        """Keep a lived step; raise StorageError if the file can't be written."""
        self._add(cell_of(entry, self.run))

    @override
    def keep_note(self, cell: Cell) -> None:
        self._add(cell)

    @override
    def recall(self, query: str, *, budget: int) -> Sequence[Recollection]:
        """Return what fits best within the budget, best first; the newest and weightiest where nothing matches."""
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
        """Forget what matters least, where there is too much."""
        if len(self._store) >= self._keep - self._keep // 40:
            self._forget()

    @override
    def browse(self, kind: str | None = None, *, most: int = 50) -> Sequence[Recollection]:
        """Return what is remembered, newest first."""
        rows = self._store.newest_rows(most) if kind is None else self._store.rows_of(kind, most)
        return [row.cell.recollection() for row in rows]

    @override
    def snapshot(self) -> bytes:
        rows = [[row.moment, *row.cell.state()] for row in self._store.all_rows()]
        return pack("fulltext", {"newest": self._store.newest, "rows": rows})

    @override
    def restore(self, data: bytes) -> None:
        """Become what the snapshot was taken of, the file included. Raises SnapshotError if it is damaged, or of
        another kind of memory, and StorageError if the file can't be written; nothing has changed then."""
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

    Options: `path`, a file to live in across runs (each agent needs its own), and `keep` (10,000). Raises ConfigError
    if an option is wrong, MissingServiceError if SQLite has no FTS5, and StorageError if the file can't be used.
    """
    return FullTextMemory(
        **read_table("fulltext memory", context.config, {"path": NAME, "keep": Range(KEEP, 1, 1_000_000)})
    )
