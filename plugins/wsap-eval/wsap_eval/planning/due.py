"""The next episode to play: a missing one of a cell that has not reached its limits."""

from __future__ import annotations

import asyncio
import heapq
import math
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Literal, Protocol, TypeVar

from wsap_core.errors import UsageError
from wsap_core.protocol.lines import plural
from wsap_core.seams.agent import NO_USAGE, Usage
from wsap_eval.planning.plan import Game
from wsap_eval.records import EpisodeKey, Over, usage_of, value_of, worst_of
from wsap_eval.stats import reached, sequence
from wsap_llm.kit import BudgetLimits

PILOT = 2
"""Episodes of each cell in a pilot."""
AT_ONCE = 1000
"""About how many episodes of a plan are looked at together."""
ALIKE = 30
"""Leading seeds of one trajectory after which a half-width is given up; fewer may be a run of luck."""
Cell = tuple[str, str]
"""Game and entrant."""


class Planned(Protocol):
    """What is played: an episode of an evaluation, or a game of a tournament."""

    @property
    def key(self) -> EpisodeKey:
        """Tells it from others."""


J = TypeVar("J", bound=Planned)
J_out = TypeVar("J_out", bound=Planned, covariant=True)


class Seeded(Protocol[J_out]):
    """Very many episodes, made as they are needed; see `wsap_eval.planning.plan.Plan`."""

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Game and entrant of each cell."""

    def place(self, key: EpisodeKey) -> int | None:
        """Return the place of an episode's seed, from 0; None for an episode of another plan."""

    def of_seeds(self, first: int, last: int, *, but: Container[Cell] = ()) -> Iterator[J_out]:
        """Yield the episodes of the seeds from the place `first` to before `last`, without those of some cells."""


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

    def add(self, record: Over) -> None:
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


