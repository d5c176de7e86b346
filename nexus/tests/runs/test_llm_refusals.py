"""Servers that can't bind replies to a form: played with all the same, told, counted, and refused under `--strict`."""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hosts import host_with_ours
from llm_server import Card, ModelServer, Refusal, Say

from wsap_core import PluginHost
from wsap_core.cli import main
from wsap_core.seams.model_errors import ConstraintError
from wsap_core.seams.services import Services
from wsap_llm.backends.pool import ModelPool
from wsap_nexus.api import play, resume_run
from wsap_nexus.runs.plan import RunPlan, SeatPlan
from wsap_nexus.runs.play.controls import Controls
from wsap_nexus.runs.session import replies_of, start, unrecorded
from wsap_nexus.runs.store import open_store

NOT_WITH_THIS_MODEL = Refusal(
    400,
    "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model. Learn more about "
    "supported models at the Structured Outputs guide.",
)
REFUSALS = {
    "a hosted model without the ability": NOT_WITH_THIS_MODEL,
    "deepseek": Refusal(400, "This response_format type is unavailable now", code="invalid_request_error"),
    "deepseek before": Refusal(
        422,
        "Failed to deserialize the JSON body into the target type: response_format: response_format.type "
        "`json_schema` is unavailable now at line 1 column 1193",
    ),
    "a schema that openai does not take": Refusal(
        400,
        "Invalid schema: Objects provided via 'anyOf' must not share identical first keys. Consider adding a "
        "discriminator key or rearranging the properties to ensure the first key is unique.",
    ),
    "only the field is named": Refusal(400, "Unrecognized request argument supplied.", param="response_format"),
    "llama.cpp": Refusal(400, "Failed to initialize samplers: failed to parse grammar"),
    "llama.cpp at a loss": Refusal(400, "Failed to initialize samplers: std::exception"),
    "ollama behind openai's protocol": Refusal(500, "invalid JSON schema in format"),
    "a gateway": Refusal(404, "No endpoints found that support the requested parameters: response_format."),
}
OPTIONS = {"model": "openai/qwen3:8b", "plan": "no"}


def answer(body: Any) -> Say:
    """Speaks, in prose around its JSON, of how many messages it was shown."""
    said = {"action": "speak", "params": {"text": f"number {len(body['messages'])}"}}
    return Say(f"Sure! I will speak:\n```json\n{json.dumps(said)}\n```")


@pytest.fixture
def refusing(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> ModelServer:
    """A server whose model can't be constrained."""
    server.default = answer
    server.models["qwen3:8b"] = Card(40960, refusal=NOT_WITH_THIS_MODEL)
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    return server


@pytest.fixture
def host() -> PluginHost:
    return host_with_ours()


@pytest.fixture
def database(tmp_path: Path) -> str:
    return str(tmp_path / "runs.db")


def bound(server: ModelServer) -> list[bool]:
    """Which requests so far asked for a reply of some form."""
    return ["response_format" in r.body for r in server.requests if r.path.endswith("/completions")]


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS)
def test_a_refused_constraint_is_told_once_and_the_rest_of_the_session_is_played_without(
    refusing: ModelServer, host: PluginHost, caplog: pytest.LogCaptureFixture, refusal: Refusal
) -> None:
    refusing.models["qwen3:8b"] = replace(refusing.models["qwen3:8b"], refusal=refusal)
    with caplog.at_level(logging.WARNING):
        summary = play("echo", "llm", agent_options=OPTIONS, steps=6, record=False, host=host).to_json()
    assert summary["decisions"] == {
        "total": 6,
        "repaired": 6,
        "forced": 0,
        "unconstrained": 6,
        "cut": 0,
        "continued": 0,
    }
    assert bound(refusing) == [True] + [False] * 6
    told = [r.getMessage() for r in caplog.records if r.name == "wsap.llm"]
    assert len(told) == 1
    assert refusal.words[:60] in told[0]
    assert told[0].endswith(". Its replies are parsed leniently instead; the summary counts these decisions.")


