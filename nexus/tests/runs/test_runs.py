"""Runs: played, recorded, stopped anywhere and gone on with."""

from __future__ import annotations

import asyncio
import hashlib
import json
import signal
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hosts import host_with_ours, with_kit
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from script_kit import run_script

from wsap_core import Action, ActionDef, ActionResult, ActionSpace, AdapterSpec, AgentSpec, Observation, PluginHost
from wsap_core.errors import ConfigError, PluginError, StorageLockedError, UsageError, WorldError
from wsap_nexus.api import list_runs, play, read_run, resume_run
from wsap_nexus.runs.plan import RunPlan, SeatPlan, plan_seats
from wsap_nexus.runs.play.controls import Controls
from wsap_nexus.runs.play.observers import StepTaken
from wsap_nexus.runs.session import ResolvedSpecs, RunHandle, resume, start, unrecorded
from wsap_nexus.runs.store import open_store
from wsap_nexus.store.locks.run_lock import hold_run
from wsap_nexus.store.records import RunStatus


@pytest.fixture
def host() -> PluginHost:
    """A host with nothing but the kernel's own parts."""
    return host_with_ours()


@pytest.fixture
def database(tmp_path: Path) -> str:
    return str(tmp_path / "runs.db")


def stopping(after: int) -> tuple[Controls, Callable[[StepTaken], None]]:
    """Return controls, and an observer that stops the run by them after so many decisions."""
    controls = Controls()
    seen: list[StepTaken] = []

    def watch(step: StepTaken) -> None:
        seen.append(step)
        if len(seen) >= after:
            controls.stop()

    return controls, watch


def play_and_stop(plan: RunPlan, host: PluginHost, database: str, after: int) -> str:
    """Record a run, stop it after so many decisions, and return its id."""
    controls, watch = stopping(after)
    with open_store(database) as store, start(plan, host, store, controls=controls, observers=[watch]) as session:
        asyncio.run(session.play())
        assert session.run.run_id is not None
        return session.run.run_id


def go_on_and_stop(run: str, host: PluginHost, database: str, after: int) -> bool:
    """Go on with a run and stop it after so many new decisions; return False where it had come to its end."""
    controls, watch = stopping(after)
    try:
        with open_store(database) as store, resume(run, host, store, controls=controls, observers=[watch]) as session:
            asyncio.run(session.play())
    except UsageError:
        return False
    return True


def events_of(run: str, database: str) -> list[tuple[str, str | None, int, int | None, bytes]]:
    """Return what a run's log says, without when."""
    with open_store(database) as store:
        return [(e.kind, e.seat, e.episode, e.step, e.body) for e in store.repository.read_events(run)]


def test_a_run_says_what_it_came_to_in_the_documented_fields(host: PluginHost, database: str) -> None:
    summary = play("matrix", "tit-for-tat", seats={"column": "always"}, database=database, host=host).to_json()
    assert list(summary) == [
        "run",
        "game",
        "agent",
        "model",
        "seed",
        "steps",
        "episodes",
        "reward",
        "achievements",
        "decisions",
        "usage",
        "score",
        "done",
        "cut_off",
        "reason",
        "trajectory_hash",
        "seconds",
        "seats",
    ]
    # Ten rounds of cooperation on both sides: 3 a round each (Axelrod 1984).
    assert [s["reward"] for s in summary["seats"]] == [30, 30]
    assert [s["score"] for s in summary["seats"]] == [{"mean_payoff": 3.0}] * 2
    assert (summary["reward"], summary["score"]) == (None, None)
    assert summary["decisions"] == {
        "total": 20,
        "repaired": 0,
        "forced": 0,
        "unconstrained": 0,
        "cut": 0,
        "continued": 0,
    }
    assert summary["done"]


def test_the_trajectory_hash_is_chained_from_step_to_step(host: PluginHost, database: str) -> None:
    summary = play("echo", "random", seed=5, steps=25, database=database, host=host)
    digest = hashlib.sha256(b"").hexdigest()
    for step in read_run(database=database, host=host).steps:
        line = {
            "seat": step.seat,
            "action": {"name": step.action.name, "parameters": step.action.parameters},
            "result": {
                "success": step.result.success,
                "message": step.result.message,
                "reward": int(step.result.reward),
                "achievements": list(step.result.achievements),
                "done": step.result.done,
            },
            "observation": step.result.observation.to_structured(),
        }
        text = digest + json.dumps(line, sort_keys=True, separators=(",", ":")) + "\n"
        digest = hashlib.sha256(text.encode()).hexdigest()
    assert summary.trajectory_hash == digest


