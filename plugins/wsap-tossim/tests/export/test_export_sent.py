"""A turn of a recorded model begins with what that model was sent: persona, memories and all, and nobody else's."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from wsap_core.cli.app import run
from wsap_tossim.export.lines import shipped_schema
from wsap_tossim.export.sent import Heard

REPLIES = {
    "json": '{"action": "wait", "params": {}, "reasoning": "Let them talk."}',
    "tags": "<thinking>\nLet them talk.\n</thinking>\n<wait/>",
}
PERSONA = "You are a retired postman who trusts nobody."
QUICK = ("--option", "mode=five", "--option", "rules=quick", "--option", "deathless_days=2", "--seed", "4")


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to be in, and a home of its own."""
    monkeypatch.setenv("WSAP_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def play(style: str) -> list[dict[str, Any]]:
    """Have the run of a model here as run.jsonl, and return it line by line."""
    Path("run.jsonl").write_bytes(recorded(style))
    return [json.loads(line) for line in Path("run.jsonl").read_text(encoding="utf-8").splitlines()]


@functools.cache
def recorded(style: str) -> bytes:
    """Let a model with a persona and a memory play for player 2, and return the exported run: once, for all tests."""
    model = ["--seat", "player-2=scripted/parrot", "--model-option", f"reply={json.dumps(REPLIES[style])}"]
    own = {"style": style, "persona": PERSONA, "memory": "fifo", "plan": "false", "window": "2"}
    options = [word for name, value in own.items() for word in ("--seat-option", f"player-2.{name}={value}")]
    assert run(["play", "tossim", *QUICK, *model, *options, "--json"]) == 0
    assert run(["export", "last", "--output", "run.jsonl", "--force"]) == 0
    return Path("run.jsonl").read_bytes()


def lines_of(*options: str) -> list[dict[str, Any]]:
    assert run(["tossim", "export", "run.jsonl", "--out", "turns.jsonl", "--force", *options]) == 0
    return [json.loads(line) for line in Path("turns.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("style", ["json", "tags"])
def test_a_models_turn_begins_with_what_it_was_sent(
    there: Path, capsys: pytest.CaptureFixture[str], style: str
) -> None:
    rows = play(style)
    calls = [row["body"] for row in rows if row.get("kind") == "call" and row["seat"] == "player-2"]
    sent, conversation = [], []
    for body in calls:
        conversation = [*conversation[: body["shared"]], *((m["role"], m["content"]) for m in body["messages"])]
        if body["purpose"] == "decide":
            sent.append(conversation)
    assert PERSONA in sent[0][0][1]
    assert any(len(messages) > 2 for messages in sent), "earlier turns go along"
    capsys.readouterr()
    found = lines_of("--dialect", style)
    assert f"{len(sent)} of them start with the recorded prompt." in capsys.readouterr().err
    mine = [line for line in found if line["player"] == 1]
    assert [[(m["role"], m["content"]) for m in line["messages"][:-1]] for line in mine] == sent
    assert "Let them talk." in mine[0]["messages"][-1]["content"]
    for line in found:
        jsonschema.validate(line, shipped_schema("chat"))
        assert (PERSONA in json.dumps(line)) == (line["player"] == 1), "nobody is told of another's persona"


@pytest.mark.slow
def test_a_whole_game_of_a_model_has_its_system_message(there: Path, capsys: pytest.CaptureFixture[str]) -> None:
    play("json")
    for line in lines_of("--dialect", "json", "--format", "episodes"):
        jsonschema.validate(line, shipped_schema("episodes"))
        assert (PERSONA in line["system"]) == (line["player"] == 1)


@pytest.mark.slow
def test_in_another_dialect_or_when_asked_for_all_are_in_the_same_words(
    there: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    play("json")
    capsys.readouterr()
    standard = lines_of("--dialect", "json", "--prompts", "standard")
    assert "start with the recorded" not in capsys.readouterr().err
    other = lines_of("--dialect", "tags")
    mine = sum(line["player"] == 1 for line in other)
    assert f"{mine} of them have the standard prompt" in capsys.readouterr().err
    assert other == lines_of("--dialect", "tags", "--prompts", "standard")
    for line in (*standard, *other):
        assert PERSONA not in json.dumps(line)
        assert [m["role"] for m in line["messages"]][:2] == ["system", "user"]


def call(purpose: str, shared: int, *messages: tuple[str, Any]) -> dict[str, Any]:
    told = [{"role": role, "content": content} for role, content in messages]
    return {"purpose": purpose, "shared": shared, "messages": told}


def test_what_was_sent_is_put_together_for_each_seat_and_given_once() -> None:
    heard = Heard()
    heard.call("a", call("plan", 0, ("system", "S"), ("user", "plan?")))
    assert heard.before("a") == (), "a plan is no turn"
    heard.call("b", call("decide", 0, ("system", "B"), ("user", "one")))
    heard.call("a", call("decide", 1, ("user", [{"text": "what"}, {"sha256": "x", "alt": " (a map)"}, {"text": "?"}])))
    heard.call("a", call("re-ask", 2, ("assistant", "eh"), ("user", "again")))
    assert heard.before("a") == (("system", "S"), ("user", "what (a map)?")), "what comes after goes on with the turn"
    assert heard.before("a") == ()
    assert heard.before("b") == (("system", "B"), ("user", "one"))
    heard.call("a", call("decide", 0, ("user", "no system")))
    assert heard.before("a") == (), "no line could begin so"


def test_a_call_that_is_damaged_is_told(there: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = play("json")
    next(row for row in rows if row.get("kind") == "call")["body"].pop("messages")
    Path("run.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    capsys.readouterr()
    assert run(["tossim", "export", "run.jsonl", "--out", "x.jsonl"]) == 5
    told = capsys.readouterr().err
    assert "'run.jsonl' is damaged" in told
    assert "Traceback" not in told
    assert not Path("x.jsonl").exists()
