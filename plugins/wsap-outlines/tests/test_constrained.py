"""Real worlds, both styles, a model that knows nothing: not one reply that can't be read.

The benchmark plays, thousands of decisions by itself; here it plays some dozens, or as many for each world and style
as `WSAP_CONSTRAINED_DECISIONS` says, and its reading of replies is shown to find faults.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from wsap_core.protocol import ActionDef, ParamDef
from wsap_core.seams.model import OnText, Reply, Request

pytest.importorskip("torch", reason="needs torch: `nox -s models` runs these")

DECISIONS = int(os.environ.get("WSAP_CONSTRAINED_DECISIONS", "30"))


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    path = Path(__file__).resolve().parents[3] / "benchmarks" / "bench_constrained.py"
    spec = importlib.util.spec_from_file_location("bench_constrained", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["bench_constrained"] = module  # its dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("style", ["json", "tags"])
@pytest.mark.parametrize("world", ["crafter", "matrix"])
def test_every_reply_of_a_model_that_knows_nothing_is_a_legal_action(
    bench: ModuleType, backend: Any, world: str, style: str
) -> None:
    tally = asyncio.run(bench.play(backend, world, style, DECISIONS, 11))
    assert tally.decisions == DECISIONS
    assert not tally.faults, tally.examples
    assert len(tally.actions) > 1
    assert tally.calls > 5 or style == "json"


@pytest.mark.parametrize("style", ["json", "tags"])
def test_the_same_holds_for_the_decisions_of_an_agent(bench: ModuleType, backend: Any, style: str) -> None:
    tally = asyncio.run(bench.play(backend, "matrix", style, 8, 11, bare=False))
    assert tally.decisions == 8
    assert not tally.faults, tally.examples


@pytest.mark.parametrize(
    ("text", "well"),
    [
        ("so</thinking>\n<wait/>", True),
        ("so</thinking><speak>hello</speak>", True),
        ("so <calculator>1 + 1</calculator>", True),
        ("so</thinking>", False),
        ("so", False),
        ("so</thinking><speak>hello</wait>", False),
        ("so</thinking><wait/> and more", False),
        ("so</thinking><wait/><wait/>", False),
        ("so </calculator>1<calculator>", False),
        ("so <b</thinking><wait/>", False),
    ],
)
def test_the_reading_of_legs_tells_good_ones_from_bad_ones(bench: ModuleType, text: str, well: bool) -> None:
    assert bench.well_formed(text) is well


LEGAL = (
    ActionDef("wait", "Do nothing."),
    ActionDef("give", "Give.", (ParamDef("count", "1-3"),)),
    ActionDef("speak", "Say it.", (ParamDef("text", "string"),)),
)


@pytest.mark.parametrize(
    ("style", "reply", "fault"),
    [
        ("json", '{"action": "wait", "params": {}, "reasoning": ""}', None),
        ("json", '{"action": "give", "params": {"count": 2}, "reasoning": ""}', None),
        ("json", '{"action": "wait", "params": {}, "reasoning": "', "unparsable"),
        ("json", '{"action": "dance", "params": {}, "reasoning": ""}', "outside the schema"),
        ("json", '{"action": "give", "params": {"count": 9}, "reasoning": ""}', "outside the schema"),
        ("json", '{"action": "give", "params": {}, "reasoning": ""}', "outside the schema"),
        ("tags", "so</thinking>\n<wait/>", None),
        ("tags", "so</thinking><speak>hello</speak>", None),
        ("tags", "so</thinking><dance/>", "not legal"),
        ("tags", "so</thinking><speak>hello</wait>", "malformed tag"),
        ("tags", "so</thinking><speak>hello", "malformed tag"),
        ("tags", "so</thinking><wait>", "malformed tag"),
        ("tags", "so<wait/>", "malformed tag"),
        ("tags", "so</thinking><wait/> and more", "malformed tag"),
        ("tags", "so <b</thinking><wait/>", "malformed tag"),
        ("tags", "so <check_will>a<check_will>", "malformed tag"),
        ("tags", "so</thinking><give>{</give>", "unparsable"),
    ],
)
def test_the_count_of_faults_finds_each_kind(bench: ModuleType, style: str, reply: str, fault: str | None) -> None:
    from wsap_llm.scripted import ScriptedBackend

    tally = bench.Tally()
    asyncio.run(bench.decide(ScriptedBackend([reply]), style, LEGAL, "You see a tree.", 0, tally))
    assert dict(tally.faults) == ({} if fault is None else {fault: 1})


def test_without_a_constraint_the_same_model_says_nothing_that_can_be_read(bench: ModuleType, backend: Any) -> None:
    class Unbound:
        model, abilities = backend.model, backend.abilities

        async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
            from dataclasses import replace

            sampling = replace(request.sampling, max_tokens=40)
            reply: Reply = await backend.complete(replace(request, constraint=None, sampling=sampling))
            return reply

        async def aclose(self) -> None: ...

    tally = asyncio.run(bench.play(Unbound(), "matrix", "json", 4, 1))
    assert tally.faults["unparsable"] == 4