def test_reasoning_is_recorded_but_changes_no_hash(host: PluginHost, database: str) -> None:
    class Talker:
        def __init__(self, why: str) -> None:
            self.why = why

        def initialize(self, game_desc: str, action_space: ActionSpace) -> None: ...

        def decide(self, observation: Observation) -> Action:
            return Action("wait", reasoning=self.why)

        def reflect(self, result: ActionResult) -> None: ...

        def plan(self, goals: list[object]) -> list[str]:
            return []

    hashes = {
        play("echo", AgentSpec("talker", "", lambda why=why: Talker(why)), database=database, host=host).trajectory_hash
        for why in ("because", "just so")
    }
    assert len(hashes) == 1
    assert {s.action.reasoning for s in read_run(database=database, host=host).steps} == {"just so"}


def test_without_a_step_limit_one_episode_is_played_and_with_one_it_goes_on(host: PluginHost, database: str) -> None:
    once = play("echo", "random", options={"length": 7}, database=database, host=host)
    assert (once.steps, len(once.seats[0].all_episodes()), once.done) == (7, 1, True)
    more = play("echo", "random", options={"length": 7}, steps=16, database=database, host=host)
    episodes = more.seats[0].all_episodes()
    assert [e.steps for e in episodes] == [7, 7, 2]
    assert [e.done for e in episodes] == [True, True, False]
    assert episodes[0].seed == 0
    assert len({e.seed for e in episodes}) == 3


@pytest.mark.slow
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    # Where seats do not wait for each other, less is promised: see the test after this one.
    game=st.sampled_from(["echo", "matrix", "matrix-turns"]),
    agent=st.sampled_from(["random", "random-legal"]),
    seed=st.integers(0, 2**31 - 1),
    stops=st.lists(st.integers(1, 25), min_size=1, max_size=3),
    every=st.sampled_from([0, 1, 4]),
)
def test_a_run_stopped_anywhere_ends_like_one_that_never_stopped(
    game: str, agent: str, seed: int, stops: list[int], every: int, host: PluginHost, tmp_path: Path
) -> None:
    database = str(tmp_path / f"{game}-{agent}-{seed}-{every}-{'-'.join(map(str, stops))}.db")
    options = {"length": 9} if game == "echo" else {"rounds": 9}
    spec = host.games.get(game)
    plan = RunPlan(game, plan_seats(spec, agent=agent), seed=seed, steps=30, options=options, snapshot_every=every)
    whole = asyncio.run(unrecorded(plan, host).play()).to_json()

    run = play_and_stop(plan, host, database, stops[0])
    assert list_runs(database=database)[0].status is RunStatus.INTERRUPTED
    for stop in stops[1:]:
        if not go_on_and_stop(run, host, database, stop):
            break
    if list_runs(database=database)[0].status is not RunStatus.FINISHED:
        resume_run(run, database=database, host=host)
    ended = list_runs(database=database)[0].summary
    assert ended is not None
    volatile = {"run", "seconds"}
    assert {k: v for k, v in ended.items() if k not in volatile} == {
        k: v for k, v in whole.items() if k not in volatile
    }