def test_a_model_that_keeps_to_the_constraint_has_no_unconstrained_decision(
    refusing: ModelServer, host: PluginHost, caplog: pytest.LogCaptureFixture
) -> None:
    refusing.models["qwen3:8b"] = Card(40960)
    refusing.default = Say('{"action": "speak", "params": {"text": "so"}, "reasoning": ""}')
    summary = play("echo", "llm", agent_options=OPTIONS, steps=3, record=False, host=host).to_json()
    assert summary["decisions"]["unconstrained"] == 0
    assert all(bound(refusing))
    assert not [r for r in caplog.records if r.name == "wsap.llm"]


def test_another_failure_is_not_taken_for_a_refused_constraint(refusing: ModelServer) -> None:
    from wsap_core.seams.model import JsonConstraint, Message, Request
    from wsap_core.seams.model_errors import ServerFailedError
    from wsap_llm.backends.openai.backend import OpenAIBackend
    from wsap_llm.backends.openai.options import OpenAIOptions

    refusing.models["qwen3:8b"] = Card(40960, refusal=Refusal(500, "CUDA out of memory"))

    async def ask() -> None:
        backend = OpenAIBackend("qwen3:8b", OpenAIOptions(base_url=refusing.base_url))
        try:
            await backend.complete(Request([Message("user", "?")], constraint=JsonConstraint({"type": "object"})))
        finally:
            await backend.aclose()

    with pytest.raises(ServerFailedError):
        asyncio.run(ask())


def test_strict_play_is_refused_with_what_to_do(refusing: ModelServer, host: PluginHost) -> None:
    with pytest.raises(
        ConstraintError, match=r"not supported with this model.*Strict play was requested; use a model .* omit --strict"
    ) as caught:
        play("echo", "llm", agent_options={**OPTIONS, "strict": True}, steps=6, record=False, host=host)
    assert caught.value.exit_code == 8
    assert bound(refusing) == [True]


def test_strict_play_without_binding_makes_no_sense(refusing: ModelServer, host: PluginHost) -> None:
    options = {**OPTIONS, "strict": True, "constrain": "no"}
    with pytest.raises(ConstraintError, match="choose one"):
        play("echo", "llm", agent_options=options, steps=1, record=False, host=host)
    assert [request.path for request in refusing.requests] == ["/v1/models"]  # the model was not asked


def test_a_style_that_the_server_can_not_bind_is_told_before_anything_is_asked(
    refusing: ModelServer, host: PluginHost, caplog: pytest.LogCaptureFixture
) -> None:
    refusing.default = Say("<thinking>hm</thinking><wait/>")
    options = {**OPTIONS, "style": "tags"}
    summary = play("echo", "llm", agent_options=options, steps=3, record=False, host=host).to_json()
    assert summary["decisions"] == {
        "total": 3,
        "repaired": 0,
        "forced": 0,
        "unconstrained": 3,
        "cut": 0,
        "continued": 0,
    }
    assert not any(bound(refusing))
    told = [r.getMessage() for r in caplog.records if r.name == "wsap.llm"]
    assert [line.partition(".")[0] for line in told] == [
        "openai/qwen3:8b can't be constrained to legal actions in this style"
    ]


def test_who_does_not_want_replies_bound_is_told_nothing_and_sees_the_figure(
    refusing: ModelServer, host: PluginHost, caplog: pytest.LogCaptureFixture
) -> None:
    options = {**OPTIONS, "constrain": "no"}
    summary = play("echo", "llm", agent_options=options, steps=3, record=False, host=host).to_json()
    assert summary["decisions"]["unconstrained"] == 3
    assert not any(bound(refusing))
    assert not [r for r in caplog.records if r.name == "wsap.llm"]


def plan(steps: int) -> RunPlan:
    return RunPlan("echo", (SeatPlan("seat-1", "llm", OPTIONS),), steps=steps, snapshot_every=4)


def test_the_log_holds_the_refusal_and_each_decision_that_followed_it(
    refusing: ModelServer, host: PluginHost, database: str
) -> None:
    run = play("echo", "llm", agent_options=OPTIONS, steps=5, database=database, host=host).run
    with open_store(database) as store:
        refusals = [e.data for e in store.repository.read_events(str(run), kinds=("refusal",))]
        steps = [e.data for e in store.repository.read_events(str(run), kinds=("step",))]
    assert [sorted(r) for r in refusals] == [["key", "refused"]]
    assert NOT_WITH_THIS_MODEL.words in refusals[0]["refused"]
    assert [s["decision"]["unconstrained"] for s in steps] == [True] * 5


