"""The next episode to play: a missing one of a cell that has not reached its limits."""

from __future__ import annotations

import asyncio
import heapq
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from wsap_core.errors import UsageError
from wsap_core.protocol.lines import plural
from wsap_core.seams.agent import NO_USAGE, Usage
from wsap_eval.plan import Game, Job
from wsap_eval.records import EpisodeKey, EpisodeRecord, usage_of, value_of, worst_of
from wsap_eval.stats import sequence
from wsap_llm.kit import BudgetLimits

PILOT = 2
"""Episodes of each cell in a pilot."""
Cell = tuple[str, str]
"""Game and entrant."""


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

    @property
    def spending(self) -> BudgetLimits:
        """The limits on what models take."""
        return BudgetLimits(self.calls, self.tokens, self.cost)


NO_LIMITS = CellLimits()
NO_BUDGET = BudgetLimits()


@dataclass
class _Spending:
    """What the episodes of a cell took."""

    spent: Usage = NO_USAGE
    """By all of them; the cost leaves out failed ones of which it is unknown."""
    whole: Usage = NO_USAGE
    """By those that did not fail."""
    episodes: int = 0
    """Number of those that did not fail."""
    open: set[EpisodeKey] = field(default_factory=set)
    """Episodes in flight."""

    def add(self, record: EpisodeRecord) -> None:
        taken = usage_of([record])
        if record.outcome != "failed":
            self.whole += taken
            self.episodes += 1
        elif taken.cost is None:
            taken = Usage(taken.calls, taken.prompt_tokens, taken.completion_tokens, 0.0)
        self.spent += taken

    def expected(self, kind: str) -> float | None:
        """Return how much of a kind an episode is expected to take: their mean so far; None without any."""
        return _amount(self.whole, kind) / self.episodes if self.episodes else None


def _amount(usage: Usage, kind: str) -> float:
    if kind == "tokens":
        return usage.prompt_tokens + usage.completion_tokens
    return usage.calls if kind == "calls" else usage.cost or 0.0


def _limited(limits: BudgetLimits) -> list[tuple[str, float]]:
    return [(kind, most) for kind in ("calls", "tokens", "cost") if (most := getattr(limits, kind)) is not None]


