"""Handling of a full disk, and measurement of the database's growth."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass

from wsap_core.errors import StorageFullError, WsapError
from wsap_nexus.hub.context import LiveState
from wsap_nexus.hub.prune import DAY, prune
from wsap_nexus.runs.store import Store
from wsap_nexus.store.eventlog import TRY_AGAIN
from wsap_nexus.store.events.nexus import DiskFull
from wsap_nexus.store.nexus_store import NexusStore
from wsap_nexus.store.room import free_bytes, has_room, used_bytes
from wsap_nexus.tasks import ended

EVERY = 60.0
"""Seconds between two measurements of the database."""

WINDOW = 360
"""The number of newest measurements that give the growth: those of six hours."""

_SOON, _LONGEST_PAUSE = 5.0, 30.0
# If the disk is full again within _SOON seconds, the interval of checks doubles, up to _LONGEST_PAUSE seconds.

_FULL = "There is no room left on the disk of the database; what was committed is kept."
# Shown to everyone, so without the path of the database, which only the log names.

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class StorageReport:
    """The size and growth of a database."""

    bytes: int
    """The size of its content."""
    growth: float | None
    """Bytes per day, measured while the nexus ran; None in its first minutes."""
    free: int | None
    """Free bytes on its disk; None for a database on a server."""
    limit: int | None
    """The size in bytes at which old records are deleted; None for no limit."""

    @property
    def left(self) -> float | None:
        """Days until the limit is reached or the disk is full; None if unknown."""
        ends = [self.limit - self.bytes] if self.limit is not None else []
        ends += [self.free] if self.free is not None else []
        return max(0, min(ends)) / self.growth if ends and self.growth else None

    def to_json(self) -> dict[str, float | None]:
        """Return the report as JSON-ready data."""
        return {**asdict(self), "left": self.left}


@dataclass(eq=False)
class StorageWatch:
    """Holds the agents of a nexus while its disk is full, and prunes its database above a `limit` in bytes."""

    store: Store
    nexus_store: NexusStore
    live: LiveState
    limit: int | None
    now: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._room = asyncio.Event()
        self._room.set()
        self._since = self._until = -_SOON
        self._pause = TRY_AGAIN
        self._grown: deque[tuple[float, int]] = deque(maxlen=WINDOW)
        self._used = 0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start watching the database."""
        loop = asyncio.get_running_loop()

        def full(error: StorageFullError) -> None:
            if not self.live.full and not loop.is_closed():
                loop.call_soon_threadsafe(self._hold, str(error))

        self.store.database.on_full = full
        self._task = asyncio.create_task(self._work(), name="storage")

    async def stop(self) -> None:
        """Stop watching, and hold no agent any longer: writes on a full disk fail."""
        self.store.database.on_full = None
        self._room.set()
        await ended(self._task)

    async def room(self) -> None:
        """Return once the database can be written again."""
        # The caller's error may have come before `_hold` was called.
        await asyncio.sleep(0)
        await self._room.wait()

    def report(self) -> StorageReport:
        """Return the size and growth of the database."""
        database = self.store.database
        (began, first), (now, last) = (self._grown[0], self._grown[-1]) if self._grown else ((0.0, 0), (0.0, 0))
        growth = (last - first) * DAY / (now - began) if now > began else None
        return StorageReport(used_bytes(database), growth, free_bytes(database), self.limit)

    def _hold(self, why: str) -> None:
        if self.live.full or self.live.stopping:
            return
        self.live.full = _FULL
        self._since = self.now()
        # A write too large for the little space that was free is not retried every second.
        self._pause = min(2 * self._pause, _LONGEST_PAUSE) if self._since - self._until < _SOON else TRY_AGAIN
        self._room.clear()
        for controls in self.live.controls.values():
            controls.hold()
        _LOG.error("%s The nexus holds its agents, and goes on by itself once there is room.", why)

    def _go_on(self) -> None:
        self._until = self.now()
        seconds = round(self._until - self._since, 1)
        _LOG.warning("There is room again for the database; the nexus goes on after %.0f seconds.", seconds)
        self.live.full = ""
        self._room.set()
        for controls in self.live.controls.values():
            controls.release()
        with suppress(WsapError), self.nexus_store.change() as tx:
            tx.note(DiskFull(seconds=seconds))

    async def _work(self) -> None:
        measured = -EVERY
        while True:
            if self.live.full:
                await asyncio.sleep(self._pause)
                if await asyncio.to_thread(self._has_room):
                    self._go_on()
            elif self.now() - measured >= EVERY:
                measured = self.now()
                await asyncio.to_thread(self.measure)
            else:
                await asyncio.sleep(TRY_AGAIN)

    def _has_room(self) -> bool:
        return has_room(self.store.database) and not self.store.writer.full

    def measure(self) -> None:
        """Measure the database, and prune it if it is above the limit."""
        try:
            used = used_bytes(self.store.database)
            grown = self._grown[-1][1] + max(0, used - self._used) if self._grown else 0
            self._grown.append((self.now(), grown))
            if self.limit is not None and used > self.limit:
                prune(self.store.database, 0.0, limit=self.limit, now=self.nexus_store.wall_clock())
                used = used_bytes(self.store.database)
            self._used = used
        except WsapError as error:  # retried in a minute
            _LOG.warning("The database can't be measured or pruned: %s", error)
