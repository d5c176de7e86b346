"""BudgetLimits for a run, a decision and a day, checked before anything is sent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hosts import host_with_ours
from hypothesis import given
from hypothesis import strategies as st
from life_kit import Script, host_with, nexus_at

from wsap_core import PluginHost
from wsap_core.errors import ConfigError, UsageError
from wsap_core.host import Registration
from wsap_core.seams.agent import NO_USAGE, Usage
from wsap_core.seams.context import Context
from wsap_core.seams.model import Request
from wsap_core.seams.model_errors import BudgetReachedError
from wsap_core.specs import BackendSpec
from wsap_llm.backends.pool import AgentModels, ModelPool
from wsap_llm.scripted import ScriptedBackend
from wsap_nexus.api import BudgetLimits, Budgets, list_runs, play, read_run, resume_run
from wsap_nexus.models.spending import FRESH, DayBudget, DaySpent, spent_on
from wsap_nexus.runs.session import replies_of, run_to_end, start
from wsap_nexus.runs.store import open_store
from wsap_nexus.store.database import Database
from wsap_nexus.store.entities import Policy
from wsap_nexus.store.events import NexusEvent
from wsap_nexus.store.log.eventlog import LogWriter
from wsap_nexus.store.records import NewRun
from wsap_nexus.store.repository import Repository

TOOLS_FIRST = 2
"""Tool calls that the model makes before each action."""


class Asker:
    """A model that calculates before it acts."""

    def __init__(self) -> None:
        self.asked = 0

    def make(self, context: Context) -> ScriptedBackend:
        known = context.config.get("known")
        return ScriptedBackend(self.answer, model=f"asker/{context.config['model']}{known or ''}")

    def answer(self, request: Request) -> str:
        self.asked += 1
        used = sum("Result of" in message.text() for message in request.messages[-2 * TOOLS_FIRST :])
        if used < TOOLS_FIRST:
            return json.dumps({"tool": "calculator", "params": {"expression": f"{self.asked} + 1"}})
        return json.dumps({"action": "speak", "params": {"text": f"turn {len(request.messages)}"}})


@pytest.fixture
def asker() -> Asker:
    return Asker()


@pytest.fixture
def host(asker: Asker) -> PluginHost:
    own = host_with_ours()
    own.backends.add(Registration(BackendSpec("asker", "", asker.make), "t", "t"))
    return own


@pytest.fixture
def database(tmp_path: Path) -> str:
    return str(tmp_path / "runs.db")


OPTIONS: dict[str, Any] = {"model": "asker/x", "tools": "calculator", "plan": "no", "window": 2}


def run(host: PluginHost, database: str, budgets: Budgets | None, *, steps: int = 4) -> Any:
    return play(
        "echo", "llm", agent_options=OPTIONS, steps=steps, options={"length": 50}, database=database, host=host,
        budgets=budgets,
    )  # fmt: skip


def calls(database: str, run: str = "last") -> list[Usage]:
    with open_store(database) as store:
        record = store.repository.get_run(run)
        events = list(store.repository.read_events(record.id, kinds=("call",)))
    return [Usage(**event.data["reply"]["finish"]["usage"]) for event in events]


def test_a_decision_stops_before_it_asks_more_often_than_it_may_and_goes_on_with_a_higher_limit(
    host: PluginHost, asker: Asker, database: str
) -> None:
    with pytest.raises(BudgetReachedError, match=r"limit of 2 calls a decision .*raise the limit and resume"):
        run(host, database, Budgets(decision=BudgetLimits(calls=2)))
    assert asker.asked == 2
    record = list_runs(database=database)[0]
    assert record.status == "interrupted"
    with pytest.raises(BudgetReachedError, match="2 calls a decision"):
        resume_run(database=database, host=host, budgets=Budgets(decision=BudgetLimits(calls=2)))
    assert asker.asked == 2, "what the decision asked before the pause counts, and is not asked again"
    summary = resume_run(database=database, host=host, budgets=Budgets(decision=BudgetLimits(calls=3)))
    assert (summary.steps, asker.asked) == (4, 12)
    assert [step.step for step in read_run(database=database, host=host).steps] == [1, 2, 3, 4]


def test_a_limit_of_a_decision_is_not_one_of_the_run(host: PluginHost, asker: Asker, database: str) -> None:
    assert run(host, database, Budgets(decision=BudgetLimits(calls=3))).steps == 4
    assert asker.asked == 12
    largest = max(
        sum((u.prompt_tokens + u.completion_tokens for u in calls(database)[i : i + 3]), 0) for i in range(0, 12, 3)
    )
    # The reply's reserve of 300 tokens is what makes the worst case of the last call.
    assert run(host, database, Budgets(decision=BudgetLimits(tokens=largest + 300))).steps == 4
    with pytest.raises(BudgetReachedError, match="tokens a decision"):
        run(host, database, Budgets(decision=BudgetLimits(tokens=largest)))


@pytest.mark.parametrize("limit", [1, 4, 7])
def test_a_run_that_was_killed_has_not_forgotten_what_it_spent(
    limit: int, host: PluginHost, asker: Asker, database: str
) -> None:
    """Without a summary, as a killed process leaves it."""
    with pytest.raises(BudgetReachedError):
        run(host, database, Budgets(run=BudgetLimits(calls=limit)))
    with open_store(database) as store:
        record = store.repository.list_runs()[0]
        assert spent_on(store.repository, record.id).calls == limit
        with store.database.write() as connection:
            connection.exec_driver_sql("UPDATE run SET summary = NULL, status = 'running'")
    with pytest.raises(BudgetReachedError, match=f"{limit + 2} calls a run"):
        resume_run(database=database, host=host, budgets=Budgets(run=BudgetLimits(calls=limit + 2)))
    assert asker.asked == limit + 2


def test_a_day_counts_all_runs_of_the_database_and_says_what_to_do(
    host: PluginHost, asker: Asker, database: str
) -> None:
    assert run(host, database, None).steps == 4
    with pytest.raises(BudgetReachedError, match=r"18 calls a day.*spent today: 18 calls.*after midnight UTC, or with"):
        run(host, database, Budgets(day=BudgetLimits(calls=18)))
    assert asker.asked == 18
    with pytest.raises(BudgetReachedError, match="spent today: 18 calls"):
        resume_run(database=database, host=host, budgets=Budgets(day=BudgetLimits(calls=18)))
    summary = resume_run(database=database, host=host, budgets=Budgets(day=BudgetLimits(calls=24)))
    assert (summary.steps, asker.asked) == (4, 24)


def test_a_run_that_is_played_again_takes_nothing_of_a_day_and_is_not_gone_on_with(
    host: PluginHost, asker: Asker, database: str
) -> None:
    first = run(host, database, None)
    with open_store(database) as store:
        again, past = replies_of(str(first.run), store)
        with start(again, host, store, past=past) as session:
            second = run_to_end(session)
        now = datetime.now(UTC)
        assert DaySpent(store.repository, lambda: now).read().calls == 12
        store.repository.set_status(str(second.run), store.repository.get_run(str(first.run)).status.INTERRUPTED)
    with pytest.raises(UsageError, match="replays another run"):
        resume_run(str(second.run), database=database, host=host)


def test_a_day_can_not_be_limited_without_a_record(host: PluginHost) -> None:
    with pytest.raises(UsageError, match="A daily limit counts recorded runs"):
        play("echo", "llm", agent_options=OPTIONS, record=False, host=host, budgets=Budgets(day=BudgetLimits(calls=1)))


def test_an_option_that_the_backend_does_not_read_is_refused_with_a_guess_and_one_that_it_reads_is_kept(
    host: PluginHost, database: str
) -> None:
    options = {**OPTIONS, "tools": ""}
    with pytest.raises(ConfigError, match=r"backend 'asker' has no option 'knwon'. Did you mean 'known'\?"):
        play("echo", "llm", agent_options={**options, "model.knwon": 1}, steps=1, host=host, record=False)
    play("echo", "llm", agent_options={**options, "model.known": 7}, steps=1, database=database, host=host)
    assert list_runs(database=database)[0].config["seats"][0]["options"]["model.known"] == 7


# --- the day, with a clock of its own -----------------------------------------------------------


class Books:
    """Runs of a database whose calls are written with whatever time it is said to be."""

    def __init__(self, database: Database, now: datetime) -> None:
        self.now = now
        self.repository = Repository(database, now=lambda: self.now, token=iter("abcdefghijklmnop").__next__)
        self.log = LogWriter(database, wall_clock=lambda: self.now.timestamp())

    def begin(self, **config: Any) -> str:
        return self.repository.create_run(NewRun(game="echo", agent="llm", config=config)).id

    def spend(self, run: str, count: int, *, cost: float | None = 0.5) -> None:
        for _ in range(count):
            usage = {"calls": 1, "prompt_tokens": 100, "completion_tokens": 10, "cost": cost}
            self.log.append(run, "call", json.dumps({"reply": {"finish": {"usage": usage}}}))
        self.log.flush()


@pytest.fixture
def books(tmp_path: Path) -> Any:
    with Database.open(tmp_path / "runs.db") as database:
        own = Books(database, datetime(2026, 11, 20, 22, 0, tzinfo=UTC))
        with own.log:
            yield own


ONE = Usage(1, 100, 10, 0.5)


def test_what_was_spent_before_midnight_in_utc_is_of_another_day(books: Books) -> None:
    run = books.begin()
    books.spend(run, 3)
    spent = DaySpent(books.repository, lambda: books.now)
    assert spent.read() == Usage(3, 300, 30, 1.5)
    books.now += timedelta(hours=3)
    assert spent.read() == NO_USAGE
    books.spend(run, 2)
    assert spent.read().calls == 2
    elsewhere = books.now.astimezone().replace(tzinfo=None).astimezone()  # the same moment, in another zone
    assert DaySpent(books.repository, lambda: elsewhere).read().calls == 2


def test_a_day_counts_what_other_processes_spend_meanwhile_and_its_own_run_once(books: Books) -> None:
    own, other = books.begin(), books.begin()
    books.spend(own, 1)
    budget = DayBudget(BudgetLimits(calls=10), DaySpent(books.repository, lambda: books.now), lambda: books.now)
    budget.belongs_to(own)
    for _ in range(3):
        budget.reserve(ONE)
        budget.settle(ONE, ONE)
        books.spend(own, 1)  # as it is recorded
    books.spend(other, 5)
    books.now += timedelta(seconds=FRESH)
    budget.reserve(ONE)
    budget.settle(ONE, ONE)
    assert budget.spent.calls == 10
    with pytest.raises(BudgetReachedError, match="spent today: 10 calls"):
        budget.reserve(ONE)
    books.now += timedelta(hours=2)  # a new day, in the middle of the run
    budget.reserve(ONE)
    budget.settle(ONE, ONE)
    assert budget.spent.calls == 1


def test_a_limit_in_money_is_refused_where_a_price_of_today_is_not_known(books: Books) -> None:
    books.spend(books.begin(), 1, cost=None)
    budget = DayBudget(BudgetLimits(cost=9.0), DaySpent(books.repository, lambda: books.now), lambda: books.now)
    with pytest.raises(UsageError, match="the price of a model used today is unknown"):
        budget.reserve(ONE)
    DayBudget(BudgetLimits(calls=9), DaySpent(books.repository, lambda: books.now), lambda: books.now).reserve(ONE)


def _spend(budget: DayBudget) -> bool:
    try:
        budget.reserve(ONE)
    except BudgetReachedError:
        return False
    budget.settle(ONE, ONE)
    return True


@given(st.lists(st.sampled_from(["own", "other", "wait", "look"]), max_size=30), st.integers(0, 12))
def test_a_day_never_passes_its_limit_by_what_it_knows_of(events: list[str], limit: int) -> None:
    """Against a plain count of what is known: all of one's own, and others' as of the last look."""
    now = [datetime(2026, 11, 20, tzinfo=UTC)]
    others = [0]

    class Recorded:
        read: Callable[[], Usage] = staticmethod(lambda: Usage(others[0], 0, 0, 0.0))

    budget = DayBudget(BudgetLimits(calls=limit), Recorded(), lambda: now[0])  # type: ignore[arg-type]
    own, known, looked = 0, 0, None
    for event in events:
        if event == "other":
            others[0] += 1
        elif event == "wait":
            now[0] += timedelta(seconds=FRESH / 2)
        else:
            if looked is None or now[0] - looked >= timedelta(seconds=FRESH):
                known, looked = others[0], now[0]
            may = own + known + 1 <= limit
            assert _spend(budget) is may
            own += may


def test_without_limits_there_is_nothing_to_check(host: PluginHost) -> None:
    assert not BudgetLimits()
    assert BudgetLimits(calls=0)
    models = ModelPool(host)
    assert AgentModels(models, "asker/x").decider() is models.backend("asker/x")


def test_the_options_of_a_model_hold_for_the_summaries_that_its_backend_writes(host: PluginHost, asker: Asker) -> None:
    made: list[tuple[str, Any]] = []

    def make(context: Context) -> ScriptedBackend:
        made.append((context.config["model"], context.config.get("known")))
        return asker.make(context)

    host.backends = type(host.backends)(BackendSpec, "backend", "backends")
    host.backends.add(Registration(BackendSpec("asker", "", make), "t", "t"))
    options = {**OPTIONS, "model.known": 7, "memory": "fifo", "memory.summary_model": "asker/short"}
    play("echo", "llm", agent_options=options, steps=1, host=host, record=False)
    assert sorted(made) == [("short", 7), ("x", 7)]


# --- in a nexus -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_day_limits_all_agents_of_a_nexus_together_also_after_it_was_started_anew(tmp_path: Path) -> None:
    answer = json.dumps({"action": "review_achievements", "params": {}})
    agents = {name: {"*": Policy("llm", {"model": "script/it", "plan": "no"})} for name in ("ada", "bob")}

    # So few that neither agent runs out of repetitions that need no model before both are told.
    limits = Budgets(day=BudgetLimits(calls=4))
    script = Script({"decide": answer})

    async def live(new: Mapping[str, Mapping[str, Policy]]) -> list[NexusEvent]:
        async with nexus_at(tmp_path, new, host=host_with(script=script), limits=limits) as place:
            if not new:
                for name in agents:
                    place.nexus.resume(name)
            # Those of before are still there.
            return await place.until_events("agent_failed", len(agents) if new else 2 * len(agents))

    failed = asyncio.run(live(agents))
    assert len(script.requests) == 4
    again = asyncio.run(live({}))
    assert len(again) == 4
    assert len(script.requests) == 4, "what was recorded today counts"
    assert all("limit of 4 calls a day" in str(event) for event in (*failed, *again))
