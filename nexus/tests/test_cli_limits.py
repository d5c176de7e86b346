"""Limits and options of models as they are typed, with a model that needs no server."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from wsap_core.cli import main

REPLY = json.dumps({"action": "speak", "params": {"text": "here I am"}})
MODEL = ("--model", "scripted/parrot", "--model-option", f"reply={json.dumps(REPLY)}", "--agent-option", "plan=no")


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WSAP_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("WSAP_DATABASE", raising=False)
    monkeypatch.chdir(tmp_path)


def typed(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """What a command exits with and prints, on both streams."""
    capsys.readouterr()
    code = main(words)
    done = capsys.readouterr()
    return code, done.out, done.err


def play(capsys: pytest.CaptureFixture[str], *words: str, steps: int = 3) -> tuple[int, str, str]:
    return typed(capsys, "play", "echo", *MODEL, "--steps", str(steps), "--json", *words)


def test_a_day_pauses_the_second_run_of_the_database_and_a_higher_limit_goes_on_with_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, _ = play(capsys, "--daily-calls", "5")
    assert code == 0
    assert json.loads(out)["usage"]["calls"] == 3
    code, _, err = play(capsys, "--daily-calls", "5")
    assert code == 9
    assert "limit of 5 calls a day" in err
    assert "after midnight UTC" in err
    assert "wsap play --resume" in err
    assert typed(capsys, "play", "--resume", "last", "--daily-calls", "5", "--json")[0] == 9
    code, out, _ = typed(capsys, "play", "--resume", "last", "--daily-calls", "6", "--json")
    assert code == 0
    assert json.loads(out)["steps"] == 3
    code, _, err = play(capsys, "--daily-calls", "5", "--no-record")
    assert code == 2
    assert "A day's limit counts what is recorded" in err


def test_a_decision_that_would_take_too_many_tokens_pauses_before_anything_is_asked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, _, err = play(capsys, "--decision-tokens", "310")
    assert code == 9
    assert "limit of 310 tokens a decision" in err
    assert "(spent: 0 calls, 0 tokens)" in err
    code, out, _ = typed(capsys, "play", "--resume", "last", "--decision-tokens", "5000", "--json")
    assert (code, json.loads(out)["steps"]) == (0, 3)


def test_an_option_of_the_model_is_kept_for_going_on_and_a_misspelt_one_is_refused_with_a_guess(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert play(capsys, "--max-calls", "1")[0] == 9
    code, out, _ = typed(capsys, "play", "--resume", "last", "--json")
    assert code == 0, "the reply is an option of the model, which is not typed again"
    assert json.loads(out)["usage"]["calls"] == 3
    code, _, err = typed(capsys, "play", "--resume", "last", "--model-option", "reply=x")
    assert code == 2
    assert "leave out --model-option" in err
    code, _, err = typed(
        capsys, "play", "echo", "--model", "scripted/x", "--model-option", "reply=x", "--model-option", "repyl=y"
    )
    assert code == 2
    assert "'repyl'. Did you mean 'reply'?" in err


@pytest.mark.parametrize("option", ["--daily-cost", "--decision-cost", "--max-cost"])
def test_an_amount_that_is_none_is_refused(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = play(capsys, option, "0")
    assert code == 2
    assert f"{option} is an amount of US dollars above 0" in err


def test_a_key_for_a_tool_server_that_does_not_start_is_neither_told_nor_kept(
    capsys: pytest.CaptureFixture[str],
) -> None:
    server = ("--tools", "mcp", "--agent-option", 'mcp.command=["no-such-program", "--api-key", "sk-12345678"]')
    code, out, err = play(capsys, *server)
    assert code != 0
    assert "can't be used" in err
    assert "sk-12345678" not in out + err
    kept = [path for path in Path(os.environ["WSAP_HOME"]).rglob("*") if path.is_file()]
    assert any(path.name == "wsap.db" for path in kept)
    assert not [path for path in kept if b"sk-12345678" in path.read_bytes()]
