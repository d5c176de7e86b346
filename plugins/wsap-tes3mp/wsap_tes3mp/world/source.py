"""Where a world's bridge comes from: one of its own in this process, or one that is reached."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Any, Protocol, TypeVar, cast

from wsap_core.seams.clock import Clock
from wsap_core.seams.game import Snapshots
from wsap_tes3mp.bridge.bridge import Bridge
from wsap_tes3mp.bridge.checks import perceived
from wsap_tes3mp.bridge.port import BridgePort
from wsap_tes3mp.engines.engine import Carrying, Engine, Joinable, Respawning
from wsap_tes3mp.log.log import CommandLog
from wsap_tes3mp.paths import log_file, script_token_file, token_file
from wsap_tes3mp.protocol.perception import PerceptionOutput
from wsap_tes3mp.world.options import WorldOptions

T = TypeVar("T")
CONNECTING = 10.0
"""Seconds that a TES3MP server has to answer at first."""


class SteppedEngine(Engine, Joinable, Respawning, Carrying, Snapshots, Protocol):
    """An engine that can be embedded: it has every ability, and none of its methods waits for anything."""


MakeEngine = Callable[[int], SteppedEngine]
"""Returns a stepped engine of a seed."""


def simulated(seed: int) -> SteppedEngine:
    """Return the simulated engine, stepped."""
    from wsap_tes3mp.engines.simulated.engine import SimulatedEngine  # deferred for weight: a live world needs none

    return SimulatedEngine(seed=seed)


def at_once(work: Coroutine[Any, Any, T]) -> T:
    """Carry out what never waits, as no method of an embedded engine does, and return its result."""
    try:
        work.send(None)
    except StopIteration as end:
        return cast(T, end.value)
    work.close()
    raise RuntimeError("an embedded engine must not wait")


class Embedded:
    """A bridge of the world's own, with an engine that is stepped."""

    def __init__(self, seed: int, options: WorldOptions, clock: Clock, make: MakeEngine) -> None:
        self._clock, self._make = clock, make
        self._log = CommandLog(options.log or None)
        self.begin(seed)

    def begin(self, seed: int) -> None:
        """Begin another world."""
        self.engine = self._make(seed)
        at_once(self.engine.start())
        self.bridge = Bridge(self.engine, self._log, clock=self._clock)

    async def perception(self, agent_id: str) -> PerceptionOutput:
        """Return what an agent perceives, without the bridge's deadline."""
        return perceived(self.engine, agent_id, await self.engine.perceive(agent_id))

    async def close(self) -> None:
        """Stop the bridge and close the log."""
        await self.bridge.stop()
        self._log.close()


class Live:
    """A bridge that is reached, or one of our own in front of a TES3MP server; opened at the first use."""

    def __init__(self, options: WorldOptions, clock: Clock, port: BridgePort | None = None) -> None:
        self._options, self._clock, self._port = options, clock, port
        self._opened = AsyncExitStack()

    async def open(self) -> BridgePort:
        """Return the bridge."""
        if self._port is None:
            self._port = self._reached() if self._options.bridge else await self._own()
        return self._port

    def _reached(self) -> BridgePort:
        from wsap_tes3mp.client import BridgeClient  # deferred for weight: an embedded world needs no HTTP

        client = BridgeClient(self._options.bridge, self._options.token or _own_token(), clock=self._clock)
        self._opened.push_async_callback(client.aclose)
        return client

    async def _own(self) -> BridgePort:
        from wsap_tes3mp.engines.tes3mp.engine import ADDRESS  # deferred for weight, as above
        from wsap_tes3mp.engines.tes3mp.opening import open_engine

        given = self._options
        address = given.address or ADDRESS
        engine = open_engine(script_token_file(), address=address, token=given.token, clock=self._clock)
        log = self._opened.enter_context(CommandLog(given.log or log_file()))
        bridge = Bridge(engine, log, clock=self._clock)
        self._opened.push_async_callback(bridge.stop)
        await bridge.start()
        until = self._clock.now() + CONNECTING
        while engine.boot_id is None and self._clock.now() < until:
            await self._clock.sleep(0.05)
        return bridge

    async def close(self) -> None:
        """Let go of the bridge."""
        await self._opened.aclose()


def _own_token() -> str | None:
    """Return the token of a bridge on this machine, as `wsap tes3mp serve` wrote it; None where there is none."""
    path = token_file()
    return path.read_text("utf-8").strip() if os.access(path, os.R_OK) else None
