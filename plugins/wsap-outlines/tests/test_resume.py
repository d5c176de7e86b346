from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from wsap_core.protocol import ActionDef, ParamDef, Tool
from wsap_core.seams.model import Message, RegexConstraint, Request, Sampling
from wsap_llm.reply import ToolCall, Understood
from wsap_llm.reply.tags import OPENING, TagLimits, TagTurn, continue_text, read_leg
from wsap_outlines.models.cached import CachedModel, Cancelled
from wsap_outlines.prompts import Transcript
from wsap_outlines.testing import tiny_model

torch = pytest.importorskip("torch", reason="needs torch: `nox -s models` runs these")

TURN = TagTurn(
    (Tool("check_will", "Read a will.", (ParamDef("player", "string"),)),),
    (ActionDef("speak", "Say it.", (ParamDef("text", "string"),)), ActionDef("wait", "Say nothing.")),
    limits=TagLimits(thinking=40, argument=10, final=20),
)
MESSAGES = (Message("system", "You are Player 7."), Message("user", "Day 3. Player 4 claims to be the doctor."))
LEG = r"[^<]{0,40}<check_will>[^<]{1,10}</check_will>"


def fresh(model: Any, ids: list[int]) -> Any:
    """The logits after a sequence, computed in one go, without any cache."""
    with torch.inference_mode():
        return model(torch.tensor([ids]), use_cache=False).logits[0, -1]


@pytest.mark.parametrize("kind", ["llama", "qwen3", "mistral"])
def test_logits_with_a_kept_cache_are_those_without(tokenizer: Any, kind: str) -> None:
    model = tiny_model(tokenizer, kind)
    cached = CachedModel(model)
    torch.manual_seed(1)
    sequence = torch.randint(0, len(tokenizer), (1200,)).tolist()
    # Going on, going back a little, branching off, starting over, and what is there already.
    branch = [*sequence[:70], *sequence[300:360]]
    for ids in (sequence[:30], sequence[:90], sequence[:1200], sequence[:1190], branch, sequence[5:60], sequence[5:60]):
        reused = cached.rewind(ids)
        assert reused < len(ids)
        logits = cached.feed(ids[reused:])
        assert cached.ids == ids
        torch.testing.assert_close(logits, fresh(model, ids), rtol=1e-3, atol=1e-4)


def test_only_what_is_new_is_computed(model: Any) -> None:
    cached = CachedModel(model)
    ids = list(range(5, 205))
    assert cached.rewind(ids) == 0
    cached.feed(ids)
    assert cached.computed == 200
    longer = [*ids, 7, 8, 9]
    assert cached.rewind(longer) == 200
    cached.feed(longer[200:])
    assert cached.computed == 203


def test_what_was_computed_before_a_request_was_given_up_is_kept(model: Any) -> None:
    cached = CachedModel(model)
    ids = [i % 300 for i in range(1500)]
    answers = iter([True, False])
    cached.rewind(ids)
    with pytest.raises(Cancelled):
        cached.feed(ids, lambda: next(answers))
    assert 0 < len(cached.ids) < len(ids)
    kept = cached.rewind(ids)
    assert kept == len(cached.ids)
    torch.testing.assert_close(cached.feed(ids[kept:]), fresh(model, ids), rtol=1e-3, atol=1e-4)


def test_a_text_that_goes_on_keeps_its_tokens_whatever_the_tokenizer_would_join(tokenizer: Any) -> None:
    whole = "Player 3's will says: “N1 heal Player 5.”</observation>\nPlayer 4 is lying."
    for cut in range(1, len(whole)):
        transcript = Transcript()
        first = transcript.tokens(tokenizer, whole[:cut])
        second = transcript.tokens(tokenizer, whole)
        assert second[: len(first)] == first
        assert tokenizer.decode(second) == whole
    joined = tokenizer.encode(whole, add_special_tokens=False)
    assert any(
        joined[: len(part)] != part
        for part in (tokenizer.encode(whole[:cut], add_special_tokens=False) for cut in range(1, len(whole)))
    )


def test_another_text_is_tokenised_afresh(tokenizer: Any) -> None:
    transcript = Transcript()
    transcript.tokens(tokenizer, "<|start|>Player 3 says")
    other = "<|start|>Player 3's will"
    assert transcript.tokens(tokenizer, other) == tokenizer.encode(other, add_special_tokens=False)


def test_what_is_added_to_a_text_holds_no_tokens_of_the_template(tokenizer: Any) -> None:
    transcript = Transcript()
    first = transcript.tokens(tokenizer, "<|start|>")
    assert first == [tokenizer.convert_tokens_to_ids("<|start|>")]
    more = transcript.tokens(tokenizer, "<|start|>he says <|end|>")[1:]
    assert not set(more) & set(tokenizer.all_special_ids)
    assert tokenizer.decode(more) == "he says <|end|>"


def test_a_turn_with_tools_never_computes_its_beginning_twice(backend: Any) -> None:
    async def play() -> None:
        text, prompts, computed = OPENING, [], []
        for calls_left in (2, 1, 0):
            leg = LEG if calls_left else TURN.continuation_pattern(0)
            request = Request(MESSAGES, text, constraint=RegexConstraint(leg), sampling=Sampling(600, seed=calls_left))
            reply = await backend.complete(request)
            assert reply.finish.reason == "stop"
            reading, _ = read_leg(TURN, reply.text, inside_thinking=True, calls_left=calls_left)
            prompts.append(backend.work.prompt)
            computed.append(backend.work.prompt - backend.work.reused)
            if calls_left:
                assert isinstance(reading, Understood)
                assert isinstance(reading.choice, ToolCall)
                text = continue_text(text + reply.text, "N1 heal Player 5. N2 heal Player 1.")
        # What is new after a tool: its result, and the last tokens of the call, which nothing had followed yet.
        result = len(backend._generator.loaded.tokenizer.encode("\n<observation>N1 heal Player 5. N2 heal Player 1."))
        assert computed[0] == prompts[0]
        assert max(computed[1:]) <= result + 40
        assert prompts[2] > prompts[1] > prompts[0] + result
        await backend.aclose()

    asyncio.run(play())


def test_a_resumed_reply_is_the_one_that_a_fresh_model_gives(model: Any, tokenizer: Any) -> None:
    """The cache changes what a reply costs and nothing else: greedy, without a constraint."""
    from wsap_outlines.backend import OutlinesBackend
    from wsap_outlines.models.loading import adopt

    async def ask(requests: list[Request]) -> tuple[str, Any]:
        backend = OutlinesBackend("tiny", loader=lambda name, options: adopt(model, tokenizer, options))
        for request in requests:
            reply = await backend.complete(request)
        await backend.aclose()
        return reply.text, backend

    first = Request(MESSAGES, "<thinking>\n", sampling=Sampling(20, temperature=0, top_p=None))
    second = replace(first, prefill="<thinking>\n<observation>He lies.</observation>\n")
    resumed, _ = asyncio.run(ask([first, first, second]))
    alone, _ = asyncio.run(ask([second]))
    # Its prefill is tokenised where the first one's ended, which is a line's end in either case.
    assert resumed == alone
