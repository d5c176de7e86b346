"""`wsap runs`, `replay`, `export` and `doctor` as they are typed."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from cli_kit import typed

from wsap_nexus.store.database import Database
from wsap_nexus.store.log.eventlog import LogWriter
from wsap_nexus.store.repository import Repository


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WSAP_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("WSAP_DATABASE", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """A finished run of echo: 30 steps in two episodes."""
    code, out, _ = typed(capsys, "play", "echo", "--seed", "4", "--steps", "30", "--json")
    assert code == 0
    summary: dict[str, Any] = json.loads(out)
    return summary


# --- runs ---------------------------------------------------------------------------------


def test_where_nothing_is_recorded_runs_says_how_to_begin(capsys: pytest.CaptureFixture[str], own_home: Path) -> None:
    code, out, _ = typed(capsys, "runs")
    assert code == 0
    assert "wsap play" in out
    assert json.loads(typed(capsys, "runs", "--json")[1]) == []
    assert not (own_home / "wsap.db").exists(), "looking makes no database"


def test_runs_are_listed_newest_first_with_what_they_came_to(
    capsys: pytest.CaptureFixture[str], run: dict[str, Any]
) -> None:
    second = json.loads(typed(capsys, "play", "matrix", "--json")[1])
    rows = json.loads(typed(capsys, "runs", "--json")[1])
    assert [row["run"] for row in rows] == [second["run"], run["run"]]
    assert {key: rows[1][key] for key in ("game", "agent", "seed", "steps", "reward", "status", "resumable")} == {
        "game": "echo", "agent": "random", "seed": 4, "steps": 30, "reward": run["reward"], "status": "finished",
        "resumable": False,
    }  # fmt: skip
    assert rows[1]["trajectory_hash"] == run["trajectory_hash"]
    lines = typed(capsys, "runs")[1].splitlines()
    assert [line.split("\t")[0] for line in lines] == [second["run"], run["run"]]
    assert len(typed(capsys, "runs", "--limit", "1")[1].splitlines()) == 1


@pytest.mark.parametrize("command", [("runs",), ("replay", "last"), ("export", "last")])
def test_a_database_that_was_named_and_is_missing_is_an_error(
    capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    code, out, err = typed(capsys, *command, "--database", "gone.db")
    assert (code, out) == (6, "")
    assert "gone.db" in err
    assert not Path("gone.db").exists()


@pytest.mark.parametrize("command", ["runs", "replay", "export"])
def test_a_file_that_is_no_database_can_t_be_looked_at(capsys: pytest.CaptureFixture[str], command: str) -> None:
    Path("letter.txt").write_text("no database, but long enough to be taken for one", encoding="utf-8")
    words = (
        (command, "--database", "letter.txt") if command == "runs" else (command, "last", "--database", "letter.txt")
    )
    code, _, err = typed(capsys, *words)
    assert code == 6
    assert "not a WSAP database" in err


# --- replay -------------------------------------------------------------------------------


def test_in_a_pipe_replay_prints_one_line_for_each_step(
    capsys: pytest.CaptureFixture[str], run: dict[str, Any]
) -> None:
    code, out, err = typed(capsys, "replay", run["run"])
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert [line.split("\t")[0] for line in lines] == [str(n) for n in range(1, 31)]
    assert "done" in lines[19].split("\t")
    spoken = sum("reward +1" in line.split("\t") for line in lines)
    assert spoken == run["reward"]


@pytest.mark.parametrize("name", ["last", "PREFIX", "SUFFIX"])
def test_a_run_is_found_by_last_and_by_either_end_of_its_name(
    capsys: pytest.CaptureFixture[str], run: dict[str, Any], name: str
) -> None:
    short = {"last": "last", "PREFIX": run["run"][:10], "SUFFIX": run["run"][-4:]}[name]
    assert typed(capsys, "replay", short, "--to", "1")[0] == 0


def test_replay_prints_a_part_in_strides(capsys: pytest.CaptureFixture[str], run: dict[str, Any]) -> None:
    out = typed(capsys, "replay", "last", "--from", "5", "--to", "20", "--every", "6")[1]
    assert [line.split("\t")[0] for line in out.splitlines()] == ["5", "11", "17"]


def test_replay_prints_what_was_seen_and_json(capsys: pytest.CaptureFixture[str], run: dict[str, Any]) -> None:
    full = typed(capsys, "replay", "last", "--to", "1", "--full")[1]
    assert "    Step 1\n" in full
    assert "    steps left: 19\n" in full
    rows = [json.loads(line) for line in typed(capsys, "replay", "last", "--json")[1].splitlines()]
    assert sum(row["reward"] for row in rows) == run["reward"]
    assert [row["episode"] for row in rows] == [0] * 20 + [1] * 10


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nosuchrun",), "no run called 'nosuchrun'"),
        (("last", "--from", "31"), "has 30 steps"),
        (("last", "--from", "20", "--to", "10"), "--from 20 is after --to 10"),
        (("last", "--from", "-2"), "not a whole number"),
        (("last", "--every", "0"), "not a whole number from 1 to"),
        (("last", "--to", "many"), "'many' is not a whole number"),
    ],
)
def test_replay_refuses_what_makes_no_sense(
    capsys: pytest.CaptureFixture[str], run: dict[str, Any], words: tuple[str, ...], said: str
) -> None:
    code, out, err = typed(capsys, "replay", *words)
    assert (code, out) == (2, "")
    assert said in err


def test_verify_finds_the_recorded_hash(capsys: pytest.CaptureFixture[str], run: dict[str, Any]) -> None:
    code, out, _ = typed(capsys, "replay", "last", "--verify")
    assert code == 0
    assert run["trajectory_hash"] in out


def test_verify_adds_up_several_seats(capsys: pytest.CaptureFixture[str]) -> None:
    summary = json.loads(typed(capsys, "play", "matrix", "--json")[1])
    assert summary["trajectory_hash"] in typed(capsys, "replay", "last", "--verify")[1]


def test_verify_tells_when_a_step_was_changed(
    capsys: pytest.CaptureFixture[str], run: dict[str, Any], own_home: Path
) -> None:
    with sqlite3.connect(own_home / "wsap.db") as connection:
        connection.execute("DELETE FROM event WHERE kind = 'step' AND step = 7")
    connection.close()
    code, out, err = typed(capsys, "replay", "last", "--verify")
    assert (code, out) == (6, "")
    assert "was changed" in err


def test_text_that_a_game_wrote_moves_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    Path("loud.py").write_text(
        "from wsap_core import Action\n"
        "class Loud:\n"
        "    def initialize(self, game_desc, action_space): pass\n"
        "    def decide(self, observation): return Action('speak', {'text': '\\x1b[2J\\u202e[red]x'}, '\\x07ring')\n"
        "    def reflect(self, result): pass\n"
        "    def plan(self, goals): return []\n",
        encoding="utf-8",
    )
    assert typed(capsys, "play", "echo", "--agent", "./loud.py:Loud")[0] == 0
    for words in (("replay", "last"), ("replay", "last", "--full"), ("runs",)):
        out = typed(capsys, *words)[1]
        assert not {"\x1b", "\x07", "\u202e"} & set(out)


# --- export -------------------------------------------------------------------------------


def test_export_gives_the_run_and_every_event(capsys: pytest.CaptureFixture[str], run: dict[str, Any]) -> None:
    lines = [json.loads(line) for line in typed(capsys, "export", "last", "--format", "jsonl")[1].splitlines()]
    assert lines[0]["run"] == run["run"]
    assert sum(line.get("kind") == "step" for line in lines) == 30
    assert [line["seq"] for line in lines[1:]] == list(range(len(lines) - 1))


def test_export_writes_a_file_whole_and_not_over_another(
    capsys: pytest.CaptureFixture[str], run: dict[str, Any]
) -> None:
    shown = typed(capsys, "export", "last")[1]
    assert typed(capsys, "export", "last", "--output", "run.jsonl")[0] == 0
    assert Path("run.jsonl").read_text(encoding="utf-8") == shown
    Path("run.jsonl").write_text("mine", encoding="utf-8")
    code, _, err = typed(capsys, "export", "last", "--output", "run.jsonl")
    assert code == 2
    assert "--force" in err
    assert Path("run.jsonl").read_text(encoding="utf-8") == "mine"
    assert typed(capsys, "export", "last", "--output", "run.jsonl", "--force")[0] == 0
    assert Path("run.jsonl").read_text(encoding="utf-8") == shown
    assert [path.name for path in Path().glob("*run*")] == ["run.jsonl"], "nothing is left beside it"


def test_export_to_where_nothing_can_be_is_refused(capsys: pytest.CaptureFixture[str], run: dict[str, Any]) -> None:
    code, _, err = typed(capsys, "export", "last", "--output", "no/such/folder.jsonl")
    assert code == 2
    assert "can't be written" in err


# --- doctor -------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_machine_in_order_is_ready(capsys: pytest.CaptureFixture[str], run: dict[str, Any]) -> None:
    code, out, _ = typed(capsys, "doctor")
    assert code == 0
    assert out.splitlines()[-1].startswith("Ready.")
    report = json.loads(typed(capsys, "doctor", "--json")[1])
    found = {row["check"]: row for row in report["checks"]}
    assert report["ready"] is True
    assert found["database"]["detail"].startswith(str(Path("home/wsap.db").absolute()))
    assert "1 run," in found["database"]["detail"]
    assert {"python", "packages", "plugin core", "data folder", "terminal", "world echo"} <= set(found)


def test_doctor_names_a_broken_database_and_looks_at_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    Path("letter.txt").write_text("no database, but long enough to be taken for one", encoding="utf-8")
    code, out, _ = typed(capsys, "doctor", "--json", "--database", "letter.txt")
    assert code == 1
    report = json.loads(out)
    assert report["ready"] is False
    assert [row["check"] for row in report["checks"] if row["status"] == "problem"] == ["database"]


def test_doctor_makes_no_database(capsys: pytest.CaptureFixture[str], own_home: Path) -> None:
    assert typed(capsys, "doctor")[0] == 0
    assert not (own_home / "wsap.db").exists()


# --- recorded long ago, or elsewhere ------------------------------------------------------


def test_a_run_of_a_game_that_is_not_installed_is_still_shown(
    capsys: pytest.CaptureFixture[str], run: dict[str, Any], own_home: Path
) -> None:
    with sqlite3.connect(own_home / "wsap.db") as connection:
        connection.execute("UPDATE run SET game = 'atlantis', config = replace(config, '\"echo\"', '\"atlantis\"')")
    connection.close()
    code, out, err = typed(capsys, "replay", "last", "--to", "2", "--full")
    assert code == 0
    assert "steps left: 18" in out
    assert "no game called 'atlantis'" in err


def test_a_damaged_step_is_named(capsys: pytest.CaptureFixture[str], run: dict[str, Any], own_home: Path) -> None:
    with Database.open(own_home / "wsap.db") as database, LogWriter(database) as log:
        log.append(Repository(database).get_run("last").id, "step", '{"step":{"seat":1}}', seat="seat-1", step=30)
    code, _, err = typed(capsys, "replay", "last")
    assert code == 5
    assert "is not a step" in err


@pytest.mark.slow
def test_the_commands_load_nothing_heavy_to_show_their_help() -> None:
    import subprocess
    import sys

    program = (
        "import sys\nfrom wsap_core.cli import main\n"
        "codes = [main([name, '--help']) for name in ('play', 'runs', 'replay', 'export', 'doctor')]\n"
        "heavy = {'rich', 'sqlalchemy', 'sqlmodel', 'alembic', 'PIL', 'numpy'} & set(sys.modules)\n"
        "print(codes, sorted(heavy), file=sys.stderr)\n"
    )
    environ = {**os.environ, "COLUMNS": "100"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environ, check=True)
    assert done.stderr.splitlines()[-1] == "[0, 0, 0, 0, 0] []"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["replay", "last", "--verify", "--from", "1"], "--from has no effect with --verify; leave it out."),
        (["replay", "last", "--calls", "--every", "2"], "--every has no effect with --calls; leave it out."),
        (["replay", "last", "--json", "--full"], "--full has no effect with --json; leave it out."),
        (["export", "last", "--force"], "--force has no effect without --output; leave it out."),
        (["doctor", "--no-model", "--wait", "5"], "--wait has no effect with --no-model; leave it out."),
        (["nexus", "prune", "--all", "--keep-days", "5"], "--keep-days has no effect with --all; leave it out."),
        (
            ["nexus", "start", "--workers", "0", "--worker-memory", "64"],
            "--worker-memory has no effect with --workers 0",
        ),
        (["nexus", "watch", "--json", "--lines"], "--lines has no effect with --json; leave it out."),
    ],
)
def test_an_option_without_effect_is_refused(capsys: pytest.CaptureFixture[str], words: list[str], said: str) -> None:
    code, out, err = typed(capsys, *words)
    assert (code, out) == (2, "")
    assert said in err


@pytest.mark.parametrize(
    "words",
    [
        ("nexus", "prune", "--keep-days"),
        ("nexus", "start", "--pace"),
        ("nexus", "start", "--keep-days"),
        ("doctor", "--wait"),
    ],
)
def test_no_option_takes_what_is_not_a_number(capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    code, _, err = typed(capsys, *words, "nan")
    assert code == 2
    assert "'nan' is not a number from " in err


def test_verifying_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    typed(capsys, "play", "echo", "--agent", "random", "--json")
    told = json.loads(typed(capsys, "replay", "last", "--verify", "--json")[1])
    assert told["steps"] == 20
    assert set(told) == {"run", "steps", "trajectory_hash"}
