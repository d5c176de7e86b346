"""A model's context: learned from the server's list or from its refusals, and what is cut then."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from llm_server import Card, ModelServer, Say

from wsap_core.protocol import ActionDef, ActionSpace, Observation
from wsap_core.seams.model import Abilities, Request, Sampling
from wsap_core.seams.model_errors import ContextTooSmallError
from wsap_llm.agent import LLMAgent
from wsap_llm.backends.openai.backend import OpenAIBackend
from wsap_llm.backends.openai.options import OpenAIOptions
from wsap_llm.options.llm import LLMOptions
from wsap_llm.scripted import ScriptedBackend
from wsap_llm.text.tokens import estimate_request

SPACE = ActionSpace((ActionDef("wait", "Let time pass."),))
OPTIONS = LLMOptions("Town", plan=False, window=16, profile="full", sampling=Sampling(max_tokens=100))


def play(agent: LLMAgent, steps: int) -> None:
    async def to_the_end() -> None:
        await agent.initialize("A town.", SPACE)
        for step in range(steps):
            await agent.decide(Observation(step=step, status={"mood": f"calm{step} " * 20}))
            assert agent.last_decision is not None
            assert not agent.last_decision.forced

    asyncio.run(to_the_end())


def narrow(limit: int) -> ScriptedBackend:
    """A server that refuses what is larger than its context, which it does not tell."""

    def reply(request: Request) -> str:
        if estimate_request(request) + 100 > limit:
            raise ContextTooSmallError(f"the request exceeds the available context size of {limit} tokens")
        return '{"action": "wait"}'

    return ScriptedBackend(reply)


def test_old_turns_are_cut_until_the_server_accepts_the_prompt() -> None:
    told: list[str] = []
    backend = narrow(1500)
    play(LLMAgent(backend, OPTIONS, tell=told.append), 40)
    refused = [request for request in backend.requests if estimate_request(request) + 100 > 1500]
    assert 1 <= len(refused) <= 3  # what was refused once is not tried again
    assert len(backend.requests) == 40 + len(refused)
    assert all(request.shortens for request in refused)
    about_context = [text for text in told if "context" in text]
    assert len(about_context) == 1
    assert "too small for 16 steps of history" in about_context[0]


def test_a_prompt_that_is_refused_without_any_turn_ends_it_with_what_to_do() -> None:
    with pytest.raises(ContextTooSmallError, match=r"available context size.*profile=brief"):
        play(LLMAgent(narrow(200), OPTIONS), 1)


def test_what_was_refused_is_part_of_a_snapshot() -> None:
    agent = LLMAgent(narrow(1500), OPTIONS)
    play(agent, 60)
    backend = narrow(1500)
    again = LLMAgent(backend, OPTIONS)

    async def go_on() -> None:
        await again.initialize("A town.", SPACE)
        again.restore(agent.snapshot())
        for step in range(60, 90):
            await again.decide(Observation(step=step, status={"mood": f"calm{step} " * 20}))

    asyncio.run(go_on())
    assert len(backend.requests) == 30


@pytest.mark.parametrize(
    ("name", "option", "known"),
    [("qwen3:8b", None, 40960), ("qwen3:8b", 2000, 2000), ("of another name", None, None)],
)
def test_the_context_is_the_one_of_the_list_unless_an_option_says_otherwise(
    server: ModelServer, name: str, option: int | None, known: int | None
) -> None:
    assert abilities_of(server, name, option).context == known


def test_the_only_model_of_a_server_is_meant_by_any_name(server: ModelServer) -> None:
    server.models = {"/models/some-file.gguf": Card(2048)}
    assert abilities_of(server, "local", None).context == 2048


def test_a_server_without_a_list_is_used_all_the_same(server: ModelServer) -> None:
    server.key = "secret"  # refuses the list
    assert abilities_of(server, "qwen3:8b", None).context is None


def abilities_of(server: ModelServer, name: str, context: int | None) -> Abilities:
    async def learned() -> Abilities:
        backend = OpenAIBackend(name, OpenAIOptions(base_url=server.base_url, context=context))
        try:
            await asyncio.gather(backend.prepare(), backend.prepare())
            return backend.abilities
        finally:
            await backend.aclose()

    found = asyncio.run(learned())
    assert [request.path for request in server.requests] == ["/v1/models"]
    return found


def refusing(body: Any) -> Say:
    """Refuse prompts of more than 400 words as llama.cpp does."""
    count = sum(len(str(message["content"]).split()) for message in body["messages"])
    if count > 400:
        return Say(status=400, error=f"request ({count} tokens) exceeds the available context size (400 tokens)")
    return Say('{"action": "wait", "params": {}}')


def test_a_server_that_tells_its_context_by_refusing_is_played_with(server: ModelServer) -> None:
    server.default = refusing
    backend = OpenAIBackend("qwen3:8b", OpenAIOptions(base_url=server.base_url))

    async def to_the_end() -> None:
        agent = LLMAgent(backend, OPTIONS)
        await agent.initialize("A town.", SPACE)
        for step in range(20):
            await agent.decide(Observation(step=step, status={"mood": f"calm{step} " * 20}))
            assert agent.last_decision is not None
            assert not agent.last_decision.forced
        await backend.aclose()

    asyncio.run(to_the_end())
