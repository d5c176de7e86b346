"""`wsap play` as it is typed: what is printed, recorded, refused, stopped and gone on with."""

from __future__ import annotations

import ctypes
import json
import os
import re
import resource
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from cli_kit import typed

KEYS = {
    "run", "game", "agent", "seed", "steps", "episodes", "reward", "achievements", "score", "done", "cut_off",
    "trajectory_hash", "decisions", "usage", "seconds", "model", "reason", "seats",
}  # fmt: skip

AGENTS = """\
import os, signal

class Steady:
    # Speaks and waits in turn; does to its process what STOP_WITH says, at its 150th decision.
    count = 0
    def initialize(self, game_desc, action_space): pass
    def decide(self, observation):
        from wsap_core import Action
        Steady.count += 1
        stop = os.environ.get("STOP_WITH")
        if stop and Steady.count == 150:
            os.kill(os.getpid(), getattr(signal, stop))
        return Action("wait") if observation.step % 2 else Action("speak", {"text": f"step {observation.step}"})
    def reflect(self, result): pass
    def plan(self, goals): return []

class Noisy(Steady):
    def decide(self, observation):
        print("to the standard output")
        return super().decide(observation)

class Broken(Steady):
    def decide(self, observation):
        raise ValueError("out of ideas")
"""


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder and a working folder of the test's own, with some agents in a file."""
    monkeypatch.setenv("WSAP_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("WSAP_DATABASE", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "me.py").write_text(AGENTS, encoding="utf-8")
    return tmp_path / "home"


def played(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    code, out, err = typed(capsys, "play", *words, "--json")
    assert code == 0, err
    assert err == ""
    summary: dict[str, Any] = json.loads(out)
    return summary


def process(*words: str, **more: Any) -> subprocess.CompletedProcess[str]:
    """`wsap` in a process of its own, with some of its environment changed."""
    environ = {**os.environ, **more.pop("environ", {})}
    return subprocess.run(
        [sys.executable, "-m", "wsap_core", *words],
        env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False, **more,
    )  # fmt: skip


# --- what is printed ----------------------------------------------------------------------


def test_json_is_one_object_with_the_promised_keys(capsys: pytest.CaptureFixture[str]) -> None:
    summary = played(capsys, "echo", "--agent", "random", "--seed", "3", "--steps", "50")
    assert set(summary) == KEYS
    assert summary["steps"] == 50
    assert summary["episodes"] == 3, "an episode of echo has 20 steps"
    assert set(summary["decisions"]) == {"total", "repaired", "forced", "unconstrained", "cut", "continued"}
    assert summary["decisions"]["total"] == 50
    assert re.fullmatch("[0-9a-f]{64}", summary["trajectory_hash"])


def test_several_seats_are_listed_below_the_totals(capsys: pytest.CaptureFixture[str]) -> None:
    summary = played(
        capsys, "matrix", "--seat", "row=always", "--fill", "tit-for-tat", "--agent-option", "action=defect"
    )
    assert set(summary) == KEYS
    assert {seat["seat"]: seat["agent"] for seat in summary["seats"]} == {"row": "always", "column": "tit-for-tat"}
    # Always defect against tit for tat, 10 rounds: 5 + 9 x 1 against 0 + 9 x 1 (Axelrod 1984).
    assert {seat["seat"]: seat["reward"] for seat in summary["seats"]} == {"row": 14, "column": 9}
    assert [seat["score"] for seat in summary["seats"]] == [{"mean_payoff": 1.4}, {"mean_payoff": 0.9}]
    assert (summary["reward"], summary["score"]) == (None, None), "one figure for both would mix them"


def test_the_same_seed_gives_the_same_run_and_another_seed_another(capsys: pytest.CaptureFixture[str]) -> None:
    first, again, other = (
        played(capsys, "echo", "--steps", "40", "--seed", seed)["trajectory_hash"] for seed in ("5", "5", "6")
    )
    assert first == again != other


def test_without_a_terminal_there_are_plain_lines_and_how_to_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = typed(capsys, "play", "echo", "--seed", "1")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith("Echo, random, seed 1, one episode, recorded as ")
    run = lines[0].rpartition(" ")[2]
    assert lines[1].startswith("step 20: episode 1 is over")
    assert re.match(r"20 steps in 1 episode, [\d.]+ s: reward \d+", lines[2])
    assert lines[-1] == f"Show its steps: wsap replay {run}"
    assert "\x1b" not in out


def test_what_an_agent_prints_stays_out_of_the_json(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = typed(capsys, "play", "echo", "--agent", "./me.py:Noisy", "--json")
    assert code == 0
    assert json.loads(out)["steps"] == 20
    assert err.count("to the standard output") == 20


def test_no_record_leaves_no_trace(capsys: pytest.CaptureFixture[str], own_home: Path) -> None:
    assert played(capsys, "echo", "--no-record")["run"] is None
    assert not (own_home / "wsap.db").exists()
    recorded = played(capsys, "echo")
    assert recorded["trajectory_hash"] == played(capsys, "echo", "--no-record")["trajectory_hash"]


def test_options_reach_the_game(capsys: pytest.CaptureFixture[str]) -> None:
    assert played(capsys, "echo", "--option", "length=7")["steps"] == 7


# --- what is refused ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "Name the game to play"),
        (("ehco",), "no game called 'ehco'. Did you mean 'echo'"),
        (("echo", "--agent", "radnom"), "no agent called 'radnom'. Did you mean 'random'"),
        (("echo", "--seed", "-1"), "'-1' is not a whole number from 0 to 2147483647"),
        (("echo", "--seed", "two"), "'two' is not a whole number"),
        (("echo", "--steps", "0"), "'0' is not a whole number from 1 to 1000000000000"),
        (("echo", "--steps", "1.5"), "'1.5' is not a whole number"),
        (("echo", "--option", "length"), "--option takes KEY=VALUE, not 'length'"),
        (("echo", "--option", "=5"), "--option takes KEY=VALUE, not '=5'"),
        (("echo", "--option", "length=5", "--option", "length=6"), "--option names 'length' twice"),
        (("echo", "--option", "length=short"), "length='short' of echo must be a whole number"),
        (("matrix", "--seat", "row"), "--seat takes NAME=AGENT, not 'row'"),
        (("matrix", "--seat", "rwo=random"), "'matrix' has no seat 'rwo'; its seats are: row, column"),
        (("matrix", "--seat", "row=random", "--seat", "row=always"), "--seat names 'row' twice"),
        (("echo", "--seat", "seat-1=random", "--seat", "seat-2=random"), "'echo' has no seat 'seat-2'"),
        (("echo", "--agent", "tit-for-tat"), "plays matrix, matrix-turns, matrix-free, not 'echo'"),
        (("echo", "--agent", "human"), "needs a terminal"),
        (("echo", "--watch"), "--watch needs a terminal"),
        (("echo", "--watch", "--json"), "choose one"),
        (("echo", "--no-record", "--database", "x.db"), "--database has no effect with --no-record; leave it out."),
        (("echo", "--json", "--fps", "9"), "--fps has no effect with --json, as there is no live view; leave it out."),
        (("echo", "--no-watch", "--pace", "9"), "--pace has no effect with --no-watch, as there is no live view"),
        (("echo", "--limit", "calls=9"), "--limit has no effect where no agent calls a model; leave it out."),
        (("echo", "--price-in", "1", "--price-out", "1"), "--price-in has no effect where no seat has a model's"),
        (("echo", "--agent", "random", "--fill", "random"), "--agent has no effect with --fill"),
        (("echo", "--seat", "seat-1=random", "--agent", "random"), "--agent has no effect where --seat names every"),
        (("--replay", "last", "--limit", "calls=9"), "--limit has no effect with --replay, which calls no model"),
        (("echo", "--pictures"), "--pictures has no effect without a language model; name one with --model ADDRESS."),
        (("echo", "--resume", "last"), "leave out GAME"),
        (("--resume", "last", "--seed", "3"), "leave out --seed"),
        (("./nothing.py:Game",), "no file in . called 'nothing.py'"),
        (("echo", "--agent", "./me.py:Stead"), "Did you mean 'Steady'"),
        (("echo", "--agent", "./me.py"), "Name an object in ./me.py, for instance ./me.py:"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(
    capsys: pytest.CaptureFixture[str], own_home: Path, words: tuple[str, ...], said: str
) -> None:
    code, out, err = typed(capsys, "play", *words)
    assert code == 2
    assert out == ""
    assert said in err
    assert err.startswith("Error: ")
    assert err.count("\n") == 1
    code, listed, _ = typed(capsys, "runs", "--json")
    assert (code, json.loads(listed)) == (0, []), "nothing was recorded"


def test_an_unknown_run_is_refused_with_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    run = played(capsys, "echo")["run"]
    code, _, err = typed(capsys, "play", "--resume", run[:-4] + "zzzz")
    assert code == 2
    assert f"Did you mean {run!r}" in err


def test_a_run_that_is_over_is_not_gone_on_with(capsys: pytest.CaptureFixture[str]) -> None:
    run = played(capsys, "echo")["run"]
    code, _, err = typed(capsys, "play", "--resume", "last")
    assert code == 2
    assert f"wsap replay {run}" in err


def test_an_agent_that_fails_is_named_and_what_was_recorded_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = typed(capsys, "play", "echo", "--agent", "./me.py:Broken", "--json")
    assert code == 3
    assert "ValueError: out of ideas" in err
    run = re.search(r"wsap play --resume (\S+)", err)
    assert run
    (row,) = json.loads(typed(capsys, "runs", "--json")[1])
    assert (row["run"], row["status"]) == (run.group(1), "failed")


# --- databases that can't be used ---------------------------------------------------------


def test_a_file_that_is_no_database_is_refused_and_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    Path("letter.txt").write_text("Dear reader, this is no database at all.", encoding="utf-8")
    code, _, err = typed(capsys, "play", "echo", "--database", "letter.txt")
    assert code == 6
    assert "not a WSAP database" in err
    assert Path("letter.txt").read_text(encoding="utf-8").startswith("Dear reader")


def test_a_database_of_a_newer_version_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    played(capsys, "echo", "--database", "wsap.db")
    with sqlite3.connect("wsap.db") as connection:
        (table,) = connection.execute("SELECT name FROM sqlite_master WHERE name LIKE '%version%'").fetchone()
        connection.execute(f"UPDATE {table} SET version_num = '9999'")
    connection.close()
    code, _, err = typed(capsys, "play", "echo", "--database", "wsap.db")
    assert code == 6
    assert "newer" in err


@pytest.mark.slow
def test_a_locked_database_is_waited_for_and_then_refused(capsys: pytest.CaptureFixture[str]) -> None:
    played(capsys, "echo", "--database", "wsap.db")
    holder = sqlite3.connect("wsap.db", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    try:
        code, _, err = typed(capsys, "play", "echo", "--database", "wsap.db")
    finally:
        holder.close()
    assert code == 6
    assert "in use by another process" in err


@contextmanager
def as_a_plain_user() -> Iterator[None]:
    """Give up root's permission to write everything for a while (capabilities(7): CAP_DAC_OVERRIDE, number 1).

    The user stays the same: another one might not be able to read the folder that the package lies in.
    """
    if os.geteuid() != 0:
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # version 3 of the call, for this thread and those it starts
    held = (ctypes.c_uint32 * 6)()  # effective, permitted and inheritable, of the numbers 0 to 31 and of 32 to 63
    assert libc.capget(header, held) == 0
    fewer = (ctypes.c_uint32 * 6)(*held)
    fewer[0] &= ~(1 << 1)
    assert libc.capset(header, fewer) == 0
    try:
        yield
    finally:
        assert libc.capset(header, held) == 0


def test_a_database_that_can_t_be_written_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WSAP_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    played(capsys, "echo", "--database", "wsap.db")
    Path("wsap.db").chmod(0o444)
    with as_a_plain_user():
        code, _, err = typed(capsys, "play", "echo", "--database", "wsap.db")
    assert code == 6
    assert "can't be written" in err


def test_a_missing_folder_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = typed(capsys, "play", "echo", "--database", "nowhere/wsap.db")
    assert code == 6
    assert "nowhere" in err


# --- stopped, and gone on with ------------------------------------------------------------

LONG = ("echo", "--agent", "./me.py:Steady", "--option", "length=180", "--steps", "400", "--seed", "2")


@pytest.mark.slow
@pytest.mark.parametrize(("stop", "code"), [("SIGINT", 130), ("SIGTERM", 130), ("SIGKILL", -signal.SIGKILL)])
def test_a_run_stopped_in_the_middle_goes_on_to_the_same_hash(
    capsys: pytest.CaptureFixture[str], stop: str, code: int
) -> None:
    stopped = process("play", *LONG, "--json", environ={"STOP_WITH": stop})
    assert stopped.returncode == code, stopped.stderr
    (row,) = json.loads(typed(capsys, "runs", "--json")[1])
    assert (row["status"], row["resumable"]) == ("interrupted", True)
    if code == 130:
        assert stopped.stderr.splitlines()[-1].endswith(f"continue with: wsap play --resume {row['run']}")
        assert 0 < json.loads(stopped.stdout)["steps"] < 400
    resumed = played(capsys, "--resume", row["run"])
    straight = played(capsys, *LONG, "--no-record")
    for part in ("trajectory_hash", "steps", "episodes", "reward", "decisions", "done"):
        assert resumed[part] == straight[part], part


@pytest.mark.slow
def test_a_stopped_run_that_was_not_recorded_says_so() -> None:
    stopped = process("play", *LONG, "--no-record", environ={"STOP_WITH": "SIGINT"})
    assert stopped.returncode == 130
    assert "not recorded" in stopped.stderr


@pytest.mark.slow
def test_a_full_disk_ends_the_run_and_keeps_what_was_recorded(capsys: pytest.CaptureFixture[str]) -> None:
    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (800_000, 800_000))

    words = ("echo", "--option", "length=100000", "--steps", "20000")
    full = process("play", *words, "--json", preexec_fn=small_files)
    assert full.returncode == 6, full.stderr
    assert full.stdout == ""
    (line,) = full.stderr.splitlines()
    assert "no room left" in line
    (row,) = json.loads(typed(capsys, "runs", "--json")[1])
    assert f"wsap play --resume {row['run']}" in line
    assert row["resumable"]
    code, out, _ = typed(capsys, "replay", row["run"])
    kept = len(out.splitlines())
    assert code == 0
    assert 100 < kept < 20000
    assert (
        played(capsys, "--resume", row["run"])["trajectory_hash"]
        == (played(capsys, *words, "--no-record")["trajectory_hash"])
    )


def test_a_run_is_played_again_and_gives_the_same_hash(capsys: pytest.CaptureFixture[str]) -> None:
    first = played(capsys, "echo", "--agent", "random", "--seed", "4", "--steps", "30")
    again = played(capsys, "--replay", first["run"])
    assert again["run"] != first["run"]
    assert again["trajectory_hash"] == first["trajectory_hash"]


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (["--seed", "3"], "--replay repeats a run as it was started; leave out --seed."),
        (["--resume", "last"], "choose one"),
        (["--model", "x/y"], "leave out --model"),
    ],
)
def test_what_contradicts_playing_a_run_again_is_refused(
    capsys: pytest.CaptureFixture[str], more: list[str], reason: str
) -> None:
    played(capsys, "echo", "--agent", "random")
    code, _, err = typed(capsys, "play", "--replay", "last", *more)
    assert code == 2
    assert reason in err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--style", "tags"], "--style has no effect without a language model; name one with --model ADDRESS."),
        (["--model", "scripted/x", "--agent-option", "model=y"], "The option model is given twice"),
        (
            ["--model", "scripted/x", "--limit", "cost=-1"],
            "--limit run.cost must be an amount of US dollars above 0, not -1.",
        ),
        (["--model", "scripted/x"], "The scripted backend requires the option reply"),
        (["--model", "scripte/x"], "Did you mean 'scripted'"),
        (["--model", "scripted"], "scripted"),
    ],
)
def test_what_makes_no_sense_about_models_is_refused(
    capsys: pytest.CaptureFixture[str], words: list[str], reason: str
) -> None:
    code, _, err = typed(capsys, "play", "echo", *words)
    assert code == 2
    assert reason in err
