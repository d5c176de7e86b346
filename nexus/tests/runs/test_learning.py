"""Learning for real: what a model learned in one run is in the prompts of the next, whatever happens in between."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import hosts
import pytest
from hosts import host_with_ours
from warm import begin_python

from wsap_core import Action, ActionDef, ActionResult, ActionSpace, Event, Goal, Observation, PluginHost
from wsap_core.errors import UsageError
from wsap_core.host import Registration
from wsap_core.seams.context import Context
from wsap_core.seams.model import Request
from wsap_core.seams.model_errors import BudgetReachedError
from wsap_core.seams.services import Services
from wsap_core.specs import AdapterSpec, AgentSpec, BackendSpec
from wsap_llm.backends.pool import ModelPool
from wsap_llm.memory.facts import FactsMemory
from wsap_llm.middleware.budgets import Budget
from wsap_llm.scripted import ScriptedBackend
from wsap_nexus.agents.memory import SavedMemories, SavedMemory
from wsap_nexus.api import play, resume_run
from wsap_nexus.errors import AlreadyInWorldError
from wsap_nexus.hub.outside.play_as import resume_as, start_as
from wsap_nexus.runs.plan import RunPlan, SeatPlan
from wsap_nexus.runs.play.controls import Controls
from wsap_nexus.runs.play.observers import StepTaken
from wsap_nexus.runs.record.summary import RunSummary
from wsap_nexus.runs.session import replies_of, start
from wsap_nexus.runs.store import open_store
from wsap_nexus.store.entities import SessionRecord
from wsap_nexus.store.nexus_store import NexusStore

DIED = 12


class Cave:
    """A cave of one path with a pit: whoever goes on 12 times in an episode falls in and dies."""

    def __init__(self, context: Context) -> None:
        self._step = self._depth = 0

    game_description = "A dark cave."
    action_space = ActionSpace([ActionDef("on", "Go on"), ActionDef("wait", "Wait")])

    def observe(self) -> Observation:
        events = [Event("You fell into the pit.", "death")] if self._depth >= DIED else []
        goals = [Goal("deep", "Go deep") if self._depth < 6 else Goal("gold", "Find the gold")]
        return Observation({"depth": self._depth}, recent_events=events, current_goals=goals, step=self._step)

    def act(self, action: Action) -> ActionResult:
        self._step += 1
        self._depth += action.name == "on"
        done = self._depth >= DIED
        return ActionResult(True, "It is dark.", done=done, observation=self.observe())

    def reset(self, seed: int | None = None) -> Observation:
        self._step = self._depth = 0
        return self.observe()

    def snapshot(self) -> bytes:
        return json.dumps([self._step, self._depth]).encode()

    def restore(self, data: bytes) -> None:
        self._step, self._depth = json.loads(data)


class Model:
    """Decides by its whole prompt, so that any other prompt gives another trajectory; learns a numbered lesson.

    Args:
        die_at: the number of the request at which the process kills itself; 0 for never.
    """

    def __init__(self, die_at: int = 0) -> None:
        self.requests: list[Request] = []
        self._die_at = die_at

    def make(self, context: Context) -> ScriptedBackend:
        def answer(request: Request) -> str:
            self.requests.append(request)
            if len(self.requests) == self._die_at:
                os.kill(os.getpid(), signal.SIGKILL)
            digest = hashlib.sha256("\n".join(m.text() for m in request.messages).encode()).hexdigest()
            if request.purpose == "reflect":
                return f"- The pit is deep, lesson {digest[:8]}.\n- Gold is never found."
            if request.purpose == "plan":
                return f"1. Scheme {digest[:8]}."
            # Waits now and then, and more often once it knows better.
            cautious = "lesson" in request.messages[-1].text()
            return json.dumps({"action": "wait" if int(digest[:2], 16) % (3 if cautious else 5) == 0 else "on"})

        return ScriptedBackend(answer, model=f"thinker/{context.config['model']}")

    def asked(self, purpose: str) -> list[str]:
        return [r.messages[-1].text() for r in self.requests if r.purpose == purpose]


def host_of(model: Model, *, saved: bool = True) -> PluginHost:
    own = host_with_ours()
    game = AdapterSpec(name="cave", summary="", factory=Cave, abilities=("seed", "snapshot") if saved else ("seed",))
    own.games.add(Registration(game, "t", "t"))
    own.backends.add(Registration(BackendSpec("thinker", "", model.make), "t", "t"))
    return own


OPTIONS: dict[str, Any] = {"model": "thinker/x", "memory": "fulltext", "recall_tokens": 400, "reflect_every": 9}


class Place:
    """A database in a folder."""

    def __init__(self, folder: Path) -> None:
        self.database = str(folder / "runs.db")

    def remembered(self, agent: str = "ada") -> SavedMemories:
        """What an agent remembers."""
        with open_store(self.database) as store, NexusStore(store.database).look() as tx:
            return SavedMemories.from_bytes(tx.memories(agent))

    def memory(self, kind: str = "fulltext", agent: str = "ada") -> SavedMemory:
        return self.remembered(agent).memories[kind]

    def sessions(self, agent: str = "ada") -> list[SessionRecord]:
        """An agent's sessions, oldest first."""
        with open_store(self.database) as store, NexusStore(store.database).look() as tx:
            return tx.sessions(agent_id=agent)[::-1]

    def agents(self) -> list[str]:
        with open_store(self.database) as store, NexusStore(store.database).look() as tx:
            return [agent.id for agent in tx.agents()]

    def play(
        self, model: Model, *, steps: int = 40, who: str | None = "ada", saved: bool = True, **options: Any
    ) -> RunSummary:
        return play(
            "cave",
            "llm",
            agent_options={**OPTIONS, **options},
            steps=steps,
            as_=who,
            database=self.database,
            host=host_of(model, saved=saved),
        )

    def stopped(self, model: Model, after: int, *, steps: int = 40, saved: bool = True, **around: Any) -> None:
        """Play and stop after so many decisions, as Ctrl-C does."""
        controls = Controls()

        def seen(step: StepTaken) -> None:
            if step.step >= after:
                controls.stop()

        plan = RunPlan("cave", (SeatPlan("seat-1", "llm", OPTIONS, "ada"),), steps=steps, snapshot_every=7)
        with (
            open_store(self.database) as store,
            start_as(
                plan, host_of(model, saved=saved), store, controls=controls, observers=[seen], **around
            ) as session,
        ):
            asyncio.run(session.play())

    def resume(self, model: Model, run: str = "last", *, saved: bool = True) -> RunSummary:
        return resume_run(run, database=self.database, host=host_of(model, saved=saved))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A data folder of the test's own."""
    monkeypatch.setenv("WSAP_HOME", str(tmp_path / "home"))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


