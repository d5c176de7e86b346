"""Entering games: which can be entered, their capacity, and lobbies for several seats."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from wsap_core.errors import UnknownNameError
from wsap_core.seams.clock import Clock
from wsap_core.specs import AdapterSpec
from wsap_core.version import PROTOCOL_VERSION
from wsap_nexus.errors import GameUnavailableError, IncompatibleGameError
from wsap_nexus.hub.context import HubContext
from wsap_nexus.hub.living_worlds import LivingWorlds
from wsap_nexus.hub.transit.entering import PreparedEntry, cancel_entry, prepare_enter
from wsap_nexus.store.entities import EntryRequest
from wsap_nexus.worlds.game_info import GameInfo


class Capacity:
    """Counts the worlds in use, for games that limit them."""

    def __init__(self, context: HubContext) -> None:
        self._context = context
        self._sitting: dict[str, list[frozenset[str]]] = {}
        """By game, the transfer ids of agents entering now, a set for each world."""
        self._closing: dict[str, list[str]] = {}
        """By game, the runs of empty worlds that are still being closed."""

    def busy(self, spec: AdapterSpec) -> bool:
        """Return whether there is no world for one more agent."""
        if spec.max_worlds is None:
            return False
        going = set().union(*self._sitting.get(spec.name, ()))
        with self._context.nexus_store.look() as tx:
            prepared = [row for row in tx.transfers("prepared") if row.kind == "enter"]
        waiting = sum(row.data.get("game") == spec.name and row.id not in going for row in prepared)
        wanted = math.ceil((waiting + 1) / spec.seats[1])
        return bool(self._taken(spec) + wanted > spec.max_worlds)

    async def enter_together(
        self, entries: Sequence[PreparedEntry], spec: AdapterSpec, play: EnterTogether
    ) -> str | None:
        """Bring agents into one world by `play` if one is free, and return the run; None otherwise."""
        if spec.max_worlds is None:
            return await play(entries, spec)
        if self._taken(spec) >= spec.max_worlds:
            # They came too late for the others' world, and none is left for them.
            error = _full(spec)
            with self._context.nexus_store.change() as tx:
                for entry in entries:
                    cancel_entry(tx, entry.transfer_id, entry.agent_id, str(error))
            for entry in entries:
                self._context.live.arriving.resolve(entry.agent_id, error)
            return None
        sitting = self._sitting.setdefault(spec.name, [])
        mine = frozenset(entry.transfer_id for entry in entries)
        sitting.append(mine)
        try:
            return await play(entries, spec)
        finally:
            sitting.remove(mine)

    @contextmanager
    def closing(self, spec: AdapterSpec, run_id: str) -> Iterator[None]:
        """Count a world as in use while it is being closed; then wake the agents that wait for one."""
        if spec.max_worlds is None:
            yield
            return
        closing = self._closing.setdefault(spec.name, [])
        closing.append(run_id)
        try:
            yield
        finally:
            closing.remove(run_id)
            self._context.wakeups.ring_all()

    def _taken(self, spec: AdapterSpec) -> int:
        with self._context.nexus_store.look() as tx:
            runs = {session.run_id for session in tx.open_sessions(game=spec.name)}
        return len(runs.union(self._closing.get(spec.name, ()))) + len(self._sitting.get(spec.name, ()))


def _full(spec: AdapterSpec) -> GameUnavailableError:
    worlds = "its only world is" if spec.max_worlds == 1 else f"all its {spec.max_worlds} worlds are"
    return GameUnavailableError(f"{spec.display_title} is busy: {worlds} taken. Wait until an agent leaves.")


EnterTogether = Callable[[Sequence[PreparedEntry], AdapterSpec], Awaitable[str | None]]
"""Brings agents into one world, and returns the run."""


class Lobby:
    """Gathers agents for one game, which starts when all seats are taken or the first agent has waited `seconds`."""

    def __init__(self, spec: AdapterSpec, seconds: float, clock: Clock, enter_together: EnterTogether) -> None:
        self._spec = spec
        self._most = spec.seats[1]
        self._seconds = seconds
        self._clock = clock
        self._enter_together = enter_together
        self._waiting: list[PreparedEntry] = []
        self._begun: asyncio.Future[str | None] | None = None
        self._timer: asyncio.Task[None] | None = None

    async def join(self, entry: PreparedEntry) -> str | None:
        """Wait for others and return the run; None if the world refused them."""
        if self._begun is None:
            self._begun = asyncio.get_running_loop().create_future()
            self._timer = asyncio.create_task(self._wait())
        begun = self._begun
        self._waiting.append(entry)
        if len(self._waiting) == self._most:
            await self._begin()
        return await asyncio.shield(begun)

    async def _wait(self) -> None:
        await self._clock.sleep(self._seconds)
        self._timer = None
        with suppress(Exception):  # those who wait are told
            await self._begin()

    async def _begin(self) -> None:
        entries, begun, timer = self._waiting, self._begun, self._timer
        self._waiting, self._begun, self._timer = [], None, None
        if timer is not None:
            timer.cancel()
        if begun is None:
            return
        try:
            begun.set_result(await self._enter_together(entries, self._spec))
        except BaseException as error:
            begun.set_exception(error)
            begun.exception()  # the waiters may be gone
            raise


class Entrance:
    """Games as agents see and enter them."""

    def __init__(self, context: HubContext, capacity: Capacity, worlds: LivingWorlds[Any]) -> None:
        # Any: of whatever is in play.
        self.worlds = worlds
        """The worlds that live here."""
        self._context = context
        self._capacity = capacity

    def games(self) -> list[GameInfo]:
        """Return information about every game."""
        active = Counter(stay.session.game for stay in self._context.live.sessions.values())
        found = self._context.catalog.infos(active, self._capacity.busy)
        return [self._with_worlds(info) if info.status == "available" else info for info in found]

    def _with_worlds(self, info: GameInfo) -> GameInfo:
        closed = self.worlds.closed(self._context.catalog.spec(info.id))
        return info if closed is None else replace(info, status=closed[0], reason=closed[1])

    def specs(self) -> dict[str, AdapterSpec]:
        """Return the specs of all games by name."""
        return {info.id: self._context.catalog.spec(info.id) for info in self.games()}

    def game_info(self, game: str) -> GameInfo:
        """Return information about a game; UnknownNameError if there is no such game."""
        games = self.games()
        for info in games:
            if info.id == game:
                return info
        raise UnknownNameError("world", game, [g.id for g in games])

    def request_enter(self, agent_id: str, game: str, terms: EntryRequest) -> str:
        """Prepare an agent's entry, and return a confirmation for it; UnknownNameError or TransitError if refused."""
        info = self.game_info(game)
        if info.status == "busy":
            raise _full(self._context.catalog.spec(info.id))
        if info.status != "available":
            reason = info.reason
            raise GameUnavailableError(f"{info.name} is {info.status}{': ' if reason else ''}{reason or '.'}")
        if info.protocol_version.split(".")[0] != PROTOCOL_VERSION.split(".")[0]:
            raise IncompatibleGameError(
                f"{info.name} speaks protocol {info.protocol_version}, and this nexus speaks {PROTOCOL_VERSION}."
            )
        self.worlds.check(self._context.catalog.spec(game), terms.world, terms.seat)
        with self._context.nexus_store.change() as tx:
            entry = prepare_enter(tx, agent_id, self._context.catalog.spec(game), terms)
        self._context.live.entries[agent_id] = entry
        return f"You are on your way to {info.name}."