@pytest.mark.slow
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    agent=st.sampled_from(["random", "random-legal"]),
    seed=st.integers(0, 2**31 - 1),
    stops=st.lists(st.integers(1, 10), min_size=1, max_size=3),
)
def test_a_run_without_turns_keeps_all_that_it_had_goes_on_by_the_rules_and_repeats_to_the_byte(
    agent: str, seed: int, stops: list[int], host: PluginHost, tmp_path: Path
) -> None:
    """Who comes first after a stop is the clock's affair where nobody waits for the other."""
    database = str(tmp_path / f"free-{agent}-{seed}-{'-'.join(map(str, stops))}.db")
    rounds = 9
    plan = RunPlan(
        "matrix-free", plan_seats(host.games.get("matrix-free"), agent=agent), seed, None, {"rounds": rounds}
    )
    run = play_and_stop(plan, host, database, stops[0])
    for stop in stops[1:]:
        had = events_of(run, database)
        going = go_on_and_stop(run, host, database, stop)
        assert events_of(run, database)[: len(had)] == had
        if not going:
            break
    had = events_of(run, database)
    if list_runs(database=database)[0].status is not RunStatus.FINISHED:
        resume_run(run, database=database, host=host)
    ended = events_of(run, database)
    assert ended[: len(had)] == had

    # What followed is a game by the rules (Axelrod's payoffs): each choice meets the other's last one, and the first
    # choice there is until then.
    payoffs = {"cooperate": {"cooperate": 3, "defect": 0}, "defect": {"cooperate": 5, "defect": 1}}
    last = dict.fromkeys(("row", "column"), "cooperate")
    totals = dict.fromkeys(last, 0)
    done: Counter[str] = Counter()
    for step in read_run(run, database=database, host=host).steps:
        other = "column" if step.seat == "row" else "row"
        assert step.action.name in payoffs
        last[step.seat] = step.action.name
        assert step.result.reward == payoffs[step.action.name][last[other]]
        totals[step.seat] += step.result.reward
        done[step.seat] += 1
        assert step.result.done == (done[step.seat] == rounds)
    assert done == dict.fromkeys(last, rounds)
    summary = list_runs(database=database)[0].summary
    assert summary is not None
    assert {seat["seat"]: seat["reward"] for seat in summary["seats"]} == totals

    # As one that a kill kept from writing down that it had ended: all of it is gone through again, nothing is new.
    with open_store(database) as store:
        store.writer.set_status(run, RunStatus.INTERRUPTED, summary)
    again = resume_run(run, database=database, host=host).to_json()
    assert {k: v for k, v in again.items() if k != "seconds"} == {k: v for k, v in summary.items() if k != "seconds"}
    steps = ("chosen", "step", "observation", "left")
    assert [e for e in events_of(run, database) if e[0] in steps] == [e for e in ended if e[0] in steps]


def test_a_finished_run_is_not_gone_on_with(host: PluginHost, database: str) -> None:
    play("echo", "random", database=database, host=host)
    with pytest.raises(UsageError, match="was played to its end"):
        resume_run(database=database, host=host)


def test_a_run_that_another_process_plays_is_left_alone(host: PluginHost, database: str) -> None:
    plan = RunPlan("echo", plan_seats(host.games.get("echo")))
    run = play_and_stop(plan, host, database, 3)
    with (
        open_store(database) as store,
        hold_run(store.database, run),
        pytest.raises(StorageLockedError, match="being played by another process"),
    ):
        resume_run(run, database=database, host=host)


def test_a_run_can_be_stopped_while_it_goes_through_its_history_and_nothing_is_lost(
    host: PluginHost, database: str
) -> None:
    plan = RunPlan("echo", plan_seats(host.games.get("echo")), steps=40, options={"length": 50}, snapshot_every=0)
    whole = asyncio.run(unrecorded(plan, host).play())
    run = play_and_stop(plan, host, database, 30)
    controls = Controls()
    controls.stop()
    with open_store(database) as store, resume(run, host, store, controls=controls) as session:
        assert asyncio.run(session.play()).steps == 30
    assert list_runs(database=database)[0].status is RunStatus.INTERRUPTED
    assert resume_run(run, database=database, host=host).trajectory_hash == whole.trajectory_hash


GAME = """
from wsap_core import Action, ActionDef, ActionResult, ActionSpace, Observation


class Count:
    def __init__(self):
        self.n = 0

    game_description = "Count to nine."
    action_space = ActionSpace([ActionDef("up", "Add one")])

    def observe(self):
        return Observation(step=self.n)

    def act(self, action):
        self.n += 1
        return ActionResult(True, done=self.n >= 9, observation=self.observe())

    def reset(self):
        self.n = 0
        return self.observe()
"""


