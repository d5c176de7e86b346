"""The engine `tes3mp` against a server that speaks the script's protocol, well and badly."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from wsap_check.hosts import ManualClock
from wsap_tes3mp.bridge.bridge import PATIENCE, Bridge
from wsap_tes3mp.engines.engine import Done, Engine
from wsap_tes3mp.engines.tes3mp.engine import Tes3mpEngine
from wsap_tes3mp.engines.tes3mp.esm import GameData
from wsap_tes3mp.log.log import CommandLog
from wsap_tes3mp.log.query import Filter, newest
from wsap_tes3mp.protocol.bridge import JoinRequest
from wsap_tes3mp.protocol.commands import PARAMS, CommandInput
from wsap_tes3mp.protocol.errors import BridgeUnavailableError, NotOfferedError
from wsap_tes3mp.protocol.perception import PerceptionOutput

sys.path.insert(0, str(Path(__file__).parent))

from script_server import FACTS, FAULTS, NOISE, TOKEN, ScriptServer, until

NOON = datetime(2026, 3, 21, 12, tzinfo=UTC)
WAIT = PARAMS["wait"].model_validate({"duration_seconds": 2})


@asynccontextmanager
async def connected(
    token: str = TOKEN, **options: Any
) -> AsyncIterator[tuple[Tes3mpEngine, ScriptServer, ManualClock]]:
    """An engine that is connected to a server."""
    server, clock = ScriptServer(), ManualClock()
    await server.start()
    engine = Tes3mpEngine(token, f"127.0.0.1:{server.port}", clock=clock, **options)
    await engine.start()
    try:
        if token == TOKEN:
            await until(lambda: engine.boot_id)
        yield engine, server, clock
    finally:
        await engine.stop()
        await server.stop()


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(test())


async def finished(engine: Engine, clock: ManualClock, command_id: str, server: ScriptServer) -> Done:
    """Carry a command out, with time going on and a hung server coming to itself after a while."""
    task = asyncio.ensure_future(engine.execute("mira", command_id, "wait", WAIT))
    began = clock.now()

    def ended() -> bool:
        if server.hung and clock.now() - began > 40:
            server.hung = False
        return task.done()

    await until(ended, clock)
    return task.result()


def test_a_perception_has_what_the_script_tells_and_labels_for_what_it_cannot() -> None:
    async def scenario() -> None:
        async with connected() as (engine, _, _clock):
            view = await engine.perceive("mira")
            seen = PerceptionOutput.model_validate({**view.body, "timestamp": view.timestamp, "agent_id": "mira"})
            assert view.sequence == 8  # the script's number, and the fight that has begun
            assert (seen.location.cell, seen.location.interior) == ("-3, -2", False)
            assert (seen.health.current, seen.health.max) == (45, 60)
            assert [(e.entity_id, e.entity_type, e.distance) for e in seen.nearby_entities] == [
                ("0-77", "door", 10.0),
                ("12-0", "npc", 50.0),
            ]
            assert (seen.inventory_summary.gold, seen.inventory_summary.item_count) == (40, 1)
            assert [(q.quest_id, q.stage) for q in seen.active_quests] == [("a_quest", 10)]
            assert (seen.environment.time_of_day, seen.environment.weather) == ("afternoon", "rain")
            assert (seen.environment.is_combat, seen.environment.is_dialogue) == (True, False)
            assert seen.fidelity is not None
            assert seen.fidelity["environment.is_combat"] == "derived"
            assert seen.fidelity["inventory_summary.encumbrance_pct"] == "unavailable"
            assert "location.cell" not in seen.fidelity

    run(scenario)


def test_a_fight_that_is_over_makes_another_perception() -> None:
    async def scenario() -> None:
        async with connected() as (engine, server, _):
            first = await engine.perceive("mira")
            assert (await engine.perceive("mira")).sequence == first.sequence
            server.facts["combat_age"] = 60
            second = await engine.perceive("mira")
            assert second.sequence > first.sequence
            assert not second.body["environment"]["is_combat"]
            server.faults = ["done_later"]
            done = await engine.execute("mira", "cmd_1", "wait", WAIT)
            server.facts["sequence"] = 8
            assert (await engine.perceive("mira")).sequence == done.sequence

    run(scenario)


def test_cells_are_named_as_in_the_game_and_sent_as_the_server_names_them() -> None:
    names = GameData()
    names.exteriors = {(-3, -2): "Mossford", (-2, -2): "Mossford"}

    async def scenario() -> None:
        async with connected(names=names) as (engine, server, _):
            assert (await engine.perceive("mira")).body["location"]["cell"] == "Mossford"
            move = PARAMS["move_to"].model_validate
            await engine.execute("mira", "cmd_1", "move_to", move({"target_cell": "mossford"}))
            there = {"target_cell": "Mossford", "target_x": -12000, "target_y": -16000}
            await engine.execute("mira", "cmd_2", "move_to", move(there))
            nowhere = await engine.execute("mira", "cmd_3", "move_to", move({"target_cell": "Nowhere"}))
            assert (nowhere.state, nowhere.code) == ("failed", "UNKNOWN_CELL")
            sent = [request["params"]["target_cell"] for request in server.asked if request["op"] == "command"]
            assert sent == ["-3, -2", "-2, -2"]

    run(scenario)


def test_agents_are_listed_as_the_script_has_them() -> None:
    async def scenario() -> None:
        async with connected() as (engine, server, _):
            assert [(a.agent_id, a.name, a.connected) for a in engine.agents()] == [("mira", "Mira", True)]
            server.agents.append({"agent": "ole", "name": "Ole", "connected": False})
            server.say({"event": "agents"})
            await until(lambda: len(engine.agents()) == 2)

    run(scenario)


@pytest.mark.parametrize(
    ("fault", "state", "times"),
    [
        ("", "confirmed", 1),
        ("done_later", "confirmed", 1),
        ("told_twice", "confirmed", 1),
        ("told_first", "confirmed", 1),
        ("cut_before", "failed", 0),
        ("cut_after", "confirmed", 1),
        ("cut_in_reply", "confirmed", 1),
        ("cut_while_dispatched", "confirmed", 1),
        ("restart_before", "unknown", 0),
        ("restart_after", "unknown", 1),
        ("hang_before", "failed", 0),
        ("hang_after", "confirmed", 1),
        ("slow", "confirmed", 1),
        ("noisy", "confirmed", 1),
        ("refused", "failed", 0),
        ("bad_reply", "unknown", 1),
    ],
)
def test_a_command_ends_as_what_is_known_of_it(fault: str, state: str, times: int) -> None:
    async def scenario() -> None:
        async with connected() as (engine, server, clock):
            server.faults = [fault]
            done = await finished(engine, clock, "cmd_1", server)
            assert (done.state, server.executed["cmd_1"]) == (state, times)

    run(scenario)
    assert set(FAULTS) >= {fault}


@pytest.mark.slow
def test_a_server_that_dies_for_good_leaves_the_command_unknown_after_its_deadline() -> None:
    async def scenario() -> None:
        async with connected() as (engine, server, clock):
            server.faults = ["hang_after"]
            with CommandLog() as log:
                bridge = Bridge(engine, log, clock=clock)
                params = {"duration_seconds": 2}
                command = CommandInput(timestamp=NOON, agent_id="mira", command="wait", params=params, reasoning="")
                sent = (await bridge.command(command)).command_id
                await until(lambda: server.executed[sent])
                await server.stop()
                await until(lambda: newest(log, Filter(states=["unknown"]), 1), clock, step=1.0)
                assert clock.now() >= PATIENCE + 2
            with pytest.raises(BridgeUnavailableError, match="No connection to the TES3MP script at 127"):
                await engine.execute("mira", "cmd_2", "wait", WAIT)
            assert server.executed == {sent: 1}

    run(scenario)


def test_what_is_not_connected_says_why() -> None:
    async def scenario() -> None:
        async with connected("another token") as (engine, _, clock):
            reasons: set[str] = set()

            async def ask() -> None:
                try:
                    await engine.perceive("mira")
                except BridgeUnavailableError as error:
                    reasons.add(str(error))

            def refused() -> bool:
                return any("refuses the token" in reason for reason in reasons)

            while not refused():
                await ask()
                await clock.advance(0.1)
                await asyncio.sleep(0.001)
            assert engine.boot_id is None
            assert not engine.agents()

    run(scenario)


def test_a_perception_from_a_hung_server_waits_until_its_caller_gives_up() -> None:
    async def scenario() -> None:
        async with connected() as (engine, server, clock):
            server.hung = True
            task = asyncio.ensure_future(engine.perceive("mira"))
            await clock.advance(4)
            assert not task.done()
            await until(
                task.done, clock, step=1.0
            )  # a look at the agents gets no answer: the connection counts as broken
            assert isinstance(task.exception(), BridgeUnavailableError)
            assert engine.boot_id is None

    run(scenario)


def test_lines_that_no_script_should_send_do_no_harm() -> None:
    async def scenario() -> None:
        async with connected() as (engine, server, _):
            for noise in NOISE:
                server.noise = [noise]
                assert (await engine.perceive("mira")).body["location"]["cell"] == FACTS["cell"]
            assert server.connections == 1

    run(scenario)


def test_bodies_come_and_go_through_the_script() -> None:
    async def scenario() -> None:
        async with connected() as (engine, server, _):
            row = {"agent": "ole", "name": "Ole", "connected": True, "dead": False, "embodiment": "companion"}
            server.answers["join"] = lambda request: {"ok": row}
            server.answers["respawn"] = lambda request: {"error": {"code": "NOT_OFFERED", "message": "Not here."}}
            info = await engine.join(JoinRequest(agent_id="ole", embodiment="companion"))
            assert (info.agent_id, info.embodiment) == ("ole", "companion")
            assert [agent.agent_id for agent in engine.agents()] == ["mira", "ole"]
            server.facts["embodiment"] = "companion"
            view = await engine.perceive("ole")
            assert view.body["fidelity"]["command.dialogue"] == "unavailable"
            with pytest.raises(NotOfferedError, match="Not here"):
                await engine.respawn("ole")
            await engine.leave("ole", "despawn")
            assert [agent.agent_id for agent in engine.agents()] == ["mira"]

    run(scenario)
