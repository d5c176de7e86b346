"""The style `choose` by a server that returns log-probabilities of prompts, over real HTTP."""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from llm_server import ModelServer

from wsap_core.errors import UnknownNameError
from wsap_core.protocol import ActionDef, ActionSpace, Observation
from wsap_core.seams.model import ChooseConstraint, Message, Reply, Request, Sampling
from wsap_core.seams.model_errors import ConstraintError, ServerFailedError
from wsap_llm.agent import LLMAgent, LLMOptions
from wsap_llm.backends.openai.backend import OpenAIBackend
from wsap_llm.backends.openai.options import OpenAIOptions
from wsap_llm.decision.choosing import ChooseStyle
from wsap_llm.decision.styles import JsonStyle

MESSAGES = (Message("system", "Play."), Message("user", "A cow <|im_end|> is east."))
CHATML = (
    "<|im_start|>system\nPlay.<|im_end|>\n<|im_start|>user\nA cow < |im_end|> is east.<|im_end|>\n"
    "<|im_start|>assistant\n"
)
OPTIONS = ("go west", "go east to the cow", "sleep")

Completion = dict[str, Any]  # Any: JSON


def split(text: str) -> list[str]:
    return re.findall(r"<\|\w+\|>| ?\w+|.|\n", text)


def chance(before: list[str], token: str) -> float:
    """A language model: the log-probability of a token after others."""
    return -0.25 * (1 + (sum(map(ord, token)) + 3 * len(before)) % 7)


def completion(body: Any, *, late: bool = False) -> Completion:
    """Respond like the servers of vLLM and llama-cpp-python; `late` like the latter for models without a start token:
    each token has the log-probability of the previous one."""
    given = split(body["prompt"])
    tokens = [*given, " one"]
    chances: list[float | None] = [chance(tokens[: n + late], token) for n, token in enumerate(tokens)]
    chances[-1] = chance(given, " one")
    first = 0 if body["echo"] else len(given)
    told = {"tokens": tokens[first:], "token_logprobs": [None, *chances[1:]][first:]}
    usage = {"prompt_tokens": len(given), "completion_tokens": 1}
    return {"choices": [{"text": "".join(tokens[first:]), "logprobs": told}], "usage": usage}


def without_echo(body: Any) -> Completion:
    return completion(body | {"echo": False})


def without_numbers(body: Any) -> Completion:
    return {"choices": [{"text": " one", "logprobs": None}], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}


def fused(body: Any) -> Completion:
    """Splits texts so that options with a "w" start within the prompt's last token."""
    found = completion(body)
    if "go w" in body["prompt"]:
        found["choices"][0]["logprobs"]["tokens"][-5] = "\ngo"
    return found


def using(server: ModelServer, work: Callable[[OpenAIBackend, list[str]], Any], choose: str | None = "chatml") -> Any:
    async def main() -> Any:
        told: list[str] = []
        backend = OpenAIBackend("m", OpenAIOptions(base_url=server.base_url, choose=choose), tell=told.append)
        try:
            await backend.prepare()
            await backend.prepare()
            return await work(backend, told)
        finally:
            await backend.aclose()

    return asyncio.run(main())


def asked(seed: int) -> Request:
    return Request(MESSAGES, constraint=ChooseConstraint(OPTIONS), sampling=Sampling(temperature=0.5, seed=seed))


def test_options_are_scored_by_the_mean_log_probability_of_their_tokens(server: ModelServer) -> None:
    server.complete = completion

    async def work(backend: OpenAIBackend, told: list[str]) -> tuple[list[Reply], list[str], bool]:
        return [await backend.complete(asked(seed)) for seed in (*range(40), 3)], told, backend.abilities.choose

    replies, told, able = using(server, work)
    assert able
    assert told == ["openai/m can choose (style choose)."]
    prompt, scores = split(CHATML), []
    for option in OPTIONS:
        tokens = split(CHATML + option)[len(prompt) :]
        scores.append(sum(chance([*prompt, *tokens[:n]], token) for n, token in enumerate(tokens)) / len(tokens))
    weights = [math.exp(score / 0.5) for score in scores]
    wanted = [weight / sum(weights) for weight in weights]
    assert replies[0].finish.probabilities == pytest.approx(wanted)
    assert replies[3] == replies[-1]
    assert len(Counter(reply.text for reply in replies)) == 3
    usage = replies[0].usage
    sizes = [len(prompt), *(len(split(CHATML + option)) for option in OPTIONS)]
    assert (usage.calls, usage.prompt_tokens, usage.completion_tokens) == (4, sum(sizes), 4)
    paths = Counter(request.path for request in server.requests)
    # Once it is asked what it has; the first three completions are the test for support.
    assert paths == {"/v1/models": 1, "/v1/completions": 3 + 41 * 4}


@pytest.mark.parametrize(
    ("complete", "words"),
    [
        (None, "the server returns no log-probabilities of prompts"),
        (without_numbers, "the server returns no log-probabilities of prompts"),
        (without_echo, "the server returns no log-probabilities of prompts"),
        (lambda body: completion(body, late=True), "of a token is"),
        (lambda body: {"choices": [{"logprobs": {}}]}, "no log-probabilities"),
    ],
)
def test_a_server_that_can_not_score_is_told_and_not_asked(server: ModelServer, complete: Any, words: str) -> None:
    server.complete = complete

    async def work(backend: OpenAIBackend, told: list[str]) -> None:
        assert not backend.abilities.choose
        [line] = told
        assert line.startswith("openai/m cannot choose: ")
        assert words in line
        with pytest.raises(ConstraintError):
            await backend.complete(asked(1))

    using(server, work)


def test_an_option_that_becomes_one_token_with_the_prompts_end_is_not_scored(server: ModelServer) -> None:
    server.complete = fused

    async def work(backend: OpenAIBackend, told: list[str]) -> None:
        with pytest.raises(ServerFailedError, match="can't be separated from those"):
            await backend.complete(asked(1))

    using(server, work)


def test_a_server_is_not_probed_unless_the_option_says_so(server: ModelServer) -> None:
    async def work(backend: OpenAIBackend, told: list[str]) -> None:
        assert not told
        assert {request.path for request in server.requests} == {"/v1/models"}
        assert not backend.abilities.choose

    using(server, work, choose=None)
    with pytest.raises(UnknownNameError, match="chatml"):
        OpenAIOptions(choose="chatm")


def test_an_agent_chooses_by_a_server(server: ModelServer) -> None:
    server.complete = completion

    async def work(backend: OpenAIBackend, told: list[str]) -> tuple[str, Any]:
        agent = LLMAgent(backend, LLMOptions("Town", profile="brief"), style=ChooseStyle(JsonStyle()))
        await agent.initialize("A town.", ActionSpace([ActionDef("wait", "Stay"), ActionDef("go", "Go")]))
        action = await agent.decide(Observation(step=1))
        return action.name, agent.last_decision

    name, decision = using(server, work)
    assert name in ("wait", "go")
    assert decision.chosen
    assert not decision.forced
    last = json.dumps(server.last["prompt"])
    assert last.endswith(('assistant\\nwait"', 'assistant\\ngo"'))
