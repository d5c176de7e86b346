"""`litellm/<model>`: litellm, if installed, against a real local server."""

from __future__ import annotations

import asyncio
import base64
import importlib.util
import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from backend_suite import ErrorSuite
from llm_server import ModelServer, Say

from wsap_core.errors import ConfigError, MissingServiceError
from wsap_core.seams.constraints import CallConstraint, FunctionDef
from wsap_core.seams.context import Context
from wsap_core.seams.model import FunctionCall, ImagePart, JsonConstraint, Message, Reply, Request, Sampling, TextPart
from wsap_core.seams.model_errors import (
    AuthenticationError,
    BackendError,
    BadRequestError,
)
from wsap_llm.backends.litellm import LiteLLMBackend, LiteLLMOptions, create, listing

INSTALLED = importlib.util.find_spec("litellm") is not None
REQUEST = Request([Message("system", "Be brief."), Message("user", "Hello?")])

real = pytest.mark.skipif(not INSTALLED, reason="litellm is an extra: wsap-llm[litellm]")
absent = pytest.mark.skipif(INSTALLED, reason="litellm is installed here")
both = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
# Warnings of litellm and its libraries are ignored.
pytestmark = pytest.mark.filterwarnings("ignore")


def ask(place: str, request: Request = REQUEST, name: str = "openai/qwen3:8b", **more: Any) -> Reply:
    async def main() -> Reply:
        backend = LiteLLMBackend(name, LiteLLMOptions(api_base=place, **{"api_key": "sk-test", **more}))
        try:
            async with asyncio.timeout(60):
                return await backend.complete(request)
        finally:
            await backend.aclose()

    return asyncio.run(main())


@real
class TestLiteLLM(ErrorSuite):
    """The protocol and the errors of servers, with litellm and a server on this machine."""

    address = "litellm/openai/qwen3:8b"

    def backend(self, server: ModelServer, **more: Any) -> LiteLLMBackend:
        return self.backend_at(server.address, **more)

    def backend_at(self, place: str, **more: Any) -> LiteLLMBackend:
        return LiteLLMBackend("openai/qwen3:8b", LiteLLMOptions(api_base=f"{place}/v1", api_key="sk-test", **more))


@absent
def test_without_litellm_it_is_said_how_to_install_it() -> None:
    with pytest.raises(MissingServiceError, match=r"pip install .*wsap-llm\[litellm\]'"):
        create(Context.create(config={"model": "anthropic/claude"}))
    with pytest.raises(MissingServiceError, match=r"pip install .*wsap-llm\[litellm\]'"):
        ask("http://127.0.0.1:1/v1")
    assert "pip install" in asyncio.run(listing(Context.create())).reason


def test_wrong_options_are_refused_in_a_sentence() -> None:
    with pytest.raises(ConfigError, match="litellm/PROVIDER/MODEL"):
        create(Context.create(config={"model": ""}))
    with pytest.raises(ConfigError, match="Did you mean 'timeout'"):
        create(Context.create(config={"model": "m", "timeuot": 5}))


