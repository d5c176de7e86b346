"""Whose fault it is that there is no usable reply: told by status, in a body, in a stream or by a finish reason."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from llm_server import ModelServer, Say

from wsap_core.builtin.echo import EchoWorld
from wsap_core.seams.context import Context
from wsap_core.seams.model import Backend, JsonConstraint, Message, Reply, Request
from wsap_core.seams.model_errors import BadRequestError, RateLimitError, ServerFailedError
from wsap_llm.agent import LLMAgent, LLMOptions
from wsap_llm.backends.faults import CODES, FINISH, STATUSES, of_code, of_finish, of_status
from wsap_llm.backends.openai.backend import OpenAIBackend
from wsap_llm.backends.openai.options import OpenAIOptions
from wsap_llm.middleware import Model
from wsap_llm.middleware.retry import Retry

REQUEST = Request([Message("user", "Hello?")])
BOUND = replace(REQUEST, constraint=JsonConstraint({"type": "object"}))

both = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


class NoClock:
    """Does not wait."""

    def now(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        return None


def in_200(stream: bool, choice: dict[str, Any], **top: Any) -> Say:
    """Return an answer with status 200 that holds one choice."""
    body = json.dumps({"model": "m", "choices": [choice], **top}).encode()
    return Say(raw=b"data: " + body + b"\n\ndata: [DONE]\n\n" if stream else body)


def ending(stream: bool, reason: str, text: str = "", **more: Any) -> Say:
    return in_200(
        stream, {"index": 0, "delta" if stream else "message": {"content": text}, "finish_reason": reason, **more}
    )


def ask(server: ModelServer, says: Sequence[Say], request: Request = REQUEST, *, stream: bool = False) -> Reply:
    server.say(*says)

    async def main() -> Reply:
        backend = OpenAIBackend("qwen3:8b", OpenAIOptions(base_url=server.base_url, stream=stream))
        model: Backend = Model(backend, [Retry(clock=NoClock())])
        try:
            return await model.complete(request)
        finally:
            await backend.aclose()

    return asyncio.run(main())


def test_every_entry_of_the_table_says_whose_fault_it_is_and_where_that_is_written() -> None:
    for fault in (*FINISH.values(), *CODES.values(), *STATUSES.values()):
        assert fault.source.startswith("https://")
        assert fault.whose != "provider" or of_status(fault.status).whose == "provider"
    assert [name for name in (*FINISH, *CODES) if name != name.lower()] == []
    assert {of_status(status).whose for status in range(500, 600)} == {"provider"}
    assert of_finish("content_filter: RECITATION") == FINISH["content_filter"]
    assert of_finish("MALFORMED_FUNCTION_CALL") == FINISH["malformed_function_call"]
    assert of_finish("something new") is None
    assert of_code(500, "json_validate_failed", "") is None
    assert of_code(400, "", "It has 1301 tokens.") is None


@both
@pytest.mark.parametrize("reason", sorted(name for name, fault in FINISH.items() if fault.whose == "provider"))
def test_a_failure_of_the_provider_within_a_200_is_asked_again(server: ModelServer, stream: bool, reason: str) -> None:
    reply = ask(server, [ending(stream, reason), Say("I wait.")], stream=stream)
    assert reply.text == "I wait."
    assert len(server.requests) == 2


@both
@pytest.mark.parametrize(
    "error",
    [{"code": 502, "message": "Provider returned error"}, {"code": 429, "message": "Rate limited upstream"},
     {"code": "429", "message": "Rate limited upstream"}, {"message": "Upstream idle"}],
    ids=str,
)  # fmt: skip
def test_an_error_in_a_choice_is_asked_again(server: ModelServer, stream: bool, error: dict[str, Any]) -> None:
    reply = ask(server, [ending(stream, "error", error=error), Say("I wait.")], stream=stream)
    assert reply.text == "I wait."


@both
def test_an_error_in_a_choice_is_of_the_class_of_its_status(server: ModelServer, stream: bool) -> None:
    always = [ending(stream, "error", error={"code": 429, "message": "Slow down"})] * 5
    with pytest.raises(RateLimitError, match="Slow down"):
        ask(server, always, stream=stream)
    with pytest.raises(ServerFailedError, match="the reply ended with network_error"):
        ask(server, [ending(stream, "network_error")] * 5, stream=stream)


@both
@pytest.mark.parametrize(
    ("status", "words", "code", "reason"),
    [
        (400, "Failed to validate JSON. See 'failed_generation'.", "json_validate_failed", "invalid"),
        (400, "Failed to call a function.", "tool_use_failed", "invalid"),
        (400, "The response was filtered.", "content_filter", "content_filter"),
        (400, "Input data may contain inappropriate content.", "data_inspection_failed", "content_filter"),
        (400, "Content Exists Risk", "invalid_request_error", "content_filter"),
        (403, "Your input was flagged", None, "content_filter"),
        # With the seed of a decision, the same would come five times.
        (
            500,
            "The model produced output that does not match the expected peg-native format",
            "server_error",
            "invalid",
        ),
    ],
)
def test_a_reply_that_the_server_refuses_is_an_unusable_reply_of_the_model(
    server: ModelServer, stream: bool, status: int, words: str, code: str | None, reason: str
) -> None:
    reply = ask(server, [Say(status=status, error=words, code=code)], BOUND, stream=stream)
    assert (reply.text, reply.finish.reason) == ("", reason)
    assert (reply.usage.calls, reply.usage.prompt_tokens > 0) == (1, True)
    assert len(server.requests) == 1


@both
def test_what_the_model_had_written_comes_with_it(server: ModelServer, stream: bool) -> None:
    error = {"message": "Failed to call a function.", "code": "tool_use_failed", "failed_generation": '{"action": "wa'}
    raw = json.dumps({"error": error}).encode()
    reply = ask(server, [Say(raw=b"data: " + raw + b"\n\n" if stream else raw)], stream=stream)
    assert (reply.text, reply.finish.reason) == ('{"action": "wa', "invalid")


@both
def test_an_account_without_credit_is_not_asked_again(server: ModelServer, stream: bool) -> None:
    with pytest.raises(BadRequestError, match="no credit left"):
        ask(server, [Say(status=402, error="Add more credits.")], stream=stream)
    with pytest.raises(BadRequestError, match="no credit left"):
        ask(server, [ending(stream, "error", error={"code": 402, "message": "Add more credits."})], stream=stream)


def test_a_decision_that_the_server_refuses_twice_is_forced_with_that_cause(server: ModelServer) -> None:
    refused = Say(status=400, error="Failed to validate JSON.", code="json_validate_failed")
    server.say(refused, refused)

    async def main() -> LLMAgent:
        world = EchoWorld(Context.create(7))
        backend = OpenAIBackend("qwen3:8b", OpenAIOptions(base_url=server.base_url))
        agent = LLMAgent(backend, LLMOptions(plan=False))
        await agent.initialize(world.game_description, world.action_space)
        world.reset()
        await agent.decide(world.observe())
        await backend.aclose()
        return agent

    agent = asyncio.run(main())
    assert agent.last_decision is not None
    assert agent.last_decision.forced
    assert agent.last_decision.cause == "the server found that the model's reply breaks the form that was asked for"
    assert len(server.requests) == 2
