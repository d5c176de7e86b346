"""The connector and the script itself, with a wire between them that breaks, delays and delivers late.

The witness is the game: each command moves a body to a place of its own, and the fake server counts such moves.
"""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path

import pytest
from lua_server import TOKEN, LuaServer
from script_server import until

from wsap_check.hosts import ManualClock
from wsap_tes3mp.engines.engine import Done
from wsap_tes3mp.engines.tes3mp.engine import Tes3mpEngine
from wsap_tes3mp.protocol.commands import PARAMS
from wsap_tes3mp.protocol.errors import BridgeUnavailableError

COUNT = int(os.environ.get("WSAP_TES3MP_FAULTS", "6"))
SEED = int(os.environ.get("WSAP_TES3MP_SEED", "1"))
WITNESS = """
fake.moves = {}
local set = tes3mp.SetPos
tes3mp.SetPos = function(pid, x, y, z)
    fake.moves[x] = (fake.moves[x] or 0) + 1
    return set(pid, x, y, z)
end
"""


class Wire:
    """Carries bytes between a connector and a port, until it breaks in one of several ways."""

    def __init__(self, port: int, chance: random.Random, clock: ManualClock) -> None:
        self._port, self._chance, self._clock = port, chance, clock
        self._tasks: set[asyncio.Task[None]] = set()
        self.break_after: float | None = None
        """Break when so many bytes more have come from the connector."""
        self.late = False
        """Whether the connector sees the end first, and what it has sent reaches the script seconds later."""
        self.port = 0

    async def start(self) -> asyncio.Server:
        server = await asyncio.start_server(self._carry, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        return server

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, here = await asyncio.open_connection("127.0.0.1", self._port)
        back = asyncio.ensure_future(self._back(there, writer))
        try:
            while data := await reader.read(65536):
                if self.break_after is not None:
                    keep = data[: int(self.break_after)]
                    self.break_after -= len(data)
                    if self.break_after <= 0:
                        self.break_after = None
                        if self.late:
                            writer.transport.abort()
                            await self._clock.sleep(self._chance.choice((0.1, 1, 5, 40)))
                        here.write(keep if not self.late else data)
                        await self._clock.sleep(0.2)
                        return
                here.write(data)
        finally:
            back.cancel()
            writer.transport.abort()
            here.transport.abort()
            await asyncio.gather(back, return_exceptions=True)

    async def _back(self, there: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await there.read(65536):
            writer.write(data)
        writer.transport.abort()


@pytest.mark.slow
def test_no_command_is_carried_out_twice_however_the_wire_breaks(tmp_path: Path) -> None:
    chance, states = random.Random(SEED), dict[int, str]()

    async def scenario() -> None:
        clock = ManualClock()
        lua = LuaServer({"transport": "ffi"}, before=WITNESS)
        lua.player()
        port = int(next(line for line in lua.log if " listens by " in line).rsplit(" ", 1)[1])
        wire = Wire(port, chance, clock)
        relay = await wire.start()
        engine = Tes3mpEngine(TOKEN, f"127.0.0.1:{wire.port}", clock=clock)

        async def go() -> None:
            while True:
                lua.step()
                await clock.advance(0.05)
                await asyncio.sleep(0.0002)

        time = asyncio.create_task(go())
        await engine.start()
        for number in range(COUNT):
            await until(lambda: engine.boot_id or time.done())
            wire.late = chance.random() < 0.4
            wire.break_after = chance.choice((None, 1, 40, 90, 130, 150, 400))
            x = 1000 + number
            params = PARAMS["move_to"].model_validate({"target_x": x, "target_y": 0, "target_z": 0})
            try:
                done = await engine.execute("nerys", f"cmd_{number}", "move_to", params)
            except BridgeUnavailableError:
                done = Done("failed")
            wire.break_after = None
            states[x] = done.state
        before = lua.fake.now
        await until(lambda: lua.fake.now > before + 45_000 or time.done())
        for x, state in states.items():
            times = lua.fake.moves[x] or 0
            assert times in {"confirmed": (1,), "failed": (0,), "unknown": (0, 1)}[state], (x, state)
        time.cancel()
        await engine.stop()
        relay.close()
        await relay.wait_closed()
        lua.event("OnServerExit")

    asyncio.run(scenario())
    assert {"confirmed", "failed"} <= set(states.values())
