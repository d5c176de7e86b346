"""The backend `openai` on llama.cpp's own HTTP server, which the package xllamacpp contains, with the tiny model."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from gguf_kit import write

from wsap_core import PluginHost
from wsap_core.protocol import ActionDef, ActionSpace, Observation, ParamDef, Tool
from wsap_core.seams.agent import DecisionInfo
from wsap_core.seams.model import (
    Abilities,
    Draft,
    JsonConstraint,
    Message,
    OnText,
    RegexConstraint,
    Reply,
    Request,
    Sampling,
)
from wsap_core.seams.services import Services
from wsap_llm.agent import LLMAgent
from wsap_llm.backends.pool import ModelPool, RequestPolicy
from wsap_llm.decision.styles import TagStyle
from wsap_llm.middleware import Ask, Middleware, Model
from wsap_llm.options.llm import LLMOptions
from wsap_llm.reply.tags import TagLimits, TagTurn
from wsap_llm.tools.calculator import Calculator
from wsap_nexus.api import play, read_run
from wsap_nexus.runs.play.observers import StepTaken
from wsap_outlines.testing import tiny_tokenizer

SERVE = """
import sys, time
import xllamacpp
options = xllamacpp.CommonParams()
options.model.path, options.hostnames, options.port = sys.argv[1], ["127.0.0.1"], int(sys.argv[2])
options.n_ctx, options.n_parallel, options.cpuparams.n_threads = int(sys.argv[3]), int(sys.argv[4]), 1
options.use_jinja, options.warmup, options.prefill_assistant = True, False, "whole-turns" not in sys.argv
server = xllamacpp.Server(options)
print(server.listening_address, flush=True)
sys.stdin.read()
"""

OPENED = (
    "{% for m in messages %}<|start|>{{ m['role'] }}\n{{ m['content'] }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant\n<think>\n"
    "{% if enable_thinking is defined and not enable_thinking %}\n</think>\n\n{% endif %}{% endif %}"
)
"""The chat template of a model whose replies begin with its thoughts."""


class Served(NamedTuple):
    """A running server."""

    address: str
    kill: Callable[[], None]
    """Ends it at once, as a crash does."""


@contextmanager
def running(file: Path, *options: str, context: int, slots: int, port: int = 0) -> Iterator[Served]:
    """Give a server with this context for each of its slots."""
    words = [sys.executable, "-c", SERVE, str(file), str(port), str(context * slots), str(slots), *options]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:

        def kill() -> None:
            process.kill()
            process.wait()

        try:
            assert process.stdout is not None
            yield Served(f"{process.stdout.readline().strip()}/v1", kill)
        finally:
            process.kill()


@contextmanager
def serving(file: Path, *options: str, context: int, slots: int, port: int = 0) -> Iterator[str]:
    """Give the address of such a server."""
    with running(file, *options, context=context, slots=slots, port=port) as server:
        yield server.address


def port_of(address: str) -> int:
    return int(address.rpartition(":")[2].removesuffix("/v1"))


@pytest.fixture(scope="module")
def file(model: Any, tokenizer: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("xllamacpp", reason="needs xllamacpp: `nox -s models` runs these")
    return write(tmp_path_factory.mktemp("model") / "tiny.gguf", model, tokenizer)


@pytest.fixture(scope="module")
def address(file: Path) -> Iterator[str]:
    """A server with a context of 2,048 tokens for each of two slots."""
    with serving(file, context=2048, slots=2) as found:
        yield found


def pool(address: str, tell: Callable[[str], None] = print, **options: Any) -> ModelPool:
    options = {"openai": {"base_url": address, "server": "llama.cpp", **options}}
    return ModelPool(PluginHost.discovered(), options=options, services=Services(progress=tell))


def test_context_size_and_slots_are_the_ones_that_the_server_tells(address: str, model: Any) -> None:
    async def main() -> tuple[Abilities, Any]:
        async with pool(address) as models:
            found = await models.ready("openai/any")
            return found.abilities, found.backend

    abilities, backend = asyncio.run(main())
    assert abilities.context == 2048
    assert abilities.parameters == sum(each.numel() for each in model.parameters())
    assert backend.most_in_flight == 2


def test_a_server_is_sent_as_many_requests_as_it_has_slots(address: str) -> None:
    told: list[str] = []
    request = Request((Message("user", "Say something."),), sampling=Sampling(max_tokens=40))

    async def main() -> int:
        async with pool(address, told.append) as models:
            backend = await models.ready("openai/any")
            replies = await asyncio.gather(*(backend.complete(request) for _ in range(8)))
            return len([reply for reply in replies if reply.usage.completion_tokens])

    assert asyncio.run(main()) == 8
    assert len(told) == 1
    assert told[0].startswith(f"{address} is sent 2 requests at a time")


@pytest.mark.parametrize("option", [{}, {"context": 100_000}], ids=["told by the list", "told by a refusal"])
def test_history_is_cut_to_the_context_of_the_server(address: str, option: dict[str, int]) -> None:
    told: list[str] = []
    space = ActionSpace((ActionDef("wait", "Let time pass."), ActionDef("look", "Look around.")))
    options = LLMOptions("Town", plan=False, window=30, sampling=Sampling(max_tokens=60))

    async def main() -> None:
        async with pool(address, told.append, **option) as models:
            backend = await models.ready("openai/any")
            agent = LLMAgent(backend, options, tell=told.append)
            await agent.initialize("A town.", space)
            for step in range(12):
                # Raises if the prompt does not fit; what the tiny model writes may be cut, or no JSON at all.
                await agent.decide(Observation(step=step, status={"mood": f"calm and quiet {step} " * 36}))

    asyncio.run(main())
    assert [text for text in told if "too small for 30 steps of history" in text]


def test_a_schema_binds_what_the_model_writes(address: str) -> None:
    schema = {"type": "object", "properties": {"pick": {"enum": ["red", "blue"]}}, "required": ["pick"]}
    constraint, asked = JsonConstraint(schema), (Message("user", "Pick one."),)

    async def main() -> list[Reply]:
        async with pool(address) as models:
            model = await models.ready("openai/any")
            seeds = (Sampling(max_tokens=100, seed=seed) for seed in range(8))
            return [await model.complete(Request(asked, constraint=constraint, sampling=each)) for each in seeds]

    picked = [json.loads(reply.text) for reply in asyncio.run(main()) if not reply.truncated]
    assert picked
    assert all(each in ({"pick": "red"}, {"pick": "blue"}) for each in picked)


def test_streamed_replies_one_after_the_other_need_no_second_attempt(address: str) -> None:
    request = Request((Message("user", "Say something."),), sampling=Sampling(max_tokens=5))

    async def main() -> list[str]:
        options = {"openai": {"base_url": address, "server": "llama.cpp", "stream": True}}
        async with ModelPool(PluginHost.discovered(), options=options, policy=RequestPolicy(attempts=1)) as models:
            model = await models.ready("openai/any")
            return [(await model.complete(request)).text for _ in range(8)]

    assert len(asyncio.run(main())) == 8


TURN = TagTurn(
    [Tool("sum", "Adds.", (ParamDef("terms", "string"),)), Tool("now", "Tells the time.")],
    [
        ActionDef("wait", "Let time pass."),
        ActionDef("say", "Speak.", (ParamDef("text", "string"),)),
        ActionDef("go", "Walk.", (ParamDef("x", "integer"), ParamDef("far", "boolean"))),
    ],
    limits=TagLimits(thinking=20, argument=8, final=8),
)


@pytest.mark.parametrize(
    "pattern",
    [
        TURN.pattern(2),
        TURN.continuation_pattern(0),
        r"(?:a|b[^c-e\\\]\-\"]{1,3}){2,4}\n?",
        "[а-яё]{3}[.]",
        "(?:(?:x|yz)?w)+!",
    ],
)
def test_an_expression_binds_what_the_model_writes(address: str, pattern: str) -> None:
    constraint = RegexConstraint(pattern)

    async def main() -> list[Reply]:
        async with pool(address, print, concurrency=2) as models:
            model = await models.ready("openai/any")
            return [
                await model.complete(
                    Request(
                        (Message("user", "Go."),),
                        constraint=constraint,
                        sampling=Sampling(max_tokens=200, temperature=1.5, seed=seed),
                    )
                )
                for seed in range(24)
            ]

    replies = asyncio.run(main())
    # The model writes single bytes, too: a part of a character counts as one in the grammar, and is shown as several.
    told = [reply.text for reply in replies if not reply.truncated and "\ufffd" not in reply.text]
    assert len(told) > 3
    assert [text for text in told if not re.fullmatch(pattern, text)] == []


def turn_with_a_tool(
    address: str, tell: Callable[[str], None] = print, **options: Any
) -> tuple[DecisionInfo, list[Request]]:
    """Return a decision with a tool and its requests: the grammar makes the model call the tool while it may, and end
    its turn when it may not."""
    asked: list[Request] = []

    async def main() -> DecisionInfo | None:
        async with pool(address, tell, **options) as models:
            ready = await models.ready("openai/any")

            class Noted(Middleware):
                async def __call__(self, request: Request, on_text: OnText | None, ask: Ask) -> Reply:
                    asked.append(request)
                    return await ask(request, on_text)

            style = TagStyle(TagLimits(thinking=12, argument=8, final=8, calls=1))
            game = LLMOptions("Town", plan=False, sampling=Sampling(max_tokens=400))
            for _ in range(40):
                agent = LLMAgent(Model(ready, [Noted()]), game, style=style, tools=[Calculator()])
                await agent.initialize("A town.", ActionSpace((ActionDef("wait", "Let time pass."),)))
                asked.clear()
                assert (await agent.decide(Observation())).name == "wait"
                decision = agent.last_decision
                assert decision is not None
                # The tiny model may write so long a text that it is cut and asked again, or half a character, which no
                # pattern allows.
                if decision.resumption is not None and not (decision.repaired or decision.unconstrained):
                    return decision
            return None

    decision = asyncio.run(main())
    assert decision is not None
    return decision, asked


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_turn_goes_on_after_a_tool(address: str, stream: bool) -> None:
    decision, (first, second) = turn_with_a_tool(address, stream=stream)
    assert second.prefill.startswith(first.prefill)
    assert second.prefill.count("<thinking>") == 1
    assert second.prefill.count("</calculator>") == 1
    assert decision.resumption == "prefill"


def test_a_reply_that_the_server_refuses_to_continue_is_asked_for_in_a_turn_of_its_own(address: str) -> None:
    told: list[str] = []
    spoken = (Message("user", "Go."), Message("assistant", "I went."))

    async def main() -> list[Reply]:
        async with pool(address, told.append) as models:
            model = await models.ready("openai/any")
            request = Request(spoken, prefill="It is", sampling=Sampling(max_tokens=20, seed=1))
            return [await model.complete(request) for _ in range(2)]

    replies = asyncio.run(main())
    assert all(reply.usage.completion_tokens for reply in replies)
    assert told == [
        "openai/any: the server refuses prefill, which is left out from now on; a message asks the model to go on."
    ]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_turn_of_a_model_that_thinks_goes_on_after_a_tool(
    model: Any, tmp_path_factory: pytest.TempPathFactory, stream: bool
) -> None:
    tokenizer = tiny_tokenizer(template=OPENED)
    thinker = write(tmp_path_factory.mktemp("thinker") / "tiny.gguf", model, tokenizer)
    with serving(thinker, context=2048, slots=1) as address:
        decision, (_, second) = turn_with_a_tool(address, stream=stream)
    assert decision.resumption == "prefill"
    assert second.prefill.count("<thinking>") == 1


def test_a_server_that_is_restarted_in_the_middle_is_waited_for(file: Path) -> None:
    told: list[str] = []
    request = Request((Message("user", "Say something."),), sampling=Sampling(max_tokens=8))

    async def main() -> None:
        heard = asyncio.Event()

        def hear(text: str) -> None:
            told.append(text)
            heard.set()

        with serving(file, context=1024, slots=1) as first:
            models = pool(first, hear)
            backend = await models.ready("openai/any")
            await backend.complete(request)
        asked = asyncio.create_task(backend.complete(request))
        await heard.wait()
        with serving(file, context=1024, slots=1, port=port_of(first)):
            await asked
        await models.aclose()

    asyncio.run(main())
    assert "it may be restarting" in told[0]


def test_a_run_goes_on_when_its_server_crashes_and_comes_back(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WSAP_HOME", str(tmp_path))
    monkeypatch.delenv("WSAP_DATABASE", raising=False)
    with ExitStack() as stack:
        first = stack.enter_context(running(file, context=2048, slots=1))
        options = {"model.base_url": first.address, "model.server": "llama.cpp", "max_tokens": 100}
        taken: list[StepTaken] = []

        def crash(step: StepTaken) -> None:
            taken.append(step)
            if len(taken) == 2:
                first.kill()
                stack.enter_context(running(file, context=2048, slots=1, port=port_of(first.address)))

        summary = play("echo", "openai/any", steps=4, agent_options=options, observers=[crash])
    assert summary.steps == 4
    assert summary.run is not None
    recorded = read_run(summary.run)
    assert len(recorded.steps) == 4


def test_a_reply_that_a_crash_breaks_off_is_withdrawn_and_asked_for_again(file: Path) -> None:
    shown: list[Draft] = []
    # So long that no reply is through before its beginning has been seen.
    request = Request(
        (Message("user", "Go."),), constraint=RegexConstraint("[a-z]{400}"), sampling=Sampling(max_tokens=1500)
    )

    async def main() -> Reply:
        with ExitStack() as stack:
            first = stack.enter_context(running(file, context=2048, slots=1))

            def show(draft: Draft) -> None:
                shown.append(draft)
                if len([each for each in shown if each.text]) == 1 and draft.text:
                    first.kill()
                    stack.enter_context(running(file, context=2048, slots=1, port=port_of(first.address)))

            async with pool(first.address, stream=True, gather=0) as models:
                return await (await models.ready("openai/any")).complete(request, show)

    reply = asyncio.run(main())
    assert re.fullmatch("[a-z]{400}", reply.text)
    begun = next(number for number, draft in enumerate(shown) if draft.text)
    assert len(shown[begun].text) < 400
    assert any(not draft.text for draft in shown[begun:]), "what was shown of the lost reply is withdrawn"


def test_drafts_of_a_streamed_reply_grow_to_the_whole_reply(address: str) -> None:
    shown: list[str] = []
    request = Request((Message("user", "Say something."),), sampling=Sampling(max_tokens=30))

    async def main() -> Reply:
        async with pool(address, stream=True, gather=0) as models:
            model = await models.ready("openai/any")
            return await model.complete(request, lambda draft: shown.append(draft.text))

    reply = asyncio.run(main())
    texts = [text for text in shown if text]
    assert len(texts) > 1
    assert all(later.startswith(earlier) for earlier, later in pairwise(texts))
    assert texts[-1] == reply.text


def test_a_schema_with_longer_texts_than_the_server_takes_binds_all_the_same(address: str) -> None:
    schema = {
        "type": "object",
        "properties": {"pick": {"enum": ["red"]}, "why": {"type": "string", "maxLength": 100_000}},
        "required": ["pick", "why"],
        "additionalProperties": False,
    }
    constraint, asked = JsonConstraint(schema), (Message("user", "Pick one."),)

    async def main() -> list[str]:
        async with pool(address) as models:
            model = await models.ready("openai/any")
            seeds = (Sampling(max_tokens=100, seed=seed) for seed in range(8))
            replies = [await model.complete(Request(asked, constraint=constraint, sampling=each)) for each in seeds]
            # The server itself refuses a reply that ends within a character.
            return [reply.text for reply in replies if reply.finish.reason != "invalid"]

    texts = asyncio.run(main())
    assert texts
    assert [text for text in texts if not re.match(r'\{\s*"pick"\s*:\s*"red"', text)] == []
