"""One agent in runs of `wsap play --as` and in the nexus: in one place at a time, and credited once."""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from life_kit import host_with, nexus_at
from sqlalchemy import text
from test_learning import Cave

from wsap_core import Action, ActionResult, ActionSpace, Goal, Observation, PluginHost
from wsap_core.host import Registration
from wsap_core.seams.agent import ReflectionInfo
from wsap_core.seams.context import Context
from wsap_core.specs import AdapterSpec, AgentSpec
from wsap_llm.memory.facts import FactsMemory
from wsap_nexus.agents.identity import set_policy
from wsap_nexus.agents.memory import SavedMemories
from wsap_nexus.api import play, read_run, resume_run
from wsap_nexus.errors import AlreadyInWorldError, NexusRunningError
from wsap_nexus.hub.nexus import Nexus
from wsap_nexus.hub.outside.play_as import start_as
from wsap_nexus.runs.plan import RunPlan, SeatPlan
from wsap_nexus.runs.play.controls import Controls
from wsap_nexus.runs.play.observers import StepTaken
from wsap_nexus.runs.session import replies_of, start
from wsap_nexus.runs.store import open_store
from wsap_nexus.store.entities import EXTERNAL, EntryRequest, Policy, SessionRecord
from wsap_nexus.store.locks.nexus_lock import instance_lock
from wsap_nexus.store.nexus_store import NexusStore


class Hermit:
    """No model: learns a lesson at every 9th decision, and decides by all lessons that it knows."""

    def __init__(self, context: Context) -> None:
        self.memory = FactsMemory()
        self.last_reflection: ReflectionInfo | None = None
        self._count = 0

    def initialize(self, game_desc: str, action_space: ActionSpace) -> None:
        pass

    def plan(self, goals: list[Goal]) -> list[str]:
        return []

    def _known(self) -> str:
        known = " ".join(found.text for found in self.memory.recall("lesson", budget=10_000))
        return hashlib.sha256(known.encode()).hexdigest()

    def decide(self, observation: Observation) -> Action:
        digest = hashlib.sha256(f"{self._known()} {observation.step}".encode()).hexdigest()
        return Action("wait" if int(digest[:2], 16) % 4 == 0 else "on")

    def reflect(self, result: ActionResult) -> None:
        self._count += 1
        self.last_reflection = None
        if self._count % 9 == 0:
            lesson = f"Lesson {self._known()[:8]} of decision {self._count}."
            self.memory.note(lesson, kind="lesson", world="cave", step=result.observation.step)
            self.last_reflection = ReflectionInfo((lesson,))