class Due:
    """The missing episodes within limits.

    An episode starts only if what was spent, what is in flight and the episode itself, at the mean size of their cells
    so far, stay within the limits. Of a cell without a finished episode only one is in flight then.

    `jobs` are all episodes in the order of the plan; `known` are the finished ones, to which callers add new ones
    before they call `ended`; `total` limits all episodes together.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        games: Mapping[str, Game],
        known: Mapping[EpisodeKey, EpisodeRecord],
        limits: CellLimits,
        total: BudgetLimits = NO_BUDGET,
    ) -> None:
        self._games, self._known, self._limits, self._total = games, known, limits, total
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
        self.limit = ""
        """A sentence if the limits of all episodes leave no room for another one."""
        self._closed = False
        self._change = asyncio.Event()
        self._spending: dict[Cell, _Spending] = {cell: _Spending() for cell in self._cells}
        for record in known.values():
            self._spending.setdefault((record.game, record.entrant), _Spending()).add(record)

    def __aiter__(self) -> AsyncIterator[Job]:
        return self.those(lambda job: True)

    def those(self, wanted: Callable[[Job], bool]) -> Offer:
        """Return only the episodes that satisfy `wanted`, for one of several executors."""
        return Offer(self, filter(wanted, self.missing))

    def close(self) -> None:
        """Offer no further episode."""
        self._closed = True
        self._changed()

    def ended(self, record: EpisodeRecord) -> None:
        """Count an episode that is over; those that waited for room look again."""
        spending = self._spending[record.game, record.entrant]
        spending.open.discard(record.key)
        spending.add(record)
        self._changed()

    def _changed(self) -> None:
        self._change.set()
        self._change = asyncio.Event()

    def _room(self, cell: Cell, limits: BudgetLimits, cells: Sequence[Cell]) -> Literal["yes", "later", "no"]:
        """Return whether an episode of a cell fits into the limits of some cells, or may once others have ended."""
        own = [self._spending[each] for each in cells]
        open_ = any(each.open for each in own)
        mine = self._spending[cell]
        for kind, most in _limited(limits):
            if kind == "cost" and any(each.whole.cost is None for each in own):
                raise UsageError(
                    f"A limit of ${most:g} {'per cell' if len(cells) == 1 else 'in all'} can't be enforced: a model's "
                    "price is unknown; set a limit in tokens or calls, or state the price."
                )
            spent = sum(_amount(each.spent, kind) for each in own)
            expected = mine.expected(kind)
            if expected is None:
                if mine.open:
                    return "later"
                expected = 0.0
                if spent >= most:
                    return "no"
            if not expected and spent < most:
                continue
            flying = sum(len(each.open) * (each.expected(kind) or 0.0) for each in own if each.open)
            if spent + flying + expected > most * (1 + 1e-9):
                return "later" if open_ else "no"
        return "yes"

    def _offered(self, cell: Cell) -> Literal["yes", "later", "no"]:
        if cell in self.stopped:
            return "no"
        if why := self._enough(*cell):
            self.stopped[cell] = why
            return "no"
        found = self._room(cell, spending, [cell]) if (spending := self._limits.spending) else "yes"
        if found == "no":
            kind = next(
                k
                for k, _ in _limited(spending)
                if self._room(cell, BudgetLimits(**{k: getattr(spending, k)}), [cell]) == "no"
            )
            self.stopped[cell] = f"its limit of {kind}"
        return found

    def _takes_nothing(self, cell: Cell) -> bool:
        spending = self._spending[cell]
        return spending.episodes > 0 and all(not spending.expected(kind) for kind in ("calls", "tokens", "cost"))

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
        if count := self.settled(game, entrant):
            return f"{count} seeds give the requested half-width"
        if self._limits.half_width is not None and (why := self._blocked(game, entrant)):
            return why
        if (most := self._limits.episodes) is not None and self._given[game, entrant] >= most:
            return plural(most, "episode")
        return ""

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


class Offer:
    """Yields some of the due episodes in their order, to any number of tasks; each waits while there is no room.

    Cells whose limits are reached are left out. If the limits of all episodes have no room for one, no later one that
    costs anything overtakes it, so that all cells have the same seeds.
    """

    def __init__(self, due: Due, jobs: Iterator[Job]) -> None:
        self._due = due
        self._queues: dict[Cell, deque[tuple[int, Job]]] = {}
        for number, job in enumerate(jobs):
            self._queues.setdefault((job.key.game, job.key.entrant), deque()).append((number, job))
        self._heads = [(queue[0][0], cell) for cell, queue in self._queues.items()]
        heapq.heapify(self._heads)

    def __aiter__(self) -> Offer:
        return self

    async def __anext__(self) -> Job:
        while True:
            change = self._due._change
            if (job := self.at_once()) is not None:
                return job
            if not self._heads:
                raise StopAsyncIteration
            await change.wait()

    def close(self) -> None:
        """Offer no further episode to anyone."""
        self._due.close()

    def at_once(self) -> Job | None:
        """Return the next episode; None if there is none, or none has room now."""
        due = self._due
        if due._closed:
            self._heads.clear()
        aside, full, found = list[tuple[int, Cell]](), False, None
        while self._heads and found is None:
            number, cell = heapq.heappop(self._heads)
            room = due._offered(cell)
            if room == "yes" and due._total and not due._takes_nothing(cell):
                room = "later" if full else due._room(cell, due._total, list(due._spending))
                if room == "no":
                    due.limit = _full(due._total, due._spending.values())
                full = full or room != "yes"
            if room == "no":
                continue
            if room == "later":
                aside.append((number, cell))
                continue
            queue = self._queues[cell]
            found = queue.popleft()[1]
            if queue:
                aside.append((queue[0][0], cell))
            due._given[cell] += 1
            due._spending[cell].open.add(found.key)
        for head in aside:
            heapq.heappush(self._heads, head)
        return found


def _full(limits: BudgetLimits, cells: Iterable[_Spending]) -> str:
    spent = sum((each.spent for each in cells), NO_USAGE)
    told = ", ".join(f"${most:g}" if kind == "cost" else f"{most} {kind}" for kind, most in _limited(limits))
    taken = f"{spent.calls} calls, {_amount(spent, 'tokens')} tokens" + (
        "" if spent.cost is None else f", ${spent.cost:.2f}"
    )
    return f"The next episode is expected to exceed the limit of {told} in all (spent: {taken})"


def is_over(record: EpisodeRecord | None) -> bool:
    """Return whether an episode was played and has not failed."""
    return record is not None and record.outcome != "failed"