Whole: TypeAlias = Callable[[bool], tuple[RunSummary, bytes]]


@pytest.fixture(scope="module")
def second_run(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """What the second of two runs that nobody stops comes to, of a game that can be `saved` or not, and its memory."""

    @cache
    def played(saved: bool) -> tuple[RunSummary, bytes]:
        place = Place(tmp_path_factory.mktemp("whole"))
        place.play(Model(), saved=saved)
        return place.play(Model(), saved=saved), place.memory().snapshot

    return played


def lessons_in(text: str) -> list[str]:
    return [line for line in text.splitlines() if "lesson" in line]


@pytest.mark.parametrize("memory", ["facts", "fifo", "fulltext"])
def test_a_lesson_of_the_first_run_is_in_the_first_prompt_of_the_second_with_where_it_is_from(
    place: Place, memory: str
) -> None:
    first, second = Model(), Model()
    place.play(first, memory=memory, recall_tokens=4000)
    assert any("You died." in asked for asked in first.asked("reflect"))
    assert lessons_in(first.asked("decide")[0]) == []
    place.play(second, memory=memory, recall_tokens=4000)
    shown = lessons_in(second.asked("decide")[0])
    assert shown
    assert all(line.startswith("- (cave, run 1, step ") for line in shown)
    assert any("(cave, run 2, step " in line for line in lessons_in(second.asked("decide")[-1]))
    saved, sessions = place.remembered(), place.sessions()
    assert [(session.game, session.steps) for session in sessions] == [("cave", 40), ("cave", 40)]
    assert (list(saved.memories), saved.lives) == ([memory], 2)
    found = place.memory(memory)
    assert (found.revision, found.saved_by) == (2, sessions[1].run_id)
    assert found.runs == {session.run_id: 40 for session in sessions}


def test_who_plays_as_nobody_knows_nothing_of_the_run_before(place: Place) -> None:
    first, second = Model(), Model()
    assert place.play(first, who=None).trajectory_hash == place.play(second, who=None).trajectory_hash
    assert place.agents() == []


def test_looking_back_counts_in_the_sums_and_is_in_the_log_under_its_purpose(place: Place) -> None:
    model = Model()
    summary = place.play(model, reflect_every=0)
    assert summary.to_json()["usage"]["calls"] == len(model.requests)
    with open_store(place.database) as store:
        calls = list(store.repository.read_events(str(summary.run), kinds=("call",)))
        lessons = list(store.repository.read_events(str(summary.run), kinds=("lessons",)))
    assert [event.data["purpose"] for event in calls] == [request.purpose for request in model.requests]
    assert len(lessons) == len(model.asked("reflect")) >= 3
    assert lessons[0].data["lessons"][1] == "Gold is never found."
    assert lessons[-1].step == 39, "play ended there, and was looked back at"


@pytest.mark.slow
@pytest.mark.parametrize("saved", [True, False])
@pytest.mark.parametrize("stop", [1, 9, 14, 23, 39])
def test_a_run_that_is_gone_on_with_begins_with_its_own_start_and_not_with_newer_memories(
    place: Place, second_run: Whole, stop: int, saved: bool
) -> None:
    whole, memory = second_run(saved)
    place.play(Model(), saved=saved)
    model = Model()
    place.stopped(model, stop, saved=saved)
    cut = place.sessions()[1]
    assert (cut.steps, cut.reason, place.memory().runs[cut.run_id]) == (stop, "interrupted", stop)
    again = Model()
    resumed = place.resume(again, saved=saved)
    assert resumed.trajectory_hash == whole.trajectory_hash
    assert len(model.requests) + len(again.requests) == whole.to_json()["usage"]["calls"]
    assert resumed.to_json()["usage"]["calls"] == whole.to_json()["usage"]["calls"]
    assert place.memory().snapshot == memory
    assert list(place.memory().runs.values()) == [40, 40]
    assert [session.steps for session in place.sessions()] == [40, stop, 40 - stop]


SCRIPT = """
import sys
from pathlib import Path
sys.path[:0] = sys.argv[3:]
from test_learning import Model, Place
Place(Path(sys.argv[1])).play(Model(die_at=int(sys.argv[2])))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="SIGKILL is a POSIX signal")
@pytest.mark.parametrize("die_at", [1, 12, 21, 40])
def test_a_run_that_is_killed_goes_on_to_the_same_trajectory_and_the_same_memory(
    place: Place, second_run: Whole, tmp_path: Path, die_at: int
) -> None:
    whole, memory = second_run(True)
    place.play(Model())
    before = place.memory()
    here = Path(__file__).parent
    folders = (here, here.parent / "kit", Path(hosts.__file__).parent)
    killed = begin_python(SCRIPT, str(tmp_path), str(die_at), *map(str, folders))
    _, errors = killed.communicate()
    assert killed.returncode == -signal.SIGKILL, errors
    assert place.memory() == before
    resumed = place.resume(Model())
    assert resumed.trajectory_hash == whole.trajectory_hash
    assert place.memory().snapshot == memory
    assert sum(session.steps for session in place.sessions()) == 80, "each decision counts once"
    assert all(session.closed for session in place.sessions())


@pytest.mark.slow
def test_a_run_that_is_replayed_needs_no_agent_and_changes_none(place: Place) -> None:
    place.play(Model())
    second = place.play(Model())
    before = place.remembered()
    with open_store(place.database) as store:
        plan, past = replies_of(str(second.run), store)
        nobody = Model()
        with start(plan, host_of(nobody), store, past=past) as session:
            replayed = asyncio.run(session.play())
        plan, past = replies_of(str(replayed.run), store)
        with start_as(plan, host_of(nobody), store, past=past) as session:
            twice = asyncio.run(session.play())
    assert replayed.trajectory_hash == twice.trajectory_hash == second.trajectory_hash
    assert nobody.requests == []
    assert place.remembered() == before
    assert len(place.sessions()) == 2


def test_an_agent_is_in_one_run_at_a_time_and_the_second_leaves_no_trace(place: Place) -> None:
    place.stopped(Model(), 3)
    plan = RunPlan("cave", (SeatPlan("seat-1", "llm", OPTIONS, "ada"),), steps=40)
    with open_store(place.database) as store, start_as(plan, host_of(Model()), store) as session:
        runs = len(store.repository.list_runs())
        with pytest.raises(AlreadyInWorldError, match=f"'ada' is playing in the run '{session.run.run_id}'"):
            place.play(Model())
        with pytest.raises(AlreadyInWorldError):
            place.stopped(Model(), 3)
        with pytest.raises(AlreadyInWorldError):
            place.resume(Model(), place.sessions()[0].run_id)
        assert len(store.repository.list_runs()) == runs
        place.play(Model(), who="bob")
        asyncio.run(session.play())
    assert [session.steps for session in place.sessions()] == [3, 40]


def test_lessons_of_a_run_that_is_resumed_late_are_added_to_what_the_memory_became_meanwhile(place: Place) -> None:
    place.stopped(Model(), 10, steps=30)
    first = place.sessions()[0].run_id
    middle = Model()
    place.play(middle, steps=20)
    between = place.memory()
    late = Model()
    place.resume(late, first)
    assert place.memory().revision == between.revision + 1
    assert list(place.memory().runs.values()) == [30, 20]
    third = Model()
    place.play(third, steps=5, recall_tokens=20_000)
    kept = third.asked("decide")[0]
    assert "(cave, run 2, step " in kept
    assert len(late.asked("reflect")) >= 2
    with open_store(place.database) as store:
        events = list(store.repository.read_events(first, kinds=("lessons",)))
    assert len(events) >= 3
    for event in events:
        (line,) = (line for line in lessons_in(kept) if str(event.data["lessons"][0]) in line)
        assert line.startswith("- (cave, run 1, step ")


def test_a_budget_that_is_used_up_saves_the_memory_too(place: Place) -> None:
    model = Model()
    plan = RunPlan("cave", (SeatPlan("seat-1", "llm", OPTIONS, "ada"),), steps=40)
    host = host_of(model)
    services = Services(models=ModelPool(host, budgets=[Budget("run", calls=15)]))
    with (
        open_store(place.database) as store,
        start_as(plan, host, store, services=services) as session,
        pytest.raises(BudgetReachedError),
    ):
        asyncio.run(session.play())
    (paused,) = place.sessions()
    assert (paused.reason, place.memory().runs[paused.run_id]) == ("interrupted", paused.steps)
    assert 0 < paused.steps < 15
    more = Services(models=ModelPool(host, budgets=[Budget("run", calls=1000)]))
    with open_store(place.database) as store, resume_as("last", host, store, services=more) as session:
        assert asyncio.run(session.play()).steps == 40
    assert place.memory().runs == {paused.run_id: 40}


class Rememberer:
    """No model, but a memory: waits while it remembers the pit."""

    def __init__(self, context: Context) -> None:
        self.memory = FactsMemory()

    def initialize(self, game_desc: str, action_space: ActionSpace) -> None:
        pass

    def plan(self, goals: list[Goal]) -> list[str]:
        return []

    def decide(self, observation: Observation) -> Action:
        return Action("wait" if self.memory.recall("pit", budget=50) else "on")

    def reflect(self, result: ActionResult) -> None:
        if result.done:
            self.memory.note("There is a pit.", kind="lesson", world="cave", step=result.observation.step)


def test_any_agent_with_a_memory_remembers(place: Place) -> None:
    def run() -> int:
        summary = play("cave", "rememberer", steps=30, as_="eve", database=place.database, host=host)
        return len([episode for seat in summary.seats for episode in seat.all_episodes() if episode.done])

    host = host_of(Model())
    host.agents.add(Registration(AgentSpec("rememberer", "", Rememberer), "t", "t"))
    assert [run(), run()] == [1, 0]
    assert list(place.remembered("eve").memories) == ["FactsMemory"]


def refused(call: Callable[[], object], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        call()


def test_what_makes_no_sense_is_refused_in_a_sentence_and_harms_no_memory(place: Place) -> None:
    place.play(Model())
    before = place.memory()
    model = Model()
    refused(lambda: place.play(model, memory="none", reflect="yes"), "requires a memory")
    refused(lambda: place.play(model, who="../ada"), "can't be an agent's id")
    refused(lambda: place.play(model, **{"memory.path": "x.db"}), "leave out memory.path")
    refused(
        lambda: play("cave", "llm", agent_options=OPTIONS, as_="ada", record=False, host=host_of(model)),
        "has to be recorded",
    )
    refused(
        lambda: play("cave", "llm", agent_options=OPTIONS, as_={"seat-9": "ada"}, host=host_of(model)),
        "no seat 'seat-9'",
    )
    assert place.memory() == before
    assert place.agents() == ["ada"]
    assert model.requests == []


@pytest.mark.slow
def test_a_run_that_ends_before_its_first_decision_changes_no_memory(place: Place) -> None:
    def broke(who: str) -> None:
        plan = RunPlan("cave", (SeatPlan("seat-1", "llm", {**OPTIONS, "plan": "no"}, who),), steps=40)
        host = host_of(Model())
        services = Services(models=ModelPool(host, budgets=[Budget("run", tokens=1)]))
        with (
            open_store(place.database) as store,
            start_as(plan, host, store, services=services) as session,
            pytest.raises(BudgetReachedError),
        ):
            asyncio.run(session.play())

    broke("bob")
    assert place.remembered("bob").memories == {}
    place.play(Model())
    before = place.memory()
    broke("ada")
    assert place.memory() == before
    assert place.resume(Model()).steps == 40
    assert place.remembered().lives == 2
    assert [session.steps for session in place.sessions()] == [40, 0, 40]


@pytest.mark.slow
def test_a_memory_of_another_kind_is_kept_beside_the_one_of_a_run_that_is_resumed_late(place: Place) -> None:
    place.stopped(Model(), 10)
    (first,) = place.sessions()
    place.play(Model(), memory="facts")
    facts = place.memory("facts")
    assert place.resume(Model(), first.run_id).steps == 40
    assert place.memory("facts") == facts
    assert place.memory("fulltext").runs == {first.run_id: 40}


def test_a_memory_that_was_damaged_while_a_run_was_stopped_is_left_alone(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    place.stopped(Model(), 10)
    (first,) = place.sessions()
    damaged = SavedMemory(b"no memory", revision=7, saved_by="another")
    with open_store(place.database) as store, NexusStore(store.database).change() as tx:
        tx.save_memories("ada", place.remembered().having("fulltext", damaged, lives=2).to_bytes())
    assert place.resume(Model(), first.run_id).steps == 40
    assert place.memory() == damaged
    assert "memory of 'ada' is damaged" in caplog.text
