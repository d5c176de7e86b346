"""The runtime's services for commands of plugins: several games at once, recorded, gone on with."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from warm import run_wsap

from wsap_core.errors import ConfigError, MissingServiceError, UsageError
from wsap_core.seams.memory import AgentMemory
from wsap_core.seams.model import Message, Request
from wsap_core.seams.model_errors import BudgetReachedError
from wsap_core.seams.services import Player, Services, runtime_services
from wsap_llm.memory.fifo import FifoMemory as Fifo
from wsap_llm.middleware.budgets import Budget

SEATS = {"row": Player("random"), "column": Player("llm", {"model": "scripted/x", "model.reply": "wait"})}


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("WSAP_HOME", str(tmp_path / "home"))
    return str(tmp_path / "runs.db")


def played(services: Services, *seeds: int, **more: Any) -> list[Mapping[str, Any]]:
    """Return the summaries of games that are played at once."""

    async def all_of_them() -> list[Mapping[str, Any]]:
        runner = services.require("runner")
        return list(await asyncio.gather(*(runner.play("matrix", SEATS, seed=seed, **more) for seed in seeds)))

    return asyncio.run(all_of_them())


def test_games_with_an_agent_for_each_seat_are_played_at_once_and_recorded(database: str) -> None:
    with runtime_services(database) as services:
        summaries = played(services, 1, 2, 3)
        assert [s["seed"] for s in summaries] == [1, 2, 3]
        assert all(s["done"] for s in summaries)
        assert [(s["seat"], s["agent"]) for s in summaries[0]["seats"]] == [("row", "random"), ("column", "llm")]
        runs = services.require("runs")
        assert set(runs.runs()) == {s["run"] for s in summaries}
        kinds = [event["kind"] for event in runs.events(summaries[0]["run"])]
        assert {"episode", "step"} <= set(kinds)


def test_a_run_is_told_before_it_begins_and_is_not_played_twice(database: str) -> None:
    begun: list[str] = []
    with runtime_services(database) as services:
        (first,) = played(services, 4, begun=begun.append)
        assert begun == [first["run"]]
        (again,) = played(services, 4, run=first["run"])
        assert {**again, "seconds": 0} == {**first, "seconds": 0}
        assert len(services.require("runs").runs()) == 1


def test_people_keys_and_seats_that_are_not_there_are_refused(database: str) -> None:
    with runtime_services(database) as services:
        runner = services.require("runner")
        for seats, says in (
            ({"row": Player("human")}, "would be played by a person"),
            ({"middle": Player("random")}, "has no seat 'middle'"),
            ({"row": Player("llm", {"model": "scripted/x", "model.api_key": "sk-1"})}, "they must not contain a key"),
        ):
            with pytest.raises(UsageError, match=says):
                asyncio.run(runner.play("matrix", seats))
        assert services.require("runs").runs() == []


def test_all_games_and_questions_of_a_command_share_its_limits(database: str) -> None:
    free, budget = Budget("cup"), Budget("cup", calls=1)
    with runtime_services(database, budgets=[free]) as services:
        calls = [s["usage"]["calls"] for s in played(services, 1, 2)]

        async def ask() -> str:
            models = services.require("models")
            backend = await models.open("scripted/x", {"model.reply": "wait", "style": "tags"})
            reply = await backend.complete(Request([Message("user", "hello")]))
            await models.aclose()
            return reply.text

        assert asyncio.run(ask()) == "wait"
        assert free.spent.calls == sum(calls) + 1 > 2
    with runtime_services(database, budgets=[budget]) as services:
        with pytest.raises(BudgetReachedError, match="limit of 1 calls a cup"):
            played(services, 1)
        assert budget.spent.calls == 1


def test_options_of_a_model_are_looked_up_in_the_environment(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOT_THERE", raising=False)
    with runtime_services(database) as services, pytest.raises(ConfigError, match="NOT_THERE"):
        asyncio.run(services.require("models").open("scripted/x", {"model.api_key": "env:NOT_THERE"}))


def test_without_the_runtime_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hidden:
        def find_spec(self, name: str, path: object = None, target: object = None) -> None:
            if name.partition(".")[0] == "wsap_nexus":
                raise ModuleNotFoundError(f"No module named {name!r}", name="wsap_nexus")

    for name in [n for n in sys.modules if n.partition(".")[0] == "wsap_nexus"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Hidden(), *sys.meta_path])
    with pytest.raises(MissingServiceError, match=r"pip install .*nexus"):
        runtime_services()


def kept(data: bytes) -> list[str]:
    memory = Fifo()
    memory.restore(data)
    return [found.text for found in memory.browse()]


def test_a_prepared_memory_is_what_the_run_begins_with_also_when_it_is_replayed(database: str) -> None:
    def prepare(seat: str, memory: AgentMemory) -> None:
        if seat == "row":
            memory.note("be kind")

    seats = dict.fromkeys(("row", "column"), Player(f"{Path(__file__).parents[1] / 'kit/diarist.py'}:Diarist"))
    with runtime_services(database) as services:
        runs = services.require("runs")
        summary = asyncio.run(services.require("runner").play("matrix", seats, prepare=prepare))
        chosen = {(e["seat"], "cooperate" in json.dumps(e["body"])) for e in runs.events(summary["run"], "chosen")}
        assert chosen == {("row", True), ("column", False)}
        minds = [event["body"] for event in runs.events(summary["run"], "mind")]
        begun = {m["mind"]: base64.b64decode(m["memory"]) for m in minds if "end" not in m}
        ended = {m["mind"]: base64.b64decode(m["memory"]) for m in minds if "end" in m}
        notes = {name: kept(data) for name, data in {"begun": begun["row"], "ended": ended["column"]}.items()}
        assert notes["begun"] == ["be kind"]
        assert kept(begun["column"]) == []
        assert len(notes["ended"]) == 10
    # Replayed by whoever knows nothing of how it was prepared, and to the same hash.
    done = run_wsap(["play", "--replay", summary["run"], "--database", database, "--json"], env=dict(os.environ))
    assert not done.stderr, done.stderr
    assert json.loads(done.stdout)["trajectory_hash"] == summary["trajectory_hash"]
