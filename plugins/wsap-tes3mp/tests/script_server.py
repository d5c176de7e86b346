"""A server that speaks the script's protocol over TCP, badly where it is told to; it counts what it carried out."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from wsap_check.hosts import ManualClock

TOKEN = "token-of-the-tests-0123"
FACTS: dict[str, Any] = {
    "sequence": 7, "cell": "-3, -2", "region": "West Shore",
    "x": -20000.0, "y": -12000.0, "z": 300.5, "interior": False,
    "health": {"current": 44.2, "max": 60}, "level": 3,
    "entities": [
        {"id": "12-0", "ref_id": "guard_01", "kind": "actor", "x": -20030, "y": -12040, "z": 300.5, "cell": "-3, -2"},
        {"id": "0-77", "ref_id": "ex_door_02", "kind": "object", "x": -20000, "y": -12000, "z": 310.5},
    ],
    "inventory": [
        {"ref_id": "gold_001", "count": 40, "equipped": False}, {"ref_id": "iron_sword", "count": 1, "equipped": True},
    ],
    "journal": [{"quest": "a_quest", "index": 10}, {"quest": "a_quest", "index": 5}],
    "weather": 4, "hour": 13.5, "day": 2, "combat_age": 3, "dialogue_age": None,
}  # fmt: skip
DEADLINE = 120.0
"""Seconds that a test waits for something at most."""


async def until(condition: Callable[[], object], clock: ManualClock | None = None, step: float = 0.1) -> None:
    """Wait until something is so, letting the clock go on meanwhile."""
    async with asyncio.timeout(DEADLINE):
        while not condition():
            if clock is not None:
                await clock.advance(step)
            await asyncio.sleep(0.001)


class ScriptServer:
    """A TES3MP server as its connector sees it.

    `faults` names, for each command to come, what goes wrong with it.
    """

    def __init__(self) -> None:
        self.boot = 1
        self.port = 0
        self.connections = 0
        self.executed: Counter[str] = Counter()
        """Command id -> how often it was carried out, over all boots: the witness."""
        self.states: dict[str, str] = {}
        """What this boot knows of commands."""
        self.faults: list[str] = []
        self.hung = False
        self.facts: dict[str, Any] = dict(FACTS)
        self.agents: list[dict[str, Any]] = [
            {"agent": "mira", "name": "Mira", "connected": True, "dead": False, "embodiment": "avatar"}
        ]
        self.noise: list[bytes] = []
        """Raw lines that come before the next reply."""
        self.answers: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {}
        self.asked: list[dict[str, Any]] = []
        self._server: asyncio.Server | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._open: set[asyncio.StreamWriter] = set()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, limit=1 << 20)
        self.port = self._server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        """Break the connection."""
        if self._writer is not None:
            self._writer.transport.abort()
            self._writer = None

    async def stop(self) -> None:
        """Die."""
        self.cut()
        for writer in self._open:
            writer.transport.abort()
        self._open.clear()
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()
            self._server = None

    async def restart(self) -> None:
        """Die, and come back as another boot that knows nothing."""
        await self.stop()
        self.boot += 1
        self.states.clear()
        await self.start()

    def finish(self, command_id: str, state: str = "confirmed") -> None:
        """Bring a dispatched command to its end, and tell it if somebody listens."""
        self.states[command_id] = state
        self.say({"event": "outcome", "command_id": command_id, "state": state, "sequence": 8})

    def say(self, line: dict[str, Any]) -> None:
        if self._writer is not None:
            self._writer.write(json.dumps(line).encode() + b"\n")

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.CancelledError):
            self._open.add(writer)
            if self.hung:
                await reader.read()
                writer.transport.abort()
                return
            hello = json.loads(await reader.readline())["hello"]
            if hello["token"] != TOKEN or hello["version"] != 1:
                refused = "token" if hello["token"] != TOKEN else "version"
                writer.write(json.dumps({"refused": refused}).encode() + b"\n")
                writer.close()
                return
            self.connections += 1
            self._writer = writer
            boot = f"boot-{self.boot}"
            self.say({"welcome": {"boot": boot, "connection": self.connections, "version": 1, "server": "0.8.1"}})
            while line := await reader.readline():
                if line.endswith(b"\n") and not self.hung:
                    await self._take(json.loads(line))
        writer.close()

    async def _take(self, request: dict[str, Any]) -> None:
        self.asked.append(request)
        writer = self._writer
        if writer is not None:
            for noise in self.noise:
                writer.write(noise + b"\n")
        self.noise = []
        op = request["op"]
        if op == "command":
            await self._command(request)
            return
        if op in self.answers:
            answer = self.answers[op](request)
        elif op == "perceive":
            answer = {"ok": self.facts}
        elif op == "agents":
            answer = {"ok": {"agents": self.agents}}
        elif op == "outcome":
            answer = {"ok": {"state": self.states.get(request["command_id"], "never")}}
        else:
            answer = {"ok": {}}
        self.say({"re": request["id"], **answer})

    async def _command(self, request: dict[str, Any]) -> None:
        command_id, number = request["command_id"], request["id"]
        fault = self.faults.pop(0) if self.faults else ""
        step = _FAULTS.get(fault, _FAULTS[""])
        if command_id in self.states:
            self.say({"re": number, "ok": {"state": self.states[command_id]}})
            return
        await step(self, command_id, number)

    def execute(self, command_id: str, state: str = "confirmed") -> None:
        self.executed[command_id] += 1
        self.states[command_id] = state

    def send(self, data: bytes) -> None:
        if self._writer is not None:
            self._writer.write(data)


async def _done_at_once(server: ScriptServer, command_id: str, number: int) -> None:
    server.execute(command_id)
    server.say({"re": number, "ok": {"state": "confirmed", "sequence": 8}})


async def _done_later(server: ScriptServer, command_id: str, number: int) -> None:
    server.execute(command_id, "dispatched")
    server.say({"re": number, "ok": {"state": "dispatched"}})
    server.finish(command_id)


async def _told_twice(server: ScriptServer, command_id: str, number: int) -> None:
    await _done_later(server, command_id, number)
    server.finish(command_id)


async def _told_first(server: ScriptServer, command_id: str, number: int) -> None:
    server.execute(command_id)
    server.finish(command_id)
    server.say({"re": number, "ok": {"state": "dispatched"}})


async def _cut_before(server: ScriptServer, command_id: str, number: int) -> None:
    server.cut()


async def _cut_after(server: ScriptServer, command_id: str, number: int) -> None:
    server.execute(command_id)
    server.cut()


async def _cut_in_reply(server: ScriptServer, command_id: str, number: int) -> None:
    server.execute(command_id)
    server.send(b'{"re":%d,"ok":{"sta' % number)
    await asyncio.sleep(0)
    server.cut()


async def _cut_while_dispatched(server: ScriptServer, command_id: str, number: int) -> None:
    server.execute(command_id, "dispatched")
    server.say({"re": number, "ok": {"state": "dispatched"}})
    server.cut()
    server.finish(command_id)


async def _restart_before(server: ScriptServer, command_id: str, number: int) -> None:
    asyncio.get_running_loop().create_task(server.restart())


async def _restart_after(server: ScriptServer, command_id: str, number: int) -> None:
    server.execute(command_id)
    asyncio.get_running_loop().create_task(server.restart())


async def _hang_before(server: ScriptServer, command_id: str, number: int) -> None:
    server.hung = True


async def _hang_after(server: ScriptServer, command_id: str, number: int) -> None:
    server.execute(command_id)
    server.hung = True


async def _slow(server: ScriptServer, command_id: str, number: int) -> None:
    server.execute(command_id)
    for byte in json.dumps({"re": number, "ok": {"state": "confirmed", "sequence": 8}}).encode() + b"\n":
        server.send(bytes([byte]))
        await asyncio.sleep(0)


async def _noisy(server: ScriptServer, command_id: str, number: int) -> None:
    for line in NOISE:
        server.send(line + b"\n")
    await _done_later(server, command_id, number)


async def _refused(server: ScriptServer, command_id: str, number: int) -> None:
    server.say({"re": number, "error": {"code": "OUT_OF_REACH", "message": "It is too far away."}})


async def _bad_reply(server: ScriptServer, command_id: str, number: int) -> None:
    server.execute(command_id)
    server.say({"re": number, "error": "\ud800"})


NOISE = (
    b"", b"not json", b"[1,2]", b"null", b'{"re":', b'{"re":null,"ok":{}}', b'{"re":1e999,"ok":{}}', b'{"re":true}',
    b'{"event":"outcome"}', b'{"event":"outcome","command_id":7,"state":"failed"}', b'{"event":["x"]}', b"{}",
    b'{"event":"agents","agents":[{"agent":NaN},3,{"agent":""},{"agent":"\xff\xfe"}]}', b"\xff\xfe\x00", b"[" * 5000,
    b'{"event":"outcome","command_id":"x","state":{}}', b'{"re":' + b"9" * 5000 + b"}", b"x" * 300_000,
    b'{"event":"changed","agent":"mira","sequence":NaN}', b'{"re":0,"error":"\\ud800"}',
)  # fmt: skip
"""Lines that no script should send."""
_FAULTS: dict[str, Callable[[ScriptServer, str, int], Awaitable[None]]] = {
    "": _done_at_once,
    "done_later": _done_later,
    "told_twice": _told_twice,
    "told_first": _told_first,
    "cut_before": _cut_before,
    "cut_after": _cut_after,
    "cut_in_reply": _cut_in_reply,
    "cut_while_dispatched": _cut_while_dispatched,
    "restart_before": _restart_before,
    "restart_after": _restart_after,
    "hang_before": _hang_before,
    "hang_after": _hang_after,
    "slow": _slow,
    "noisy": _noisy,
    "refused": _refused,
    "bad_reply": _bad_reply,
}
FAULTS = tuple(_FAULTS)
