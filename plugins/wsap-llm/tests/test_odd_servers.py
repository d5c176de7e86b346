"""Servers that misbehave: the cause is reported, and the game continues if possible."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeVar

import pytest
from llm_server import ModelServer, Say

from wsap_core.protocol import ActionDef, ActionResult, ActionSpace, Observation
from wsap_core.seams.constraints import FunctionDef
from wsap_core.seams.context import Context
from wsap_core.seams.model import CallConstraint, FunctionCall, JsonConstraint, Message, Reply, Request, Sampling
from wsap_core.seams.model_errors import BadRequestError, ConstraintError, RateLimitError
from wsap_llm.agent import LLMAgent, LLMOptions
from wsap_llm.backends.openai.backend import OpenAIBackend
from wsap_llm.backends.openai.dialects import DIALECTS, request_body
from wsap_llm.backends.openai.options import OpenAIOptions
from wsap_llm.middleware import Model
from wsap_llm.middleware.measure import Measure, Meter
from wsap_llm.middleware.retry import Retry
from wsap_llm.options.llm import llm_options
from wsap_llm.scripted import ScriptedBackend

T = TypeVar("T")
REQUEST = Request([Message("system", "Be brief."), Message("user", "Hello?")])
WAIT = json.dumps({"action": "wait", "params": {}, "reasoning": "so"})
SPACE = ActionSpace([ActionDef("wait", "Stay"), ActionDef("go", "Go")])


def using(server: ModelServer, work: Callable[[OpenAIBackend, list[str]], Awaitable[T]], **options: Any) -> T:
    async def main() -> T:
        told: list[str] = []
        backend = OpenAIBackend("qwen3:8b", OpenAIOptions(base_url=server.base_url, **options), tell=told.append)
        try:
            async with asyncio.timeout(60):
                return await work(backend, told)
        finally:
            await backend.aclose()

    return asyncio.run(main())


def decide(
    server: ModelServer, *says: Say, own: dict[str, Any] | None = None, **options: Any
) -> tuple[LLMAgent, list[str]]:
    """Make one decision, and return the agent and the warnings."""
    server.say(*says)

    async def turn(backend: OpenAIBackend, told: list[str]) -> tuple[LLMAgent, list[str]]:
        agent = LLMAgent(backend, LLMOptions("Town", plan=False, **(own or {})), tell=told.append)
        await agent.initialize("A town.", SPACE)
        await agent.decide(Observation(step=1))
        await agent.reflect(ActionResult(True, observation=Observation(step=2)))
        return agent, told

    return using(server, turn, **options)


def raw(message: dict[str, Any], finish: str = "stop", usage: str = "null") -> Say:
    choice = json.dumps({"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish})
    return Say(raw=f'{{"choices":[{choice}],"usage":{usage}}}'.encode())


# --- constraints ------------------------------------------------------------------------------


def test_a_server_that_does_not_keep_to_its_schema_is_named_and_counted(server: ModelServer) -> None:
    agent, told = decide(server, Say("I think that I go."), Say(WAIT))
    assert agent.last_decision is not None
    assert (agent.last_decision.repaired, agent.last_decision.unconstrained) == (True, True)
    assert agent.last_decision.cause == "the server did not enforce the constraint of the request"
    (only,) = told
    assert only.startswith("openai/qwen3:8b: the server did not enforce the constraint")


def test_a_reply_in_another_form_is_understood_and_shows_that_the_server_binds_nothing(server: ModelServer) -> None:
    agent, told = decide(server, Say("```json\n" + WAIT + "\n```"))
    assert agent.last_decision is not None
    assert agent.last_decision.unconstrained
    assert len(told) == 1


def test_a_strict_game_refuses_a_server_that_does_not_keep_to_its_schema(server: ModelServer) -> None:
    with pytest.raises(ConstraintError, match=r"did not enforce the constraint .*strict play"):
        decide(server, Say("I think that I go."), own={"strict": True})


def test_a_server_that_keeps_to_it_is_not_accused(server: ModelServer) -> None:
    agent, told = decide(server, Say(WAIT))
    assert agent.last_decision is not None
    assert not agent.last_decision.unconstrained
    assert not told


# --- thinking ---------------------------------------------------------------------------------


def test_a_reply_spent_on_thinking_is_named_and_the_next_has_room_to_think(server: ModelServer) -> None:
    thinks = Say(WAIT, thinking="hm " * 400)
    agent, told = decide(server, thinks, thinks)
    assert [r.body["max_tokens"] for r in server.requests] == [300, 1324]
    assert agent.last_decision is not None
    assert not agent.last_decision.forced
    assert agent.last_decision.cause == "the model spent all 300 tokens of its reply on thinking"
    assert "think_tokens=N" in told[0]


def test_a_model_that_is_told_not_to_think_gets_no_room_for_it(server: ModelServer) -> None:
    decide(server, Say(WAIT, thinking="hm"), own={"thinking": False})
    assert server.last["chat_template_kwargs"] == {"enable_thinking": False}
    assert server.last["max_tokens"] == 300


# --- fields -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("temperature", "Unsupported value: 'temperature' does not support 0.7 with this model."),
        ("seed", "Unrecognized request argument supplied: seed"),
        ("top_p", "Extra inputs are not permitted: top_p"),
    ],
)
def test_a_field_that_a_server_refuses_is_left_out_and_told_once(server: ModelServer, field: str, words: str) -> None:
    server.say(Say(status=400, error=words))
    request = replace(REQUEST, sampling=Sampling(temperature=0.7 if field == "temperature" else None, seed=3))

    async def twice(backend: OpenAIBackend, told: list[str]) -> list[str]:
        assert [(await backend.complete(request)).text for _ in range(2)] == ["Hello there."] * 2
        return told

    (only,) = using(server, twice)
    assert f"refuses {field}" in only
    assert [field in r.body for r in server.requests] == [True, False, False]


@pytest.mark.parametrize("name", ["temperature", "top_p", "max_tokens"])
def test_a_field_can_be_left_out_from_the_start(server: ModelServer, name: str) -> None:
    sampling = llm_options(Context.create(config={name: "none"})).sampling
    using(server, lambda backend, told: backend.complete(replace(REQUEST, sampling=sampling)))
    assert {"temperature", "top_p", "max_tokens"} - server.last.keys() == {name}


def test_the_other_name_for_the_most_tokens_is_tried(server: ModelServer) -> None:
    server.say(Say(status=400, error="Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."))
    using(server, lambda backend, told: backend.complete(REQUEST))
    assert server.last["max_completion_tokens"] == 300
    assert "max_tokens" not in server.last


def test_a_server_without_system_messages_gets_them_from_the_user(server: ModelServer) -> None:
    server.say(Say(status=400, error="System role not supported"))
    using(server, lambda backend, told: backend.complete(REQUEST))
    assert server.last["messages"] == [{"role": "user", "content": "Be brief.\n\nHello?"}]


def test_a_field_is_left_out_once(server: ModelServer) -> None:
    server.default = Say(status=400, error="temperature is not supported")
    with pytest.raises(BadRequestError, match="temperature is not supported"):
        using(server, lambda backend, told: backend.complete(REQUEST))
    assert len(server.requests) == 2


def test_a_field_that_several_requests_at_once_were_refused_for_is_left_out_of_all_of_them(server: ModelServer) -> None:
    def answer(body: Any) -> Say:
        return Say(status=400, error="temperature is not supported") if "temperature" in body else Say("Hi.")

    server.default = answer

    async def several(backend: OpenAIBackend, told: list[str]) -> list[str]:
        replies = await asyncio.gather(*(backend.complete(REQUEST) for _ in range(5)))
        assert {reply.text for reply in replies} == {"Hi."}
        return told

    assert len(using(server, several)) == 1


def test_a_server_that_takes_a_schema_as_json_object_alone_is_sent_it_so(server: ModelServer) -> None:
    def answer(body: Any) -> Say:
        known = body["response_format"]["type"] == "json_object"
        words = "response_format: Input should be 'text' or 'json_object'"
        return Say(WAIT) if known else Say(status=422, error=words)

    server.default = answer
    agent, told = decide(server)
    assert server.last["response_format"]["schema"]["required"] == ["action", "params", "reasoning"]
    assert agent.last_decision is not None
    assert not agent.last_decision.unconstrained
    assert not told


@pytest.mark.parametrize(("counted", "told"), [(2048, True), (9000, False)])
def test_a_prompt_that_was_cut_in_silence_is_told_once(server: ModelServer, counted: int, told: bool) -> None:
    usage = json.dumps({"prompt_tokens": counted, "completion_tokens": 2})
    server.say(*[raw({"content": "Hello."}, usage=usage)] * 2)
    request = replace(REQUEST, messages=[Message("user", "word " * 12000)])
    said: list[str] = []

    async def twice(backend: OpenAIBackend, _: list[str]) -> None:
        model = Model(backend, [Measure(Meter(), "openai/it", said.append)])
        await model.complete(request)
        await model.complete(request)

    using(server, twice)
    assert [("counted 2048 tokens in a prompt of about 12" in line) for line in said] == [True] * told


def test_llama_cpp_gets_no_length_that_it_would_refuse() -> None:
    text = {"type": "string", "maxLength": 2000}
    schema = {"type": "object", "properties": {"maxLength": text, "short": {"type": "string", "maxLength": 400}}}
    request = replace(REQUEST, constraint=JsonConstraint(schema))
    body = request_body("qwen", request, DIALECTS["llama.cpp"], images=False, stream=False, options={})
    sent = body["response_format"]["schema"]["properties"]
    assert sent == {"maxLength": {"type": "string"}, "short": {"type": "string", "maxLength": 400}}


# --- shapes -----------------------------------------------------------------------------------


def test_a_reply_in_parts_is_read(server: ModelServer) -> None:
    server.say(
        raw(
            {
                "content": [
                    {"type": "thinking", "thinking": "Hm."},
                    *({"type": "text", "text": t} for t in ("Hel", "lo")),
                ]
            }
        )
    )
    reply = using(server, lambda backend, told: backend.complete(REQUEST))
    assert (reply.text, reply.thinking) == ("Hello", "Hm.")


@pytest.mark.parametrize(
    "message",
    [
        {"content": None, "tool_calls": [{"function": {"name": "go", "arguments": "{}"}}]},
        {"content": "", "tool_calls": [{"index": 0, "function": {"name": "go", "arguments": {}}}]},
        {
            "content": "",
            "tool_calls": [{"index": 0, "id": c, "function": {"name": "go", "arguments": "{}"}} for c in "ab"],
        },
        {"content": "", "tool_calls": [{"index": 0, "function": {"name": "go", "arguments": "{}"}}] * 2},
        {"content": None, "function_call": {"name": "go", "arguments": "{}"}},
        {"content": [{"type": "tool_use", "id": "toolu_1", "name": "go", "input": {}}]},
        {"content": "<|channel|>commentary to=functions.go <|constrain|>json<|message|>{}<|call|>"},
        {
            "content": "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant to=functions.go<|channel|>"
            "commentary json<|message|>{}<|call|>"
        },
        {"content": None, "reasoning_content": '{"action": "go", "params": {}}'},
        {"content": "", "reasoning": 'I could {"wait"}, but no.\n{"action": "go", "params": {}}'},
    ],
)
def test_a_reply_in_the_form_of_a_tool_call_is_an_action(server: ModelServer, message: dict[str, Any]) -> None:
    agent, _ = decide(server, raw(message, "tool_calls"))
    assert agent.last_decision is not None
    assert not agent.last_decision.forced
    assert len(server.requests) == 1


def test_a_refusal_is_no_action_whatever_it_says(server: ModelServer) -> None:
    refusal = raw({"content": None, "refusal": '{"action": "go", "params": {}}'})
    agent, _ = decide(server, refusal, refusal)
    assert agent.last_decision is not None
    assert agent.last_decision.forced
    assert agent.last_decision.cause.startswith("the model refused")


def test_thoughts_that_were_cut_off_or_say_no_more_than_thoughts_are_no_answer(server: ModelServer) -> None:
    for message, finish in (
        ({"content": None, "reasoning_content": '{"action": "go", "params": {}}'}, "length"),
        ({"content": None, "reasoning_content": 'Maybe {"action": "go", "params": {}} is wrong.'}, "stop"),
    ):
        server.say(raw(message, finish))
        reply = using(server, lambda backend, told: backend.complete(REQUEST))
        assert (reply.text, reply.thinking) == ("", message["reasoning_content"])


def test_calls_with_one_index_and_two_ids_are_two_calls(server: ModelServer) -> None:
    def call(number: str, **function: str) -> dict[str, Any]:
        return {"index": 0, "id": number, "function": function}

    two = [call("a", name="go", arguments="{}"), call("b", name="wait", arguments='{"n": 1}')]
    server.say(raw({"content": None, "tool_calls": two}, "tool_calls"))
    constraint = CallConstraint(
        [FunctionDef("go", "", {"type": "object"}), FunctionDef("wait", "", {"type": "object"})]
    )
    request = replace(REQUEST, constraint=constraint)
    reply = using(server, lambda backend, told: backend.complete(request))
    assert reply.calls == (FunctionCall("go", {}), FunctionCall("wait", {"n": 1}))


@pytest.mark.parametrize(
    ("say", "cause"),
    [
        (raw({"content": None, "refusal": "I can't help with that."}), "the model refused"),
        (raw({"content": ""}, "content_filter"), "the model refused, or a content filter stopped its reply"),
        (raw({"content": ""}), "the reply was empty"),
        (raw({"content": '{"action": "go", "pa'}, "length"), "the reply was cut off after"),
    ],
)
def test_why_a_decision_was_forced_is_named(server: ModelServer, say: Say, cause: str) -> None:
    agent, _ = decide(server, say, say)
    assert agent.last_decision is not None
    assert agent.last_decision.forced
    assert agent.last_decision.cause.startswith(cause)


@pytest.mark.parametrize(
    ("replies", "told"),
    [("llama-3.2-1b.gguf", True), ("folder/qwen3:8b@main", False), ("Qwen3:8B-2026-01-01", False), ("", False)],
)
def test_another_model_than_was_asked_for_is_told_once(server: ModelServer, replies: str, told: bool) -> None:
    choice = {"index": 0, "message": {"content": "Hello."}, "finish_reason": "stop"}
    server.default = Say(raw=json.dumps({"model": replies, "choices": [choice]}).encode())

    async def twice(backend: OpenAIBackend, said: list[str]) -> list[str]:
        assert [(await backend.complete(REQUEST)).text for _ in range(2)] == ["Hello."] * 2
        return said

    expected = [f"openai/qwen3:8b: the server replies with another model, {replies}."] if told else []
    assert using(server, twice) == expected


def test_what_the_server_calls_its_model_is_kept_with_the_reply(server: ModelServer) -> None:
    choice = {"index": 0, "message": {"content": "Hello."}, "finish_reason": "stop"}
    body = {"model": "qwen3:8b-2026", "system_fingerprint": "fp_44709d\x1b", "choices": [choice]}
    server.default = Say(raw=json.dumps(body).encode())

    async def served(backend: OpenAIBackend, told: list[str]) -> str:
        return (await backend.complete(REQUEST)).finish.served

    assert using(server, served) == "qwen3:8b-2026 fp_44709d"


def test_a_server_that_begins_to_refuse_its_constraint_in_mid_run_is_read_with_tolerance(server: ModelServer) -> None:
    server.say(Say(WAIT), Say(status=400, error="response_format is not supported any more"), Say(WAIT))

    async def turns(backend: OpenAIBackend, told: list[str]) -> tuple[list[bool], list[str]]:
        agent = LLMAgent(backend, LLMOptions("Town", plan=False), tell=told.append)
        await agent.initialize("A town.", SPACE)
        found = []
        for step in (1, 2):
            await agent.decide(Observation(step=step))
            await agent.reflect(ActionResult(True, observation=Observation(step=step)))
            assert agent.last_decision is not None
            found.append(agent.last_decision.unconstrained)
        return found, told

    found, (only,) = using(server, turns)
    assert found == [False, True]
    assert "response_format is not supported any more" in only


# --- usage ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "usage",
    [
        '{"prompt_tokens": -5, "completion_tokens": 3}',
        '{"prompt_tokens": NaN, "completion_tokens": 3}',
        '{"prompt_tokens": 9, "completion_tokens": 1e308}',
        '{"prompt_tokens": 9, "completion_tokens": 3, "cost": NaN}',
        '{"prompt_tokens": 9, "completion_tokens": 3, "cost": -1}',
        '{"prompt_tokens": 9, "completion_tokens": 3, "cost": 1e308}',
        '{"prompt_tokens": 9, "completion_tokens": 3, "cost": "free"}',
        '{"prompt_tokens": true, "completion_tokens": 3}',
    ],
)
def test_usage_that_can_not_be_is_estimated_and_told(server: ModelServer, usage: str) -> None:
    server.say(raw({"content": "Hello there."}, usage=usage))

    async def asked(backend: OpenAIBackend, told: list[str]) -> tuple[Reply, list[str]]:
        return await Model(backend, [Measure(Meter(), "openai/x", told.append)]).complete(REQUEST), told

    reply, told = using(server, asked)
    assert 0 < reply.usage.prompt_tokens < 100
    assert 0 < reply.usage.completion_tokens < 20
    assert reply.usage.cost is None
    assert "implausible usage" in told[0]


# --- waiting ----------------------------------------------------------------------------------


class Clock:
    """A clock that does not wait."""

    def now(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        pass


def test_a_long_wait_is_told_and_a_short_one_is_not() -> None:
    told: list[str] = []
    replies = [RateLimitError("busy", retry_after=1), RateLimitError("too busy.", retry_after=40), "At last."]
    meter = Meter()
    retry = Retry(clock=Clock(), generator=random.Random(1), tell=told.append, meter=meter)
    reply = asyncio.run(Model(ScriptedBackend(replies), [retry]).complete(REQUEST))
    assert reply.text == "At last."
    assert meter.retries == 1
    assert told == ["too busy. Waiting 40 s before attempt 3 of 5."]
