"""Models at the seats of one game, as they are typed: one for all, one for each, options for single seats."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from llm_server import ModelServer, Say

from wsap_core.cli import main
from wsap_core.errors import UsageError
from wsap_core.loading import names_model
from wsap_nexus.api import play
from wsap_nexus.cli.nexus.agent_registry import Decider
from wsap_nexus.store.entities import Policy

COOPERATE = json.dumps({"action": "cooperate", "params": {}, "reasoning": "let us be friends"})
HALF_A_GAME = ("play", "matrix", "--option", "rounds=5", "--agent-option", "plan=no", "--json")


@pytest.fixture(autouse=True)
def server_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: ModelServer) -> ModelServer:
    """A server behind both protocols, and a data folder of the test's own."""
    for name in [*os.environ]:
        if name.startswith(("WSAP_", "OPENAI_", "OLLAMA_")) or name.endswith("_API_KEY"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("WSAP_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OLLAMA_HOST", server.address)
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    monkeypatch.chdir(tmp_path)
    server.default = Say(COOPERATE)
    return server


def typed(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(list(arguments))
    out, err = capsys.readouterr()
    return code, out, err


def asked(server: ModelServer) -> Counter[str]:
    """Return how often each model was asked to decide, by its name and the protocol's path."""
    paths = ("/api/chat", "/v1/chat/completions")
    return Counter(f"{r.body['model']} {r.path.rpartition('/')[2]}" for r in server.requests if r.path in paths)


def test_a_model_plays_both_seats(capsys: pytest.CaptureFixture[str], server: ModelServer) -> None:
    code, out, _ = typed(capsys, *HALF_A_GAME, "--model", "ollama/qwen3:8b")
    assert code == 0
    assert [seat["usage"]["calls"] for seat in json.loads(out)["seats"]] == [5, 5]
    assert asked(server) == {"qwen3:8b chat": 10}


def test_each_seat_can_have_a_model_of_its_own(capsys: pytest.CaptureFixture[str], server: ModelServer) -> None:
    seats = ("--seat", "row=ollama/qwen3:8b", "--seat", "column=openai/llama3.2:latest")
    code, out, _ = typed(capsys, *HALF_A_GAME, *seats)
    assert code == 0
    assert asked(server) == {"qwen3:8b chat": 5, "llama3.2:latest completions": 5}
    assert json.loads(out)["agent"] == "row=ollama/qwen3:8b, column=openai/llama3.2:latest"


def test_a_seats_own_model_goes_before_the_one_for_all(capsys: pytest.CaptureFixture[str], server: ModelServer) -> None:
    code, _, _ = typed(capsys, *HALF_A_GAME, "--model", "ollama/qwen3:8b", "--seat", "row=ollama/llama3.2:latest")
    assert code == 0
    assert asked(server) == {"llama3.2:latest chat": 5, "qwen3:8b chat": 5}


def test_a_model_fills_the_seats_that_nobody_takes(capsys: pytest.CaptureFixture[str], server: ModelServer) -> None:
    code, out, _ = typed(capsys, *HALF_A_GAME, "--seat", "row=tit-for-tat", "--fill", "ollama/qwen3:8b")
    assert code == 0
    assert [seat["agent"] for seat in json.loads(out)["seats"]] == ["tit-for-tat", "llm"]
    assert asked(server) == {"qwen3:8b chat": 5}


@pytest.mark.slow
def test_a_models_address_is_an_agent(capsys: pytest.CaptureFixture[str], server: ModelServer) -> None:
    code, out, _ = typed(capsys, *HALF_A_GAME, "--agent", "openai/qwen3:8b", "--style", "json")
    assert code == 0
    assert [seat["agent"] for seat in json.loads(out)["seats"]] == ["llm", "llm"]
    given: dict[str, Any] = {"options": {"rounds": 5}, "agent_options": {"plan": False}, "record": False}
    play("matrix", "openai/qwen3:8b", **given)
    play("matrix", "random", seats={"row": "openai/llama3.2:latest"}, **given)
    assert asked(server)["qwen3:8b completions"] == 20
    assert asked(server)["llama3.2:latest completions"] == 5
    summary = play("matrix", "openai/qwen3:8b", prices={"openai/qwen3:8b": (1e6, 2e6)}, **given)
    for usage in (seat.usage for seat in summary.seats):
        assert usage.cost == pytest.approx(usage.prompt_tokens + 2 * usage.completion_tokens)
    assert [seat["model"] for seat in summary.to_json()["seats"]] == ["openai/qwen3:8b"] * 2
    for wrong in ({"openai/other": (1, 2)}, {"openai/qwen3:8b": (-1, 2)}):
        with pytest.raises(UsageError, match="price"):
            play("matrix", "openai/qwen3:8b", prices=wrong, **given)
    decider = Decider(model=None, policies=("echo=openai/qwen3:8b",)).read()["echo"]
    assert decider == Policy("llm", {"model": "openai/qwen3:8b"})


def test_a_single_seat_has_options_of_its_own(capsys: pytest.CaptureFixture[str], server: ModelServer) -> None:
    own = ("--seat", "row=ollama/llama3.2:latest", "--seat", "column=ollama/llava:7b", "--agent-option", "window=3")
    more = ("--seat-option", "row.model.num_ctx=5000", "--seat-option", "row.temperature=0.1")
    assert typed(capsys, *HALF_A_GAME, *own, *more)[0] == 0
    sent = {r.body["model"]: r.body["options"] for r in server.requests if r.path == "/api/chat"}
    assert (sent["llama3.2:latest"]["num_ctx"], sent["llama3.2:latest"]["temperature"]) == (5000, 0.1)
    assert (sent["llava:7b"]["num_ctx"], sent["llava:7b"]["temperature"]) == (4096, 0.7)


@pytest.mark.slow
def test_seats_with_models_of_their_own_are_gone_on_with_and_played_again(
    capsys: pytest.CaptureFixture[str], server: ModelServer
) -> None:
    seats = ("--seat", "row=ollama/qwen3:8b", "--seat", "column=ollama/llama3.2:latest")
    assert typed(capsys, *HALF_A_GAME, *seats, "--limit", "calls=4")[0] == 9
    code, out, _ = typed(capsys, "play", "--resume", "last", "--json")
    assert code == 0
    assert asked(server) == {"qwen3:8b chat": 5, "llama3.2:latest chat": 5}
    code, again, _ = typed(capsys, "play", "--replay", "last", "--json")
    assert code == 0
    assert json.loads(again)["trajectory_hash"] == json.loads(out)["trajectory_hash"]
    assert asked(server).total() == 10


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--seat-option", "left.window=3"), "one of the seats row, column, not 'left.window'"),
        (("--seat-option", "row=3"), "one of the seats row, column, not 'row'"),
        (("--seat-option", "row.widnow=3"), "has no option 'widnow'"),
        (("--seat-option", "row.model.api_key=sk-abc"), "they must not contain a key"),
        (("--seat", "row=olama/qwen3:8b"), "no backend called 'olama'"),
        (("--agent", "agents/me"), "'agents/me' is neither an agent (one in a file is ./file.py:Name) nor a model"),
        (("--agent", "openai/qwen3:8b"), "Two models are given: openai/qwen3:8b and ollama/qwen3:8b"),
    ],
)
def test_what_makes_no_sense_for_a_seat_is_refused(
    more: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = typed(capsys, *HALF_A_GAME, "--model", "ollama/qwen3:8b", *more)
    assert code == 2
    assert words in err
    assert "sk-abc" not in err


@pytest.mark.parametrize("agent", ["./me.py:Agent", "agents/me.py:Agent", "random", "my.module:Agent", "/tmp/a.py:B"])
def test_an_agent_is_no_models_address(agent: str) -> None:
    assert not names_model(agent)


def test_a_key_in_a_variable_of_ones_own_is_used_and_not_recorded(
    capsys: pytest.CaptureFixture[str], server: ModelServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    server.key = "sk-of-the-second-account"
    monkeypatch.setenv("SECOND_KEY", server.key)
    echo = ("play", "echo", "--steps", "2", "--agent-option", "plan=no", "--model", "openai/qwen3:8b")
    code, _, _ = typed(capsys, *echo, "--model-option", "api_key=env:SECOND_KEY")
    assert code == 0
    assert asked(server)["qwen3:8b completions"] > 0
    kept = [path.read_bytes() for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert kept
    assert not [data for data in kept if b"sk-of-the-second" in data]
    monkeypatch.delenv("SECOND_KEY")
    code, _, err = typed(capsys, *echo, "--model-option", "api_key=env:SECOND_KEY")
    assert code == 2
    assert "SECOND_KEY, which is not set" in err
