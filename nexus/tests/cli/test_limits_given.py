"""Limits and options of models as they are typed, with a model that needs no server."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from cli_kit import typed

from wsap_llm.middleware.budgets import BudgetLimits, Budgets

REPLY = json.dumps({"action": "speak", "params": {"text": "here I am"}})
MODEL = ("--model", "scripted/parrot", "--model-option", f"reply={json.dumps(REPLY)}", "--agent-option", "plan=no")


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WSAP_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("WSAP_DATABASE", raising=False)
    monkeypatch.chdir(tmp_path)


def play(capsys: pytest.CaptureFixture[str], *words: str, steps: int = 3) -> tuple[int, str, str]:
    return typed(capsys, "play", "echo", *MODEL, "--steps", str(steps), "--json", *words)


def test_a_day_pauses_the_second_run_of_the_database_and_a_higher_limit_goes_on_with_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, _ = play(capsys, "--limit", "day.calls=5")
    assert code == 0
    assert json.loads(out)["usage"]["calls"] == 3
    code, _, err = play(capsys, "--limit", "day.calls=5")
    assert code == 9
    assert "limit of 5 calls a day" in err
    assert "after midnight UTC" in err
    assert "wsap play --resume" in err
    assert typed(capsys, "play", "--resume", "last", "--limit", "day.calls=5", "--json")[0] == 9
    code, out, _ = typed(capsys, "play", "--resume", "last", "--limit", "day.calls=6", "--json")
    assert code == 0
    assert json.loads(out)["steps"] == 3
    code, _, err = play(capsys, "--limit", "day.calls=5", "--no-record")
    assert code == 2
    assert "A daily limit counts recorded runs" in err


def test_a_decision_that_would_take_too_many_tokens_pauses_before_anything_is_asked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, _, err = play(capsys, "--limit", "decision.tokens=310")
    assert code == 9
    assert "limit of 310 tokens a decision" in err
    assert "(spent: 0 calls, 0 tokens)" in err
    code, out, _ = typed(capsys, "play", "--resume", "last", "--limit", "decision.tokens=5000", "--json")
    assert (code, json.loads(out)["steps"]) == (0, 3)


def test_an_option_of_the_model_is_kept_for_going_on_and_a_misspelt_one_is_refused_with_a_guess(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert play(capsys, "--limit", "calls=1")[0] == 9
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


@pytest.mark.parametrize("option", ["cost", "run.cost", "decision.cost", "day.cost"])
def test_an_amount_that_is_none_is_refused(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = play(capsys, "--limit", f"{option}=0")
    assert code == 2
    assert f"{option} must be an amount of US dollars above 0" in err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ("2",),
            "--limit requires [run|decision|day].[calls|tokens|cost]=N, such as cost=2 or tokens=500000, not '2'.",
        ),
        (("week.cost=2",), "not 'week.cost=2'"),
        (("money=2",), "not 'money=2'"),
        (("cost",), "not 'cost'"),
        (("cost=nan",), "--limit run.cost must be an amount of US dollars above 0, not nan."),
        (("calls=0",), "--limit run.calls must be a whole number from 1 to 10^12, not 0."),
        (("day.tokens=1.5",), "--limit day.tokens must be a whole number from 1 to 10^12, not 1.5."),
        (("calls=many",), "--limit run.calls must be a whole number from 1 to 10^12, not many."),
        (("calls=2", "run.calls=3"), "--limit sets run.calls twice."),
    ],
)
def test_a_limit_of_another_form_is_refused_in_a_sentence(
    words: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = play(capsys, *(part for word in words for part in ("--limit", word)))
    assert code == 2
    assert told in err


def test_limits_are_read_by_scope_and_kind() -> None:
    found = Budgets.parse(["cost=2", "decision.calls=5", "day.tokens=1e6", "run.calls=7"])
    assert found == Budgets(BudgetLimits(7, None, 2.0), BudgetLimits(calls=5), BudgetLimits(tokens=1_000_000))
    assert Budgets.parse([]) == Budgets()


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
