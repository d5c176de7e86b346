"""Runs with models that are played again, and runs that came to nothing, as they are typed."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from llm_server import ModelServer, Say

from wsap_core.cli import main

WAIT = json.dumps({"action": "wait", "params": {}, "reasoning": "let us see"})
ECHO = ("play", "echo", "--agent-option", "plan=no", "--model", "openai/qwen3:8b", "--steps", "9")
PRICES = ("--price-in", "1", "--price-out", "2")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: ModelServer) -> Path:
    """A data folder of the test's own, and a server that answers."""
    for name in [*os.environ]:
        if name.startswith(("WSAP_", "OPENAI_", "OLLAMA_")) or name.endswith("_API_KEY"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("WSAP_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    monkeypatch.chdir(tmp_path)
    server.default = Say(WAIT)
    return tmp_path / "home"


def typed(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(list(arguments))
    out, err = capsys.readouterr()
    return code, out, err


def rows(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return list(json.loads(typed(capsys, "runs", "--all", "--json")[1]))


@pytest.mark.slow
def test_a_run_that_is_played_again_says_that_nothing_was_spent(
    capsys: pytest.CaptureFixture[str], server: ModelServer
) -> None:
    first = json.loads(typed(capsys, *ECHO, *PRICES, "--json")[1])
    asked = len(server.requests)
    code, out, _ = typed(capsys, "play", "--replay", first["run"])
    assert code == 0
    same = "every step is as recorded, and no model was called"
    assert f"Replayed {first['run']} with its recorded choices: {same}." in out
    assert "models (recorded): 9 calls" in out
    again = json.loads(typed(capsys, "play", "--replay", first["run"], "--json")[1])
    assert (again["replays"], again["trajectory_hash"]) == (first["run"], first["trajectory_hash"])
    assert "replays" not in first
    assert len(server.requests) == asked
    table = [line.split("\t") for line in typed(capsys, "runs", "--all")[1].splitlines()]
    assert [row[9:11] for row in table[:2]] == [["-", "-"]] * 2
    assert "-" not in table[2][9:11]


def test_a_paused_run_is_played_again_up_to_where_it_paused(
    capsys: pytest.CaptureFixture[str], server: ModelServer
) -> None:
    assert typed(capsys, *ECHO, "--limit", "calls=4")[0] == 9
    (paused,) = rows(capsys)
    assert "could exceed the limit of 4 calls a run" in paused["reason"]
    code, out, err = typed(capsys, "play", "--replay", "last")
    assert (code, err) == (0, "")
    assert out.splitlines()[-1] == (
        f"The recorded run stopped here, too; continue it with: wsap play --resume {paused['run']}"
    )
    replayed = next(row for row in rows(capsys) if row["run"] != paused["run"])
    assert (replayed["steps"], replayed["replay"], replayed["resumable"]) == (4, True, False)
    assert replayed["replays"] == paused["run"]
    # A mean over the list counts nothing twice.
    code, out, err = typed(capsys, "runs", "--json")
    assert [row["run"] for row in json.loads(out)] == [paused["run"]]
    assert "Left out: 1 replay; list all with: wsap runs --all" in typed(capsys, "runs")[2]
    assert paused["resumable"]
    # The paused one goes on as if nobody had looked.
    assert json.loads(typed(capsys, "play", "--resume", paused["run"], "--json")[1])["steps"] == 9
    assert len([request for request in server.requests if request.method == "POST"]) == 9
    # Something is recorded even if only the replay is left.
    assert typed(capsys, "runs", "rm", paused["run"], "--yes")[0] == 0
    assert typed(capsys, "runs") == (0, "", "Left out: 1 replay; list all with: wsap runs --all\n")


def test_a_run_without_a_step_can_not_be_played_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert typed(capsys, *ECHO, "--limit", "tokens=10")[0] == 9
    code, _, err = typed(capsys, "play", "--replay", "last")
    assert code == 2
    assert "ended before its first step, so there is nothing to replay" in err


@pytest.mark.parametrize(
    ("model", "code", "words"),
    [("openai/gpt-nobody", 8, "has no model 'gpt-nobody'"), ("olama/x", 2, "Did you mean 'ollama'?")],
)
def test_a_run_that_came_to_nothing_leaves_nothing_behind(
    model: str, code: int, words: str, capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    told = typed(capsys, "play", "echo", "--model", model)
    assert told[0] == code
    assert words in told[2]
    assert "--resume" not in told[2]
    assert rows(capsys) == []
    if (home / "wsap.db").exists():
        with sqlite3.connect(home / "wsap.db") as database:
            assert database.execute("select count(*) from event").fetchone() == (0,)


def test_a_game_that_can_t_be_created_leaves_nothing_behind(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = (
        "from wsap_core.builtin.echo import EchoWorld\n"
        "class Bad(EchoWorld):\n    def __init__(self): raise OSError('no jax')\n"
    )
    (tmp_path / "bad.py").write_text(source, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    code, _, err = typed(capsys, "play", "./bad.py:Bad")
    assert (code, err) == (3, "Error: Bad could not be created: OSError: no jax.\n")
    assert rows(capsys) == []


@pytest.mark.slow
def test_a_server_that_is_not_there_is_told_in_whole_sentences(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, server: ModelServer, nowhere: str
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", f"{nowhere}/v1")
    code, _, err = typed(capsys, *ECHO)
    assert code == 8
    *waits, last = err.splitlines()
    assert last == f"Error: No server answers at {nowhere}/v1; is it running?"
    assert all("Waiting" in line for line in waits)
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    typed(capsys, *ECHO, "--limit", "calls=4")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{nowhere}/v1")
    code, _, err = typed(capsys, "play", "--resume", "last")
    assert code == 8
    assert "is it running? Continue the run with: wsap play --resume " in err


@pytest.mark.slow
def test_a_server_of_tools_that_is_not_there_is_told_once_and_leaves_nothing_behind(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("mcp")
    server = ("--tools", "mcp", "--agent-option", 'mcp.command=["no-such-program"]')
    code, _, err = typed(capsys, *ECHO, *server)
    assert code == 3
    assert (
        err == "Error: The tool server mcp (no-such-program) can't be used: program or working directory not found.\n"
    )
    assert rows(capsys) == []