def test_nothing_of_litellm_is_imported_before_the_first_request() -> None:
    code = (
        "import sys, asyncio\n"
        "from wsap_core.seams.context import Context\n"
        "from wsap_llm.backends import litellm as ours\n"
        "ours.LiteLLMBackend('m').abilities; asyncio.run(ours.listing(Context.create()))\n"
        "print([m for m in ('litellm', 'openai', 'aiohttp') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout.strip() == "[]"


@real
@both
def test_a_reply_comes_back_with_its_usage_and_what_is_not_priced_stays_unknown(
    server: ModelServer, stream: bool
) -> None:
    server.say(Say("I wait. It is dark.", thinking="Hm."))
    reply = ask(server.base_url, stream=stream)
    assert (reply.text, reply.thinking, reply.finish.reason) == ("I wait. It is dark.", "Hm.", "stop")
    assert (reply.usage.calls, reply.usage.prompt_tokens, reply.usage.completion_tokens) == (1, 11, 6)
    assert reply.usage.cost is None


@real
@both
def test_a_call_of_a_function_comes_back_as_text(server: ModelServer, stream: bool) -> None:
    server.say(Say("East.", calls=[("look", {"where": "east"})]))
    look = FunctionDef("look", "Look", {"type": "object", "properties": {"where": {"type": "string"}}})
    before = Message("assistant", "", (FunctionCall("look", {"where": "west"}),))
    messages = (*REQUEST.messages, before, Message("user", "A wall."))
    reply = ask(server.base_url, Request(messages, constraint=CallConstraint([look])), stream=stream)
    assert (reply.text, reply.calls) == ("East.", (FunctionCall("look", {"where": "east"}),))
    assert server.last["tool_choice"] == "required"
    assert server.last["messages"][-1]["role"] == "tool"


@real
@both
def test_what_a_known_model_costs_is_told(server: ModelServer, stream: bool) -> None:
    server.models["gpt-4o-mini"] = server.models["qwen3:8b"]
    reply = ask(server.base_url, name="openai/gpt-4o-mini", stream=stream)
    # $0.15 and $0.60 per million tokens, as published by OpenAI.
    assert reply.usage.cost == pytest.approx((11 * 0.15 + 2 * 0.60) / 1e6)


@real
@both
def test_tokens_from_a_cache_cost_what_the_provider_takes_for_them(server: ModelServer, stream: bool) -> None:
    server.models["gpt-4o-mini"] = server.models["qwen3:8b"]
    server.say(Say(cached=8))
    reply = ask(server.base_url, name="openai/gpt-4o-mini", stream=stream)
    # $0.15, $0.075 from the cache, and $0.60 per million tokens, as published by OpenAI.
    assert reply.usage.cost == pytest.approx((3 * 0.15 + 8 * 0.075 + 2 * 0.60) / 1e6)


@real
def test_a_model_that_litellm_does_not_know_is_tried_with_a_schema() -> None:
    async def main() -> tuple[bool, bool]:
        found = []
        for name in ("openai/qwen3:8b", "openai/gpt-4"):  # litellm knows that the second takes none
            backend = LiteLLMBackend(name)
            await backend.prepare()
            found.append(backend.abilities.json_schema)
        return found[0], found[1]

    assert asyncio.run(main()) == (True, False)


@real
@pytest.mark.parametrize("provider", ["openai", "mistral"])
def test_a_redirect_is_refused_and_nothing_is_sent_there(server: ModelServer, provider: str) -> None:
    server.say(Say(status=307, headers={"Location": f"{server.address.replace('127.0.0.1', 'localhost')}/other"}))
    with pytest.raises(BadRequestError, match="redirects to another address"):
        ask(server.base_url, name=f"{provider}/qwen3:8b")
    assert not [r for r in server.requests if r.path == "/other"]


@real
def test_what_litellm_says_costs_nothing_is_of_unknown_cost() -> None:
    # litellm has 0 for local models, as for many without a price.
    backend = LiteLLMBackend("ollama/llama3")
    assert backend.cost_of(1000, 100) is None
    asyncio.run(backend.prepare())
    assert backend.cost_of(1000, 100) is None
    known = LiteLLMBackend("openai/gpt-4o-mini")
    asyncio.run(known.prepare())
    assert known.cost_of(10**6, 10**6) == pytest.approx(0.75)


@real
def test_constraint_and_sampling_are_sent(server: ModelServer) -> None:
    server.models["gpt-4o-mini"] = server.models["qwen3:8b"]
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    request = replace(REQUEST, constraint=JsonConstraint(schema), sampling=Sampling(50, 0.1, 0.5, seed=7))
    ask(server.base_url, request, "openai/gpt-4o-mini")
    assert server.last["response_format"]["json_schema"]["schema"] == schema
    sent = (server.last["temperature"], server.last["top_p"], server.last["seed"])
    assert sent == (0.1, 0.5, 7)
    assert 50 in (server.last.get("max_tokens"), server.last.get("max_completion_tokens"))


@real
@both
def test_pictures_are_sent_to_a_model_of_which_it_is_not_known_whether_it_sees(
    server: ModelServer, stream: bool
) -> None:
    picture = base64.b64encode(b"\x89PNG picture").decode()
    request = Request([Message("user", [TextPart("What is this? "), ImagePart(picture, alt="a cow")])])
    ask(server.base_url, request, "openai/llava:7b", stream=stream)
    text, image = server.last["messages"][0]["content"]
    assert text["text"] == "What is this? "
    assert image["image_url"]["url"] == f"data:image/png;base64,{picture}"
    ask(server.base_url, request, "openai/llava:7b", stream=stream, images=False)
    assert server.last["messages"][0]["content"] == "What is this? a cow"
    for status in (400, 500):
        server.say(Say(status=status, error="image input is not supported"))
        with pytest.raises(BadRequestError, match="litellm/openai/llava:7b does not accept images here"):
            ask(server.base_url, request, "openai/llava:7b", stream=stream)


@real
@both
def test_a_wrong_key_is_never_repeated(server: ModelServer, stream: bool) -> None:
    server.key = "sk-secret"
    with pytest.raises(AuthenticationError) as caught:
        ask(server.base_url, stream=stream, api_key="sk-wrong-one")
    assert "sk-wrong-one" not in str(caught.value)


@real
@pytest.mark.parametrize(("say", "stream"), [(Say("a b c", cut=0), False), (Say("a b c", cut=2), True)])
def test_a_connection_that_drops_in_mid_reply_can_be_tried_again(server: ModelServer, say: Say, stream: bool) -> None:
    server.say(say)
    with pytest.raises(BackendError) as caught:
        ask(server.base_url, stream=stream)
    assert caught.value.retryable