def test_a_run_with_a_refusal_is_played_again_without_asking_anybody(
    refusing: ModelServer, host: PluginHost, database: str
) -> None:
    first = play("echo", "llm", agent_options=OPTIONS, steps=5, database=database, host=host)
    asked = len(refusing.requests)
    with open_store(database) as store:
        again, past = replies_of(str(first.run), store)
        with start(again, host, store, past=past) as session:
            second = asyncio.run(session.play())
    assert len(refusing.requests) == asked
    assert second.trajectory_hash == first.trajectory_hash
    assert second.to_json()["decisions"] == first.to_json()["decisions"]


@pytest.mark.parametrize("stop", [1, 3, 4, 7])
def test_going_on_with_a_run_does_not_ask_for_the_refused_constraint_again(
    refusing: ModelServer, host: PluginHost, database: str, stop: int
) -> None:
    controls = Controls()
    seen: list[object] = []

    def observe(step: object) -> None:
        seen.append(step)
        if len(seen) == stop:
            controls.stop()

    with (
        open_store(database) as store,
        start(plan(10), host, store, controls=controls, observers=[observe]) as session,
    ):
        asyncio.run(session.play())
    summary = resume_run(database=database, host=host)
    assert summary.steps == 10
    assert summary.to_json()["decisions"]["unconstrained"] == 10
    assert bound(refusing) == [True] + [False] * 10


