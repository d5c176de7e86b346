"""Random faults of engine, bridge, log and network: the right code and outcome, nothing done twice, nothing lost."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from scripted_engine import ScriptedEngine
from test_tes3mp_log import commanded

from wsap_check.hosts import ManualClock
from wsap_core.errors import StorageFullError
from wsap_tes3mp.bridge.app import create_app
from wsap_tes3mp.bridge.bridge import Bridge
from wsap_tes3mp.client import BridgeClient
from wsap_tes3mp.engines.engine import Done
from wsap_tes3mp.log.log import CommandLog
from wsap_tes3mp.log.records import COMMAND
from wsap_tes3mp.protocol.commands import FINAL
from wsap_tes3mp.protocol.errors import (
    BridgeUnavailableError,
)
from wsap_tes3mp.protocol.perception import Payload

FAULTS = int(os.environ.get("WSAP_TES3MP_FAULTS", "10"))
TOKEN = "token-of-the-tests-0123"


class _Engine(ScriptedEngine):
    """A game that outlives bridges, counts what it carried out, and fails as it is told."""

    def __init__(self) -> None:
        super().__init__("mira")
        self.done: Counter[str] = Counter()
        self.told: dict[str, str] = {}
        """Command id -> what it said came of it."""
        self.fault = ""
        self.clock = ManualClock()

    async def execute(self, agent_id: str, command_id: str, command: str, params: Payload) -> Done:
        fault, self.fault = self.fault, ""
        if fault == "not_sent":
            raise BridgeUnavailableError("The connection broke before the command was sent.")
        self.done[command_id] += 1
        if fault == "slow":
            await self.clock.sleep(90)
        if fault in ("hung", "bridge_stops", "killed_running"):
            await asyncio.Event().wait()
        if fault == "crashed":
            raise RuntimeError("The engine's connector has a bug.")
        if fault == "restarted":
            self.boot_id = f"{self.boot_id}'"
            return self._say(command_id, Done("unknown", "The server was restarted."))
        if fault == "refused":
            return self._say(command_id, Done("failed", "It is too far away.", "OUT_OF_REACH"))
        if fault == "nonsense":
            return self._say(
                command_id, Done("confirmed", "\ud800" * 9, "\x00", -5, {"x": float("nan"), "y": object()})
            )
        return self._say(command_id, Done("confirmed", "Done.", sequence=self.sequence))

    def _say(self, command_id: str, done: Done) -> Done:
        self.told[command_id] = done.state
        return done


class _Network(httpx2.AsyncBaseTransport):
    """Loses requests and answers, but not more than three in a row; an answer of a bridge that was killed is lost."""

    def __init__(self, chance: random.Random) -> None:
        self.app: Any = None  # ASGI
        self.lossy = 0.0
        self._chance = chance
        self._lost = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if self._loses():
            raise httpx2.ConnectError("refused")
        app = self.app
        response = await httpx2.ASGITransport(app=app).handle_async_request(request)
        if app is not self.app or self._loses():
            raise httpx2.ReadError("reset by peer")
        if request.url.path != "/morrowind/status":  # which is asked between two tries
            self._lost = 0
        return response

    def _loses(self) -> bool:
        lost = self._lost < 3 and self._chance.random() < self.lossy
        self._lost += lost
        return lost


class _Site:
    """A bridge that can be killed at any moment: it goes on from a copy of its files as they are then."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.engine, self.network = _Engine(), _Network(chance)
        self.folder, self.lives = folder, 0
        self.old: list[tuple[Bridge, CommandLog]] = []
        self.open(folder / "0.sqlite")
        self.kill_at = ""

    def open(self, path: Path) -> None:
        self.path = path
        self.log = CommandLog(path)
        self.bridge = Bridge(self.engine, self.log, clock=self.engine.clock)
        self.network.app = create_app(self.bridge, TOKEN)
        for name in ("dispatched", "finish"):
            setattr(self.log, name, self._watched(name, getattr(self.log, name)))

    def _watched(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*arguments: Any) -> Any:
            if self.kill_at == f"before_{name}":
                self.kill()
                raise asyncio.CancelledError  # the process is no more
            if self.kill_at == f"full_{name}":
                self.kill_at = ""
                raise StorageFullError("There is no room left.")
            result = method(*arguments)
            if self.kill_at == f"after_{name}":
                self.kill()
                raise asyncio.CancelledError
            return result

        return watched

    def kill(self) -> None:
        """Let a bridge go on from what is in the files now; what the old one still does is lost."""
        self.kill_at = ""
        self.lives += 1
        path = self.folder / f"{self.lives}.sqlite"
        for ending in ("", "-wal"):
            if (source := Path(f"{self.path}{ending}")).exists():
                shutil.copy(source, f"{path}{ending}")
        self.old.append((self.bridge, self.log))
        self.open(path)

    async def close(self) -> None:
        for bridge, log in [*self.old, (self.bridge, self.log)]:
            await bridge.stop()
            log.close()


