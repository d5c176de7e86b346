"""The shortest way to the end of a reply, and replies that no limit of tokens cuts in their middle."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsap_core.protocol import ActionDef, ParamDef, Tool
from wsap_llm.kit import json_pattern
from wsap_llm.reply.schema import reply_schema
from wsap_llm.reply.tags import TagLimits, TagTurn
from wsap_outlines.guiding.closing import Closing

ACTIONS = (
    ActionDef("wait", ""),
    ActionDef("speak", "", [ParamDef("text", "words")]),
    ActionDef("vote", "", [ParamDef("player", "Anna|Bert"), ParamDef("weight", "-20-300"), ParamDef("why", "words")]),
)
TOOLS = (Tool("check_will", "", [ParamDef("player", "a name")]),)
TURN = TagTurn(TOOLS, ACTIONS, limits=TagLimits(thinking=30, argument=8, final=12))
PATTERNS = [
    r"a{2,5}(?:b|cd)?",
    r"(?:x[0-9]{2})+\.",
    r"[^<]{0,9}é",
    TURN.pattern(),
    TURN.continuation_pattern(0),
    json_pattern(reply_schema(ACTIONS, TOOLS, reasoning_limit=20, text_limit=9)),
]


def drawn(pattern: str) -> Any:
    return st.from_regex(re.compile(rf"\A(?:{pattern})\Z"), fullmatch=True)


@settings(deadline=None)
@given(st.sampled_from(PATTERNS).flatmap(lambda p: st.tuples(st.just(p), drawn(p), st.integers(0, 200))))
@pytest.mark.slow
def test_from_anywhere_in_a_reply_the_shortest_way_leads_to_a_whole_one(found: tuple[str, str, int]) -> None:
    pattern, whole, cut = found
    closing = Closing(pattern)
    states = closing.step(closing.start(), whole[:cut])
    ending = closing.shortest(states)
    assert re.fullmatch(pattern, whole[:cut] + ending)
    assert closing.left(states) == len(ending.encode()) <= len(whole[cut:].encode())


@pytest.mark.parametrize(
    ("pattern", "said", "shortest"),
    [
        (r"a{2,5}(?:b|cd)?", "", "aa"),
        (r"a{2,5}(?:b|cd)?", "aaac", "d"),
        (r'"(?:[^"\\<]|\\["n]){0,300}"\}', '"I think', '"}'),
        (r'"(?:[^"\\<]|\\["n]){0,300}"\}', '"I think \\', '""}'),
        (r"[^<]{0,600}</thinking>(?:<wait/>|<go>(?:north|up)</go>)", "so", "</thinking><wait/>"),
        (r"[^<]{0,600}</thinking>(?:<wait/>|<go>(?:north|up)</go>)", "so</thinking><g", "o>up</go>"),
    ],
)
def test_the_shortest_way_is_the_one_a_person_would_take(pattern: str, said: str, shortest: str) -> None:
    closing = Closing(pattern)
    assert closing.shortest(closing.step(closing.start(), said)) == shortest


def test_a_text_that_does_not_fit_leads_nowhere() -> None:
    closing = Closing("ab")
    assert closing.step(closing.start(), "x") == frozenset()


# --- with a model ----------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["llguidance", "outlines-core"])
@pytest.mark.parametrize("most", [70, 100, 300])
@pytest.mark.parametrize("style", ["json", "tags"])
def test_no_limit_of_tokens_cuts_a_bound_reply(model: Any, tokenizer: Any, style: str, most: int, engine: Any) -> None:
    from wsap_core.seams.model import Message, RegexConstraint, Request, Sampling
    from wsap_outlines.backend import OutlinesBackend
    from wsap_outlines.models.loading import adopt
    from wsap_outlines.options import Options

    roomy = TagTurn(TOOLS, ACTIONS, limits=TagLimits(thinking=600, argument=120, final=400))
    small = TagTurn(TOOLS, ACTIONS, limits=TagLimits(thinking=90, argument=8, final=20))
    # outlines-core works out every state beforehand, so its expressions are kept small.
    turn, limit = (roomy, 300) if engine == "llguidance" else (small, 60)
    pattern = (
        turn.pattern()
        if style == "tags"
        else json_pattern(reply_schema(ACTIONS, reasoning_limit=limit, text_limit=limit))
    )
    backend = OutlinesBackend(
        "tiny", Options(engine=engine), loader=lambda _, options: adopt(model, tokenizer, options)
    )

    async def replies() -> list[Any]:
        constraint = RegexConstraint(pattern)
        found = []
        for seed in range(6 if engine == "llguidance" else 3):
            sampling = Sampling(most, temperature=1.0, top_p=None, seed=seed)
            request = Request([Message("user", f"Go {seed}.")], constraint=constraint, sampling=sampling)
            found.append(await backend.complete(request))
        await backend.aclose()
        return found

    found = asyncio.run(replies())
    for reply in found:
        assert re.fullmatch(pattern, reply.text), reply.text
        assert reply.finish.reason == "stop"
        assert reply.usage.completion_tokens <= most
    if most < 100:
        assert any(reply.usage.completion_tokens > most // 2 for reply in found), "the limit never mattered"
