"""Where agents wait for others, before a game of several seats begins."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from wsap_core.seams.clock import Clock
from wsap_core.specs import AdapterSpec
from wsap_nexus.hub.transit import Way

SitDown = Callable[[Sequence[Way], AdapterSpec], Awaitable[str | None]]
"""Brings agents into one world, and returns the run that is played there."""


class Lobby:
    """Gathers agents for one game: it begins when all seats are taken, or when those who came have waited enough.

    Args:
        spec: the game.
        patience: how many seconds the first one waits for others.
        clock: for waiting.
        sit_down: begins the game.
    """

    def __init__(self, spec: AdapterSpec, patience: float, clock: Clock, sit_down: SitDown) -> None:
        self._spec = spec
        self._most = spec.seats_with({})[1]  # worlds of the nexus have no options of their own
        self._patience = patience
        self._clock = clock
        self._sit_down = sit_down
        self._waiting: list[Way] = []
        self._begun: asyncio.Future[str | None] | None = None
        self._timer: asyncio.Task[None] | None = None

    async def join(self, way: Way) -> str | None:
        """Wait for others and return the run that is played; None if the world didn't let them in."""
        if self._begun is None:
            self._begun = asyncio.get_running_loop().create_future()
            self._timer = asyncio.create_task(self._wait())
        begun = self._begun
        self._waiting.append(way)
        if len(self._waiting) == self._most:
            await self._begin()
        return await asyncio.shield(begun)

    async def _wait(self) -> None:
        await self._clock.sleep(self._patience)
        self._timer = None
        await self._begin()

    async def _begin(self) -> None:
        ways, begun, timer = self._waiting, self._begun, self._timer
        self._waiting, self._begun, self._timer = [], None, None
        if timer is not None:
            timer.cancel()
        if begun is None:
            return
        try:
            begun.set_result(await self._sit_down(ways, self._spec))
        except BaseException as error:
            begun.set_exception(error)
            raise
