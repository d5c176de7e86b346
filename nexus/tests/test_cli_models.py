"""`wsap models`, the model that goes without saying, `wsap doctor --model`, and estimates, as they are typed."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from llm_server import DEAF, Card, ModelServer, Say

from wsap_core.cli import main
from wsap_core.seams.model import Abilities, Message, ModelInfo, Request
from wsap_llm.backends.fitting import Memory, fit, is_here
from wsap_llm.wrappers import Price
from wsap_nexus.cli.estimate import estimate
from wsap_nexus.models import remembered
from wsap_nexus.models.prompt_size import PromptSize
from wsap_nexus.models.remembered import Known

LOOK = json.dumps({"action": "inspect_self", "params": {}, "reasoning": "let us see"})


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder of the test's own, and no server or key but those that a test names."""
    for name in [*os.environ]:
        if name.startswith(("WSAP_", "OPENAI_", "OLLAMA_")) or name.endswith("_API_KEY"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("WSAP_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OLLAMA_HOST", "http://127.0.0.1:9")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


@pytest.fixture
def openai(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> ModelServer:
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    server.default = Say(LOOK)
    return server


@pytest.fixture
def ollama(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> ModelServer:
    monkeypatch.setenv("OLLAMA_HOST", server.address)
    server.default = Say(LOOK)
    return server


def wsap(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(list(arguments))
    out, err = capsys.readouterr()
    return code, out, err


def echo(model: str | None, *more: str) -> list[str]:
    chosen = ["--model", model] if model else []
    return ["play", "echo", "--steps", "5", "--agent-option", "plan=no", *chosen, *more]


# --- the model that goes without saying ----------------------------------------------------------


def test_the_model_used_last_plays_where_an_llm_is_asked_for_and_is_named(
    openai: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert wsap(capsys, *echo("openai/qwen3:8b"))[0] == 0
    code, out, err = wsap(capsys, *echo(None, "--agent", "llm", "--json"))
    assert code == 0
    assert json.loads(out)["usage"]["calls"] == 5
    assert "Model: openai/qwen3:8b, the model used last" in err
    listed = json.loads(wsap(capsys, "models", "--json")[1])
    assert listed["default"]["model"] == "openai/qwen3:8b"
    rows = [m for p in listed["providers"] for m in p["models"] if m["default"]]
    assert [m["model"] for m in rows] == ["openai/qwen3:8b"]
    assert re.search(r"^\*\s+openai/qwen3:8b ", wsap(capsys, "models")[1], re.MULTILINE)


def test_nobody_who_said_nothing_about_models_gets_one(openai: ModelServer, capsys: pytest.CaptureFixture[str]) -> None:
    wsap(capsys, "models", "use", "openai/qwen3:8b")
    code, out, err = wsap(capsys, "play", "echo", "--steps", "3", "--json")
    assert (code, json.loads(out)["agent"]) == (0, "random")
    assert "Model" not in err
    assert openai.requests == []


def test_a_model_that_never_answered_is_not_remembered(
    openai: ModelServer, capsys: pytest.CaptureFixture[str], own_home: Path
) -> None:
    openai.default = Say(status=400, error="no")
    assert wsap(capsys, *echo("openai/qwen3:8b"))[0] != 0
    assert remembered.read(os.environ).default is None
    code, _, err = wsap(capsys, *echo(None, "--agent", "llm"))
    assert code != 0
    assert "--model" in err


def test_a_run_that_leaves_no_trace_leaves_none_of_its_model(
    openai: ModelServer, capsys: pytest.CaptureFixture[str], own_home: Path
) -> None:
    assert wsap(capsys, *echo("openai/qwen3:8b", "--no-record"))[0] == 0
    assert not (own_home / "models.json").exists()


def test_a_chosen_model_outlasts_the_use_of_another_until_it_is_forgotten(
    openai: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert wsap(capsys, "models", "use", "openai/llama3.2:latest")[0] == 0
    wsap(capsys, *echo("openai/qwen3:8b"))
    assert "Default: openai/llama3.2:latest, chosen" in wsap(capsys, "models")[1]
    assert "openai/llama3.2:latest is forgotten" in wsap(capsys, "models", "forget")[1]
    assert "There is no default" in wsap(capsys, "models", "forget")[1]
    wsap(capsys, *echo("openai/qwen3:8b"))
    assert remembered.read(os.environ).default == "openai/qwen3:8b"


@pytest.mark.parametrize(("address", "words"), [("qwen3:8b", "BACKEND/MODEL"), ("opnai/x", "Did you mean")])
def test_what_is_no_address_can_not_be_chosen(address: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = wsap(capsys, "models", "use", address)
    assert code != 0
    assert words in err
    assert remembered.read(os.environ).default is None


def test_options_of_the_backend_reach_the_server_and_come_back_on_resume(
    ollama: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert wsap(capsys, *echo("ollama/llama3.2:latest", "--model-option", "num_ctx=5000", "--max-calls", "2"))[0] != 0
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


def test_a_context_holds_what_is_needed_in_whole_kilotokens() -> None:
    assert (fit(an_info(), 13_000, 2_000, None).tokens, fit(an_info(), 13_312, 2_000, None).tokens) == (13_312, 13_312)
    assert fit(an_info(), 13_000, 2_000, None).enough


def test_a_context_is_never_longer_than_the_model_was_made_for() -> None:
    found = fit(an_info(context=8192), 13_000, 2_000, None)
    assert (found.tokens, found.enough) == (8192, False)
    assert "made for" in found.reason


def test_a_context_leaves_the_weights_their_place_in_memory() -> None:
    # 85 % of 8 GB less 5 GB are 1.8 GB: 12,207 tokens of 147,456 bytes each, so 11 times 1,024.
    found = fit(an_info(), 13_000, 2_000, Memory(8 * GB, "graphics memory"))
    assert (found.tokens, found.enough) == (11_264, False)
    assert "8 GB of graphics memory" in found.reason
    none = fit(an_info(), 13_000, 2_000, Memory(4 * GB, "memory"))
    assert none.tokens == 0
    assert "needs 2000" in none.reason


def test_what_is_not_known_of_a_model_limits_nothing() -> None:
    assert fit(an_info(context=None, weights=None, each=None), 13_000, 2_000, Memory(GB, "memory")).tokens == 13_312


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
    listed = json.loads(wsap(capsys, "models", "--json", "--game", "echo")[1])
    found = {m["model"]: m for p in listed["providers"] for m in p["models"]}
    # 36 layers of 8 heads with 128 numbers each for keys and for values, of two bytes.
    assert found["ollama/qwen3:8b"]["context_bytes"] == 36 * 8 * (128 + 128) * 2
    assert found["ollama/qwen3:8b"]["tools"]
    assert not found["ollama/llava:7b"]["tools"]
    prompt = listed["prompt"]
    whole = prompt["least"] + 2 * prompt["window"] * (prompt["step"] + 80)
    suggested = found["ollama/qwen3:8b"]["suggested"]
    assert whole <= suggested["num_ctx"] < whole + 1024
    assert suggested["enough"]
    assert found["ollama/small:1b"]["suggested"]["num_ctx"] == 2048
    assert found["scripted/reply"]["suggested"] is None
    text = wsap(capsys, "models", "--game", "echo")[1]
    assert "the model was made for no more than 2048" in text
    assert "--model-option num_ctx=N" in text


# --- the doctor ----------------------------------------------------------------------------------


def doctor(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, dict[str, Any]]]:
    code, out, _ = wsap(capsys, "doctor", "--json", *arguments)
    return code, {row["check"]: row for row in json.loads(out)["checks"]}


def test_a_good_model_is_found_good_in_every_respect_by_one_request(
    ollama: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    ollama.default = Say(json.dumps({"action": "noop", "params": {}, "reasoning": "wait"}))
    code, found = doctor(capsys, "--model", "ollama/llama3.2:latest", "--model-option", "num_ctx=30000")
    assert code == 0
    checks = ["model", "answer", "constraint", "speed", "context"]
    assert [found[check]["status"] for check in checks] == ["ok"] * 5
    chats = [r for r in ollama.requests if r.path == "/api/chat"]
    assert len(chats) == 1
    assert chats[0].body["stream"] is True
    assert "crafter" in chats[0].body["messages"][0]["content"].lower()
    assert "first after" in found["speed"]["detail"]
    assert remembered.read(os.environ).default is None, "to look is not to use"
    assert remembered.read(os.environ).known("ollama/llama3.2:latest").calls == 1


@pytest.mark.parametrize(
    ("said", "check", "words"),
    [
        (Say("I would rather not."), "constraint", "no JSON"),
        (Say(json.dumps({"action": "fly", "params": {}, "reasoning": ""})), "constraint", "no legal action"),
        (Say(""), "answer", "said nothing"),
        (Say("word " * 400), "answer", "cut off after 300 tokens"),
    ],
)
def test_what_a_model_does_badly_is_said_line_by_line(
    said: Say, check: str, words: str, ollama: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    ollama.default = said
    code, found = doctor(capsys, "--model", "ollama/llama3.2:latest")
    assert code == 0
    assert found[check]["status"] == "warning"
    assert words in found[check]["detail"]
    assert found[check]["hint"] or words == "said nothing"


def test_a_context_that_holds_little_is_said_with_what_to_set(
    ollama: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    ollama.default = Say(json.dumps({"action": "noop", "params": {}, "reasoning": "wait"}))
    found = doctor(capsys, "--model", "ollama/llama3.2:latest")[1]["context"]
    assert found["status"] == "warning"
    assert re.search(r"4096 tokens hold the rules and about \d steps of crafter's history", found["detail"])
    assert "num_ctx" in found["hint"]


def test_a_model_that_is_not_pulled_comes_with_the_command_that_pulls_it(
    ollama: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    code, found = doctor(capsys, "--model", "ollama/qwen3:14b")
    assert code == 1
    assert found["model"]["status"] == "problem"
    assert "ollama pull qwen3:14b" in found["model"]["detail"]


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


def test_a_model_that_is_silent_is_given_up_on_after_the_stated_time(
    openai: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    openai.default = DEAF
    code, found = doctor(capsys, "--model", "openai/qwen3:8b", "--wait", "0.5")
    assert code == 1
    assert "no answer within 0.5 s" in found["model"]["detail"]


def test_no_model_at_all_is_no_fault(capsys: pytest.CaptureFixture[str]) -> None:
    code, found = doctor(capsys)
    assert (code, found["model"]["status"]) == (0, "ok")
    assert "none" in found["model"]["detail"]
    assert "model" not in doctor(capsys, "--no-model")[1]


def test_without_a_name_the_remembered_model_is_asked_and_its_failure_is_a_warning(
    openai: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    wsap(capsys, "models", "use", "openai/gone")
    code, found = doctor(capsys)
    assert (code, found["model"]["status"]) == (0, "warning")
    assert "openai/gone (chosen" in found["model"]["detail"]


def test_without_anything_remembered_the_first_model_on_this_machine_is_asked(
    ollama: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    found = doctor(capsys)[1]
    assert found["model"]["detail"] == "ollama/qwen3:8b (the first on this machine) answers"


# --- estimates -----------------------------------------------------------------------------------


def a_size(**more: Any) -> PromptSize:
    first = Request([Message("system", "rules"), Message("user", "see")])
    return replace(PromptSize(1000, 100, 0, 2, 300, first), **more)


def test_an_estimate_adds_up_the_prompts_of_a_growing_window() -> None:
    # With two steps wanted up to four go along, and one is left after a cut: 0 1 2 3 4 1 2 of them, each
    # with 100 tokens shown, 6 said, and 4 around what was said.
    found = estimate("a/b", a_size(), steps=7, known=Known(calls=1, reply_tokens=6.0))
    assert found.calls == 7
    assert found.prompt_tokens == 7 * 1100 + (0 + 1 + 2 + 3 + 4 + 1 + 2) * 110
    assert found.completion_tokens == 42
    # Each prompt begins with the one before; after the cut only the rules are the same.
    repeated = sum(1100 + n * 110 for n in (0, 1, 2, 3)) + 1000 + 1100 + 110
    assert found.shared == pytest.approx(repeated / found.prompt_tokens, abs=1e-4)


def test_an_estimate_of_many_steps_is_about_in_proportion() -> None:
    some, many = estimate("a/b", a_size(), steps=2000), estimate("a/b", a_size(), steps=200_000)
    assert many.prompt_tokens == pytest.approx(100 * some.prompt_tokens, rel=0.001)
    assert many.calls == 200_000


def test_a_small_context_makes_prompts_smaller_and_repeats_less() -> None:
    wide = estimate("a/b", a_size(window=16), steps=500)
    narrow = estimate("a/b", a_size(window=16), steps=500, context=2048)
    assert narrow.prompt_tokens < wide.prompt_tokens
    assert narrow.shared < wide.shared
    assert narrow.prompt_tokens <= 500 * (2048 - 300)


def test_a_cadence_makes_a_call_for_so_many_steps_and_says_that_there_may_be_more() -> None:
    each, fifth = (estimate("a/b", a_size(every=every), steps=1001) for every in (1, 5))
    assert (each.calls, fifth.calls) == (1001, 201)
    assert fifth.prompt_tokens < each.prompt_tokens / 4
    assert any("each 5 steps" in sentence for sentence in fifth.assumed)
    assert any("up to 8 steps" in sentence for sentence in estimate("a/b", a_size(most=8), steps=9).assumed)


def test_what_is_not_known_is_said_to_be_unknown_and_never_zero() -> None:
    found = estimate("a/b", a_size(), steps=10)
    assert (found.cost, found.seconds) == (None, None)
    assert "cost unknown" in found.lines()[0]
    assert "unknown time" in found.lines()[0]
    assert "$" not in found.lines()[0]


def test_a_known_price_and_pace_make_a_cost_and_a_time() -> None:
    known = Known(calls=9, seconds_a_call=2.0, reply_tokens=50.0)
    found = estimate("a/b", a_size(window=0), steps=3600, seats=2, known=known, price=Price(1.0, 10.0))
    assert found.calls == 7200
    assert found.seconds == 14400
    # 2 x 3,600 prompts of 1,100 tokens at a dollar a million, and 50 said each at ten.
    assert found.cost == pytest.approx(7.92 + 3.6)
    assert "4.0 h" in found.lines()[0]
    assert "$11.52" in found.lines()[0]


def test_an_estimate_alone_asks_nothing_and_records_nothing(
    openai: ModelServer, capsys: pytest.CaptureFixture[str], own_home: Path
) -> None:
    command = ["play", "echo", "--model", "openai/qwen3:8b", "--steps", "400", "--estimate"]
    code, out, _ = wsap(capsys, *command, "--json", "--price-in", "1", "--price-out", "2")
    found = json.loads(out)
    assert (code, found["steps"], found["calls"] >= 400) == (0, 400, True)
    assert found["cost"] == pytest.approx((found["prompt_tokens"] + 2 * found["completion_tokens"]) / 1e6)
    assert 0 < found["shared"] < 1
    assert json.loads(wsap(capsys, *command, "--json")[1])["cost"] is None
    assert "cost unknown" in wsap(capsys, *command)[1]
    assert openai.requests == []
    assert not (own_home / "wsap.db").exists()


def test_the_estimate_is_near_what_the_run_takes(openai: ModelServer, capsys: pytest.CaptureFixture[str]) -> None:
    wsap(capsys, *echo("openai/qwen3:8b"))
    command = ["play", "echo", "--model", "openai/qwen3:8b", "--steps", "120", "--json"]
    before = json.loads(wsap(capsys, *command, "--estimate")[1])
    usage = json.loads(wsap(capsys, *command)[1])["usage"]
    assert usage["calls"] == before["calls"]
    assert usage["completion_tokens"] == pytest.approx(before["completion_tokens"], rel=0.1)
    # The server counts a word as a token and WSAP rather more, so that it is of the same order only.
    assert usage["prompt_tokens"] < before["prompt_tokens"] < 4 * usage["prompt_tokens"]


@pytest.mark.parametrize(
    ("steps", "options"),
    [
        (4, []),
        (17, []),
        (15, ["reflect_every=5"]),
        (17, ["reflect_every=4"]),
        (17, ["reflect=no"]),
        (9, ["reflect=yes"]),
    ],
)
def test_an_estimate_counts_the_calls_by_which_an_agent_looks_back(
    steps: int, options: list[str], openai: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [part for option in options for part in ("--agent-option", option)]
    command = ["play", "echo", "--model", "openai/qwen3:8b", "--steps", str(steps), "--memory", "facts", "--json"]
    before = json.loads(wsap(capsys, *command, *given, "--estimate")[1])
    assert wsap(capsys, *command, *given)[0] == 0
    asked = [r for r in openai.requests if r.path.endswith("/chat/completions")]
    assert before["calls"] == len(asked)


def test_an_estimate_says_which_limits_hold_the_run_before_its_end(
    openai: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["play", "echo", "--model", "openai/qwen3:8b", "--agent-option", "plan=no", "--steps", "400"]
    prices = ("--price-in", "1", "--price-out", "2")
    out = wsap(capsys, *command, *prices, "--estimate", "--daily-calls", "100", "--max-cost", "1000")[1]
    assert "The limit of a day, which other runs share, pauses it after about 25% (--daily-calls 100)." in out
    assert "--max-cost" not in out


def test_a_limit_of_a_day_in_money_is_answer_enough_for_a_dear_run(openai: ModelServer) -> None:
    command = [sys.executable, "-m", "wsap_core", *echo("openai/qwen3:8b"), "--no-watch"]
    prices = ["--price-in", "1000", "--price-out", "1000"]
    assert "Play?" not in at_terminal([*command, *prices, "--daily-cost", "900"], {})


def test_a_long_run_says_first_what_it_will_take_and_a_short_one_does_not(
    openai: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    play = ["play", "echo", "--model", "openai/qwen3:8b", "--agent-option", "plan=no"]
    assert "Estimate" not in wsap(capsys, *play, "--steps", "10")[2]
    code, _, err = wsap(capsys, *play, "--steps", "100")
    assert code == 0
    assert "Estimate for openai/qwen3:8b: 100 calls" in err


def test_a_dear_run_is_not_held_up_where_nobody_could_answer(
    openai: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    prices = ["--price-in", "1000", "--price-out", "1000"]
    code, out, err = wsap(capsys, *echo("openai/qwen3:8b", *prices))
    assert code == 0
    assert "Estimate" in err
    assert re.search(r"models: 5 calls, .*\$\d", out)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--price-in", "1"], "belong together"),
        (["--price-in", "-1", "--price-out", "1"], "at least 0"),
        (["--price-in", "nan", "--price-out", "1"], "at least 0"),
        (["--resume", "last", "--estimate"], "leave out --estimate"),
    ],
)
def test_prices_and_estimates_that_make_no_sense_are_refused(
    options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    game = [] if "--resume" in options else ["echo", "--model", "openai/x"]
    code, _, err = wsap(capsys, "play", *game, *options)
    assert code == 2
    assert words in err


def test_an_estimate_without_a_model_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = wsap(capsys, "play", "echo", "--estimate")
    assert code == 2
    assert "--model ADDRESS" in err


def test_prices_are_remembered_where_a_model_is_chosen_with_them(
    openai: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    wsap(capsys, "models", "use", "openai/qwen3:8b", "--price-in", "1", "--price-out", "2")
    summary = json.loads(wsap(capsys, *echo(None, "--agent", "llm", "--json"))[1])
    usage = summary["usage"]
    assert usage["cost"] == pytest.approx((usage["prompt_tokens"] + 2 * usage["completion_tokens"]) / 1e6)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such terminals")
@pytest.mark.parametrize(("answer", "played"), [("n", False), ("y", True)])
def test_a_person_is_asked_before_a_dear_run(answer: str, played: bool, openai: ModelServer, own_home: Path) -> None:
    command = [sys.executable, "-m", "wsap_core", *echo("openai/qwen3:8b"), "--no-watch"]
    said = at_terminal([*command, "--price-in", "1000", "--price-out", "1000"], {"Play?": f"{answer}\n"})
    assert "It would cost about $" in said
    assert bool(openai.requests) is played
    assert ("Nothing was played" in said) is not played
    assert "Play?" not in at_terminal([*command, "--price-in", "1000", "--price-out", "1000", "--yes"], {})
    assert "Play?" not in at_terminal([*command, "--price-in", "1000", "--price-out", "1000", "--max-cost", "90"], {})


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such terminals")
@pytest.mark.parametrize("columns", [40, 60, 100])
def test_models_and_verdicts_fit_a_telephone(columns: int, ollama: ModelServer) -> None:
    ollama.models = {"qwen3:8b": Card(40960, ("completion", "tools", "thinking"))}
    for words in (["models", "--game", "echo"], ["doctor", "--model", "ollama/qwen3:8b"]):
        said = at_terminal([sys.executable, "-m", "wsap_core", *words], {}, COLUMNS=str(columns), NO_COLOR="1")
        lines = said.replace("\r", "").splitlines()
        # A word that is longer than a line, such as an address, may be broken; none goes beyond it.
        assert [line for line in lines if len(line) > columns] == []
        flat = re.sub(r"\s+", " ", said)
        assert "ollama/qwen3:8b" in flat
        assert "40960" in flat if words[0] == "models" else "answers" in flat


def at_terminal(command: list[str], answers: dict[str, str], **variables: str) -> str:
    """Run a command at a terminal of its own, and return what it says; answers are typed when asked for."""
    master, slave = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", **variables}
    with subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environment) as it:
        os.close(slave)
        said = ""
        for piece in pieces(master):
            said += piece
            for question, answer in list(answers.items()):
                if question in said:
                    os.write(master, answer.encode())
                    del answers[question]
        it.wait(30)
    os.close(master)
    return said


def pieces(handle: int) -> Iterator[str]:
    while select.select([handle], [], [], 30)[0]:
        try:
            piece = os.read(handle, 65536)
        except OSError:  # how Linux tells that the other end is closed
            return
        if not piece:
            return
        yield piece.decode("utf-8", "replace")


def test_asking_a_server_in_vain_for_its_models_makes_no_estimate_impossible(
    nowhere: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", nowhere)
    code, out, _ = wsap(capsys, "play", "echo", "--model", "ollama/qwen3:8b", "--steps", "100", "--estimate")
    assert code == 0
    assert "Ollama does not answer" in out
