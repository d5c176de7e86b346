"""`ModelPool`: addresses, middlewares, and what `wsap models` tells."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import idle_time
import pytest
from hosts import host_with_ours
from llm_server import ModelServer, Say

from wsap_core.errors import PluginError, UnknownNameError, UsageError
from wsap_core.hookspecs import hookimpl
from wsap_core.host import PluginHost
from wsap_core.seams.agent import Usage
from wsap_core.seams.context import Context
from wsap_core.seams.listing import Listing
from wsap_core.seams.model import Abilities, Finish, Message, Price, Request
from wsap_core.seams.model_errors import BudgetReachedError, NoServerError, ServerFailedError
from wsap_core.seams.services import Services
from wsap_core.specs import BackendSpec
from wsap_llm.backends.openai.backend import OpenAIBackend
from wsap_llm.backends.pool import AgentModels, ModelPool, RequestPolicy, list_models
from wsap_llm.journal import CallJournal
from wsap_llm.middleware.budgets import Budget, BudgetLimits, CheckBudgets, CheckDecision
from wsap_llm.middleware.drain import Drain
from wsap_llm.middleware.measure import Count, Measure
from wsap_llm.middleware.record import Record, Replayed
from wsap_llm.middleware.retry import Retry
from wsap_llm.middleware.show import Show
from wsap_llm.middleware.slots import InTurn
from wsap_llm.scripted import Reply, ScriptedBackend
from wsap_nexus import plugin as nexus_plugin

REQUEST = Request([Message("user", "Hello?")])


class StillClock:
    """A clock that only moves when somebody waits."""

    def __init__(self) -> None:
        self.time = 0.0
        self.waits: list[float] = []

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.time += seconds


class Kept:
    """An agent's journal, of which only what the pool asks is there."""

    def __init__(self, *, offline: bool = False) -> None:
        self.offline = offline

    def abilities(self, address: str) -> Abilities:
        return Abilities()


class Extra:
    """A plugin made on the spot."""

    def __init__(self, *specs: BackendSpec) -> None:
        self._specs = specs

    @hookimpl
    def wsap_backends(self) -> Iterator[BackendSpec]:
        yield from self._specs


def host_with(*specs: BackendSpec) -> PluginHost:
    host = host_with_ours()
    host.register(nexus_plugin, "nexus")
    host.register(Extra(*specs), "extra")
    return host


def made(*factories: tuple[str, Callable[[Context], Any]]) -> PluginHost:
    return host_with(*(BackendSpec(name, "For tests.", factory) for name, factory in factories))


def openai_models(server: ModelServer, **more: Any) -> ModelPool:
    return ModelPool(host_with(), options={"openai": {"base_url": server.base_url}}, **more)


def test_an_address_becomes_a_backend_that_answers(server: ModelServer) -> None:
    async def main() -> str:
        async with openai_models(server) as models:
            return (await models.backend("openai/qwen3:8b").complete(REQUEST)).text

    assert asyncio.run(main()) == "Hello there."
    assert server.last["model"] == "qwen3:8b"


def test_the_same_address_is_the_same_backend_and_another_is_another(server: ModelServer) -> None:
    models = openai_models(server)
    first = models.backend("openai/qwen3:8b")
    assert models.backend(" openai/qwen3:8b ") is first
    assert models.backend("openai/llama3.2:latest") is not first
    assert first.model == "openai/qwen3:8b"


def test_one_address_with_other_options_is_another_backend() -> None:
    seen: list[tuple[str, str]] = []

    def create(context: Context) -> ScriptedBackend:
        seen.append((context.config["model"], context.config.get("effort", "any")))
        return ScriptedBackend(["x"])

    models = ModelPool(made(("hub", create)), options={"hub": {"effort": "low"}})
    plain, high = models.backend("hub/x"), models.backend("hub/x", {"effort": "high"})
    assert (models.backend("hub/x"), models.backend("hub/x", {"effort": "high"})) == (plain, high)
    assert seen == [("x", "low"), ("x", "high")]


def test_the_rest_of_an_address_may_hold_slashes() -> None:
    seen: list[str] = []

    def create(context: Context) -> ScriptedBackend:
        seen.append(context.config["model"])
        return ScriptedBackend(["x"])

    ModelPool(made(("hub", create))).backend("hub/org/model:tag")
    assert seen == ["org/model:tag"]


