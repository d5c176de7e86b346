"""The next episode to play: a missing one of a cell that has not reached its limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from wsap_core.errors import UsageError
from wsap_core.protocol.lines import plural
from wsap_core.specs import ScoreMetric
from wsap_eval.plan import Game, Job
from wsap_eval.records import EpisodeKey, EpisodeRecord, value_of, worst_of
from wsap_eval.stats import contiguous, sequence

PILOT = 2
"""Episodes of each cell in a pilot."""


@dataclass(frozen=True)
class CellLimits:
    """Limits of each cell; None for no limit."""

    calls: int | None = None
    tokens: int | None = None
    cost: float | None = None
    """US dollars."""
    half_width: float | None = None
    """Sampling stops once the confidence sequence of its score is this narrow."""
    episodes: int | None = None

    def spent(self, found: Sequence[EpisodeRecord]) -> str:
        """Name the spending limit that its episodes have reached; empty for none.

        Raises:
            UsageError: a limit in US dollars is set, and the cost of an episode is unknown.
        """
        if self.cost is not None and any(r.cost is None for r in found if r.outcome != "failed"):
            raise UsageError(
                f"A limit of ${self.cost:g} per cell can't be enforced: a model's price is unknown; set a limit in "
                "tokens or calls, or state the price."
            )
        taken = {
            "calls": sum(r.calls for r in found),
            "tokens": sum(r.prompt_tokens + r.completion_tokens for r in found),
            "cost": sum(r.cost or 0.0 for r in found),
        }
        reached = (kind for kind, sum_ in taken.items() if (most := getattr(self, kind)) is not None and sum_ >= most)
        return next((f"its limit of {kind}" for kind in reached), "")


NO_LIMITS = CellLimits()


class Due:
    """Iterates over the missing episodes within the cells' limits.

    `jobs` are all episodes in the order of the plan; `known` are the finished ones, to which callers add new ones.
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
        """Missing episodes, regardless of limits."""
        self.done = len(jobs) - len(self.missing)
        self._cells: dict[tuple[str, str], list[EpisodeKey]] = {}
        for job in jobs:
            self._cells.setdefault((job.key.game, job.key.entrant), []).append(job.key)
        self._repeats = Counter((key.game, key.entrant, key.seed) for keys in self._cells.values() for key in keys)
        self._settled: dict[tuple[str, str], int] = {}
        self._given = Counter(cell for cell, keys in self._cells.items() for key in keys if _is_over(known.get(key)))
        self._looked: dict[tuple[str, str], int] = {}
        self.stopped: dict[tuple[str, str], str] = {}
        """Cell -> the reason why it stopped."""

    def __iter__(self) -> Iterator[Job]:
        return self.those(lambda job: True)

    def those(self, wanted: Callable[[Job], bool]) -> Iterator[Job]:
        """Yield only the episodes that satisfy `wanted`, for one of several executors."""
        for job in filter(wanted, self.missing):
            cell = (job.key.game, job.key.entrant)
            if cell not in self.stopped and (why := self._enough(*cell)):
                self.stopped[cell] = why
            if cell not in self.stopped:
                self._given[cell] += 1
                yield job

    def all_settled(self) -> dict[tuple[str, str], int]:
        """Return cell -> number of seeds that gave the half-width, for the cells that have reached it."""
        return {cell: count for cell in self._cells if (count := self.settled(*cell)) is not None}

    def settled(self, game: str, entrant: str) -> int | None:
        """Return the number of leading seeds needed for the half-width; None if it is not reached yet.

        Considers only seeds before the first missing one, so that the speed of workers has no influence.
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
            return f"{count} seeds give the requested half-width"
        if (most := self._limits.episodes) is not None and self._given[game, entrant] >= most:
            return plural(most, "episode")
        return self._limits.spent(found)

    def _values(self, game: str, entrant: str, metric: ScoreMetric) -> dict[int, list[float]]:
        keys = self._cells[game, entrant]
        values: dict[int, list[float]] = {}
        for key in keys:
            record = self._known.get(key)
            if record is not None and (value := value_of(record, worst_of(metric))) is not None:
                values.setdefault(key.seed, []).append(value)
        return {seed: of_seed for seed, of_seed in values.items() if len(of_seed) == self._repeats[game, entrant, seed]}


def _is_over(record: EpisodeRecord | None) -> bool:
    return record is not None and record.outcome != "failed"
