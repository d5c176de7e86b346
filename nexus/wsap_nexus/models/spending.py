"""What may be spent on models: in a run, for a decision, and in a day of this database."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from wsap_core.errors import UsageError
from wsap_core.seams.agent import NO_USAGE, Usage
from wsap_core.seams.model import Price
from wsap_core.seams.model_errors import BudgetReachedError
from wsap_llm.backends.pool import ModelPool
from wsap_llm.middleware import Budget, BudgetLimits, Budgets

if TYPE_CHECKING:
    from wsap_core.host import PluginHost
    from wsap_nexus.store.repository import Repository

FRESH = 10.0
"""Seconds for which it is believed what other processes have spent today."""


def utc_now() -> datetime:
    """Return the machine's wall clock."""
    return datetime.now(UTC)


class DaySpent:
    """What the runs of a database have asked of models today, in UTC, as far as it is recorded.

    Args:
        repository: where the runs are.
        now: the wall clock.
    """

    def __init__(self, repository: Repository, now: Callable[[], datetime]) -> None:
        self._repository = repository
        self._now = now
        self._own: set[str] = set()
        self._day = ""
        self._read_to: dict[str, int] = {}
        self._spent: dict[str, Usage] = {}

    def leave_out(self, run_id: str) -> None:
        """Count no more of a run than is recorded of it now: whoever plays it counts what comes."""
        self.read()
        self._own.add(run_id)

    def read(self) -> Usage:
        """Return the sum, after reading what has been recorded since the last time.

        Raises:
            StorageError: the database can't be read.
        """
        midnight = self._now().astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        if self._day != midnight.isoformat():
            self._day = midnight.isoformat()
            self._spent = dict.fromkeys(self._own, NO_USAGE)
        for run in self._repository.list_runs(since=midnight):
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
    """What may be spent in a day of a database, whichever runs and processes spend it.

    What other processes have spent is looked up again when it is older than `FRESH` seconds, so two
    of them that spend at the same moment can pass the limit by as much as that.

    Args:
        limits: of a day.
        recorded: what is recorded of it.
        now: the wall clock.
    """

    def __init__(self, limits: BudgetLimits, recorded: DaySpent, now: Callable[[], datetime]) -> None:
        super().__init__("day", tokens=limits.tokens, cost=limits.cost, calls=limits.calls)
        self._recorded = recorded
        self._now = now
        self._read: datetime | None = None
        self._elsewhere = NO_USAGE

    def belongs_to(self, run_id: str) -> None:
        """Say which run is played in this process, so that it is not counted twice."""
        self._recorded.leave_out(run_id)

    def reserve(self, worst: Usage) -> None:
        """Hold what a request may take at worst.

        Raises:
            BudgetReachedError: the limit could be passed; nothing is held.
            UsageError: a limit in money is set, and what a model costs that was asked today is not known.
        """
        self._look()
        if self.cost is not None and self.spent.cost is None:
            raise UsageError(
                f"A limit of ${self.cost:g} a day can't be kept: what a model costs that was asked today is not known; "
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
            f"The next request could pass the limit of {limit} a day, over all runs of this database "
            f"(spent today: {self.spent.calls} calls, {self.spent.prompt_tokens + self.spent.completion_tokens} "
            "tokens); resume the run after midnight UTC, or with a higher limit."
        )


def limited_models(
    host: PluginHost,
    limits: Budgets,
    repository: Repository | None,
    *,
    run_id: str | None = None,
    prices: Mapping[str, Price] | None = None,
    now: Callable[[], datetime] = utc_now,
) -> ModelPool:
    """Return models that keep to limits.

    Args:
        host: where backends are registered.
        limits: of each scope.
        repository: where runs are recorded; None if this one is not.
        run_id: the run, if it is gone on with: what it took before counts.
        prices: address -> price, for models whose backend does not know it.
        now: the wall clock.

    Raises:
        UsageError: a day has a limit, and the run is not recorded.
    """
    budgets: list[Budget] = []
    if limits.run:
        before = NO_USAGE if repository is None or run_id is None else spent_on(repository, run_id)
        budgets.append(limits.run.budget("run", before))
    if limits.day:
        if repository is None:
            raise UsageError("A day's limit counts what is recorded, and this run is not; record it, or limit the run.")
        budgets.append(DayBudget(limits.day, DaySpent(repository, now), now))
    return ModelPool(host, budgets=budgets, prices=prices, decision=limits.decision)


def spent_on(repository: Repository, run_id: str) -> Usage:
    """Return what was asked of models in a run, call by call: also where it was killed and has no summary."""
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