@pytest.mark.parametrize(
    ("address", "kind", "words"),
    [
        ("opnai/x", UnknownNameError, "Did you mean 'openai'"),
        ("qwen3:8b", UsageError, "BACKEND/MODEL"),
        ("openai/", UsageError, "BACKEND/MODEL"),
        ("/x", UsageError, "BACKEND/MODEL"),
        ("", UsageError, "BACKEND/MODEL"),
        ("ollama/qwen3:8b", UnknownNameError, "pip install .*wsap-ollama"),
        ("zzz\x1b[2J/x", UnknownNameError, "There are: litellm, openai, scripted"),
    ],
)
def test_what_is_no_address_is_refused_with_what_to_do(address: str, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words) as caught:
        ModelPool(host_with()).backend(address)
    assert "\x1b" not in str(caught.value)


def test_a_factory_that_gives_no_backend_is_named() -> None:
    with pytest.raises(PluginError, match="'odd' returned a int"):
        ModelPool(made(("odd", lambda context: 5))).backend("odd/x")


def test_middlewares_are_in_one_order(server: ModelServer) -> None:
    policy = RequestPolicy(concurrency=2)
    models = openai_models(server, policy=policy, budgets=[Budget("run", calls=9)], decision=BudgetLimits(calls=5))
    shared = [Show, Retry, InTurn, Drain, CheckBudgets, Measure]
    model = models.backend("openai/qwen3:8b")
    assert [type(middleware) for middleware in model.middlewares] == shared
    assert isinstance(model.backend, OpenAIBackend)
    calls = AgentModels(models, "openai/qwen3:8b", journal=cast(CallJournal, Kept()))
    agents = calls.decider()
    assert [type(middleware) for middleware in agents.middlewares] == [Record, CheckDecision, *shared]
    assert agents.middlewares[2:] == model.middlewares, "limits are shared"
    memorys = calls.backend("openai/qwen3:8b")
    assert [type(middleware) for middleware in memorys.middlewares] == [Count, Record, *shared]


def test_a_replayed_run_opens_no_backend() -> None:
    models = ModelPool(host_with())
    calls = AgentModels(models, "gone/x", journal=cast(CallJournal, Kept(offline=True)))
    agents, memorys = calls.decider(), calls.backend("gone/x")
    assert isinstance(agents.backend, Replayed)
    assert isinstance(memorys.backend, Replayed)
    assert [type(middleware) for middleware in agents.middlewares] == [Record]
    assert [type(middleware) for middleware in memorys.middlewares] == [Count, Record]


def test_a_server_that_stumbles_is_asked_again_and_waited_for_as_it_says(server: ModelServer) -> None:
    clock = StillClock()
    server.say(Say(status=429, headers={"Retry-After": "11"}), Say(status=500), Say("third time"))

    async def main() -> str:
        async with openai_models(server, clock=clock) as models:
            return (await models.backend("openai/qwen3:8b").complete(REQUEST)).text

    assert asyncio.run(main()) == "third time"
    assert clock.waits[0] == 11.0
    assert 0.5 <= clock.waits[1] <= 1.0
    assert len(server.requests) == 3


def test_attempts_come_to_an_end(server: ModelServer) -> None:
    server.default = Say(status=500)

    async def main() -> None:
        async with openai_models(server, clock=StillClock(), policy=RequestPolicy(attempts=3)) as models:
            await models.backend("openai/qwen3:8b").complete(REQUEST)

    with pytest.raises(ServerFailedError):
        asyncio.run(main())
    assert len(server.requests) == 3


def test_a_budget_is_shared_by_all_models(server: ModelServer) -> None:
    budget = Budget("run", calls=2)

    async def main() -> None:
        async with openai_models(server, budgets=[budget], policy=RequestPolicy(attempts=1)) as models:
            for name in ("openai/qwen3:8b", "openai/llama3.2:latest", "openai/llava:7b"):
                await models.backend(name).complete(REQUEST)

    with pytest.raises(BudgetReachedError, match="2 calls"):
        asyncio.run(main())
    assert len(server.requests) == 2
    assert budget.spent.calls == 2


