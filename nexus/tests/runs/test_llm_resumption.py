"""How a model goes on after a tool, by the kind of server, and that the log says which way it was."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hosts import host_with_ours
from llm_server import ModelServer, Say

from wsap_core import PluginHost
from wsap_core.seams.services import Services
from wsap_llm.backends.pool import ModelPool
from wsap_nexus.api import list_runs
from wsap_nexus.runs.plan import RunPlan, SeatPlan
from wsap_nexus.runs.session import start
from wsap_nexus.runs.store import open_store


@pytest.fixture
def host() -> PluginHost:
    return host_with_ours()


def think(body: Any) -> Say:
    """Works something out with a tool in the middle of its thoughts, then says what came of it."""
    last = body["messages"][-1]["content"]
    if "<observation>" in last:
        return Say("Five, then.\n</thinking>\n<speak>five</speak>")
    opening = "" if last.endswith("<thinking>\n") else "<thinking>\n"
    return Say(f"{opening}Two and three make\n<calculator>2 + 3</calculator>")


@pytest.mark.parametrize(
    ("server_kind", "way", "role"),
    [("llama.cpp", "prefill", "assistant"), ("vllm", "prefill", "assistant"), ("generic", "turns", "user")],
)
def test_the_log_says_how_the_model_went_on_after_a_tool(
    server: ModelServer, host: PluginHost, tmp_path: Any, server_kind: str, way: str, role: str
) -> None:
    server.default = think
    models = ModelPool(host, options={"openai": {"base_url": server.base_url, "server": server_kind}})
    options = {"model": "openai/qwen3:8b", "style": "tags", "tools": "calculator", "plan": "no"}
    plan = RunPlan("echo", (SeatPlan("seat-1", "llm", options),), steps=3)
    database = str(tmp_path / "runs.db")
    with open_store(database) as store, start(plan, host, store, services=Services(models=models)) as session:

        async def to_the_end() -> Any:
            async with models:
                return await session.play()

        summary = asyncio.run(to_the_end()).to_json()
    assert summary["decisions"]["forced"] == summary["decisions"]["repaired"] == 0
    assert summary["decisions"]["unconstrained"] == (3 if server_kind == "generic" else 0)
    run = list_runs(database=database)[0]
    with open_store(database) as store:
        steps = [e.data for e in store.repository.read_events(run.id, kinds=("step",))]
    assert [s["decision"]["resumption"] for s in steps] == [way] * 3
    assert [s["step"]["action"] for s in steps] == [{"name": "speak", "parameters": {"text": "five"}}] * 3
    after = [
        r.body["messages"][-1]
        for r in server.requests
        if r.body and "<observation>5" in r.body["messages"][-1]["content"]
    ]
    assert [message["role"] for message in after] == [role] * 3


def test_without_a_tool_there_is_no_way_of_going_on(server: ModelServer, host: PluginHost, tmp_path: Any) -> None:
    server.default = Say("<thinking>\nhm\n</thinking>\n<wait/>")
    models = ModelPool(host, options={"openai": {"base_url": server.base_url}})
    options = {"model": "openai/qwen3:8b", "style": "tags", "tools": "calculator", "plan": "no"}
    plan = RunPlan("echo", (SeatPlan("seat-1", "llm", options),), steps=1)
    with open_store(str(tmp_path / "runs.db")) as store:
        with start(plan, host, store, services=Services(models=models)) as session:

            async def to_the_end() -> None:
                async with models:
                    await session.play()

            asyncio.run(to_the_end())
        steps = [e.data for e in store.repository.read_events(str(session.run.run_id), kinds=("step",))]
    assert steps[0]["decision"]["resumption"] is None