KILLS = ("before_dispatched", "after_dispatched", "before_finish", "after_finish")
ENGINE = (
    "",
    "not_sent",
    "slow",
    "hung",
    "crashed",
    "restarted",
    "refused",
    "nonsense",
    "bridge_stops",
    "killed_running",
)
DISK = ("full_dispatched", "full_finish")
EXPECTED = {
    "": "confirmed", "not_sent": "failed", "slow": "confirmed", "hung": "unknown", "crashed": "unknown",
    "restarted": "unknown", "refused": "failed", "nonsense": "confirmed", "bridge_stops": "unknown",
    "killed_running": "unknown", "before_dispatched": "failed", "after_dispatched": "unknown",
    "before_finish": "unknown", "after_finish": "confirmed", "full_dispatched": "failed", "full_finish": "confirmed",
}  # fmt: skip
"""Fault -> what must have come of the command."""
NOT_DONE = ("not_sent", "before_dispatched", "after_dispatched", "full_dispatched")
"""With these the game never saw the command."""


async def _one(site: _Site, client: BridgeClient, fault: str, number: int) -> tuple[str, str]:
    """Send a command with one fault and return its id and state."""
    engine = site.engine
    if fault in ENGINE:
        engine.fault = fault
    else:
        site.kill_at = fault
    accepted = await client.command(commanded(reasoning=f"Number {number}."))
    command_id = accepted.command_id
    if fault in ("hung", "bridge_stops", "killed_running"):
        while not engine.done[command_id]:  # noqa: ASYNC110  # the game has no event for it
            await asyncio.sleep(0)
        if fault == "killed_running":
            site.kill()
        else:  # the owner stops it, and starts it again
            await site.bridge.stop()
            site.log.close()
            site.open(site.path)
    return command_id, (await client.outcome(command_id, wait=300)).state


@pytest.mark.slow
def test_after_random_faults_nothing_was_done_twice_and_nothing_is_lost(tmp_path: Path) -> None:
    chance = random.Random(14)

    async def scenario() -> None:
        site = _Site(tmp_path, chance)
        clock = site.engine.clock

        async def go() -> None:
            while True:
                await clock.advance(0.05)
                await asyncio.sleep(0)

        time = asyncio.create_task(go())
        faults = [*KILLS, *ENGINE, *DISK]
        chosen = [*faults, *chance.choices(faults, k=max(0, FAULTS - len(faults)))]
        chance.shuffle(chosen)
        states: dict[str, str] = {}
        async with BridgeClient("http://127.0.0.1:8765", TOKEN, transport=site.network, clock=clock) as client:
            await client.status()
            for number, fault in enumerate(chosen):
                site.network.lossy = chance.choice([0.0, 0.3])
                command_id, state = await _one(site, client, fault, number)
                states[command_id] = state
                assert state == EXPECTED[fault], fault
                assert site.engine.done[command_id] == (fault not in NOT_DONE)
        time.cancel()
        assert max(site.engine.done.values()) == 1
        _whole(site.log, states, site.engine)
        await site.close()

    asyncio.run(scenario())


def _whole(log: CommandLog, states: dict[str, str], engine: _Engine) -> None:
    """Compare the log with what the client heard and the game saw."""
    kept = {row.id: row.state for row in log.read(COMMAND.select())}
    assert {command_id: kept[command_id] for command_id in states} == states
    assert set(kept) >= set(engine.done)
    assert set(kept.values()) <= FINAL
