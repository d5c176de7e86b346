"""`wsap play --mind` and `wsap minds` as they are typed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from wsap_core.cli import main
from wsap_nexus.minds import Minds

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
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder and a working folder of the test's own, with agents that remember in a file."""
    monkeypatch.setenv("WSAP_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("WSAP_DATABASE", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "me.py").write_text(AGENTS, encoding="utf-8")
    return tmp_path / "home"


def typed(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """What a command exits with and prints, on both streams."""
    capsys.readouterr()
    code = main(words)
    done = capsys.readouterr()
    return code, done.out, done.err


def answered(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    code, out, err = typed(capsys, *words, "--json")
    assert code == 0, err
    return json.loads(out)


WITNESS = ("echo", "--agent", "./me.py:Witness", "--option", "length=20", "--steps", "40")
MODEL = ("echo", "--model", "scripted/x", "--model-option", "reply=wait", "--option", "length=20", "--steps", "20")


def test_minds_are_listed_shown_and_removed(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    assert answered(capsys, "minds") == []
    assert "wsap play crafter --model MODEL --mind ada" in typed(capsys, "minds")[1]
    run = answered(capsys, "play", *WITNESS, "--mind", "ada")["run"]
    (row,) = answered(capsys, "minds")
    assert (row["mind"], row["memory"], row["runs"], row["steps"]) == ("ada", "FactsMemory", 1, 40)
    shown = answered(capsys, "minds", "show", "ada", "--limit", "3")
    assert [life["run"] for life in shown["lives"]] == [run]
    assert shown["memories"][0] == {
        "kind": "fact",
        "text": "(echo, run 1, step 19) I was in room 19  [31mred.",
        "world": "echo",
        "run": "run 1",
        "step": 19,
    }
    assert len(shown["memories"]) == 3
    (best, *_) = answered(capsys, "minds", "show", "ada", "--search", "room 7")["memories"]
    assert best["step"] == 7
    _, out, _ = typed(capsys, "minds", "show", "ada")
    assert f"run 1: Echo, 40 steps ({run}, begun " in out
    assert "\x1b" not in out
    assert typed(capsys, "minds")[1].startswith("ada\tFactsMemory\t1 run\t40 steps\t")
    assert answered(capsys, "minds", "remove", "ada") == {"removed": "ada"}
    assert answered(capsys, "minds") == []
    code, _, err = typed(capsys, "minds", "show", "ada")
    assert (code, "no mind called 'ada'" in err) == (2, True)
    assert typed(capsys, "minds", "remove", "ada", "--yes")[0] == 2


def test_a_mind_that_is_damaged_can_be_removed(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    (home / "minds").mkdir(parents=True)
    (home / "minds" / "ada.json").write_text("{")
    code, _, err = typed(capsys, "minds", "show", "ada")
    assert (code, "wsap minds remove ada" in err) == (6, True)
    assert typed(capsys, "minds", "remove", "ada", "--yes")[0] == 0
    assert list((home / "minds").glob("*.json")) == []


def test_the_second_run_goes_on_from_what_the_first_remembered(capsys: pytest.CaptureFixture[str]) -> None:
    first = answered(capsys, "play", *WITNESS, "--mind", "ada")
    second = answered(capsys, "play", *WITNESS, "--mind", "ada")
    alone = answered(capsys, "play", *WITNESS)
    assert first["trajectory_hash"] == alone["trajectory_hash"] != second["trajectory_hash"]
    assert answered(capsys, "play", "--replay", second["run"])["trajectory_hash"] == second["trajectory_hash"]
    assert [life["number"] for life in answered(capsys, "minds", "show", "ada")["lives"]] == [1, 2]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="POSIX signals")
@pytest.mark.parametrize(("stop", "code"), [("SIGINT", 130), ("SIGTERM", 130), ("SIGKILL", -9)])
def test_a_run_that_is_stopped_saves_its_mind_and_a_killed_one_when_it_goes_on(
    capsys: pytest.CaptureFixture[str], stop: str, code: int
) -> None:
    words = [sys.executable, "-m", "wsap_core", "play", *WITNESS, "--mind", "ada", "--json"]
    done = subprocess.run(words, capture_output=True, check=False, text=True, env={**os.environ, "STOP_WITH": stop})
    assert done.returncode == code, done.stderr
    (row,) = answered(capsys, "minds")
    assert (row["steps"] >= 29, row["saved"] is not None) == ((True, True) if code == 130 else (False, False))
    if code != 130:
        assert "nothing saved; wsap play --resume " in typed(capsys, "minds", "show", "ada")[1]
    resumed = answered(capsys, "play", "--resume", "last")
    assert resumed["trajectory_hash"] == answered(capsys, "play", *WITNESS)["trajectory_hash"]
    assert answered(capsys, "minds")[0]["steps"] == 40


def test_a_model_remembers_as_its_mind_does_and_is_who_the_persona_says(
    capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    answered(capsys, "play", *MODEL, "--mind", "ada", "--memory", "fifo", "--agent-option", "memory.cells=7")
    (home / "minds" / "ada.md").write_text("@You are Ada, who never speaks.\n", encoding="utf-8")
    second = answered(capsys, "play", *MODEL, "--mind", "ada")
    new = answered(capsys, "play", *MODEL, "--mind", "bob")
    assert [row["memory"] for row in answered(capsys, "minds")] == ["fifo", "fulltext"]
    assert new["steps"] == 20
    first, *events = typed(capsys, "export", second["run"])[1].splitlines()
    (seat,) = json.loads(first)["config"]["seats"]
    assert seat["mind"] == "ada"
    assert {k: seat["options"][k] for k in ("memory", "memory.cells")} == {"memory": "fifo", "memory.cells": 7}
    assert "@You are Ada, who never speaks." in "\n".join(events), "in the system message"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([*WITNESS, "--mind", "../ada"], "is no name for a mind"),
        ([*WITNESS, "--mind", "a", "--mind", "b"], "gives the agent two minds"),
        ([*WITNESS, "--mind", "seat-7=ada"], "no seat 'seat-7'"),
        ([*WITNESS, "--mind", "ada", "--no-record"], "leave one out"),
        (["echo", "--agent", "./me.py:Blank", "--mind", "ada"], "has no memory that the mind 'ada' could live in"),
        (["matrix", "--mind", "ada"], "Say which seat the mind 'ada' is for"),
        (["--resume", "last", "--mind", "ada"], "leave out --mind"),
        ([*MODEL, "--mind", "ada", "--agent-option", "memory.path=x.db"], "leave one of them out"),
    ],
)
def test_what_makes_no_sense_is_refused_and_makes_no_mind(
    capsys: pytest.CaptureFixture[str], home: Path, words: list[str], reason: str
) -> None:
    code, out, err = typed(capsys, "play", *words)
    assert (code, out) == (2, "")
    assert reason in err
    assert Minds(home / "minds").names() == []