def test_a_run_of_a_game_in_a_file_is_gone_on_with_from_another_folder(
    host: PluginHost, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    (tmp_path / "here" / "game.py").write_text(GAME)
    monkeypatch.chdir(tmp_path / "here")
    run = play_and_stop(RunPlan("./game.py:Count", (SeatPlan("seat-1", "random"),)), host, database, 4)
    monkeypatch.chdir(tmp_path / "there")
    assert resume_run(run, database=database, host=host).steps == 9


def test_a_game_that_goes_another_way_the_second_time_is_not_resumed(host: PluginHost, database: str) -> None:
    class Fickle:
        """Gives a reward that depends on how many of its kind were made before."""

        made = 0

        def __init__(self) -> None:
            Fickle.made += 1
            self.step = 0

        @property
        def game_description(self) -> str:
            return "Fickle."

        @property
        def action_space(self) -> ActionSpace:
            return ActionSpace([ActionDef("go", "Go")])

        def observe(self) -> Observation:
            return Observation(step=self.step)

        def act(self, action: Action) -> ActionResult:
            self.step += 1
            return ActionResult(True, reward=Fickle.made, done=self.step > 20, observation=self.observe())

        def reset(self) -> Observation:
            self.step = 0
            return self.observe()

    own = host_with_ours()
    own.games.add(_registered(AdapterSpec("fickle", "", Fickle)))
    plan = RunPlan("fickle", (SeatPlan("seat-1", "random"),))
    run = play_and_stop(plan, own, database, 3)
    with pytest.raises(WorldError, match="diverged from the recording at step 1"):
        resume_run(run, database=database, host=own)
    # Nothing of what was recorded is lost by the attempt.
    assert len(read_run(run, database=database, host=own).steps) == 3


def _registered(spec: AdapterSpec) -> object:
    from wsap_core.host import Registration

    return Registration(spec, "test", "test")


class Sleeper:
    """An agent that never answers."""

    def initialize(self, game_desc: str, action_space: ActionSpace) -> None: ...

    async def decide(self, observation: Observation) -> Action:
        await asyncio.Event().wait()
        raise AssertionError("never woken")

    def reflect(self, result: ActionResult) -> None: ...

    def plan(self, goals: list[object]) -> list[str]:
        return []


def test_a_seat_whose_agent_never_answers_is_forced_and_the_record_says_so(host: PluginHost) -> None:
    from dataclasses import replace

    spec = replace(host.games.get("matrix"), deadline=0.001)
    plan = RunPlan("matrix", (SeatPlan("row", "always", {"action": "defect"}), SeatPlan("column", "sleeper")))
    agents = {"row": host.agents.get("always"), "column": AgentSpec("sleeper", "", Sleeper)}
    summary = asyncio.run(unrecorded(plan, host, parts=ResolvedSpecs(spec, agents)).play()).to_json()
    assert summary["decisions"] == {
        "total": 20,
        "repaired": 0,
        "forced": 10,
        "unconstrained": 0,
        "cut": 0,
        "continued": 0,
        "causes": {"it took too long": 10},
    }
    assert [s["decisions"]["forced"] for s in summary["seats"]] == [0, 10]
    # The default choice is to cooperate: defection against it pays 5 a round.
    assert [s["reward"] for s in summary["seats"]] == [50, 0]


def test_a_run_that_waits_for_an_agent_can_be_stopped(host: PluginHost) -> None:
    plan = RunPlan("echo", (SeatPlan("seat-1", "sleeper"),))
    controls = Controls()
    parts = ResolvedSpecs(host.games.get("echo"), {"seat-1": AgentSpec("sleeper", "", Sleeper)})
    session = unrecorded(plan, host, parts=parts, controls=controls)

    async def both() -> int:
        task = asyncio.create_task(session.play())
        await asyncio.sleep(0)
        controls.stop()
        return (await asyncio.wait_for(task, 300)).steps

    assert asyncio.run(both()) == 0


def test_paused_decisions_wait_and_single_steps_let_one_through(host: PluginHost) -> None:
    controls = Controls()
    controls.pause()
    steps: list[int] = []
    plan = RunPlan("echo", plan_seats(host.games.get("echo")))
    session: RunHandle = unrecorded(plan, host, controls=controls, observers=[lambda s: steps.append(s.step)])

    async def drive() -> list[list[int]]:
        task = asyncio.create_task(session.play())
        seen = []
        for _ in range(3):
            for _ in range(20):
                await asyncio.sleep(0)
            seen.append(list(steps))
            controls.step_once()
        for _ in range(20):
            await asyncio.sleep(0)
        seen.append(list(steps))
        controls.resume()
        await task
        return seen

    assert asyncio.run(drive()) == [[], [1], [1, 2], [1, 2, 3]]
    assert len(steps) == 20


def test_an_agent_that_raises_ends_the_run_with_its_name_and_keeps_the_record(host: PluginHost, database: str) -> None:
    class Clumsy:
        def __init__(self) -> None:
            self.count = 0

        def initialize(self, game_desc: str, action_space: ActionSpace) -> None: ...

        def decide(self, observation: Observation) -> Action:
            self.count += 1
            if self.count > 4:
                raise KeyError("the map")
            return Action("wait")

        def reflect(self, result: ActionResult) -> None: ...

        def plan(self, goals: list[object]) -> list[str]:
            return []

    with pytest.raises(PluginError, match="raised KeyError: 'the map'"):
        play("echo", AgentSpec("clumsy", "", Clumsy), database=database, host=host)
    run = read_run(database=database, host=host)
    assert run.record.status is RunStatus.FAILED
    assert len(run.steps) == 4


@pytest.mark.parametrize(
    ("seats", "reason"),
    [({"middle": "random"}, "has no seat 'middle'; its seats are: row, column")],
)
def test_a_seat_that_does_not_exist_is_refused(host: PluginHost, seats: dict[str, str], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        play("matrix", seats=seats, record=False, host=host)


@pytest.mark.parametrize("values", [{"seed": -1}, {"seed": 2**31}, {"steps": 0}, {"steps": -5}])
def test_seeds_and_steps_out_of_range_are_refused(host: PluginHost, values: dict[str, int]) -> None:
    with pytest.raises(UsageError, match="must be a whole number"):
        play("echo", record=False, host=host, **values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"lenght": 3}, r"The game 'echo' has no option 'lenght'. Did you mean 'length'\?"),
        ({"colour": "red"}, r"has no option 'colour'. It takes: length."),
    ],
)
def test_an_option_that_does_nothing_is_refused(host: PluginHost, options: dict[str, object], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        play("echo", options=options, record=False, host=host)
    with pytest.raises(ConfigError, match=r"The agent 'always' has no option 'acton'. Did you mean 'action'"):
        play("echo", "always", agent_options={"acton": "wait"}, record=False, host=host)


def test_an_agent_made_for_another_game_is_refused(host: PluginHost) -> None:
    with pytest.raises(UsageError, match="plays matrix"):
        play("echo", "tit-for-tat", record=False, host=host)


KILLED = textwrap.dedent(
    """
    import os, signal, sys
    from hosts import host_with_ours
    from wsap_nexus.api import play

    host = host_with_ours()
    database, after = sys.argv[1], int(sys.argv[2])
    seen = []

    def watch(step):
        seen.append(step)
        if len(seen) == after:
            os.kill(os.getpid(), signal.SIGKILL)

    play("echo", "random", seed=11, steps=400, options={"length": 30}, database=database, host=host, observers=[watch])
    """
)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="SIGKILL is a POSIX signal")
@pytest.mark.parametrize("after", [1, 57, 399])
@pytest.mark.slow
def test_a_killed_run_is_gone_on_with_in_mid_episode_and_ends_with_the_same_hash(
    after: int, host: PluginHost, database: str, tmp_path: Path
) -> None:
    whole = play("echo", "random", seed=11, steps=400, options={"length": 30}, record=False, host=host)
    script = tmp_path / "killed.py"
    script.write_text(KILLED)
    if after == 57:  # once where sets have another order
        command = [sys.executable, str(script), database, str(after)]
        code = subprocess.run(command, env=with_kit(PYTHONHASHSEED="7"), check=False).returncode
    else:
        code = run_script(script, database, str(after)).returncode
    assert code == -signal.SIGKILL
    assert list_runs(database=database)[0].status is RunStatus.RUNNING
    resumed = resume_run(database=database, host=host)
    assert resumed.trajectory_hash == whole.trajectory_hash
    assert len(read_run(database=database, host=host).steps) == 400