def host() -> PluginHost:
    found = host_with()
    skills = {"caving": ("on",), "rest": ("wait",)}
    game = AdapterSpec(name="cave", summary="", factory=Cave, abilities=("seed", "snapshot"), skills=skills)
    found.games.add(Registration(game, "t", "t"))
    found.agents.add(Registration(AgentSpec("hermit", "", Hermit), "t", "t"))
    return found


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder of the test's own."""
    monkeypatch.setenv("WSAP_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def database(tmp_path: Path) -> str:
    return str(tmp_path / "nexus.db")


def as_luna(database: str, steps: int = 30, agent: str | None = "hermit", name: str = "luna") -> str:
    """Play in the cave as an agent and return the run."""
    return str(play("cave", agent, steps=steps, as_=name, database=database, host=host()).run)


def stopped(database: str, after: int, steps: int, name: str = "luna") -> str:
    """Play as an agent, stopped after so many decisions as by Ctrl-C, and return the run."""
    controls = Controls()

    def seen(step: StepTaken) -> None:
        if step.step >= after:
            controls.stop()

    plan = RunPlan("cave", (SeatPlan("seat-1", "hermit", {}, name),), steps=steps)
    with (
        open_store(database) as store,
        start_as(plan, host(), store, controls=controls, observers=[seen]) as session,
    ):
        asyncio.run(session.play())
        return str(session.run.run_id)


def sessions(database: str, name: str = "luna") -> list[SessionRecord]:
    with open_store(database) as store, NexusStore(store.database).look() as tx:
        return tx.sessions(agent_id=name)[::-1]


def remembered(database: str, name: str = "luna") -> SavedMemories:
    with open_store(database) as store, NexusStore(store.database).look() as tx:
        return SavedMemories.from_bytes(tx.memories(name))


def lessons(database: str, name: str = "luna") -> list[str]:
    memory = FactsMemory(facts=10_000)
    memory.restore(remembered(database, name).memories["FactsMemory"].snapshot)
    return [found.text for found in memory.recall("lesson", budget=1_000_000) if found.kind == "lesson"]


def events(database: str, name: str = "luna") -> list[str]:
    with open_store(database) as store, NexusStore(store.database).look() as tx:
        return [event.kind for event in tx.events(agent=name)]


# --- with the nexus ----------------------------------------------------------------------------------


def test_the_nexus_knows_what_was_learned_outside_and_what_is_learned_there_is_known_outside(
    database: str, tmp_path: Path
) -> None:
    first = as_luna(database)
    outside = lessons(database)
    assert len(outside) == 3
    with open_store(database) as store, NexusStore(store.database).change() as tx:
        set_policy(tx, "luna", "*", Policy("hermit"), host())
        set_policy(tx, "luna", "nexus", Policy("wanderer"), host())

    async def test() -> None:
        async with nexus_at(tmp_path, {"luna": {}}, host=host(), games=("cave",)) as place:
            with place.nexus.nexus_store.look() as tx:
                assert tx.skills("luna")["caving"] > 0
            await place.nexus.enter("luna", "cave", EntryRequest(steps=20))
            await place.until_events("left", 2)

    asyncio.run(test())
    inside = lessons(database)
    assert set(outside) < set(inside)
    last = as_luna(database)
    assert set(inside) < set(lessons(database))
    found = sessions(database)
    assert [found[0].run_id, found[-1].run_id] == [first, last]
    assert all(session.closed for session in found)


def test_the_first_nexus_writes_the_diary_of_the_runs_before_it_and_the_second_adds_nothing(
    database: str, tmp_path: Path
) -> None:
    for _ in range(2):
        as_luna(database, steps=6)

    async def live(expected: int) -> list[str | None]:
        async with nexus_at(tmp_path, {}, host=host(), games=("cave",)) as place:
            place.nexus.pause("luna")  # nothing new happens
            return [event.session_id for event in await place.until_events("diary", expected)]

    written = asyncio.run(live(2))
    assert written == [session.id for session in sessions(database)]
    assert asyncio.run(live(2)) == written


def test_what_is_done_outside_counts_as_in_the_nexus(database: str) -> None:
    run = as_luna(database, steps=20)
    (session,) = sessions(database)
    steps = read_run(run, database=database, host=host()).steps
    done = {f"action:{name}": sum(s.action.name == name for s in steps) for name in ("on", "wait")}
    assert session.stats["done"] == {name: count for name, count in done.items() if count}
    assert (session.steps, session.stats["reward"]) == (20, 0.0)
    assert (session.run_id, session.world_id) == (run, run)
    with open_store(database) as store, NexusStore(store.database).look() as tx:
        agent = tx.agent("luna")
        assert (agent.place, agent.session_id, agent.lifetime_steps) == ("nexus", None, 20)
        assert agent.playtime > 0
        assert set(tx.skills("luna")) == {"caving", "rest"}
        assert not store.repository.is_of_nexus(run), "its player resumes and deletes it"
    assert events(database)[:2] == ["agent_registered", "entered"]
    assert events(database)[-1] == "left"


@pytest.mark.slow
def test_an_agent_of_a_running_nexus_is_refused_and_one_that_is_in_its_world_afterwards(
    database: str, tmp_path: Path
) -> None:
    async def test() -> None:
        async with nexus_at(tmp_path, {"luna": {"*": EXTERNAL}}, host=host(), games=("cave",)) as place:
            await place.nexus.enter("luna", "cave", EntryRequest())
            with pytest.raises(NexusRunningError, match=r"A nexus runs on the database .*'luna' belongs to"):
                await asyncio.to_thread(as_luna, database)

    asyncio.run(test())
    before = sessions(database)
    assert before[-1].closed is None
    with pytest.raises(AlreadyInWorldError, match="'luna' is in cave, in a world of the nexus"):
        as_luna(database)
    assert sessions(database) == before
    as_luna(database, name="sol")


def test_a_nexus_does_not_start_while_one_of_its_agents_plays_outside_it(database: str) -> None:
    plan = RunPlan("cave", (SeatPlan("seat-1", "hermit", {}, "luna"),), steps=10)
    with open_store(database) as store:

        async def test() -> None:
            nexus = Nexus(host(), store)
            with start_as(plan, host(), store) as session:
                with pytest.raises(AlreadyInWorldError, match=f"'luna' is playing in the run '{session.run.run_id}'"):
                    await nexus.start()
                await session.play()
            await nexus.start()
            await nexus.stop()

        asyncio.run(test())
    assert [session.steps for session in sessions(database)] == [10]


def test_a_nexus_frees_the_agent_of_a_run_that_was_killed_and_credits_it_with_what_the_log_has(database: str) -> None:
    plan = RunPlan("cave", (SeatPlan("seat-1", "hermit", {}, "luna"),), steps=10)
    with open_store(database) as store:
        with start_as(plan, host(), store) as session:
            asyncio.run(session.play())
            run = str(session.run.run_id)
        # As a SIGKILL would have left it: the session open, and nothing of it credited.
        with store.database.write() as connection:
            connection.execute(text("UPDATE session SET closed = NULL, reason = NULL, steps = 0, stats = '{}'"))
            where = "place = 'world', lifetime_steps = 0, session_id = (SELECT id FROM session)"
            connection.execute(text(f"UPDATE agent SET {where}"))

        async def test() -> None:
            nexus = Nexus(host(), store)
            await nexus.start()
            await nexus.stop()

        asyncio.run(test())
    (found,) = [session for session in sessions(database) if session.run_id == run]
    assert (found.steps, found.reason, found.closed is not None) == (10, "interrupted", True)
    with open_store(database) as store, NexusStore(store.database).look() as tx:
        assert tx.agent("luna").lifetime_steps >= 10


def test_a_run_that_just_begins_is_waited_for(database: str) -> None:
    with open_store(database) as store:
        right = instance_lock(store.database)
        right.acquire()

        async def release() -> None:
            await asyncio.sleep(0)
            right.release()

        async def test() -> None:
            playing = asyncio.create_task(asyncio.to_thread(as_luna, database, 5))
            await asyncio.gather(playing, release())

        asyncio.run(test())
    assert [session.steps for session in sessions(database)] == [5]


# --- skills and items --------------------------------------------------------------------------------


def test_skills_come_along_into_a_game_that_declares_what_they_are_worth_and_items_stay(database: str) -> None:
    own = host_with()
    rule = own.games.get("crafter").transfer_rules[0]

    def given_first() -> tuple[str, dict[str, object]]:
        run = play("crafter", "random-legal", steps=3, seed=1, as_="luna", database=database, host=own)
        assert run.run is not None
        with open_store(database) as store:
            mind = next(store.repository.read_events(run.run, kinds=("mind",))).data
        return run.trajectory_hash, mind.get("skills", {})

    plain, skills = given_first()
    assert skills == {}
    from wsap_nexus.store.entities import SkillGain

    with open_store(database) as store, NexusStore(store.database).change() as tx:
        tx.add_gain("luna", "crafter", "", SkillGain(rule.domain, "achievement:x", 1, 1.0, 1.0))
    skilled, skills = given_first()
    assert skills[rule.domain] == 1.0
    assert skilled != plain
    with open_store(database) as store:
        run = store.repository.list_runs()[0].id
        with open_store(database) as other:
            plan, past = replies_of(run, other)
            with start(plan, own, other, past=past) as session:
                assert asyncio.run(session.play()).trajectory_hash == skilled
        with NexusStore(store.database).look() as tx:
            assert tx.items("luna") == []


# --- killed and resumed -------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(1, 29), st.booleans()), min_size=1, max_size=3), st.randoms())
def test_no_lesson_is_doubled_and_none_is_lost_whatever_is_resumed_when(
    home: Path, runs: list[tuple[int, bool]], order: object
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        database = str(Path(folder) / "a.db")
        cut = []
        for after, between in runs:
            cut.append(stopped(database, after, 30))
            if between:
                as_luna(database, 10)
        order.shuffle(cut)  # type: ignore[attr-defined]
        for run in cut:
            resume_run(run, database=database, host=host())
        known = [text.partition(") ")[2] for text in lessons(database)]
        assert len(known) == len(set(known))
        with open_store(database) as store:
            drawn = [
                str(line)
                for record in store.repository.list_runs()
                for event in store.repository.read_events(record.id, kinds=("lessons",))
                for line in event.data["lessons"]
            ]
        assert set(known) == set(drawn)
        total = sum(session.steps for session in sessions(database))
        assert total == 30 * len(cut) + 10 * sum(between for _, between in runs)
