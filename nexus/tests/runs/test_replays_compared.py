"""Replays take the recorded choices and compare every step, as typed: whatever has changed since."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_kit import own_folder, typed

GAME = """
from wsap_core import ActionDef, ActionResult, ActionSpace, Observation

class Counting:
    game_description = "Count."
    action_space = ActionSpace((ActionDef("count", "Count."), ActionDef("rest", "Rest.")))
    def __init__(self, context):
        self.n = 0
    def reset(self, seed=None):
        self.n = 0
        return self.observe()
    def observe(self):
        return Observation(status={"n": self.n}, step=self.n)
    def act(self, action):
        self.n += ADD if action.name == "count" else 0
        return ActionResult(True, str(self.n), 1.0, done=self.n >= END, observation=self.observe())
"""
AGENT = """
import itertools
from wsap_core import Action

class Counter:
    def initialize(self, game_desc, action_space): pass
    def decide(self, observation): return Action("NAME")
    def reflect(self, result): pass
    def plan(self, goals): return []
"""
CHANCE = """
import secrets
from wsap_core import Action

class Dice:
    "Decides by a die that nobody can throw again."
    def initialize(self, game_desc, action_space): pass
    def decide(self, observation): return Action("count" if secrets.randbelow(2) else "rest")
    def reflect(self, result): pass
    def plan(self, goals): return []
"""


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_folder(tmp_path, monkeypatch)
    write_game()
    write_agent()


def write_game(add: int = 1, end: int = 30) -> None:
    # Of another length each time: Python compiles a file of the same length anew only in another second.
    text = GAME.replace("ADD", str(add)).replace("END", str(end))
    Path("game.py").write_text(f"{text}#{'-' * add}{'-' * end}\n")


def write_agent(name: str = "count") -> None:
    Path("agent.py").write_text(AGENT.replace("NAME", name))


def played(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    code, out, err = typed(capsys, "play", *words, "--json")
    assert code == 0, err
    return dict(json.loads(out))


def again(capsys: pytest.CaptureFixture[str], run: dict[str, Any]) -> dict[str, Any]:
    return played(capsys, "--replay", run["run"])


def refused(capsys: pytest.CaptureFixture[str], run: dict[str, Any]) -> str:
    for more in ((), ("--json",)):
        code, out, err = typed(capsys, "play", "--replay", run["run"], *more)
        assert code == 4, out + err
        assert "Replayed" not in out
        (line,) = err.splitlines()[-1:]
    return line


@pytest.mark.slow
def test_a_changed_game_is_told_at_the_first_step_that_differs(capsys: pytest.CaptureFixture[str]) -> None:
    run = played(capsys, "./game.py:Counting", "--agent", "./agent.py:Counter", "--steps", "5")
    assert again(capsys, run)["trajectory_hash"] == run["trajectory_hash"]
    write_game(add=3)
    assert refused(capsys, run) == (
        "Error: 'counting' diverged from the recording at step 1 of seat 'seat-1', so the run can't be repeated. "
        "Has the game changed?"
    )
    write_game(end=4)
    assert "at step 4 of seat 'seat-1'" in refused(capsys, run)


def test_a_game_whose_end_has_changed_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    run = played(capsys, "./game.py:Counting", "--agent", "./agent.py:Counter")
    assert run["steps"] == 30
    assert again(capsys, run)["steps"] == 30
    write_game(end=31)
    assert "at step 30 of seat 'seat-1'" in refused(capsys, run)


def test_a_changed_agent_changes_nothing_as_its_recorded_choices_are_taken(capsys: pytest.CaptureFixture[str]) -> None:
    run = played(capsys, "./game.py:Counting", "--agent", "./agent.py:Counter", "--steps", "5")
    write_agent("rest")
    assert again(capsys, run)["trajectory_hash"] == run["trajectory_hash"]
    Path("agent.py").unlink()
    assert again(capsys, run)["trajectory_hash"] == run["trajectory_hash"]


def test_an_agent_that_nobody_can_ask_the_same_again_is_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    Path("dice.py").write_text(CHANCE)
    run = played(capsys, "./game.py:Counting", "--agent", "./dice.py:Dice", "--steps", "40")
    replay = again(capsys, run)
    assert (replay["trajectory_hash"], replay["steps"]) == (run["trajectory_hash"], 40)
    # A replay is a recording like any other.
    assert again(capsys, replay)["trajectory_hash"] == run["trajectory_hash"]
    code, out, _ = typed(capsys, "replay", replay["run"], "--verify")
    assert (code, "as recorded" in out) == (0, True)


def test_several_seats_are_compared_too(capsys: pytest.CaptureFixture[str]) -> None:
    run = played(capsys, "matrix", "--seat", "row=random", "--fill", "tit-for-tat", "--episodes", "2", "--seed", "3")
    replay = again(capsys, run)
    assert replay["trajectory_hash"] == run["trajectory_hash"]
    assert [seat["episodes"] for seat in replay["seats"]] == [seat["episodes"] for seat in run["seats"]]


FREE = """
import asyncio, secrets
from wsap_core import Action, ActionDef, ActionResult, ActionSpace, Observation

class Bell:
    "Two ring one bell whenever they like."
    game_description = "Ring."
    action_space = ActionSpace((ActionDef("ring", "Ring."),))
    seats = ("ann", "bob")
    def __init__(self, context):
        self.rung = 0
    def reset(self, seed=None):
        self.rung = 0
        return Observation()
    def observe(self):
        return Observation(status={"rung": self.rung}, step=self.rung)
    def act(self, action):
        self.rung += 1
        return ActionResult(True, str(self.rung), 1.0, done=self.rung >= 40, observation=self.observe())
    def seat(self, agent_id):
        return self

class Restless:
    "Needs a moment that nobody can foresee."
    def initialize(self, game_desc, action_space): pass
    async def decide(self, observation):
        for _ in range(secrets.randbelow(6)):
            await asyncio.sleep(0)
        return Action("ring")
    def reflect(self, result): pass
    def plan(self, goals): return []
"""


@pytest.mark.slow
def test_seats_that_act_without_waiting_are_repeated_in_their_order(capsys: pytest.CaptureFixture[str]) -> None:
    Path("free.py").write_text(FREE)
    runs = [
        played(capsys, "./free.py:Bell", "--seat", "ann=./free.py:Restless", "--seat", "bob=./free.py:Restless",
               "--steps", "12")
        for _ in range(3)
    ]  # fmt: skip
    assert len({run["trajectory_hash"] for run in runs}) > 1, "each goes its own way"
    for run in runs:
        assert again(capsys, run)["trajectory_hash"] == run["trajectory_hash"]
