"""The conformance suite, unchanged, against every engine and every way to reach one, and what it finds."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from scripted_engine import ScriptedEngine
from test_tes3mp_script_engine import playing

from wsap_check.hosts import ManualClock
from wsap_core.errors import UsageError
from wsap_core.seams.clock import Clock
from wsap_tes3mp.bridge.app import create_app
from wsap_tes3mp.bridge.bridge import Bridge
from wsap_tes3mp.client import BridgeClient
from wsap_tes3mp.conformance import CHECKS, CheckResult, run_checks
from wsap_tes3mp.engines.engine import Done, Engine
from wsap_tes3mp.engines.simulated.engine import SimulatedEngine
from wsap_tes3mp.log.log import CommandLog
from wsap_tes3mp.protocol.bridge import JoinRequest
from wsap_tes3mp.protocol.perception import Payload

TOKEN = "token-of-the-tests-0123"
SEED_PATHS = {("GET", "/perception"), ("POST", "/command"), ("GET", "/morrowind/status")}
ADDITIONS = {"boot_id", "sequence", "inventory", "dialogue", "completed_quests", "fidelity", "agents", "abilities"}


@asynccontextmanager
async def bridged(engine: Engine, clock: Clock | None = None) -> AsyncIterator[Bridge]:
    with CommandLog() as log:
        bridge = Bridge(engine, log, clock=clock)
        await bridge.start()
        try:
            yield bridge
        finally:
            await bridge.stop()


@asynccontextmanager
async def simulated(*, realtime: bool = False) -> AsyncIterator[tuple[Bridge, ManualClock]]:
    """Give a bridge to the simulated engine, and the clock that goes on for both."""
    clock = ManualClock()

    async def go() -> None:
        while True:
            await clock.advance(0.05)
            await asyncio.sleep(0)

    time = asyncio.create_task(go())
    engine = SimulatedEngine(seed=3, realtime=realtime, clock=clock, agents=("mira",))
    async with bridged(engine, clock) as bridge:
        yield bridge, clock
    time.cancel()


@asynccontextmanager
async def over_http(
    bridge: Bridge, *, bare: bool = False, token: str = TOKEN, clock: Clock | None = None
) -> AsyncIterator[BridgeClient]:
    """Give a client of a bridge; a bare one has the seed's three endpoints and fields alone."""
    transport: httpx2.AsyncBaseTransport = httpx2.ASGITransport(app=create_app(bridge, TOKEN))
    if bare:
        transport = BareTransport(transport)
    async with BridgeClient("http://127.0.0.1:8765", token, transport=transport, clock=clock) as client:
        yield client


