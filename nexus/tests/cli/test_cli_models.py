"""`wsap models`, the default model, and `wsap doctor --model`, as they are typed."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from llm_server import DEAF, Card, ModelServer, Say

from wsap_core.cli import main
from wsap_core.seams.listing import ModelInfo
from wsap_core.seams.model import Abilities
from wsap_llm.backends.fitting import Fit, Memory, fit
from wsap_llm.backends.places import is_here
from wsap_nexus.cli import doctor_model

MODELS = ("models", "--timeout", "120")
"""With time for providers on the busiest machine."""
WAIT = json.dumps({"action": "wait", "params": {}, "reasoning": "let us see"})


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder of the test's own, and no server or key but those that a test names."""
    for name in [*os.environ]:
        if name.startswith(("WSAP_", "OPENAI_", "OLLAMA_")) or name.endswith("_API_KEY"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("WSAP_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OLLAMA_HOST", "http://127.0.0.1:9")
    monkeypatch.setattr(doctor_model, "LISTING", 120.0)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


@pytest.fixture
def openai(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> ModelServer:
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    server.default = Say(WAIT)
    return server


@pytest.fixture
def ollama(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> ModelServer:
    monkeypatch.setenv("OLLAMA_HOST", server.address)
    server.default = Say(WAIT)
    return server


def wsap(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(list(arguments))
    out, err = capsys.readouterr()
    return code, out, err


def echo(model: str | None, *more: str) -> list[str]:
    chosen = ["--model", model] if model else []
    return ["play", "echo", "--steps", "5", "--agent-option", "plan=no", *chosen, *more]


# --- the default model ---------------------------------------------------------------------------


def test_the_default_model_plays_where_an_llm_is_asked_for_and_is_named(
    openai: ModelServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WSAP_MODEL", "openai/qwen3:8b")
    code, out, err = wsap(capsys, *echo(None, "--agent", "llm", "--json"))
    assert code == 0
    assert json.loads(out)["usage"]["calls"] == 5
    assert "Model: openai/qwen3:8b, from WSAP_MODEL" in err
    listed = json.loads(wsap(capsys, *MODELS, "--json")[1])
    assert listed["default"] == "openai/qwen3:8b"
    rows = [m for p in listed["providers"] for m in p["models"] if m["default"]]
    assert [m["model"] for m in rows] == ["openai/qwen3:8b"]
    said = wsap(capsys, *MODELS)[1]
    assert re.search(r"^\*\s+openai/qwen3:8b ", said, re.MULTILINE)
    assert "Default: openai/qwen3:8b, from WSAP_MODEL." in said
    monkeypatch.setenv("WSAP_MODEL", "openai/gone")
    assert "Default: openai/gone, from WSAP_MODEL, which is not listed now." in wsap(capsys, *MODELS)[1]


def test_nobody_who_said_nothing_about_models_gets_one(
    openai: ModelServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WSAP_MODEL", "openai/qwen3:8b")
    code, out, err = wsap(capsys, "play", "echo", "--steps", "3", "--json")
    assert (code, json.loads(out)["agent"]) == (0, "random")
    assert "Model" not in err
    assert openai.requests == []


def test_a_named_model_goes_before_the_default(
    openai: ModelServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WSAP_MODEL", "openai/gone")
    code, _, err = wsap(capsys, *echo("openai/qwen3:8b", "--agent", "llm"))
    assert code == 0
    assert "WSAP_MODEL" not in err
    assert openai.last["model"] == "qwen3:8b"


@pytest.mark.parametrize("default", ["", "  "])
def test_without_a_default_a_model_must_be_named(
    default: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WSAP_MODEL", default)
    code, _, err = wsap(capsys, *echo(None, "--agent", "llm"))
    assert code != 0
    assert "--model" in err


@pytest.mark.parametrize(("address", "words"), [("qwen3:8b", "BACKEND/MODEL"), ("opnai/x", "Did you mean")])
def test_what_is_no_address_is_refused(address: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = wsap(capsys, *echo(address))
    assert code != 0
    assert words in err


def test_options_of_the_backend_reach_the_server_and_come_back_on_resume(
    ollama: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert wsap(capsys, *echo("ollama/llama3.2:latest", "--model-option", "num_ctx=5000", "--limit", "calls=2"))[0] != 0
    assert ollama.last["options"]["num_ctx"] == 5000
    count = len(ollama.requests)
    assert wsap(capsys, "play", "--resume", "last")[0] == 0
    chats = [r.body for r in ollama.requests[count:] if r.path == "/api/chat"]
    assert [body["options"]["num_ctx"] for body in chats] == [5000] * 3


def test_no_key_is_taken_where_it_would_be_recorded(capsys: pytest.CaptureFixture[str], own_home: Path) -> None:
    code, _, err = wsap(capsys, *echo("openai/x", "--model-option", "api_key=secret"))
    assert code == 2
    assert "environment" in err
    assert "secret" not in err
    assert not (own_home / "wsap.db").exists()


# --- a context that fits -------------------------------------------------------------------------

GB = 10**9


def an_info(context: int | None = 40960, weights: int | None = 5 * GB, each: int | None = 147456) -> ModelInfo:
    return ModelInfo("ollama/x", Abilities(context=context), weights=weights, context_bytes=each, sizable=True)


def test_a_context_is_never_longer_than_the_model_was_made_for() -> None:
    found = fit(an_info(context=8192), None)
    assert (found.tokens, "supports at most" in found.reason) == (8192, True)


def test_a_context_leaves_the_weights_their_place_in_memory() -> None:
    # 85 % of 8 GB less 5 GB are 1.8 GB: 12,207 tokens of 147,456 bytes each, so 11 times 1,024.
    found = fit(an_info(), Memory(8 * GB, "graphics memory"))
    assert found.tokens == 11_264
    assert "8 GB of graphics memory" in found.reason
    assert fit(an_info(), Memory(4 * GB, "memory")).tokens == 0
    assert fit(an_info(), Memory(80 * GB, "memory")) == Fit(16_384, "")


def test_what_is_not_known_of_a_model_limits_nothing() -> None:
    assert fit(an_info(context=None, weights=None, each=None), Memory(GB, "memory")) == Fit(16_384, "")


@pytest.mark.parametrize(
    ("place", "here"),
    [
        ("http://127.0.0.1:11434", True), ("localhost:11434", True), ("http://[::1]:1", True), ("0.0.0.0", True),
        ("https://api.openai.com/v1", False), ("http://192.168.1.5:11434", False), ("", False), ("http://[", False),
    ],
)  # fmt: skip
def test_only_addresses_of_this_machine_are_here(place: str, here: bool) -> None:
    assert is_here(place) is here


def test_models_of_ollama_come_with_a_context_tools_and_what_they_take(
    ollama: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    ollama.models["small:1b"] = Card(2048)
    listed = json.loads(wsap(capsys, *MODELS, "--json")[1])
    found = {m["model"]: m for p in listed["providers"] for m in p["models"]}
    # 36 layers of 8 heads with 128 numbers each for keys and for values, of two bytes.
    assert found["ollama/qwen3:8b"]["context_bytes"] == 36 * 8 * (128 + 128) * 2
    assert found["ollama/qwen3:8b"]["tools"]
    assert not found["ollama/llava:7b"]["tools"]
    assert 0 < found["ollama/qwen3:8b"]["suggested"]["num_ctx"] <= 16_384
    assert found["ollama/small:1b"]["suggested"]["num_ctx"] == 2048
    assert found["scripted/reply"]["suggested"] is None
    assert "the model supports at most 2048" in wsap(capsys, *MODELS)[1]


# --- the doctor ----------------------------------------------------------------------------------


def doctor(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, dict[str, Any]]]:
    code, out, _ = wsap(capsys, "doctor", "--json", *arguments)
    return code, {row["check"]: row for row in json.loads(out)["checks"]}


def test_a_good_model_is_found_good_by_one_request(ollama: ModelServer, capsys: pytest.CaptureFixture[str]) -> None:
    ollama.default = Say(json.dumps({"action": "wait", "reasoning": "why not"}))
    code, found = doctor(capsys, "--model", "ollama/llama3.2:latest", "--model-option", "num_ctx=30000")
    assert code == 0
    assert found["model"]["status"] == "ok"
    assert re.fullmatch(
        r"ollama/llama3\.2:latest \(as requested\) answers in [\d.]+ s, [\d.]+ tokens/s, context 30000 tokens",
        found["model"]["detail"],
    )
    chats = [r for r in ollama.requests if r.path == "/api/chat"]
    assert len(chats) == 1
    assert chats[0].body["format"]["properties"]["action"] == {"enum": ["wait", "move_left"]}


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (Say("I would rather not."), "did not enforce the JSON Schema: I would rather not."),
        (Say(json.dumps({"action": "fly", "reasoning": ""})), "did not enforce the JSON Schema"),
        (Say(""), "the reply is empty"),
        (Say("word " * 400), "cut off after 300 tokens"),
    ],
)
@pytest.mark.slow
def test_what_a_model_does_badly_is_said_with_what_to_do(
    said: Say, words: str, ollama: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    ollama.default = said
    code, found = doctor(capsys, "--model", "ollama/llama3.2:latest")
    assert code == 0
    assert found["model"]["status"] == "warning"
    assert words in found["model"]["detail"]
    assert found["model"]["hint"] or words == "the reply is empty"


@pytest.mark.slow
def test_a_model_that_is_not_pulled_comes_with_the_command_that_pulls_it(
    ollama: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    code, found = doctor(capsys, "--model", "ollama/qwen3:14b")
    assert code == 1
    assert found["model"]["status"] == "problem"
    assert "ollama pull qwen3:14b" in found["model"]["detail"]


@pytest.mark.slow
def test_a_missing_key_is_told_from_a_missing_server(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], nowhere: str
) -> None:
    with ModelServer(key="right") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        code, found = doctor(capsys, "--model", "openai/qwen3:8b")
        assert code == 1
        assert "OPENAI_API_KEY" in found["model"]["detail"]
        assert "can be reached" in found["model"]["hint"]
    monkeypatch.setenv("OPENAI_BASE_URL", f"{nowhere}/v1")
    code, found = doctor(capsys, "--model", "openai/qwen3:8b")
    assert code == 1
    assert "No server answers" in found["model"]["detail"]
    assert "OPENAI_BASE_URL" in found["model"]["hint"]


@pytest.mark.slow
def test_a_model_that_is_silent_is_given_up_on_after_the_stated_time(
    openai: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    openai.default = DEAF
    code, found = doctor(capsys, "--model", "openai/qwen3:8b", "--wait", "0.5")
    assert code == 1
    assert "no reply within 0.5 s" in found["model"]["detail"]


@pytest.mark.slow
def test_no_model_at_all_is_no_fault(capsys: pytest.CaptureFixture[str]) -> None:
    code, found = doctor(capsys)
    assert (code, found["model"]["status"]) == (0, "ok")
    assert "none" in found["model"]["detail"]
    assert "model" not in doctor(capsys, "--no-model")[1]


def test_without_a_name_the_default_model_is_asked_and_its_failure_is_a_warning(
    openai: ModelServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WSAP_MODEL", "openai/gone")
    openai.default = Say(status=404, error="no such model")
    code, found = doctor(capsys)
    assert (code, found["model"]["status"]) == (0, "warning")
    assert "openai/gone (from WSAP_MODEL)" in found["model"]["detail"]


@pytest.mark.slow
def test_without_a_default_the_first_model_on_this_machine_is_asked(
    ollama: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    found = doctor(capsys)[1]
    assert found["model"]["detail"].startswith("ollama/qwen3:8b (the first on this machine) answers")


# --- prices and the rate -------------------------------------------------------------------------


def test_a_summary_says_what_the_run_takes_at_this_rate(
    openai: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    prices = ("--price-in", "1000", "--price-out", "1000")
    play = ["play", "echo", "--model", "openai/qwen3:8b", "--agent-option", "plan=no", *prices]
    code, out, _ = wsap(capsys, *play, "--steps", "10")
    assert code == 0
    assert re.search(r"^a decision takes 1 call, \d+ tokens, \$\d", out, re.MULTILINE)
    assert "at this rate" not in out, "it is over"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--price-in", "1"], "must be given together"),
        (["--price-in", "-1", "--price-out", "1"], "is not a number from 0"),
        (["--price-in", "nan", "--price-out", "1"], "is not a number from 0"),
        (["--price-in", "1e9", "--price-out", "1"], "from 0 to less than 1,000,000,000"),
    ],
)
def test_prices_that_make_no_sense_are_refused(
    options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = wsap(capsys, "play", "echo", "--model", "openai/x", *options)
    assert code == 2
    assert words in err


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there are no such terminals")
@pytest.mark.parametrize("columns", [40, 60, 100])
def test_models_and_verdicts_fit_a_telephone(columns: int, ollama: ModelServer) -> None:
    ollama.models = {"qwen3:8b": Card(40960, ("completion", "tools", "thinking"))}
    for words in ([*MODELS], ["doctor", "--model", "ollama/qwen3:8b"]):
        said = at_terminal([sys.executable, "-m", "wsap_core", *words], COLUMNS=str(columns), NO_COLOR="1")
        lines = said.replace("\r", "").splitlines()
        # A word that is longer than a line, such as an address, may be broken; none goes beyond it.
        assert [line for line in lines if len(line) > columns] == []
        flat = re.sub(r"\s+", " ", said)
        assert "ollama/qwen3:8b" in flat
        assert "40960" in flat if words[0] == "models" else "answers" in flat


def at_terminal(command: list[str], **variables: str) -> str:
    """Run a command at a terminal of its own, and return what it says."""
    master, slave = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", **variables}
    with subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environment) as it:
        os.close(slave)
        said = "".join(pieces(master))
        it.wait(300)
    os.close(master)
    return said


def pieces(handle: int) -> Iterator[str]:
    while select.select([handle], [], [], 300)[0]:
        try:
            piece = os.read(handle, 65536)
        except OSError:  # how Linux tells that the other end is closed
            return
        if not piece:
            return
        yield piece.decode("utf-8", "replace")
