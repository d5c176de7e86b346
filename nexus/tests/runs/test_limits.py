"""How long a run is: steps, episodes, and what it tells of what was cut off."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hosts import host_with_ours

from wsap_core import Action, AgentSpec, Observation, PluginHost
from wsap_core.builtin.random_agents import RandomAgent
from wsap_core.cli import main
from wsap_core.errors import UsageError, WireError
from wsap_nexus.api import play, read_run, resume_run
from wsap_nexus.runs.plan import RunPlan, SeatPlan, plan_seats
from wsap_nexus.runs.play.controls import Controls
from wsap_nexus.runs.play.observers import StepTaken
from wsap_nexus.runs.record.summary import CutOff, RunSummary
from wsap_nexus.runs.session import start
from wsap_nexus.runs.store import open_store

PENNIES = {"game": "matching-pennies", "rounds": 4}
"""What one wins, the other loses; in turns, the first hears of it with the answer of the second."""


@pytest.fixture
def host() -> PluginHost:
    return host_with_ours()


@pytest.fixture
def database(tmp_path: Path) -> str:
    return str(tmp_path / "runs.db")


def episodes_of(summary: RunSummary) -> list[list[tuple[int, bool]]]:
    """Return steps, and whether it is whole, of each episode of each seat."""
    return [[(e.steps, e.done) for e in seat.all_episodes()] for seat in summary.seats]


@pytest.mark.parametrize("game", ["matrix", "matrix-turns"])
@pytest.mark.parametrize("steps", [1, 4, 5, 7, 8])
def test_a_zero_sum_game_stays_one_whatever_the_step_limit(
    game: str, steps: int, host: PluginHost, database: str
) -> None:
    summary = play(game, "random", seed=steps, steps=steps, options=PENNIES, database=database, host=host)
    assert episodes_of(summary) == [[(4, True)] * (1 if steps <= 4 else 2)] * 2
    assert summary.cut_off is None
    sums: dict[int, float] = {}
    for step in read_run(database=database, host=host).steps:
        sums[step.episode] = sums.get(step.episode, 0.0) + step.result.reward
    assert set(sums.values()) == {0.0}


def test_so_many_episodes_are_played_as_are_asked_for(host: PluginHost) -> None:
    one = play("echo", "random", options={"length": 7}, episodes=3, record=False, host=host)
    assert (episodes_of(one), one.cut_off) == ([[(7, True)] * 3], None)
    two = play("matrix-turns", "random", options=PENNIES, episodes=3, record=False, host=host)
    assert (episodes_of(two), two.cut_off) == ([[(4, True)] * 3] * 2, None)


@pytest.mark.parametrize(
    ("game", "steps", "episodes", "cut_off"),
    [
        ("echo", 14, None, None),
        ("echo", 16, None, CutOff("steps", 3, 2, 0)),
        ("echo", 16, 2, None),
        ("echo", 16, 5, CutOff("steps", 3, 2, 2)),
        ("echo", 14, 5, CutOff("steps", None, 0, 3)),
        ("matrix-turns", 9, 5, CutOff("steps", None, 0, 2)),
        ("matrix-turns", 12, 3, None),
        ("matrix-turns", 12, 2, None),
    ],
)
def test_what_the_step_limit_cuts_off_is_told(
    game: str, steps: int, episodes: int | None, cut_off: CutOff | None, host: PluginHost
) -> None:
    options = {"length": 7} if game == "echo" else PENNIES
    summary = play(game, "random", options=options, steps=steps, episodes=episodes, record=False, host=host)
    assert summary.cut_off == cut_off
    assert summary.to_json()["cut_off"] == (None if cut_off is None else vars(cut_off))


def test_a_world_without_an_end_is_left_at_the_step_limit(host: PluginHost) -> None:
    spec = replace(host.games.get("matrix"), persistent=True)
    summary = play(spec, "random", options=PENNIES, steps=6, record=False, host=host)
    assert (episodes_of(summary), summary.cut_off) == ([[(4, True), (2, False)]] * 2, CutOff("steps", 2, 4, 0))


def test_a_seat_that_leaves_ends_the_run_and_is_named_as_the_cause(host: PluginHost) -> None:
    class Leaver(RandomAgent):
        def decide(self, observation: Observation) -> Action:
            return Action("jack_out" if observation.step == 2 else "heads")

    agents = {"row": AgentSpec("leaver", "", Leaver)}
    summary = play("matrix", "random", seats=agents, options=PENNIES, episodes=3, record=False, host=host)
    assert summary.cut_off is not None
    assert (summary.cut_off.by, summary.cut_off.missing) == ("left", 2)


def test_a_stopped_run_is_resumed_to_all_of_its_episodes(host: PluginHost, database: str) -> None:
    plan = RunPlan("matrix-turns", plan_seats(host.games.get("matrix-turns")), seed=5, options=PENNIES, episodes=3)
    controls = Controls()

    def watch(step: StepTaken) -> None:
        if step.episode == 1 and step.step == 6:
            controls.stop()

    with open_store(database) as store, start(plan, host, store, controls=controls, observers=[watch]) as session:
        stopped = asyncio.run(session.play())
    assert stopped.cut_off is not None
    assert (stopped.cut_off.by, stopped.cut_off.episode, stopped.cut_off.missing) == ("stopped", 2, 1)
    whole = play("matrix-turns", options=PENNIES, seed=5, episodes=3, record=False, host=host)
    resumed = resume_run(database=database, host=host)
    assert (resumed.trajectory_hash, resumed.cut_off) == (whole.trajectory_hash, None)


def test_a_plan_that_a_newer_version_recorded_is_refused_and_one_without_a_version_is_damaged() -> None:
    config = RunPlan("echo", (SeatPlan("seat-1", "random"),), steps=3).to_config()
    assert config["format"] == 1
    with pytest.raises(WireError, match="recorded by a newer version of WSAP; update with: "):
        RunPlan.from_config({**config, "format": 2})
    del config["format"]
    with pytest.raises(WireError, match="incomplete: 'format'"):
        RunPlan.from_config(config)


@pytest.mark.parametrize("episodes", [0, -1, 1.5, True, "3"])
def test_a_number_of_episodes_is_a_whole_one(episodes: int, host: PluginHost) -> None:
    with pytest.raises(UsageError, match="number of episodes must be a whole number of at least 1"):
        play("echo", episodes=episodes, record=False, host=host)


def test_the_command_line_tells_it_in_words_in_json_and_by_its_exit_status(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WSAP_HOME", str(tmp_path))
    echo = ("play", "echo", "--option", "length=7")
    assert main([*echo, "--episodes", "3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cut_off"] is None
    assert main([*echo, "--steps", "16"]) == 0
    assert "\ncut off by the step limit: episode 3 after 2 steps\n" in capsys.readouterr().out
    assert main([*echo, "--episodes", "5", "--steps", "16", "--json"]) == 10
    out, err = capsys.readouterr()
    assert json.loads(out)["cut_off"] == {"by": "steps", "episode": 3, "steps": 2, "missing": 2}
    told = "cut off by the step limit: episode 3 after 2 steps, 2 episodes not started"
    assert err == f"Error: Not all of 5 episodes were played: {told}.\n"
    assert main(["play", "--resume", "last", "--episodes", "7"]) == 2
    assert "leave out --episodes" in capsys.readouterr().err


def test_the_first_line_and_the_list_of_runs_say_how_long_a_run_is(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WSAP_HOME", str(tmp_path))
    told = {
        ("echo",): "one episode",
        ("echo", "--steps", "3"): "3 steps",
        ("echo", "--episodes", "2", "--steps", "30"): "2 episodes or 30 steps",
        ("matrix", "--steps", "3"): "3 steps and the rest of the episode",
    }
    for words, length in told.items():
        main(["play", *words])
        assert f"seed 0, {length}, recorded as" in capsys.readouterr().out
    assert main(["runs", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    found = [(row["step_limit"], row["episode_limit"], row["cut_off"] and row["cut_off"]["steps"]) for row in rows]
    assert found == [(3, None, None), (30, 2, 10), (3, None, 3), (None, None, None)]
