"""Helpers for tests: a clock advanced by hand, and a plugin host without discovery."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Iterable
from types import SimpleNamespace
from typing import NoReturn

from wsap_core.errors import PluginError
from wsap_core.hookspecs import hookimpl
from wsap_core.host import BUILTIN, PluginHost
from wsap_core.specs import AdapterSpec, AgentSpec


class ManualClock:
    """A clock that starts at 0 and is advanced by hand, waking sleepers in order of time."""

    def __init__(self) -> None:
        self._now = 0.0
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def now(self) -> float:
        """Return its seconds."""
        return self._now

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock has been advanced by that much."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now + seconds, next(self._order), future))
        await future

    async def advance(self, seconds: float) -> None:
        """Advance the clock, waking each sleeper at its time and letting it run before the next one."""
        end = self._now + seconds
        while self._sleepers and self._sleepers[0][0] <= end:
            self._now, _, future = heapq.heappop(self._sleepers)
            if not future.done():
                future.set_result(None)
            for _ in range(10):
                await asyncio.sleep(0)
        self._now = end

    @property
    def sleeping(self) -> int:
        """The number of sleepers."""
        return sum(not future.done() for _, _, future in self._sleepers)


class IsolatedHost(PluginHost):
    """A plugin host without installed plugins."""

    @classmethod
    def discovered(cls, *, disabled: Iterable[str] = ()) -> NoReturn:
        """Raise `PluginError`."""
        raise PluginError("A test's plugin host does not load installed plugins; register what the test needs.")


def plugin_host(*plugins: object, builtin: bool = True) -> IsolatedHost:
    """Return a host with these plugins (modules or objects with `hookimpl` functions, or specs of games and agents),
    and unless not `builtin`, the kernel's own parts (`echo`, `random`, ...)."""
    host = IsolatedHost(environ={})
    if builtin:
        host.load(BUILTIN)
    games = [p for p in plugins if isinstance(p, AdapterSpec)]
    agents = [p for p in plugins if isinstance(p, AgentSpec)]
    if games or agents:
        given = SimpleNamespace(wsap_adapters=hookimpl(lambda: games), wsap_agents=hookimpl(lambda: agents))
        host.register(given, "given")
    for number, plugin in enumerate(p for p in plugins if not isinstance(p, AdapterSpec | AgentSpec)):
        host.register(plugin, getattr(plugin, "__name__", f"plugin-{number + 1}"))
    host.note_duplicates()
    return host
