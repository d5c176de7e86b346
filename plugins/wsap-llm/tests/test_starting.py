"""Servers that are loading their model or are being restarted: they are waited for, and that is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest
from llm_server import ModelServer, Say

from wsap_core import PluginHost
from wsap_core.seams.model import Message, Request
from wsap_core.seams.model_errors import NoServerError, ServerFailedError
from wsap_core.seams.services import Services
from wsap_llm.backends.pool import ModelPool

REQUEST = Request((Message("user", "Hello?"),))
LOADING = Say(status=503, error="Loading model")


class Clock:
    """Passes only while somebody sleeps; `meanwhile` happens at the first sleep."""

    def __init__(self, meanwhile: Callable[[], object] = lambda: None) -> None:
        self.time = 0.0
        self.meanwhile = meanwhile

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        meanwhile, self.meanwhile = self.meanwhile, lambda: None
        await asyncio.to_thread(meanwhile)
        self.time += seconds


def asked(server: ModelServer, clock: Clock, *, times: int = 1) -> tuple[list[str], list[str]]:
    """Return the replies of a model of a server, and what was told."""
    told: list[str] = []

    async def main() -> list[str]:
        options: dict[str, dict[str, Any]] = {"openai": {"base_url": server.base_url}}
        async with ModelPool(
            PluginHost.discovered(), options=options, clock=clock, services=Services(progress=told.append)
        ) as models:
            model = await models.ready("openai/qwen3:8b")
            assert model.abilities.context == 40960
            return [(await model.complete(REQUEST)).text for _ in range(times)]

    return asyncio.run(main()), told


def test_a_server_that_loads_its_model_is_waited_for(server: ModelServer) -> None:
    server.say(*[LOADING] * 20)
    clock = Clock()
    replies, told = asked(server, clock)
    assert replies == ["Hello there."]
    assert clock.time == 40
    assert len(told) == 1
    assert "status 503: Loading model" in told[0]
    assert "Waiting up to 5 minutes" in told[0]


def test_it_is_shown_only_while_it_is_waited_for(server: ModelServer) -> None:
    server.say(*[LOADING] * 2)
    shown: list[str] = []

    async def main() -> None:
        options = {"openai": {"base_url": server.base_url, "stream": False}}
        async with ModelPool(PluginHost.discovered(), options=options, clock=Clock()) as models:
            model = await models.ready("openai/qwen3:8b")
            await model.complete(REQUEST, lambda draft: shown.append(draft.waiting))

    asyncio.run(main())
    assert ["Loading model" in waiting for waiting in shown] == [True, False, True, False]


def test_a_server_that_never_gets_ready_ends_it(server: ModelServer) -> None:
    server.default = LOADING
    clock = Clock()
    with pytest.raises(ServerFailedError, match="Loading model"):
        asked(server, clock)
    assert clock.time == 300


def test_what_a_server_can_is_learned_when_it_has_loaded_its_model(server: ModelServer) -> None:
    server.loading = 3
    assert asked(server, Clock())[0] == ["Hello there."]


def test_a_local_server_that_is_restarted_is_waited_for() -> None:
    told: list[str] = []
    with ExitStack() as later, ModelServer() as first:
        clock = Clock(lambda: later.enter_context(ModelServer(port=first.port)))

        async def main() -> str:
            options = {"openai": {"base_url": first.base_url}}
            services = Services(progress=told.append)
            async with ModelPool(PluginHost.discovered(), options=options, clock=clock, services=services) as models:
                model = await models.ready("openai/qwen3:8b")
                await model.complete(REQUEST)
                await asyncio.to_thread(first.close)
                return (await model.complete(REQUEST)).text

        assert asyncio.run(main()) == "Hello there."
    assert len(told) == 1
    assert "does not answer any more; it may be restarting." in told[0]


def test_a_server_that_was_never_there_is_not_waited_for_so_long(nowhere: str) -> None:
    clock = Clock()

    async def main() -> None:
        options = {"openai": {"base_url": nowhere}}
        async with ModelPool(PluginHost.discovered(), options=options, clock=clock) as models:
            await (await models.ready("openai/qwen3:8b")).complete(REQUEST)

    with pytest.raises(NoServerError, match="is it running"):
        asyncio.run(main())
    assert clock.time < 10
