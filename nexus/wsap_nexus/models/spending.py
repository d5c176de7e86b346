"""Budgets for models: per run, decision, and day of a database."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from wsap_core.errors import UsageError
from wsap_core.seams.agent import NO_USAGE, Usage
from wsap_core.seams.model import Price
from wsap_core.seams.model_errors import BudgetReachedError
from wsap_core.seams.services import Services
from wsap_llm.backends.pool import ModelPool
from wsap_llm.middleware.budgets import Budget, BudgetLimits, Budgets

if TYPE_CHECKING:
    from wsap_core.host import PluginHost
    from wsap_nexus.store.repository import Repository

FRESH = 10.0
"""Seconds after which the usage of other processes is read again."""


class DaySpent:
    """The recorded usage of models today (UTC) by all runs of a database.

    `in_nexus`: this process plays the runs of the nexus, so they are read once and it counts their further usage.
    """

    def __init__(self, repository: Repository, now: Callable[[], datetime], *, in_nexus: bool = False) -> None:
        self._repository = repository
        self._now = now
        self._in_nexus = in_nexus
        self._own: set[str] = set()
        self._day = ""
        self._was_read = False
        self._read_to: dict[str, int] = {}
        self._spent: dict[str, Usage] = {}

    def leave_out(self, run_id: str) -> None:
        """Stop reading a run; the process that plays it counts its further usage."""
        self.read()
        self._own.add(run_id)

    def read(self) -> Usage:
        """Return the total, after reading new records; StorageError if the database can't be read."""
        midnight = self._now().astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        if self._day != midnight.isoformat():
            self._day = midnight.isoformat()
            self._spent = dict.fromkeys(self._own, NO_USAGE)
        outside = self._in_nexus and self._was_read
        self._was_read = True
        for run in self._repository.list_runs(since=midnight, without_nexus=outside):
            if run.id not in self._own and not run.config.get("replay"):
                self._read_run(run.id, midnight.timestamp())
        return sum(self._spent.values(), NO_USAGE)

    def _read_run(self, run_id: str, since: float) -> None:
        spent = self._spent.get(run_id, NO_USAGE)
        at = self._read_to.get(run_id, 0)
        for event in self._repository.read_events(run_id, from_seq=at, kinds=("call",)):
            at = event.seq + 1
            if event.time >= since:
                spent += Usage(**event.data["reply"]["finish"]["usage"])
        self._read_to[run_id], self._spent[run_id] = at, spent


class DayBudget(Budget):
    """The daily budget for all runs and processes of a database.

    The usage of other processes is read every `FRESH` seconds; their usage in between can exceed the limit.
    """

    def __init__(self, limits: BudgetLimits, recorded: DaySpent, now: Callable[[], datetime]) -> None:
        super().__init__("day", tokens=limits.tokens, cost=limits.cost, calls=limits.calls)
        self._recorded = recorded
        self._now = now
        self._read: datetime | None = None
        self._elsewhere = NO_USAGE

    def belongs_to(self, run_id: str) -> None:
        """Set the run of this process, so that it is not counted twice."""
        self._recorded.leave_out(run_id)

    def reserve(self, worst: Usage) -> None:
        """Reserve the maximum usage of a request.

        Raises:
            BudgetReachedError: it could exceed the limit; nothing is reserved.
            UsageError: the limit is in dollars, and the price of a model used today is unknown.
        """
        self._look()
        if self.cost is not None and self.spent.cost is None:
            raise UsageError(
                f"The limit of ${self.cost:g} a day can't be enforced: the price of a model used today is unknown; "
                "set a limit in tokens or calls."
            )
        super().reserve(worst)

    def _look(self) -> None:
        now = self._now().astimezone(UTC)
        if self._read is not None and self._read.date() != now.date():
            self.spent = self._elsewhere = NO_USAGE
            self._read = None
        if self._read is None or now - self._read >= timedelta(seconds=FRESH):
            recorded = self._recorded.read()
            self.spent = _less(self.spent, self._elsewhere) + recorded
            self._elsewhere, self._read = recorded, now

    def _reached(self, limit: str) -> BudgetReachedError:
        return BudgetReachedError(
            f"The next request could exceed the limit of {limit} a day for all runs of this database "
            f"(spent today: {self.spent.calls} calls, {self.spent.prompt_tokens + self.spent.completion_tokens} "
            "tokens); resume after midnight UTC, or with a higher limit."
        )


def limited_models(
    host: PluginHost,
    limits: Budgets,
    repository: Repository | None,
    *,
    run_id: str | None = None,
    in_nexus: bool = False,
    seed: int = 0,
    prices: Mapping[str, Price] | None = None,
    tell: Callable[[str], None] | None = None,
) -> ModelPool:
    """Return models with budgets.

    Args:
        repository: the recorded runs; None if this run is not recorded.
        run_id: the resumed run, whose earlier usage counts.
        in_nexus: whether the models are for a nexus, which plays many runs.
        seed: for backends that sample.
        prices: address -> price, for models whose backend does not know it.
        tell: called with messages about long waits and unexpected behaviour of servers; by default they are logged.

    Raises:
        UsageError: there is a daily limit, but the run is not recorded.
    """
    budgets: list[Budget] = []
    if limits.run:
        before = NO_USAGE if repository is None or run_id is None else spent_on(repository, run_id)
        budgets.append(limits.run.budget("run", before))
    if limits.day:
        if repository is None:
            raise UsageError(
                "A daily limit counts recorded runs, and this run is not recorded; record it, or limit the run."
            )
        from wsap_nexus.store.repository import utc_now

        budgets.append(DayBudget(limits.day, DaySpent(repository, utc_now, in_nexus=in_nexus), utc_now))
    services = Services(progress=tell)
    return ModelPool(host, budgets=budgets, prices=prices, services=services, seed=seed, decision=limits.decision)


def spent_on(repository: Repository, run_id: str) -> Usage:
    """Return the usage of models in a run from its recorded calls, which a killed run has, too."""
    calls = repository.read_events(run_id, kinds=("call",))
    return sum((Usage(**event.data["reply"]["finish"]["usage"]) for event in calls), NO_USAGE)


def _less(whole: Usage, part: Usage) -> Usage:
    cost = None if whole.cost is None or part.cost is None else whole.cost - part.cost
    return Usage(
        whole.calls - part.calls,
        whole.prompt_tokens - part.prompt_tokens,
        whole.completion_tokens - part.completion_tokens,
        cost,
    )
