"""The backend `openai` on llama.cpp's own HTTP server, which the package xllamacpp contains, with the tiny model."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from gguf_kit import write

from wsap_core import PluginHost
from wsap_core.protocol import ActionDef, ActionSpace, Observation
from wsap_core.seams.model import Abilities, JsonConstraint, Message, Request, Sampling
from wsap_core.seams.services import Services
from wsap_llm.agent import LLMAgent
from wsap_llm.backends.pool import ModelPool
from wsap_llm.options import LLMOptions

SERVE = """
import sys, time
import xllamacpp
options = xllamacpp.CommonParams()
options.model.path, options.hostnames, options.port = sys.argv[1], ["127.0.0.1"], int(sys.argv[2])
options.n_ctx, options.n_parallel, options.cpuparams.n_threads = int(sys.argv[3]), int(sys.argv[4]), 1
options.use_jinja, options.warmup = True, False
server = xllamacpp.Server(options)
print(server.listening_address, flush=True)
sys.stdin.read()
"""


@contextmanager
def serving(file: Path, *, context: int, slots: int, port: int = 0) -> Iterator[str]:
    """Give the address of a server with this context for each of its slots."""
    words = [sys.executable, "-c", SERVE, str(file), str(port), str(context * slots), str(slots)]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield f"{process.stdout.readline().strip()}/v1"
        finally:
            process.kill()


@pytest.fixture(scope="module")
def file(model: Any, tokenizer: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("xllamacpp", reason="needs xllamacpp: `nox -s models` runs these")
    return write(tmp_path_factory.mktemp("model") / "tiny.gguf", model, tokenizer)


@pytest.fixture(scope="module")
def address(file: Path) -> Iterator[str]:
    """A server with a context of 1,024 tokens for each of two slots."""
    with serving(file, context=1024, slots=2) as found:
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
    assert abilities.context == 1024
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

    async def main() -> int:
        async with pool(address, told.append, **option) as models:
            backend = await models.ready("openai/any")
            agent = LLMAgent(backend, options, tell=told.append)
            await agent.initialize("A town.", space)
            for step in range(12):
                await agent.decide(Observation(step=step, status={"mood": "calm and quiet " * 12}))
                assert agent.last_decision is not None
                assert not agent.last_decision.forced
            return len(agent.snapshot())

    asyncio.run(main())
    assert [text for text in told if "too small for 30 steps of history" in text]


def test_a_schema_binds_what_the_model_writes(address: str) -> None:
    schema = {"type": "object", "properties": {"pick": {"enum": ["red", "blue"]}}, "required": ["pick"]}
    request = Request(
        (Message("user", "Pick one."),), constraint=JsonConstraint(schema), sampling=Sampling(max_tokens=100)
    )

    async def main() -> str:
        async with pool(address) as models:
            return (await (await models.ready("openai/any")).complete(request)).text

    assert asyncio.run(main()).replace(" ", "").replace("\n", "") in ('{"pick":"red"}', '{"pick":"blue"}')


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
        port = int(first.rpartition(":")[2].removesuffix("/v1"))
        with serving(file, context=1024, slots=1, port=port):
            await asked
        await models.aclose()

    asyncio.run(main())
    assert "it may be restarting" in told[0]
