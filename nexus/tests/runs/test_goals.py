"""Planning: at the start of an episode, and when goals become others; bounded, and the same when gone through again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hosts import host_with_ours
from hypothesis import given
from hypothesis import strategies as st

from wsap_core import Action, ActionDef, ActionResult, ActionSpace, Goal, Observation, PluginHost
from wsap_core.errors import WireError
from wsap_core.host import Registration
from wsap_core.seams.context import Context
from wsap_core.specs import AdapterSpec, AgentSpec
from wsap_nexus.api import play, resume_run
from wsap_nexus.runs.plan import RunPlan, SeatPlan
from wsap_nexus.runs.play.controls import Controls
from wsap_nexus.runs.play.goals import GAP, MOST_GAP, GoalWatch, mark_of
from wsap_nexus.runs.play.observers import StepTaken
from wsap_nexus.runs.session import start
from wsap_nexus.runs.store import open_database, open_store
from wsap_nexus.store.repository import Repository


def times_due(goals: Iterable[list[Goal]]) -> list[int]:
    watch = GoalWatch()
    return [step for step, now in enumerate(goals) if watch.due(now)]


WOOD, STONE = [Goal("wood", "Collect wood")], [Goal("stone", "Mine stone")]


def test_there_is_a_plan_at_once_also_without_goals() -> None:
    assert times_due([[], [], []]) == [0]


def test_goals_that_become_others_are_planned_for_and_progress_is_none() -> None:
    progress = [[Goal("wood", "Collect wood", progress=f"{n}/9", hints=(str(n),))] for n in range(GAP + 5)]
    assert times_due([*progress, *[STONE] * 5]) == [0, GAP + 5]
    assert times_due([WOOD] * (GAP + 5) + [[Goal("wood", "Collect much wood")]]) == [0, GAP + 5]
    assert times_due([[*WOOD, *STONE]] * 20 + [[*STONE, *WOOD]] * 20) == [0]


def test_goals_that_change_too_soon_are_planned_for_when_the_gap_is_over() -> None:
    assert times_due([WOOD, STONE, *[STONE] * 30]) == [0, GAP]
    assert times_due([WOOD, STONE, *[WOOD] * 30]) == [0], "they are what was planned for by then"


def test_goals_that_flap_buy_ever_fewer_plans() -> None:
    due = times_due([WOOD, STONE][step // 3 % 2] for step in range(20_000))
    assert len(due) < 20 + 20_000 // MOST_GAP
    gaps = [b - a for a, b in pairwise(due)]
    assert gaps[:6] == [10, 10, 20, 40, 80, 160]
    assert all(gap >= MOST_GAP for gap in gaps[8:])


def test_new_goals_bring_the_gap_back() -> None:
    flapping = [[WOOD, STONE][step // 15 % 2] for step in range(300)]
    fresh = [[Goal(f"new {n // GAP}")] for n in range(10 * GAP)]
    due = times_due([*flapping, *fresh])
    gaps = [b - a for a, b in pairwise(due)]
    assert gaps[-5:] == [GAP] * 5


@given(st.lists(st.integers(0, 3), max_size=200), st.data())
def test_a_watch_goes_on_from_its_state_as_if_it_had_never_stopped(choices: list[int], data: st.DataObject) -> None:
    goals = [[Goal(str(choice))] for choice in choices]
    at = data.draw(st.integers(0, len(goals)))
    watch = GoalWatch(3)
    before = [watch.due(now) for now in goals[:at]]
    other = GoalWatch(3)
    other.set_state(watch.state())
    after = [other.due(now) for now in goals[at:]]
    whole = GoalWatch(3)
    assert before + after == [whole.due(now) for now in goals]


@pytest.mark.parametrize("state", [{}, {"planned": None, "seen": 1, "since": 0, "wait": 1}, {"planned": 1}])
def test_a_damaged_state_is_refused_in_a_sentence(state: dict[str, Any]) -> None:
    with pytest.raises(WireError, match="goals of an agent are damaged"):
        GoalWatch().set_state(state)


def test_equal_goals_have_equal_marks_in_every_process() -> None:
    assert mark_of([*WOOD, *STONE]) == mark_of([*STONE, *WOOD]) == "9999039ae0190f5c"


# --- in a run -----------------------------------------------------------------------------------


class Errands:
    """A game whose goal is another one every 15 steps; episodes have 40 steps. Can be saved, or can't."""

    def __init__(self, context: Context) -> None:
        self._step = 0

    game_description = "Run errands."
    action_space = ActionSpace([ActionDef("go", "Go"), ActionDef("rest", "Rest")])

    def observe(self) -> Observation:
        number = self._step // 15
        return Observation(current_goals=[Goal(f"errand-{number}", f"Errand {number}", progress=str(self._step))])

    def act(self, action: Action) -> ActionResult:
        self._step += 1
        return ActionResult(True, "", done=self._step >= 40, observation=self.observe())

    def reset(self, seed: int | None = None) -> Observation:
        self._step = 0
        return self.observe()

    def snapshot(self) -> bytes:
        return str(self._step).encode()

    def restore(self, data: bytes) -> None:
        self._step = int(data)


