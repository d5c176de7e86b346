"""Servers that die, hang, restart and stammer in the middle of commands, seen through the whole bridge and its log.

`WSAP_TES3MP_FAULTS` says how many faults, `WSAP_TES3MP_SEED` which.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from script_server import FAULTS, NOISE, TOKEN, ScriptServer, until
from sqlalchemy import select

from wsap_check.hosts import ManualClock
from wsap_tes3mp.bridge.bridge import Bridge
from wsap_tes3mp.engines.tes3mp.engine import Tes3mpEngine
from wsap_tes3mp.log.log import CommandLog
from wsap_tes3mp.log.records import COMMAND
from wsap_tes3mp.protocol.commands import CommandInput
from wsap_tes3mp.protocol.errors import BridgeError, PerceptionTimeoutError

COUNT = int(os.environ.get("WSAP_TES3MP_FAULTS", "8"))
SEED = int(os.environ.get("WSAP_TES3MP_SEED", "1"))


def test_no_command_is_carried_out_twice_or_lost_from_the_log_whatever_the_server_does(tmp_path: Path) -> None:
    chance, path, ends = random.Random(SEED), tmp_path / "commands.sqlite", Counter[str]()

    async def scenario() -> None:
        server, clock = ScriptServer(), ManualClock()
        await server.start()
        faults: dict[str, str] = {}
        while len(faults) < COUNT:
            with CommandLog(path) as log:
                engine = Tes3mpEngine(TOKEN, f"127.0.0.1:{server.port}", clock=clock)
                bridge = Bridge(engine, log, clock=clock)
                await bridge.start()
                try:
                    for _ in range(chance.randint(5, 20)):
                        await one(bridge, engine, server, clock, faults)
                        if len(faults) >= COUNT or list(faults.values())[-1] == "bridge stopped":
                            break
                finally:
                    await bridge.stop()
        await server.stop()
        with CommandLog(path) as log:
            for command_id, fault in faults.items():
                found, times = log.find(command_id), server.executed[command_id]
                assert found is not None, fault
                ends[found.state] += 1
                assert times <= 1, fault
                assert found.state != "confirmed" or times == 1, fault
                assert found.state != "failed" or times == 0, fault
                assert found.state != "unknown" or fault.startswith(("restart", "bridge", "bad_reply")), fault
                assert found.state in ("confirmed", "failed", "unknown"), fault
            assert set(server.executed) <= set(faults)
            assert len(log.read(select(COMMAND.c.id).where(COMMAND.c.state != "rejected"))) == len(faults)

    async def one(
        bridge: Bridge, engine: Tes3mpEngine, server: ScriptServer, clock: ManualClock, faults: dict[str, str]
    ) -> None:
        """Send one command, with a fault, and wait for its end."""
        await until(lambda: engine.boot_id and engine.agents(), clock)
        fault = chance.choice(FAULTS)
        server.faults = [fault]
        server.noise = [chance.choice(NOISE) for _ in range(chance.choice((0, 0, 0, 3)))]
        asked = CommandInput(
            timestamp=datetime(2026, 3, 21, tzinfo=UTC), agent_id="mira", command="wait",
            params={"duration_seconds": 1}, reasoning="A test.",
        )  # fmt: skip
        try:
            accepted = await bridge.command(asked)
        except BridgeError:
            return  # the connection broke in this moment: nothing was taken
        faults[accepted.command_id] = fault
        if chance.random() < 0.05:
            faults[accepted.command_id] = "bridge stopped"
            await asyncio.sleep(chance.choice((0, 0, 0.001)))
            await bridge.stop()
            server.hung = False
            return
        began = clock.now()
        waiting = asyncio.ensure_future(bridge.outcome(accepted.command_id, wait=1e9))

        def ended() -> bool:
            server.hung = server.hung and clock.now() - began < 40
            return waiting.done()

        await until(ended, clock)
        assert waiting.result().state in ("confirmed", "failed", "unknown")

    asyncio.run(scenario())
    assert sum(ends.values()) == COUNT


def test_a_hung_server_is_a_perception_timeout_within_the_deadline(tmp_path: Path) -> None:
    async def scenario() -> None:
        server, clock = ScriptServer(), ManualClock()
        await server.start()
        with CommandLog(None) as log:
            engine = Tes3mpEngine(TOKEN, f"127.0.0.1:{server.port}", clock=clock)
            bridge = Bridge(engine, log, clock=clock)
            await bridge.start()
            await until(lambda: engine.boot_id and engine.agents())
            assert (await bridge.perception("mira")).sequence == 8
            server.hung = True
            asked = asyncio.ensure_future(bridge.perception("mira"))
            await until(asked.done, clock)
            assert isinstance(asked.exception(), PerceptionTimeoutError)
            assert 2 <= clock.now() < 3
            await bridge.stop()
        await server.stop()

    asyncio.run(scenario())
