from __future__ import annotations

import asyncio
import math
from collections import Counter
from typing import Any

import pytest

from wsap_core.seams.constraints import CallConstraint, FunctionDef
from wsap_core.seams.model import ChooseConstraint, Message, Request, Sampling
from wsap_core.seams.model_errors import BadRequestError, ConstraintError
from wsap_outlines.backend import OutlinesBackend
from wsap_outlines.choose import choose
from wsap_outlines.models.cached import CachedModel
from wsap_outlines.models.loading import adopt
from wsap_outlines.testing import tiny_model

torch = pytest.importorskip("torch", reason="needs torch: `nox -s models` runs these")

HELLO = (Message("system", "You are an agent."), Message("user", "What do you do?"))
OPTIONS = ("go west", "go west to the tree", "place a table", "go north to the water", "x")


def ask(backend: OutlinesBackend, *requests: Request) -> list[Any]:
    async def run() -> list[Any]:
        return [await backend.complete(request) for request in requests]

    return asyncio.run(run())


def choosing(options: tuple[str, ...] = OPTIONS, seed: int = 1, temperature: float = 0.7, **more: Any) -> Request:
    sampling = Sampling(temperature=temperature, seed=seed)
    return Request(more.pop("messages", HELLO), constraint=ChooseConstraint(options), sampling=sampling, **more)


def alone(model: Any, prompt: list[int], option: list[int]) -> float:
    """The mean log-probability of an option's tokens, from one plain pass over nothing but it and the prompt."""
    with torch.inference_mode():
        logits = model(torch.tensor([[*prompt, *option]]), use_cache=False).logits[0].double()
    found = torch.log_softmax(logits, -1)
    return sum(float(found[len(prompt) - 1 + i, token]) for i, token in enumerate(option)) / len(option)


@pytest.mark.parametrize("kind", ["llama", "qwen3", "mistral"])
@pytest.mark.parametrize("length", [1, 30, 700])
def test_each_option_has_the_probability_that_it_has_alone(tokenizer: Any, kind: str, length: int) -> None:
    model = tiny_model(tokenizer, kind)
    torch.manual_seed(length)
    prompt = torch.randint(0, len(tokenizer), (length,)).tolist()
    options = [tokenizer.encode(option, add_special_tokens=False) for option in OPTIONS]
    scores = [alone(model, prompt, option) for option in options]
    weights = [math.exp(score / 0.7) for score in scores]
    cached = CachedModel(model)
    for kept in ([], prompt[: length // 2], [*prompt, 5, 6]):
        cached.clear()
        if kept:
            cached.feed(kept)
        choice = choose(cached, prompt, options, temperature=0.7, seed=3)
        assert choice.probabilities == pytest.approx([weight / sum(weights) for weight in weights], rel=1e-3)
        assert choice.index == choose(CachedModel(model), prompt, options, temperature=0.7, seed=3).index
        # What is kept afterwards is the prompt, and right.
        assert cached.ids == prompt
        reused = cached.rewind([*prompt, 7, 8])
        assert kind == "mistral" or reused == length
        with torch.inference_mode():
            plain = model(torch.tensor([[*prompt, 7, 8]]), use_cache=False).logits[0, -1]
        torch.testing.assert_close(cached.feed([*prompt, 7, 8][reused:]), plain, rtol=1e-3, atol=1e-4)


def test_all_options_cost_one_pass_without_the_tokens_that_none_looks_at(tokenizer: Any) -> None:
    cached = CachedModel(tiny_model(tokenizer))
    choice = choose(cached, [5, 6, 7], [[10], [10, 11], [10, 11, 12], [20, 21]], temperature=1, seed=0)
    assert cached.computed == 3 + 3  # 10, 10-11 and 20 are looked back on
    assert choice.tokens == 5


def test_options_are_drawn_by_seed_as_often_as_is_probable(backend: Any) -> None:
    replies = ask(backend, *(choosing(seed=seed) for seed in range(400)), choosing(seed=7))
    assert replies[7] == replies[-1]
    chances = replies[0].finish.probabilities
    assert sum(chances) == pytest.approx(1)
    drawn = Counter(reply.text for reply in replies[:400])
    for option, chance in zip(OPTIONS, chances, strict=True):
        assert abs(drawn[option] - 400 * chance) <= 4 * math.sqrt(400 * chance * (1 - chance)) + 1


def test_the_best_option_is_taken_at_temperature_0(backend: Any) -> None:
    [warm, cold] = ask(backend, choosing(), choosing(temperature=0))
    chances = warm.finish.probabilities
    assert cold.text == OPTIONS[chances.index(max(chances))]
    assert sorted(cold.finish.probabilities) == [0, 0, 0, 0, 1]
    assert cold.finish.reason == "stop"


def test_a_prompt_with_the_same_beginning_costs_what_is_new(backend: Any) -> None:
    rules = Message("system", "You are an agent playing Crafter. " * 8)
    ask(backend, choosing(messages=(rules, Message("user", "There is a tree."))))
    ask(backend, choosing(messages=(rules, Message("user", "There is a cow."))))
    assert backend.work.prompt - backend.work.reused < 30 < backend.work.reused


def test_a_reply_that_opens_with_thinking_is_chosen_after_it(tokenizer: Any, model: Any) -> None:
    backend = OutlinesBackend("tiny", loader=lambda name, options: adopt(model, tokenizer, options))
    [reply] = ask(backend, Request(HELLO, thinking=True, constraint=ChooseConstraint(OPTIONS),
                                   sampling=Sampling(20, seed=4)))  # fmt: skip
    assert reply.text.strip() in OPTIONS
    assert reply.thinking
    assert len(reply.finish.probabilities) == len(OPTIONS)


def test_one_option_is_certain_and_none_or_an_empty_one_is_refused(backend: Any) -> None:
    [reply] = ask(backend, choosing(("wait",)))
    assert (reply.text, reply.finish.probabilities) == ("wait", (1.0,))
    for options in ((), ("wait", "")):
        with pytest.raises(BadRequestError, match="none of them empty"):
            ask(backend, choosing(options))
    with pytest.raises(ConstraintError, match="does not support"):
        ask(backend, Request(HELLO, constraint=CallConstraint((FunctionDef("wait", "", {}),))))


def test_what_the_model_is_stands_in_its_abilities_once_it_is_ready(backend: Any, model: Any) -> None:
    assert backend.abilities.choose
    assert backend.abilities.parameters is None
    asyncio.run(backend.prepare())
    assert backend.abilities.parameters == model.num_parameters()
    assert backend.abilities.context == 16_384
    assert backend.abilities.dtype == "float32"