def test_being_turned_away_costs_nothing_and_a_broken_reply_counts_in_full(server: ModelServer) -> None:
    budget = Budget("run", tokens=2000)
    server.say(*[Say(status=429)] * 20, Say("third time"), Say("a b c", cut=0))

    async def main() -> None:
        policy = RequestPolicy(attempts=21)
        async with openai_models(server, clock=StillClock(), budgets=[budget], policy=policy) as models:
            await models.backend("openai/qwen3:8b").complete(REQUEST)
        assert (budget.spent.calls, budget.spent.completion_tokens) == (1, 2)
        async with openai_models(server, budgets=[budget], policy=RequestPolicy(attempts=1)) as models:
            await models.backend("openai/qwen3:8b").complete(REQUEST)

    with pytest.raises(ServerFailedError):
        asyncio.run(main())
    # What was cut off may have been charged for: the 300 tokens that it was allowed.
    assert (budget.spent.calls, budget.spent.completion_tokens) == (2, 302)


def test_a_stated_price_makes_a_cost(server: ModelServer) -> None:
    budget = Budget("run", cost=1.0)

    async def main() -> float | None:
        prices = {"openai/qwen3:8b": Price(1.0, 10.0)}
        async with openai_models(server, budgets=[budget], prices=prices) as models:
            return (await models.backend("openai/qwen3:8b").complete(REQUEST)).usage.cost

    # Five prompt tokens at a millionth of a dollar, two of the reply at ten.
    assert asyncio.run(main()) == pytest.approx(25e-6)


def test_a_stated_price_counts_instead_of_the_one_that_the_backend_reports() -> None:
    told = Reply("hello", finish=Finish(usage=Usage(1, 5, 2, 0.5)))

    async def cost(**more: Any) -> float | None:
        host = made(("billed", lambda context: ScriptedBackend([told, told], model="billed/x")))
        async with ModelPool(host, **more) as models:
            return (await models.backend("billed/x").complete(REQUEST)).usage.cost

    assert asyncio.run(cost()) == 0.5
    assert asyncio.run(cost(prices={"billed/x": Price(1.0, 10.0)})) == pytest.approx(25e-6)


@pytest.mark.parametrize("options", [({}, {}), ({}, {"timeout": 60})], ids=["one set", "two sets"])
def test_no_more_than_allowed_are_asked_at_once(server: ModelServer, options: tuple[Mapping[str, Any], ...]) -> None:
    server.default = Say("here", wait=True)

    async def main() -> int:
        async with openai_models(server, policy=RequestPolicy(concurrency=3)) as models:
            backends = [models.backend("openai/qwen3:8b", options[n % 2]) for n in range(9)]
            asked = [asyncio.create_task(backend.complete(REQUEST)) for backend in backends]
            await asyncio.to_thread(server.await_requests, 3)
            at_once = len(server.requests)
            server.release()
            await asyncio.gather(*asked)
            return at_once

    assert asyncio.run(main()) == 3
    assert len(server.requests) == 9


@pytest.mark.parametrize(("option", "most"), [({}, 4), ({"concurrency": 2}, 2)], ids=["by default", "by an option"])
def test_all_models_of_a_local_server_wait_for_one_another(
    server: ModelServer, option: Mapping[str, Any], most: int
) -> None:
    server.default = Say("here", wait=True)
    told: list[str] = []

    async def main() -> int:
        async with openai_models(server, services=Services(progress=told.append)) as models:
            names = ("openai/qwen3:8b", "openai/llava:7b")
            asked = [asyncio.create_task(models.backend(names[n % 2], option).complete(REQUEST)) for n in range(9)]
            await asyncio.to_thread(server.await_requests, most)
            at_once = len(server.requests)
            server.release()
            await asyncio.gather(*asked)
            return at_once

    assert asyncio.run(main()) == most
    assert len(server.requests) == 9
    assert len(told) == 1
    assert told[0].startswith(f"{server.base_url} is sent {most} requests at a time, and others wait;")


def test_everything_is_closed_even_if_one_fails_to() -> None:
    class Stubborn(ScriptedBackend):
        async def aclose(self) -> None:
            raise RuntimeError("no")

    good = ScriptedBackend(["x"])
    models = ModelPool(made(("stubborn", lambda context: Stubborn(["x"])), ("good", lambda context: good)))
    models.backend("stubborn/x")
    models.backend("good/x")
    with pytest.raises(PluginError, match="stubborn/x could not be closed: no"):
        asyncio.run(models.aclose())
    assert good.closed
    asyncio.run(models.aclose())


def test_a_backend_is_made_ready_through_its_middlewares() -> None:
    class Preparing(ScriptedBackend):
        prepared = 0

        async def prepare(self) -> None:
            self.prepared += 1

    backend = Preparing(["x"])
    models = ModelPool(made(("slow", lambda context: backend)))
    assert asyncio.run(models.ready("slow/x")).model == "scripted/list"
    assert backend.prepared == 1