class Due(Generic[J]):
    """The missing episodes within limits.

    An episode starts only if what was spent, what is in flight and the episode itself, at the mean size of their cells
    so far, stay within the limits. Of a cell without a finished episode only one is in flight then.

    `jobs` are all episodes in the order in which they are played, or a plan, whose seeds are looked at as they are
    needed; `known` are the finished ones, to which callers add new ones before they call `ended`; `total` limits all
    episodes together.
    """

    def __init__(
        self,
        jobs: Sequence[J] | Seeded[J],
        games: Mapping[str, Game],
        known: Mapping[EpisodeKey, Over],
        limits: CellLimits,
        total: BudgetLimits = NO_BUDGET,
    ) -> None:
        self._games, self._known, self._limits, self._total = games, known, limits, total
        self.missing: list[J] = []
        """Missing episodes, regardless of limits; of a plan those of the seeds so far, at least one of each cell."""
        self.done = 0
        self._cells: dict[Cell, list[EpisodeKey]] = {}
        self._repeats = Counter[tuple[str, str, int]]()
        self._settled: dict[tuple[str, str], int] = {}
        self._given = Counter[Cell]()
        self._looked: dict[tuple[str, str], int] = {}
        self._leading: dict[tuple[str, str], list[float]] = {}
        self._at = Counter[tuple[str, str]]()
        """Cell -> number of its episodes before the first seed without a value."""
        self._failed: dict[EpisodeKey, Over] = {}
        """Episodes that failed earlier and are to be repeated."""
        self.stopped: dict[tuple[str, str], str] = {}
        """Cell -> the reason why it stopped."""
        self._gone = set[Cell]()
        """Cells of which no further episode is offered."""
        self.limit = ""
        """A sentence if the limits of all episodes leave no room for another one."""
        self._closed = False
        self._change = asyncio.Event()
        self._offers: list[Offer[J]] = []
        self._plan = None if isinstance(jobs, Sequence) else jobs
        self._seeds = 0
        """How many seeds of the plan were looked at."""
        if isinstance(jobs, Sequence):
            self._take(jobs)
        else:
            self._seeds = max((place for key in known if (place := jobs.place(key)) is not None), default=-1) + 1
            self._take(jobs.of_seeds(0, self._seeds))
            self._more()
        self._spending: dict[Cell, _Spending] = {cell: _Spending() for cell in self._cells}
        for key, record in known.items():
            self._spending.setdefault((key.game, key.entrant), _Spending()).add(record)

    def _take(self, jobs: Iterable[J]) -> None:
        for job in jobs:
            key, record = job.key, self._known.get(job.key)
            cell = (key.game, key.entrant)
            self._cells.setdefault(cell, []).append(key)
            self._repeats[key.game, key.entrant, key.seed] += 1
            if is_over(record):
                self.done += 1
                self._given[cell] += 1
                continue
            if record is not None:
                self._failed[key] = record
            self.missing.append(job)
            for offer in self._offers:
                offer.add(job)

    def _more(self) -> bool:
        """Look at the next seeds of the plan; False if there are none."""
        cells = 0 if self._plan is None else len(self._plan.cells) - len(self._gone)
        if self._plan is None or not cells:
            return False
        last = self._seeds + math.ceil(AT_ONCE / cells)
        before = self.done + len(self.missing)
        self._take(self._plan.of_seeds(self._seeds, last, but=self._gone))
        self._seeds = last
        return self.done + len(self.missing) > before

    def __aiter__(self) -> AsyncIterator[J]:
        return self.those(lambda job: True)

    def those(self, wanted: Callable[[J], bool]) -> Offer[J]:
        """Return only the episodes that satisfy `wanted`, for one of several executors."""
        self._offers.append(Offer(self, wanted))
        return self._offers[-1]

    def close(self) -> None:
        """Offer no further episode."""
        self._closed = True
        self._changed()

    def ended(self, record: Over) -> None:
        """Count an episode that is over; those that waited for room look again."""
        spending = self._spending[record.key.game, record.key.entrant]
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
        same = self._same(game, entrant)  # that far they count as one, and there is no interval
        if self._vain(game, entrant):
            return None
        first = max(same + 1, self._looked.get((game, entrant), 2))
        if found := reached(means, wanted, first=first, low=metric.low, high=metric.high):
            self._settled[game, entrant] = found
        self._looked[game, entrant] = max(2, len(means) + 1)
        return found

    def gives_up(self, game: str, entrant: str) -> bool:
        """Return whether a half-width won't be reached by playing more seeds, so that none are played."""
        return self._limits.half_width is not None and bool(self._vain(game, entrant) or self._blocked(game, entrant))

    def unreached(self) -> Iterator[str]:
        """Yield what to know of each cell that has not reached the half-width, with the one it has."""
        wanted = self._limits.half_width
        if wanted is None:
            return
        for game, entrant in self._cells:
            if self.settled(game, entrant) is None:
                metric, means = self._games[game].reduced_metric, self._means(game, entrant)
                found, why = sequence(means, low=metric.low, high=metric.high)
                alike = self._vain(game, entrant)
                if not alike and 1 < len(means) == self._same(game, entrant):
                    alike = "all episodes have the same trajectory and count as one"
                if alike:
                    found, why = None, alike
                now = f"is {found.half_width:.2g}" if found else f"is unknown: {why.removesuffix('.')}"
                after = plural(len(means), "seed")
                whole = self._at[game, entrant] == len(self._cells[game, entrant])
                more = " Continue with a larger --seeds." if whole and not alike else ""
                yield f"{entrant} in {game}: the half-width {wanted:g} is not reached; after {after} it {now}.{more}"

    def _enough(self, game: str, entrant: str) -> str:
        if self._limits == NO_LIMITS:
            return ""
        if count := self.settled(game, entrant):
            return f"{count} seeds give the requested half-width"
        if self._limits.half_width is not None and (why := self._vain(game, entrant) or self._blocked(game, entrant)):
            return why
        if (most := self._limits.episodes) is not None and self._given[game, entrant] >= most:
            return plural(most, "episode")
        return ""

    def _same(self, game: str, entrant: str) -> int:
        """Return how many of the leading seeds have the same trajectory in all their episodes."""
        self._means(game, entrant)
        keys, at, count = self._cells[game, entrant][: self._at[game, entrant]], 0, 0
        while at < len(keys) and (first := self._known[keys[0]].path):
            until = at + self._repeats[game, entrant, keys[at].seed]
            if any(self._known[key].path != first for key in keys[at:until]):
                break
            at, count = until, count + 1
        return count

    def _vain(self, game: str, entrant: str) -> str:
        """Return why a half-width will hardly be known, if it would be but for the first seeds being all alike.

        It depends on the first `ALIKE` of them or more, not on how many later ones are known by now.
        """
        if (same := self._same(game, entrant)) < ALIKE:
            return ""
        metric, means = self._games[game].reduced_metric, self._means(game, entrant)
        found, _ = sequence(means[:same], low=metric.low, high=metric.high)
        if found is None or found.half_width > (self._limits.half_width or 0.0):
            return ""
        return f"all episodes of the first {same} seeds have the same trajectory and count as one"

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


class Offer(Generic[J]):
    """Yields some of the due episodes in their order, to any number of tasks; each waits while there is no room.

    Cells whose limits are reached are left out. If the limits of all episodes have no room for one, no later one that
    costs anything overtakes it, so that all cells have the same seeds.
    """

    def __init__(self, due: Due[J], wanted: Callable[[J], bool]) -> None:
        self._due, self._wanted = due, wanted
        self._queues: dict[Cell, deque[tuple[int, J]]] = {}
        self._heads: list[tuple[int, Cell]] = []
        self._number = 0
        for job in due.missing:
            self.add(job)

    def add(self, job: J) -> None:
        """Offer one more, if it is wanted."""
        if not self._wanted(job):
            return
        cell = (job.key.game, job.key.entrant)
        queue = self._queues.setdefault(cell, deque())
        queue.append((self._number, job))
        if len(queue) == 1:
            heapq.heappush(self._heads, (self._number, cell))
        self._number += 1

    def __aiter__(self) -> Offer[J]:
        return self

    async def __anext__(self) -> J:
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

    def at_once(self) -> J | None:
        """Return the next episode; None if there is none, or none has room now."""
        while True:
            if (found := self._next()) is not None or self._due._closed:
                return found
            if all(queue or cell in self._due._gone for cell, queue in self._queues.items()) or not self._due._more():
                return None

    def _next(self) -> J | None:
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
                due._gone.add(cell)
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


def is_over(record: Over | None) -> bool:
    """Return whether an episode was played and has not failed."""
    return record is not None and record.outcome != "failed"