class BareTransport(httpx2.AsyncBaseTransport):
    """Takes away from a bridge what 1.1.0 adds."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if (request.method, request.url.path) not in SEED_PATHS:
            return httpx2.Response(404, json={"detail": "Not Found"})
        request.headers.pop("idempotency-key", None)
        response = await self._inner.handle_async_request(request)
        data = json.loads(await response.aread())
        kept = {key: value for key, value in data.items() if key not in ADDITIONS}
        if "protocol_version" in kept:
            kept["protocol_version"] = "1.0.0"
        return httpx2.Response(response.status_code, json=kept)


def statuses(results: list[CheckResult]) -> dict[str, str]:
    failed = [(result.name, result.reason) for result in results if result.status == "failed"]
    assert not failed
    return {result.name: result.status for result in results}


@pytest.mark.parametrize("realtime", [False, True], ids=["stepped", "realtime"])
@pytest.mark.parametrize("http", [False, True], ids=["here", "http"])
@pytest.mark.slow
def test_the_simulated_engine_conforms(realtime: bool, http: bool) -> None:
    async def scenario() -> None:
        async with simulated(realtime=realtime) as (bridge, clock), over_http(bridge) as client:
            found = statuses(await run_checks(client if http else bridge, act=True, clock=clock))
            skipped = {name for name, status in found.items() if status == "skipped"}
            assert skipped <= {"busy"}  # over HTTP the clock of the test goes far between two requests
            assert set(found) == set(CHECKS)

    asyncio.run(scenario())


def test_a_conflict_is_found_by_a_client_that_asks_again_for_as_long_as_it_should() -> None:
    async def scenario() -> None:
        async with simulated(realtime=True) as (bridge, clock), over_http(bridge, clock=clock) as client:
            found = statuses(await run_checks(client, agent="mira", act=True, clock=clock, only=["busy"]))
            assert found["busy"] == "passed"

    asyncio.run(scenario())


def test_which_of_several_agents_is_asked_for_and_a_wrong_token_is_a_failure() -> None:
    async def scenario() -> None:
        async with simulated() as (bridge, clock), over_http(bridge, token="wrong") as client:
            await bridge.join(JoinRequest(agent_id="odo"))
            with pytest.raises(UsageError, match="--agent: mira, odo"):
                await run_checks(bridge, clock=clock)
            assert len(await run_checks(bridge, agent="odo", clock=clock)) > 1
            (status,) = await run_checks(client, clock=clock)
            assert (status.status, "--token-file" in status.reason) == ("failed", True)

    asyncio.run(scenario())


@pytest.mark.parametrize("transport", ["ffi", "mailbox"])
@pytest.mark.slow
def test_the_script_of_tes3mp_conforms_in_luajit(transport: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with playing(transport, tmp_path) as game, bridged(game.engine, game.clock) as bridge:
            for agent in ("nerys", None):  # a player, and a companion of the suite's own
                found = statuses(await run_checks(bridge, agent=agent, act=True, clock=game.clock))
                skipped = {name for name, status in found.items() if status == "skipped"}
                assert skipped <= {"items", "leave", "join"}

    asyncio.run(scenario())


def test_a_bridge_with_the_seeds_endpoints_alone_passes_and_what_it_lacks_is_said() -> None:
    async def scenario() -> None:
        async with simulated() as (bridge, clock), over_http(bridge, bare=True) as client:
            results = await run_checks(client, act=True, clock=clock)
            found = statuses(results)
            assert {name for name, status in found.items() if status == "passed"} >= {
                "status", "perception", "order", "refusals", "unhindered", "wait",
            }  # fmt: skip
            lacks = next(result.reason for result in results if result.name == "once")
            assert lacks == "the bridge has only the endpoints of protocol 1.0.0, without idempotency keys"

    asyncio.run(scenario())


def test_without_being_allowed_to_act_nothing_is_carried_out() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine("mira")
        async with bridged(engine) as bridge:
            found = statuses(await run_checks(bridge))
            assert engine.carried_out == []
            assert found["wait"] == "skipped"
            assert found["refusals"] == "passed"

    asyncio.run(scenario())


class _Careless(ScriptedEngine):
    """Confirms whatever it is told."""


class _Forgetful(ScriptedEngine):
    """Says of nothing what came of it."""

    async def execute(self, agent_id: str, command_id: str, command: str, params: Payload) -> Done:
        return Done("unknown")


class _Silent(ScriptedEngine):
    """Fails without saying why."""

    async def execute(self, agent_id: str, command_id: str, command: str, params: Payload) -> Done:
        return Done("failed")


class _Backwards(ScriptedEngine):
    """Its sequence goes back."""

    async def perceive(self, agent_id: str) -> Any:
        self.sequence = (self.sequence or 100) - 1
        return await super().perceive(agent_id)


class _Changing(ScriptedEngine):
    """What is perceived changes without a new sequence number."""

    async def perceive(self, agent_id: str) -> Any:
        self.body = {**self.body, "health": {"current": self.body["health"]["current"] - 1, "max": 100}}
        return await super().perceive(agent_id)


@pytest.mark.parametrize(("engine", "check"), [
    (_Careless, "ends"), (_Forgetful, "wait"), (_Silent, "wait"), (_Backwards, "order"), (_Changing, "order"),
])  # fmt: skip
def test_promises_that_are_not_kept_are_found(engine: type[ScriptedEngine], check: str) -> None:
    async def scenario() -> None:
        async with bridged(engine("mira")) as bridge:
            results = await run_checks(bridge, act=True)
            assert [result.name for result in results if result.status == "failed"][:1] == [check]

    asyncio.run(scenario())


class Loose(httpx2.AsyncBaseTransport):
    """Changes one value of each perception of a bridge, or of its other answers at a route."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, path: str, value: object, route: str = "/perception") -> None:
        self._inner, self._path, self._value, self._route = inner, path, value, route

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._inner.handle_async_request(request)
        data = json.loads(await response.aread())
        if request.url.path == self._route and response.status_code < 400:
            *outer, name = self._path.split(".")
            place = data
            for key in outer:
                place = place[int(key) if key.isdigit() else key]
            place[name] = self._value
        return httpx2.Response(response.status_code, json=data)


