"""Where a world's bridge comes from: one of its own in this process, or one that is reached."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from datetime import datetime
from typing import Any, Protocol

from typing_extensions import override

from wsap_core.seams.clock import Clock
from wsap_core.seams.game import Snapshots
from wsap_tes3mp.bridge.bridge import Bridge
from wsap_tes3mp.bridge.port import BridgePort
from wsap_tes3mp.engines.engine import Carrying, Engine, Joinable, Respawning
from wsap_tes3mp.log.log import CommandLog
from wsap_tes3mp.paths import log_file
from wsap_tes3mp.protocol.errors import BridgeUnavailableError
from wsap_tes3mp.world.options import WorldOptions

CONNECTING = 10.0
"""Seconds that a TES3MP server has to answer at first."""
Work = Callable[[], Coroutine[Any, Any, None]]
Now = Callable[[], datetime]


class SteppedEngine(Engine, Joinable, Respawning, Carrying, Snapshots, Protocol):
    """An engine that can be embedded: it has every ability, and none of its methods waits for anything."""


MakeEngine = Callable[[int], SteppedEngine]
"""Returns a stepped engine of a seed."""


def simulated(seed: int) -> SteppedEngine:
    """Return the simulated engine, stepped."""
    from wsap_tes3mp.engines.simulated.engine import SimulatedEngine  # deferred for weight: a live world needs none

    return SimulatedEngine(seed=seed)


class Source(ABC):
    """A world's bridge, and what else its agents share."""

    def __init__(self, options: WorldOptions, clock: Clock, now: Now) -> None:
        self.options, self.clock, self.now = options, clock, now
        self.turn: AbstractAsyncContextManager[None] = nullcontext() if options.live else asyncio.Lock()
        """Held while a command is under way; of a stepped world one at a time, since its time goes on with commands."""
        self.episode = ""

    @property
    @abstractmethod
    def port(self) -> BridgePort:
        """The bridge; `BridgeUnavailableError` until a live one was opened."""

    @abstractmethod
    def do(self, work: Work) -> None:
        """Do something at once in an embedded world; in a live one before the next thing that can wait."""

    @abstractmethod
    async def settle(self) -> None:
        """Open a live bridge, and do what is due."""

    @abstractmethod
    async def close(self) -> None:
        """Let go of the bridge."""


class Embedded(Source):
    """A bridge of the world's own, with an engine that is stepped."""

    def __init__(self, options: WorldOptions, clock: Clock, now: Now, make: MakeEngine, seed: int) -> None:
        super().__init__(options, clock, now)
        self._make, self._log = make, CommandLog(options.log or None)
        self.begin(seed)

    def begin(self, seed: int) -> None:
        """Begin another world."""
        self.engine = self._make(seed)
        self.do(self.engine.start)
        self._bridge = Bridge(self.engine, self._log, clock=self.clock, deadline=None)

    @property
    @override
    def port(self) -> BridgePort:
        return self._bridge

    @override
    def do(self, work: Work) -> None:
        under_way = work()
        try:
            under_way.send(None)
        except StopIteration:
            return
        under_way.close()
        raise RuntimeError("an embedded engine must not wait")

    @override
    async def settle(self) -> None:
        pass

    @override
    async def close(self) -> None:
        await self._bridge.stop()
        self._log.close()


class Live(Source):
    """A bridge that is reached, or one of our own in front of a TES3MP server; opened at the first use."""

    def __init__(self, options: WorldOptions, clock: Clock, now: Now, port: BridgePort | None = None) -> None:
        super().__init__(options, clock, now)
        self._port, self._opened, self._due = port, AsyncExitStack(), list[Work]()

    @property
    @override
    def port(self) -> BridgePort:
        if self._port is None:
            raise BridgeUnavailableError("No bridge was opened yet.")
        return self._port

    @override
    def do(self, work: Work) -> None:
        self._due.append(work)

    @override
    async def settle(self) -> None:
        if self._port is None:
            self._port = self._reached() if self.options.bridge else await self._own()
        while self._due:
            await self._due[0]()
            self._due.pop(0)

    def _reached(self) -> BridgePort:
        from wsap_tes3mp.client import BridgeClient, local_token  # deferred: an embedded world needs no HTTP

        url = self.options.bridge
        client = BridgeClient(url, self.options.token or local_token(url), clock=self.clock)
        self._opened.push_async_callback(client.aclose)
        return client

    async def _own(self) -> BridgePort:
        from wsap_tes3mp.engines.tes3mp.engine import ADDRESS, open_engine  # deferred for weight, as above

        given = self.options
        engine = open_engine(address=given.address or ADDRESS, token=given.token, clock=self.clock)
        log = self._opened.enter_context(CommandLog(given.log or log_file()))
        bridge = Bridge(engine, log, clock=self.clock)
        self._opened.push_async_callback(bridge.stop)
        await bridge.start()
        until = self.clock.now() + CONNECTING
        while engine.boot_id is None and self.clock.now() < until:
            await self.clock.sleep(0.05)
        return bridge

    @override
    async def close(self) -> None:
        await self._opened.aclose()