class Planner:
    """Does what its plans have been so far: their number decides."""

    def __init__(self, context: Context) -> None:
        self._plans = 0

    def initialize(self, game_desc: str, action_space: ActionSpace) -> None:
        self._plans = 0

    def plan(self, goals: list[Goal]) -> list[str]:
        self._plans += 1
        return [f"plan {self._plans}: {goal.description}" for goal in goals]

    def decide(self, observation: Observation) -> Action:
        return Action("go" if self._plans % 2 else "rest")

    def reflect(self, result: ActionResult) -> None:
        pass

    def snapshot(self) -> bytes:
        return str(self._plans).encode()

    def restore(self, data: bytes) -> None:
        self._plans = int(data)


def host_with(*, saved: bool) -> PluginHost:
    abilities = ("seed", "snapshot") if saved else ("seed",)
    own = host_with_ours()
    own.games.add(Registration(AdapterSpec(name="errands", summary="", factory=Errands, abilities=abilities), "t", "t"))
    agent = AgentSpec("planner", "", Planner, abilities=("snapshot",) if saved else ())
    own.agents.add(Registration(agent, "t", "t"))
    return own


def recorded_plans(database: str) -> list[tuple[int, str]]:
    with open_database(database, read_only=True) as opened:
        repository = Repository(opened)
        run = repository.get_run("last").id
        steps, found = 0, []
        for event in repository.read_events(run, kinds=("plan", "step")):
            steps += event.kind == "step"
            if event.kind == "plan":
                found.append((steps, str(event.data["plan"][0])))
        return found


EXPECTED = [
    (0, "plan 1: Errand 0"),
    (15, "plan 2: Errand 1"),
    (30, "plan 3: Errand 2"),
    (40, "plan 4: Errand 0"),
    (55, "plan 5: Errand 1"),
    (70, "plan 6: Errand 2"),
]


@pytest.mark.parametrize("saved", [True, False])
def test_every_agent_plans_anew_when_its_goals_change_and_the_log_says_when(tmp_path: Path, saved: bool) -> None:
    database = str(tmp_path / "runs.db")
    play("errands", "planner", steps=80, database=database, host=host_with(saved=saved))
    assert recorded_plans(database) == EXPECTED


@pytest.mark.parametrize("saved", [True, False])
@pytest.mark.parametrize("stop", [1, 14, 15, 16, 29, 39, 40, 41, 57])
def test_a_run_that_is_gone_on_with_has_the_same_plans_at_the_same_steps(
    tmp_path: Path, saved: bool, stop: int
) -> None:
    host, database = host_with(saved=saved), str(tmp_path / "runs.db")
    whole = play("errands", "planner", steps=80, record=False, host=host)
    controls = Controls()

    def seen(step: StepTaken) -> None:
        if step.step >= stop:
            controls.stop()

    plan = RunPlan("errands", (SeatPlan("seat-1", "planner"),), steps=80, snapshot_every=7)
    with (
        open_store(database) as store,
        start(plan, host, store, controls=controls, observers=[seen]) as session,
    ):
        asyncio.run(session.play())
    resumed = resume_run(database=database, host=host)
    assert resumed.trajectory_hash == whole.trajectory_hash
    assert recorded_plans(database) == EXPECTED