@pytest.mark.parametrize(
    ("path", "value", "fits"),
    [
        ("location.x", "1", False),
        ("location.interior", 1, False),
        ("timestamp", 1774103400, False),
        ("timestamp", "1774103400", False),
        ("inventory_summary.gold", "150", False),
        ("nearby_entities.0.distance", "12.5", False),
        ("raw_engine_data", None, False),
        ("inventory_summary.gold", 150.0, True),
        ("location.x", 12, True),
        ("timestamp", "2026-03-21T14:30:00+02:00", True),
    ],
)
def test_the_checks_are_as_strict_as_the_schema(path: str, value: object, fits: bool) -> None:
    async def scenario() -> None:
        async with bridged(ScriptedEngine("mira")) as bridge:
            transport = Loose(httpx2.ASGITransport(app=create_app(bridge, TOKEN)), path, value)
            async with BridgeClient("http://127.0.0.1:8765", TOKEN, transport=transport, strict=True) as client:
                found = {one.name: one for one in await run_checks(client, only=["perception"])}
            assert found["perception"].status == ("passed" if fits else "failed"), found["perception"].reason
            assert fits or path in found["perception"].reason

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("route", "path", "value", "check"),
    [
        ("/command", "logged", "true", "unhindered"),
        ("/command", "logged", 1, "unhindered"),
        ("/command", "status", "ok", "unhindered"),
        ("/morrowind/status", "bridge_connected", "true", "status"),
        ("/morrowind/status", "uptime_seconds", "3600", "status"),
    ],
)
def test_other_answers_are_checked_as_strictly(route: str, path: str, value: object, check: str) -> None:
    async def scenario() -> None:
        async with bridged(ScriptedEngine("mira")) as bridge:
            transport = Loose(httpx2.ASGITransport(app=create_app(bridge, TOKEN)), path, value, route)
            async with BridgeClient("http://127.0.0.1:8765", TOKEN, transport=transport, strict=True) as client:
                found = {one.name: one for one in await run_checks(client, act=True, only=[check])}
            assert found[check].status == "failed"
            assert path in found[check].reason

    asyncio.run(scenario())


def test_opaque_data_that_is_null_does_not_keep_an_agent_from_playing() -> None:
    async def scenario() -> None:
        async with bridged(ScriptedEngine("mira")) as bridge:
            transport = Loose(httpx2.ASGITransport(app=create_app(bridge, TOKEN)), "raw_engine_data", None)
            async with BridgeClient("http://127.0.0.1:8765", TOKEN, transport=transport) as client:
                assert (await client.perception()).raw_engine_data == {}

    asyncio.run(scenario())


@pytest.mark.parametrize("bare", [False, True])
def test_where_no_agent_is_in_the_game_what_needs_one_is_skipped_and_said(bare: bool) -> None:
    async def scenario() -> None:
        clock = ManualClock()

        async def go() -> None:
            while True:
                await clock.advance(1.0)
                await asyncio.sleep(0)

        time = asyncio.create_task(go())
        async with bridged(ScriptedEngine()) as bridge, over_http(bridge, bare=bare, clock=clock) as client:
            results = await run_checks(client, act=True, clock=clock)
        time.cancel()
        found = statuses(results)
        assert {name for name, status in found.items() if status == "passed"} == {"status", "refusals"}
        reasons = {one.name: one.reason for one in results}
        assert reasons["perception"] == "no agent is in the game; let one join, and check again"

    asyncio.run(scenario())


def test_an_engine_that_is_not_connected_ends_the_checks() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine("mira")
        engine.boot_id = None
        async with bridged(engine) as bridge:
            (result,) = await run_checks(bridge)
            assert (result.name, result.status) == ("status", "failed")

    asyncio.run(scenario())
