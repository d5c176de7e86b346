"""Which episode is played next: what is missing, as long as no cell has had enough."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from wsap_core.specs import ScoreMetric
from wsap_eval.plan import Game, Job
from wsap_eval.records import EpisodeKey, EpisodeRecord, value_of
from wsap_eval.stats import contiguous, sequence

PILOT = 2
"""Episodes of each cell that a pilot plays."""


@dataclass(frozen=True)
class CellLimits:
    """When a cell has had enough; None for no such limit."""

    calls: int | None = None
    tokens: int | None = None
    cost: float | None = None
    """US dollars."""
    half_width: float | None = None
    """Of the confidence sequence of its figure: with more seeds it would not be worth its cost."""
    episodes: int | None = None

    def spent(self, found: Sequence[EpisodeRecord]) -> str:
        """Return which limit of spending its episodes have reached, in words; empty for none."""
        taken = {
            "calls": sum(r.calls for r in found),
            "tokens": sum(r.prompt_tokens + r.completion_tokens for r in found),
            "cost": sum(r.cost or 0.0 for r in found),
        }
        reached = (kind for kind, sum_ in taken.items() if (most := getattr(self, kind)) is not None and sum_ >= most)
        return next((f"its limit of {kind}" for kind in reached), "")


NO_LIMITS = CellLimits()


class Due:
    """The episodes that are missing, one after the other, asked for whenever one can be played.

    Args:
        jobs: all episodes, in the order of the plan.
        games: label -> game.
        known: the episodes that were played; whoever plays adds to it.
        limits: of each cell.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        games: Mapping[str, Game],
        known: Mapping[EpisodeKey, EpisodeRecord],
        limits: CellLimits,
    ) -> None:
        self._games, self._known, self._limits = games, known, limits
        self.missing = [job for job in jobs if not _is_over(known.get(job.key))]
        """What is missing, whether or not a cell has had enough."""
        self.done = len(jobs) - len(self.missing)
        """How many need not be played."""
        self._cells: dict[tuple[str, str], list[EpisodeKey]] = {}
        for job in jobs:
            self._cells.setdefault((job.key.game, job.key.entrant), []).append(job.key)
        self._repeats = Counter((key.game, key.entrant, key.seed) for keys in self._cells.values() for key in keys)
        self._settled: dict[tuple[str, str], int] = {}
        self._given = Counter(cell for cell, keys in self._cells.items() for key in keys if _is_over(known.get(key)))
        self._looked: dict[tuple[str, str], int] = {}
        self.stopped: dict[tuple[str, str], str] = {}
        """Cell -> why no more of it is played."""

    def __iter__(self) -> Iterator[Job]:
        return self.those(lambda job: True)

    def those(self, wanted: Callable[[Job], bool]) -> Iterator[Job]:
        """Give some of the episodes alone, for one of several places in which they are played."""
        for job in filter(wanted, self.missing):
            cell = (job.key.game, job.key.entrant)
            if cell not in self.stopped and (why := self._enough(*cell)):
                self.stopped[cell] = why
            if cell not in self.stopped:
                self._given[cell] += 1
                yield job

    def all_settled(self) -> dict[tuple[str, str], int]:
        """Return cell -> how many seeds gave the half-width asked for, of those that have it."""
        return {cell: count for cell in self._cells if (count := self.settled(*cell)) is not None}

    def settled(self, game: str, entrant: str) -> int | None:
        """Return how many seeds, from the first on, were needed for the half-width; None if they are not enough yet.

        Only seeds before the first that is missing are looked at, so that it does not matter who was quick.
        """
        wanted = self._limits.half_width
        if wanted is None or (game, entrant) in self._settled:
            return self._settled.get((game, entrant))
        metric = self._games[game].metric
        values = self._values(game, entrant, metric)
        seeds = contiguous(values, dict.fromkeys(key.seed for key in self._cells[game, entrant]))
        means = [sum(values[seed]) / len(values[seed]) for seed in seeds]
        for count in range(self._looked.get((game, entrant), 2), len(means) + 1):
            found, _ = sequence(means[:count], low=metric.low, high=metric.high)
            if found is not None and found.half_width <= wanted:
                self._settled[game, entrant] = count
                return count
        self._looked[game, entrant] = max(2, len(means) + 1)
        return None

    def _enough(self, game: str, entrant: str) -> str:
        if self._limits == NO_LIMITS:
            return ""
        found = [self._known[key] for key in self._cells[game, entrant] if key in self._known]
        if count := self.settled(game, entrant):
            return f"{count} seeds give the half-width asked for"
        if (most := self._limits.episodes) is not None and self._given[game, entrant] >= most:
            return f"{most} episodes"
        return self._limits.spent(found)

    def _values(self, game: str, entrant: str, metric: ScoreMetric) -> dict[int, list[float]]:
        keys = self._cells[game, entrant]
        values: dict[int, list[float]] = {}
        for key in keys:
            record = self._known.get(key)
            if record is not None and (value := value_of(record, metric.low)) is not None:
                values.setdefault(key.seed, []).append(value)
        return {seed: of_seed for seed, of_seed in values.items() if len(of_seed) == self._repeats[game, entrant, seed]}


def _is_over(record: EpisodeRecord | None) -> bool:
    return record is not None and record.outcome != "failed"