def test_at_the_command_line_it_is_said_once_on_the_standard_error_and_in_the_summary(
    refusing: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WSAP_HOME", str(tmp_path / "home"))
    words = ("play", "matrix", "--model", "openai/qwen3:8b", "--fill", "llm", "--agent-option", "plan=no")
    refusing.default = Say('I cooperate: {"action": "cooperate", "params": {}}')
    assert main([*words, "--steps", "4", "--no-record"]) == 0
    done = capsys.readouterr()
    lines = [line for line in done.err.splitlines() if "parsed leniently" in line]
    assert len(lines) == 1, "two seats have the same to say"
    assert NOT_WITH_THIS_MODEL.words.rstrip(".") in lines[0]
    assert "20 unconstrained" in done.out


def test_at_the_command_line_strict_play_ends_with_status_8(
    refusing: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WSAP_HOME", str(tmp_path / "home"))
    assert main(["play", "echo", "--model", "openai/qwen3:8b", "--strict", "--agent-option", "plan=no"]) == 8
    error = capsys.readouterr().err
    assert "Strict play was requested; use a model that supports constraints, or omit --strict." in error
    assert "Traceback" not in error


# --- OpenAI's own strict mode ----------------------------------------------------------------


def bound_by_openai(body: Any) -> Say:
    """Speaks as OpenAI's strict mode has it: in an object, with null for what is left out."""
    if "response_format" not in body:
        return answer(body)
    schema = body["response_format"]["json_schema"]["schema"]
    said = {"action": "speak", "params": {"text": "hello"}, "reasoning": "polite"}
    return Say(json.dumps({"reply": said} if "reply" in schema["properties"] else said))


@pytest.mark.parametrize("subset", [None, True])
def test_openais_own_models_are_bound_within_its_subset_of_json_schema(
    refusing: ModelServer, host: PluginHost, subset: bool | None
) -> None:
    refusing.models["qwen3:8b"] = Card(40960, strict=True)
    refusing.default = bound_by_openai
    more = {"server": "openai"} if subset is None else {"schema_subset": True}
    summary = played(refusing, host, more)
    assert summary["decisions"] == {"total": 4, "repaired": 0, "forced": 0, "unconstrained": 0, "cut": 0} | {
        name: value for name, value in summary["decisions"].items() if name == "continued"
    }
    formats = [r.body["response_format"]["json_schema"] for r in refusing.requests if r.body]
    assert [f["strict"] for f in formats] == [True] * 4


def test_with_the_subset_switched_off_openai_refuses_and_the_run_goes_on_unbound(
    refusing: ModelServer, host: PluginHost
) -> None:
    refusing.models["qwen3:8b"] = Card(40960, strict=True)
    refusing.default = bound_by_openai
    summary = played(refusing, host, {"server": "openai", "schema_subset": False})
    assert summary["decisions"]["unconstrained"] == 4
    assert bound(refusing) == [True] + [False] * 4


@pytest.mark.parametrize(
    ("url", "subset"),
    [
        ("https://api.openai.com/v1", True),
        ("https://eu.api.openai.com/v1", True),
        ("https://mine.openai.azure.com/openai/v1", True),
        ("https://api.openai.com.example/v1", False),
        ("https://notapi.openai.com/v1", False),
        ("http://127.0.0.1:8000/v1", False),
        ("https://openrouter.ai/api/v1", False),
    ],
)
def test_openais_subset_is_known_by_the_host(url: str, subset: bool) -> None:
    from wsap_llm.backends.openai.backend import OpenAIBackend
    from wsap_llm.backends.openai.options import OpenAIOptions

    assert OpenAIBackend("m", OpenAIOptions(base_url=url)).abilities.schema_subset is subset
    for switched in (True, False):
        options = OpenAIOptions(base_url=url, schema_subset=switched)
        assert OpenAIBackend("m", options).abilities.schema_subset is switched


@pytest.mark.parametrize(
    ("name", "more", "subset"),
    [
        ("openai/gpt-5", {}, True),
        ("gpt-5", {}, True),
        ("azure/mine", {}, True),
        ("anthropic/claude", {}, False),
        ("openai/qwen3:8b", {"api_base": "http://127.0.0.1:8000/v1"}, False),
        ("openai/gpt-5", {"api_base": "https://api.openai.com/v1"}, True),
        ("openrouter/openai/gpt-5", {}, False),
        ("openrouter/openai/gpt-5", {"schema_subset": True}, True),
        ("openai/gpt-5", {"schema_subset": False}, False),
    ],
)
def test_openais_subset_is_known_by_litellms_provider(name: str, more: dict[str, Any], subset: bool) -> None:
    from wsap_llm.backends.litellm import LiteLLMBackend, LiteLLMOptions

    assert LiteLLMBackend(name, LiteLLMOptions(**more)).abilities.schema_subset is subset


def played(server: ModelServer, host: PluginHost, more: dict[str, Any]) -> dict[str, Any]:
    """The summary of four steps with options of the backend."""
    models = ModelPool(host, options={"openai": {"base_url": server.base_url, **more}})

    async def main() -> dict[str, Any]:
        one = RunPlan("echo", (SeatPlan("seat-1", "llm", OPTIONS),), steps=4)
        async with models:
            return (await unrecorded(one, host, services=Services(models=models)).play()).to_json()

    return asyncio.run(main())


# --- replies that are cut off at their limit of tokens -----------------------------------------


def test_a_reply_that_is_cut_after_its_action_is_understood_and_counted(
    refusing: ModelServer, host: PluginHost
) -> None:
    refusing.models["qwen3:8b"] = Card(40960)
    refusing.default = Say('{"action": "speak", "params": {"text": "hi"}, "reasoning": "' + "because " * 100 + '"}')
    options = {**OPTIONS, "max_tokens": 30}
    run = play("echo", "llm", agent_options=options, steps=3, record=False, host=host).to_json()
    decisions = {name: run["decisions"][name] for name in ("repaired", "forced", "unconstrained", "cut")}
    assert decisions == {"repaired": 3, "forced": 0, "unconstrained": 0, "cut": 3}
    assert len(bound(refusing)) == 3, "what was understood is not asked for again"


def test_a_reply_that_is_cut_before_its_action_is_asked_for_again_and_counted(
    refusing: ModelServer, host: PluginHost
) -> None:
    refusing.models["qwen3:8b"] = Card(40960)
    refusing.say(Say("Well, " * 100), Say('{"action": "wait", "params": {}, "reasoning": ""}'))
    options = {**OPTIONS, "max_tokens": 30}
    run = play("echo", "llm", agent_options=options, steps=1, record=False, host=host).to_json()
    decisions = {name: run["decisions"][name] for name in ("repaired", "forced", "unconstrained", "cut")}
    assert decisions == {"repaired": 1, "forced": 0, "unconstrained": 0, "cut": 1}
    assert "cut off because it was too long" in refusing.last["messages"][-1]["content"]