# --- listing -----------------------------------------------------------------------------------


def test_a_provider_that_hangs_fails_or_lies_keeps_nobody_from_being_listed() -> None:
    async def fine(context: Context) -> Listing:
        return Listing("fine", note="all is well")

    async def fails(context: Context) -> Listing:
        raise NoServerError("Nobody is there.")

    async def breaks(context: Context) -> Listing:
        raise ZeroDivisionError("by zero")

    async def hangs(context: Context) -> Listing:
        await asyncio.Event().wait()
        raise AssertionError

    async def lies(context: Context) -> Any:
        return ["x"]

    listers = {"fine": fine, "fails": fails, "breaks": breaks, "hangs": hangs, "lies": lies, "gone": "nowhere.at:all"}
    specs = [BackendSpec(n, "For tests.", lambda: None, models=f) for n, f in listers.items()]
    host = PluginHost(environ={})
    host.register(Extra(*specs, BackendSpec("silent", "Lists nothing.", lambda: None)), "extra")
    found = {listing.provider: listing for listing in idle_time.run(list_models(host, within=3.0))}
    assert "Lists nothing." in found.pop("silent").note
    assert {name: listing.reason for name, listing in found.items()} == {
        "fine": "",
        "fails": "Nobody is there.",
        "breaks": "ZeroDivisionError: by zero",
        "hangs": "no response within 3 s",
        "lies": "it returned a list instead of a Listing",
        "gone": "'nowhere.at:all' can't be loaded: No module named 'nowhere'.",
    }


def wsap_models(tmp_path: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("WSAP_", "OPENAI_", "OLLAMA_")) and "KEY" not in k}
    environment = {**kept, "WSAP_HOME": str(tmp_path), "NO_COLOR": "1", "COLUMNS": "120", **variables}
    # The last --timeout counts: providers have all the time they need, unless a test says otherwise.
    command = [sys.executable, "-m", "wsap_core", "models", "--timeout", "120", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=True)


@pytest.mark.slow
def test_wsap_models_lists_what_is_reachable_with_what_it_can_do(server: ModelServer, tmp_path: Path) -> None:
    done = wsap_models(tmp_path, "--json", OPENAI_BASE_URL=server.base_url, OLLAMA_HOST=server.address)
    providers = {p["provider"]: p for p in json.loads(done.stdout)["providers"]}
    assert providers["openai"]["reachable"]
    assert {(m["model"], m["context"]) for m in providers["openai"]["models"]} == {
        ("openai/qwen3:8b", 40960),
        ("openai/llama3.2:latest", 131072),
        ("openai/llava:7b", 32768),
    }
    assert providers["scripted"]["models"][0]["model"] == "scripted/reply"
    ollama = {m["model"]: m for m in providers["ollama"]["models"]}
    assert ollama["ollama/qwen3:8b"]["context"] == 40960
    assert "thinking" in ollama["ollama/qwen3:8b"]["abilities"]
    assert "images" in ollama["ollama/llava:7b"]["abilities"]
    plain = wsap_models(tmp_path, OPENAI_BASE_URL=server.base_url, OLLAMA_HOST=server.address).stdout
    assert "ollama/qwen3:8b" in plain
    assert "40960" in plain


@pytest.mark.slow
def test_wsap_models_says_why_a_provider_is_not_reachable(nowhere: str, tmp_path: Path) -> None:
    plain = wsap_models(tmp_path, OPENAI_BASE_URL=f"{nowhere}/v1", OLLAMA_HOST=nowhere).stdout
    assert f"openai: not reachable at {nowhere}/v1: No server answers at {nowhere}/v1; is it running?" in plain
    assert f"ollama: not reachable at {nowhere}: Ollama does not answer at {nowhere}" in plain
    without = wsap_models(tmp_path, OLLAMA_HOST=nowhere).stdout
    assert "neither OPENAI_API_KEY nor OPENAI_BASE_URL is set" in without


@pytest.mark.slow
def test_wsap_models_does_not_wait_for_a_server_that_is_silent(tmp_path: Path) -> None:
    import socket

    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()  # accepts nothing, so that a request is never answered
        place = f"http://127.0.0.1:{silent.getsockname()[1]}"
        done = wsap_models(tmp_path, "--timeout", "0.2", OPENAI_BASE_URL=f"{place}/v1", OLLAMA_HOST=place)
    assert done.stdout.count("no response within 0.2 s") == 2
