"""`wsap play --as` and what it does to an agent, as they are typed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli_kit import typed
from cli_nexus_kit import environ_of, running

AGENTS = """\
import os, signal
from wsap_core import Action
from wsap_llm.memory.facts import FactsMemory
from wsap_core.protocol import HistoryEntry

class Witness:
    # Keeps every step in memory; at its 30th decision it does to its process what STOP_WITH says.
    count = 0
    def __init__(self, context): self.memory = FactsMemory()
    def initialize(self, game_desc, action_space): pass
    def decide(self, observation):
        Witness.count += 1
        if os.environ.get("STOP_WITH") and Witness.count == 30:
            os.kill(os.getpid(), getattr(signal, os.environ["STOP_WITH"]))
        self.seen = observation
        return Action("speak", {"text": f"I know {len(self.memory.memory.facts)} things"})
    def reflect(self, result):
        self.memory.note(f"I was in room {self.seen.step} \\x1b[31mred.", world="echo", step=self.seen.step)
    def plan(self, goals): return []

class Blank(Witness):
    def __init__(self, context): self.memory = None
    def decide(self, observation): return Action("wait")
    def reflect(self, result): pass

class Chooser(Witness):
    def decide(self, observation):
        self.seen = observation
        return super().decide(observation) if not self.space else Action(self.space[len(self.memory.memory.facts) % 2])
    def initialize(self, game_desc, action_space): self.space = [a.name for a in action_space.actions]
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder and a working folder of the test's own, with agents that remember in a file."""
    monkeypatch.setenv("WSAP_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("WSAP_DATABASE", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "me.py").write_text(AGENTS, encoding="utf-8")
    return tmp_path / "home"


def answered(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    code, out, err = typed(capsys, *words, "--json")
    assert code == 0, err
    return json.loads(out)


WITNESS = ("echo", "--agent", "./me.py:Witness", "--option", "length=20", "--steps", "40")
MODEL = ("echo", "--model", "scripted/x", "--model-option", "reply=wait", "--option", "length=20", "--steps", "20")


WHO = ("nexus", "agents")


def listed(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [row["id"] for row in answered(capsys, *WHO, "list")]


def shown(capsys: pytest.CaptureFixture[str], name: str = "ada") -> Any:
    return answered(capsys, *WHO, "show", name)


@pytest.mark.slow
def test_what_an_agent_remembers_is_shown_searched_and_forgotten(capsys: pytest.CaptureFixture[str]) -> None:
    assert listed(capsys) == []
    code, out, err = typed(capsys, "play", *WITNESS, "--as", "ada", "--json")
    assert code == 0
    assert err.splitlines()[0] == "Created the agent ada; show it with: wsap nexus agents show ada"
    run = json.loads(out)["run"]
    assert listed(capsys) == ["ada"]
    found = shown(capsys)
    assert (found["place"], found["lifetime_steps"], found["state"]) == ("nexus", 40, "active")
    (session,) = found["sessions"]
    assert (session["run_id"], session["game"], session["steps"]) == (run, "echo", 40)
    assert (session["reason"], session["closed"] is not None) == ("finished", True)
    memory = answered(capsys, *WHO, "memory", "ada", "--limit", "3")
    assert (memory["kinds"], memory["runs"], memory["unreadable"]) == (["FactsMemory"], 1, [])
    assert memory["memories"][0] == {
        "kind": "fact",
        "text": "(echo, run 1, step 19) I was in room 19  [31mred.",
        "world": "echo",
        "run": "run 1",
        "step": 19,
    }
    assert len(memory["memories"]) == 3
    (best, *_) = answered(capsys, *WHO, "memory", "ada", "--search", "room 7")["memories"]
    assert best["step"] == 7
    _, out, _ = typed(capsys, *WHO, "memory", "ada")
    assert out.startswith("ada: memory FactsMemory, 1 run\n")
    assert "\x1b" not in out
    assert answered(capsys, *WHO, "forget", "ada") == {"agent": "ada", "forgotten": True}
    assert answered(capsys, *WHO, "memory", "ada")["memories"] == []
    assert shown(capsys)["lifetime_steps"] == 40
    code, _, err = typed(capsys, *WHO, "memory", "eve")
    assert (code, "no agent called 'eve'" in err) == (2, True)
    assert typed(capsys, *WHO, "forget", "eve", "--yes")[0] == 2


@pytest.mark.slow
def test_the_second_run_goes_on_from_what_the_first_remembered(capsys: pytest.CaptureFixture[str]) -> None:
    first = answered(capsys, "play", *WITNESS, "--as", "ada")
    code, out, err = typed(capsys, "play", *WITNESS, "--as", "ada", "--json")
    assert (code, "new agent" in err) == (0, False)
    second = json.loads(out)
    alone = answered(capsys, "play", *WITNESS)
    assert first["trajectory_hash"] == alone["trajectory_hash"] != second["trajectory_hash"]
    assert answered(capsys, "play", "--replay", second["run"])["trajectory_hash"] == second["trajectory_hash"]
    assert answered(capsys, *WHO, "memory", "ada")["runs"] == 2
    assert [s["run_id"] for s in shown(capsys)["sessions"]] == [second["run"], first["run"]]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="POSIX signals")
@pytest.mark.parametrize(("stop", "code"), [("SIGINT", 130), ("SIGTERM", 130), ("SIGKILL", -9)])
def test_a_run_that_is_stopped_saves_what_its_agent_remembers_and_a_killed_one_when_it_goes_on(
    capsys: pytest.CaptureFixture[str], stop: str, code: int
) -> None:
    words = [sys.executable, "-m", "wsap_core", "play", *WITNESS, "--as", "ada", "--json"]
    done = subprocess.run(words, capture_output=True, check=False, text=True, env={**os.environ, "STOP_WITH": stop})
    assert done.returncode == code, done.stderr
    found = shown(capsys)
    kept = answered(capsys, *WHO, "memory", "ada")["kinds"] == ["FactsMemory"]
    assert (found["lifetime_steps"] >= 29, kept) == ((True, True) if code == 130 else (False, False))
    assert found["place"] == ("nexus" if code == 130 else "echo")
    resumed = answered(capsys, "play", "--resume", "last")
    assert resumed["trajectory_hash"] == answered(capsys, "play", *WITNESS)["trajectory_hash"]
    found = shown(capsys)
    assert (found["lifetime_steps"], found["place"]) == (40, "nexus")
    assert len(found["sessions"]) == 2
    assert answered(capsys, *WHO, "memory", "ada", "--limit", "100")["kinds"] == ["FactsMemory"]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="POSIX signals")
def test_an_agent_of_a_killed_run_is_free_for_another_run_and_for_being_changed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = [sys.executable, "-m", "wsap_core", "play", *WITNESS, "--as", "ada", "--json"]
    for _ in range(2):
        subprocess.run(words, capture_output=True, check=False, text=True, env={**os.environ, "STOP_WITH": "SIGKILL"})
    assert answered(capsys, "play", *WITNESS, "--as", "ada")["steps"] == 40
    assert [s["reason"] for s in shown(capsys)["sessions"]] == ["finished", "interrupted", "interrupted"]
    subprocess.run(words, capture_output=True, check=False, text=True, env={**os.environ, "STOP_WITH": "SIGKILL"})
    assert shown(capsys)["place"] == "echo"
    assert answered(capsys, *WHO, "remove", "ada")["state"] == "removed"
    code, _, err = typed(capsys, "play", *WITNESS, "--as", "ada")
    assert (code, "'ada' was removed" in err) == (2, True)


@pytest.mark.slow
def test_beside_a_running_nexus_memories_are_shown_and_forgotten_and_playing_as_its_agents_is_refused(
    capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    answered(capsys, "play", *WITNESS, "--as", "ada")
    with running(environ_of(home)):
        assert answered(capsys, *WHO, "memory", "ada", "--search", "room 7")["memories"][0]["step"] == 7
        code, out, err = typed(capsys, "play", *WITNESS, "--as", "ada")
        assert (code, out, len(err.splitlines())) == (6, "", 1)
        assert "which 'ada' belongs to; send it into the game with: wsap nexus agents send ada GAME" in err
        assert typed(capsys, *WHO, "forget", "ada", "--yes")[1] == "ada remembers nothing now.\n"
        assert answered(capsys, *WHO, "memory", "ada")["kinds"] == []
        assert shown(capsys)["state"] == "active"


@pytest.mark.slow
def test_a_model_remembers_as_its_agent_does_and_is_who_the_persona_says(capsys: pytest.CaptureFixture[str]) -> None:
    persona = "You are Ada, who never speaks."
    options = ("--memory", "fifo", "--agent-option", "memory.cells=7", "--persona", persona)
    answered(capsys, "play", *MODEL, "--as", "ada", *options)
    second = answered(capsys, "play", *MODEL, "--as", "ada")
    new = answered(capsys, "play", *MODEL, "--as", "bob")
    kinds = [answered(capsys, *WHO, "memory", name)["kinds"] for name in ("ada", "bob")]
    assert kinds == [["fifo"], ["fulltext"]]
    assert new["steps"] == 20
    first, *events = typed(capsys, "export", second["run"])[1].splitlines()
    (seat,) = json.loads(first)["config"]["seats"]
    assert seat["mind"] == "ada"
    assert {k: seat["options"][k] for k in ("memory", "memory.cells")} == {"memory": "fifo", "memory.cells": 7}
    assert persona in "\n".join(events), "in the system message"


@pytest.mark.slow
def test_an_agents_own_policy_decides_where_nobody_else_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    answered(capsys, "play", *MODEL, "--as", "ada")
    third = answered(capsys, "play", "echo", "--steps", "3", "--as", "ada")
    assert third["agent"] == "llm (scripted/x)"
    assert third["usage"]["calls"] == 3
    assert answered(capsys, "play", *WITNESS, "--as", "ada")["usage"]["calls"] == 0


def test_an_agent_without_a_memory_is_credited_with_what_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    answered(capsys, "play", "echo", "--agent", "./me.py:Blank", "--steps", "7", "--as", "ada")
    assert answered(capsys, *WHO, "memory", "ada")["kinds"] == []
    found = shown(capsys)
    assert (found["lifetime_steps"], found["sessions"][0]["reason"]) == (7, "step_limit")


@pytest.mark.slow
def test_agents_of_several_seats_each_remember(capsys: pytest.CaptureFixture[str]) -> None:
    seats = ("--as", "row=ada", "--as", "column=bob", "--agent", "./me.py:Witness", "--option", "rounds=5")
    words = [word.replace("me.py:Witness", "me.py:Chooser") for word in ("matrix", *seats)]
    answered(capsys, "play", *words)
    code, out, err = typed(capsys, "play", *words, "--json")
    assert (code, "new agent" in err) == (0, False)
    for name in ("ada", "bob"):
        assert answered(capsys, *WHO, "memory", name)["runs"] == 2
        assert shown(capsys, name)["lifetime_steps"] == 10
    assert json.loads(out)["steps"] == 10


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([*WITNESS, "--as", "../ada"], "can't be an agent's id"),
        ([*WITNESS, "--as", "a", "--as", "b"], "gives one seat to two agents"),
        ([*WITNESS, "--as", "seat-7=ada"], "no seat 'seat-7'"),
        ([*WITNESS, "--as", "ada", "--no-record"], "leave one out"),
        (["matrix", "--as", "ada"], "Say which seat 'ada' takes"),
        (["matrix", "--as", "row=ada", "--as", "column=ada"], "can't be in two seats at once"),
        (["--resume", "last", "--as", "ada"], "leave out --as"),
        ([*MODEL, "--as", "ada", "--agent-option", "memory.path=x.db"], "leave out memory.path"),
        ([*WITNESS, "--mind", "ada"], "No such option '--mind'"),
    ],
)
def test_what_makes_no_sense_is_refused_and_makes_no_agent(
    capsys: pytest.CaptureFixture[str], words: list[str], reason: str
) -> None:
    code, out, err = typed(capsys, "play", *words)
    assert (code, out) == (2, "")
    assert reason in err
    assert listed(capsys) == []
