"""The source of a world's bridge: embedded in this process, or reached over HTTP."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from datetime import datetime
from typing import Any, Protocol

from wsap_core.seams.context import Context
from wsap_core.seams.game import Snapshots
from wsap_tes3mp.bridge.bridge import Bridge
from wsap_tes3mp.engines.engine import Able, BridgePort, Engine
from wsap_tes3mp.log.log import CommandLog
from wsap_tes3mp.paths import log_file
from wsap_tes3mp.protocol.errors import BridgeUnavailableError
from wsap_tes3mp.world.options import WorldOptions

CONNECTING = 10.0
"""Seconds a TES3MP server has for its first answer."""
Work = Callable[[], Coroutine[Any, Any, None]]


class SteppedEngine(Engine, Able, Snapshots, Protocol):
    """An engine that can be embedded: it has every ability, and none of its methods waits."""

    def settle(self, agent_id: str, *, spawn: str = "", loadout: str = "", difficulty: str = "") -> None:
        """Apply the terms of an entry: `spawn` and `loadout` to a new body, the `difficulty` to any."""


MakeEngine = Callable[[int], SteppedEngine]
"""Returns a stepped engine for a seed."""


def simulated(seed: int) -> SteppedEngine:
    """Return the simulated engine, stepped."""
    from wsap_tes3mp.engines.simulated.engine import SimulatedEngine  # deferred for weight: a live world needs none

    return SimulatedEngine(seed=seed)


class Source:
    """A world's bridge and what its agents share; an embedded bridge exists after `begin`, a live one on first use."""

    def __init__(
        self, options: WorldOptions, context: Context, now: Callable[[], datetime], port: BridgePort | None = None
    ) -> None:
        self.options, self.clock, self.now = options, context.clock, now
        self._run, self._identities = context.services.run, context.services.identities
        self._place = self._run or f"world-{secrets.token_hex(6)}"
        self.turn: AbstractAsyncContextManager[None] = nullcontext() if options.live else asyncio.Lock()
        """Held during a command: in a stepped world one at a time, since commands advance its time."""
        self.episode = ""
        """The episode of this world; see `episode_of`."""
        self.engine: SteppedEngine | None = None
        """The engine of an embedded world."""
        self._port, self._opened, self._due = port, AsyncExitStack(), list[Work]()
        self._bridge: Bridge | None = None  # in this process
        self._log = None
        if not options.live:
            self._log = self._opened.enter_context(CommandLog(options.log or None, named=self._named))

    @property
    def port(self) -> BridgePort:
        """The bridge; `BridgeUnavailableError` until a live one is open."""
        if self._port is None:
            raise BridgeUnavailableError("No bridge is open yet.")
        return self._port

    def identity_of(self, seat: str) -> str:
        """Return the agent that plays a seat, or else the seat."""
        return self._identities.get(seat, seat)

    def episode_of(self, seat: str) -> str:
        """Return the id of an agent's episode, which no other run or agent has."""
        return self.options.episode or f"{self._place}/{self.identity_of(seat)}/{self.episode}"

    def _named(self, seat: str) -> str:
        """Return the agent in a seat for the log, which may be that of many runs: nobody else is a run's `seat-1`."""
        who = self.identity_of(seat)
        return f"{seat}-{self._run}" if self._run and who == seat else who

    def begin(self, engine: SteppedEngine) -> None:
        """Start another embedded world."""
        assert self._log is not None
        self.engine = engine
        self.do(engine.start)
        self._port = self._bridge = Bridge(engine, self._log, clock=self.clock, deadline=None)

    def do(self, work: Work) -> None:
        """Do something: in an embedded world now, in a live one at the next `settle`."""
        if self.options.live:
            self._due.append(work)
            return
        under_way = work()
        try:
            under_way.send(None)
        except StopIteration:
            return
        under_way.close()
        raise RuntimeError("an embedded engine must not wait")

    async def settle(self) -> None:
        """Open a live bridge if necessary, and do what is due."""
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
        bridge = self._bridge = Bridge(engine, log, clock=self.clock)
        await bridge.start()
        until = self.clock.now() + CONNECTING
        while engine.boot_id is None and self.clock.now() < until:
            await self.clock.sleep(0.05)
        return bridge

    async def close(self) -> None:
        """Close the bridge."""
        if self._bridge is not None:
            await self._bridge.stop()
        await self._opened.aclose()
