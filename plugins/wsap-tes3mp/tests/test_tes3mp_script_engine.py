"""The engine `tes3mp` against the script itself, in LuaJIT on the fake server, over its real transports."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from lua_server import TOKEN, LuaServer
from script_server import until

from wsap_check.hosts import ManualClock
from wsap_tes3mp.bridge.bridge import Bridge
from wsap_tes3mp.conformance import run_checks
from wsap_tes3mp.engines.engine import Done
from wsap_tes3mp.engines.tes3mp.engine import Tes3mpEngine
from wsap_tes3mp.log.log import CommandLog
from wsap_tes3mp.protocol.bridge import JoinRequest
from wsap_tes3mp.protocol.commands import PARAMS
from wsap_tes3mp.protocol.errors import BridgeUnavailableError, NotOfferedError
from wsap_tes3mp.protocol.perception import PerceptionOutput

TRANSPORTS = pytest.mark.parametrize("transport", ["ffi", "mailbox"])


class Game:
    """A fake server with the script, its connector, and time that goes on for both."""

    def __init__(self, transport: str, folder: Path, **settings: Any) -> None:
        self.settings = {"transport": transport, "mailbox": str(folder), **settings}
        self.clock = ManualClock()
        self.server = LuaServer(self.settings)
        self.server.player()
        self.transport, self.folder = transport, folder
        self.engine = Tes3mpEngine(TOKEN, self.address, clock=self.clock)
        self.running = True

    @property
    def address(self) -> str:
        if self.transport == "mailbox":
            return str(self.folder)
        line = next(line for line in self.server.log if " listens by " in line)
        return f"127.0.0.1:{line.rsplit(' ', 1)[1].strip(']')}"

    async def go(self) -> None:
        """Let the time of server and connector go on."""
        while True:
            if self.running:
                self.server.step()
            await self.clock.advance(0.05)
            await asyncio.sleep(0.0005)

    async def do(self, command: str, command_id: str = "c1", **params: Any) -> Done:
        return await self.engine.execute("nerys", command_id, command, PARAMS[command].model_validate(params))


@asynccontextmanager
async def playing(transport: str, folder: Path, **settings: Any) -> AsyncIterator[Game]:
    game = Game(transport, folder, **settings)
    time = asyncio.create_task(game.go())
    await game.engine.start()
    try:
        await until(lambda: game.engine.boot_id or time.done())
        yield game
    finally:
        time.cancel()
        await game.engine.stop()
        game.server.event("OnServerExit")


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(scenario())


@TRANSPORTS
def test_a_player_is_perceived_moved_and_told_of(transport: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with playing(transport, tmp_path) as game:
            assert [(agent.agent_id, agent.connected) for agent in game.engine.agents()] == [("nerys", True)]
            view = await game.engine.perceive("nerys")
            seen = PerceptionOutput.model_validate({**view.body, "timestamp": view.timestamp, "agent_id": "nerys"})
            assert (seen.location.cell, seen.location.interior, seen.location.x) == ("Test House", True, 100)
            done = await game.do("move_to", target_x=500, target_y=300)
            assert done.state == "confirmed"
            assert done.sequence is not None
            assert done.sequence > view.sequence
            later = await game.engine.perceive("nerys")
            assert (later.body["location"]["x"], later.sequence >= done.sequence) == (500, True)
            assert (await game.do("wait", "c2", duration_seconds=2)).state == "confirmed"
            refused = await game.do("dialogue", "c3", entity_id="nobody", topic="rumors")
            assert (refused.state, refused.code) == ("failed", "NO_ENTITY")

    run(scenario)


@TRANSPORTS
def test_players_and_companions_come_and_go(transport: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with playing(transport, tmp_path) as game:
            game.server.player(1, "Othmar")
            await until(lambda: len(game.engine.agents()) == 2)
            info = await game.engine.join(JoinRequest(agent_id="scout", embodiment="companion"))
            assert (info.embodiment, info.connected) == ("companion", True)
            assert (await game.engine.perceive("scout")).body["fidelity"]["command.dialogue"] == "unavailable"
            await game.engine.leave("scout", "despawn")
            assert [agent.agent_id for agent in game.engine.agents()] == ["nerys", "othmar"]
            with pytest.raises(BridgeUnavailableError, match="no player"):
                await game.engine.perceive("scout")

    run(scenario)


def test_a_server_without_companions_says_so(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with playing("ffi", tmp_path, companion="") as game:
            with pytest.raises(NotOfferedError, match=r"settings\.lua"):
                await game.engine.join(JoinRequest(agent_id="scout", embodiment="companion"))

    run(scenario)


@TRANSPORTS
def test_a_restarted_server_leaves_the_command_in_between_unknown(transport: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with playing(transport, tmp_path) as game:
            boot = game.engine.boot_id
            waiting = asyncio.ensure_future(game.do("wait", duration_seconds=5))
            begun = game.server.fake.now
            await until(lambda: game.server.fake.now > begun + 1000)
            port = int(game.address.rsplit(":", 1)[1]) if transport == "ffi" else 0
            game.server.event("OnServerExit")
            game.server = LuaServer({**game.settings, "port": port})
            game.server.player()
            done = await waiting
            assert done.state == "unknown"
            await until(lambda: game.engine.boot_id)
            assert game.engine.boot_id != boot
            assert (await game.do("wait", "c2", duration_seconds=1)).state == "confirmed"

    run(scenario)


@TRANSPORTS
@pytest.mark.slow
def test_a_hung_server_that_comes_to_itself_carries_the_command_out_once(transport: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with playing(transport, tmp_path) as game:
            waiting = asyncio.ensure_future(game.do("wait", duration_seconds=1))
            game.running = False
            before = game.clock.now()
            await until(lambda: game.clock.now() > before + 40)
            assert not waiting.done()
            game.running = True
            assert (await waiting).state in ("confirmed", "failed")
            await until(lambda: game.engine.boot_id)
            again = await game.do("wait", "c2", duration_seconds=1)
            assert again.state == "confirmed"

    run(scenario)


def test_a_server_without_companions_conforms_all_the_same(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with playing("ffi", tmp_path, companion="") as game:
            with CommandLog(None) as log:
                bridge = Bridge(game.engine, log, clock=game.clock)
                results = await run_checks(bridge, act=True, clock=game.clock)
                await bridge.stop()
            assert [result for result in results if result.status == "failed"] == []
            skipped = {result.name for result in results if result.status == "skipped"}
            assert skipped == {"items", "join", "leave"}

    run(scenario)
