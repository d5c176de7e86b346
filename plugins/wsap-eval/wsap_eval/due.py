"""The next episode to play: a missing one of a cell that has not reached its limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from wsap_core.errors import UsageError
from wsap_core.protocol.lines import plural
from wsap_eval.plan import Game, Job
from wsap_eval.records import EpisodeKey, EpisodeRecord, value_of, worst_of
from wsap_eval.stats import sequence

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
        self.missing = [job for job in jobs if not is_over(known.get(job.key))]
        """Missing episodes, regardless of limits."""
        self.done = len(jobs) - len(self.missing)
        self._cells: dict[tuple[str, str], list[EpisodeKey]] = {}
        for job in jobs:
            self._cells.setdefault((job.key.game, job.key.entrant), []).append(job.key)
        self._repeats = Counter((key.game, key.entrant, key.seed) for keys in self._cells.values() for key in keys)
        self._settled: dict[tuple[str, str], int] = {}
        self._given = Counter(cell for cell, keys in self._cells.items() for key in keys if is_over(known.get(key)))
        self._looked: dict[tuple[str, str], int] = {}
        self._leading: dict[tuple[str, str], list[float]] = {}
        self._at = Counter[tuple[str, str]]()
        """Cell -> number of its episodes before the first seed without a value."""
        self._failed = {job.key: known[job.key] for job in self.missing if job.key in known}
        """Episodes that failed earlier and are to be repeated."""
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
        metric, means = self._games[game].reduced_metric, self._means(game, entrant)
        for count in range(self._looked.get((game, entrant), 2), len(means) + 1):
            found, _ = sequence(means[:count], low=metric.low, high=metric.high)
            if found is not None and found.half_width <= wanted:
                self._settled[game, entrant] = count
                return count
        self._looked[game, entrant] = max(2, len(means) + 1)
        return None

    def unreached(self) -> Iterator[str]:
        """Yield a sentence for each cell that has not reached the half-width, with the one it has."""
        wanted = self._limits.half_width
        if wanted is None:
            return
        for game, entrant in self._cells:
            if self.settled(game, entrant) is None:
                metric, means = self._games[game].reduced_metric, self._means(game, entrant)
                found, why = sequence(means, low=metric.low, high=metric.high)
                now = f"is {found.half_width:.2g}" if found else f"is unknown: {why.removesuffix('.')}"
                after = plural(len(means), "seed")
                yield f"{entrant} in {game}: the half-width {wanted:g} is not reached; after {after} it {now}."

    def _enough(self, game: str, entrant: str) -> str:
        if self._limits == NO_LIMITS:
            return ""
        found = [self._known[key] for key in self._cells[game, entrant] if key in self._known]
        if count := self.settled(game, entrant):
            return f"{count} seeds give the requested half-width"
        if self._limits.half_width is not None and (why := self._blocked(game, entrant)):
            return why
        if (most := self._limits.episodes) is not None and self._given[game, entrant] >= most:
            return plural(most, "episode")
        return self._limits.spent(found)

    def _means(self, game: str, entrant: str) -> list[float]:
        """Return the values of the leading seeds whose repeats all have a value; each seed is looked at once."""
        means, keys = self._leading.setdefault((game, entrant), []), self._cells[game, entrant]
        worst = worst_of(self._games[game].metric)
        at = self._at[game, entrant]
        while at < len(keys):
            count = self._repeats[game, entrant, keys[at].seed]
            known = [self._known[key] for key in keys[at : at + count] if key in self._known]
            values = [value for record in known if (value := value_of(record, worst)) is not None]
            mean = self._games[game].of_seed(values)
            if len(values) < count or mean is None:
                break
            means.append(mean)
            at += count
        self._at[game, entrant] = at
        return means

    def _blocked(self, game: str, entrant: str) -> str:
        """Return why later seeds don't help to know a half-width, which is known up to the first missing value."""
        self._means(game, entrant)
        at, keys = self._at[game, entrant], self._cells[game, entrant]
        count = self._repeats[game, entrant, keys[at].seed] if at < len(keys) else 0
        for key in keys[at : at + count]:
            record = self._known.get(key)
            if record is None or record is self._failed.get(key):
                continue
            if record.outcome == "failed":
                return f"seed {key.seed} failed, and a half-width is known up to the first missing seed"
            if value_of(record, worst_of(self._games[game].metric)) is None:
                return f"seed {key.seed} has no value, and a half-width is known up to the first missing value"
        return ""


def is_over(record: EpisodeRecord | None) -> bool:
    """Return whether an episode was played and has not failed."""
    return record is not None and record.outcome != "failed"
