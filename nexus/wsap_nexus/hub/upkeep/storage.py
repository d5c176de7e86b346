"""Faults of the machine that pass, and measurement of the database's growth.

A full disk, another program's lock on the database, a lack of open files or memory, or a database server that does not
answer is nobody's failure. Agents are held meanwhile: they make no decision, and what they did last waits in memory or
is repeated from the log. Probes with growing pauses find out when it is over; then everything goes on by itself.
"""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass

from wsap_core.errors import (
    StorageError,
    StorageFullError,
    StorageLockedError,
    StorageReadOnlyError,
    StorageUnavailableError,
    WsapError,
)
from wsap_nexus.errors import WorldInterruptedError
from wsap_nexus.hub.context import LiveState
from wsap_nexus.runs.store import Store
from wsap_nexus.store.errors import is_passing, lack
from wsap_nexus.store.events.nexus import AgentsHeld
from wsap_nexus.store.log.eventlog import TRY_AGAIN
from wsap_nexus.store.nexus_store import NexusStore
from wsap_nexus.store.upkeep.prune import DAY, prune
from wsap_nexus.store.upkeep.room import can_write, free_bytes, log_bytes, used_bytes
from wsap_nexus.tasks import ended

EVERY = 60.0
"""Seconds between two measurements of the database."""

WINDOW = 360
"""The number of newest measurements that give the growth: those of six hours."""

LOG_MOST = 96 << 20
"""Bytes of SQLite's write-ahead log above which a reader holds it up: SQLite itself keeps at most 64 MiB."""

_SOON, _LONGEST_PAUSE = 5.0, 30.0
# After a fault within _SOON seconds of the last one, the interval of probes doubles, up to _LONGEST_PAUSE seconds.

_DOUBTS, _DOUBTED_FOR = 10, 600.0
# So many errors in so many seconds are taken for faults of the machine although nothing is lacking when it is probed.

_SPARE_FILES, _SPARE_BYTES = 16, 1 << 24
# What a machine must have before agents that lacked files or memory go on.

_REASONS: dict[type[StorageError], str] = {
    StorageFullError: "There is no room left on the disk of the database; what was committed is kept.",
    StorageLockedError: "Another program holds the lock of the database; what was committed is kept.",
    StorageReadOnlyError: "The database can't be written; what was committed is kept.",
    StorageUnavailableError: "The database can't be used for the moment; what was committed is kept.",
}
_AWAY = "The server of the database can't be reached, or does not answer; what was committed is kept."
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
    log: int | None = None
    """Bytes of SQLite's write-ahead log; None for a database on a server."""

    @property
    def held_up(self) -> bool:
        """Whether the log has grown beyond what SQLite keeps, because something reads the database for very long."""
        return self.log is not None and self.log > LOG_MOST

    @property
    def left(self) -> float | None:
        """Days until the limit is reached or the disk is full; None if unknown."""
        ends = [self.limit - self.bytes] if self.limit is not None else []
        ends += [self.free] if self.free is not None else []
        return max(0, min(ends)) / self.growth if ends and self.growth else None

    def to_json(self) -> dict[str, float | None]:
        """Return the report as JSON-ready data."""
        return {**asdict(self), "left": self.left, "held_up": self.held_up}


@dataclass(eq=False)
class StorageWatch:
    """Holds the agents of a nexus during a fault of the machine, and prunes its database above a `limit` in bytes."""

    store: Store
    nexus_store: NexusStore
    live: LiveState
    limit: int | None
    now: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._sound = asyncio.Event()
        self._sound.set()
        self._lacking = self._told_of_log = False
        self._doubts: deque[float] = deque(maxlen=_DOUBTS)
        self._since = self._until = -_SOON
        self._pause = TRY_AGAIN
        self._grown: deque[tuple[float, int]] = deque(maxlen=WINDOW)
        self._used = 0
        self._measured = -EVERY
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start watching the database."""
        loop = asyncio.get_running_loop()

        def fault(error: StorageError) -> None:
            self.store.database.fault = error
            if loop.is_closed():
                return
            if self.live.stopping:  # nobody looks any more whether it is over: try again soon
                loop.call_soon_threadsafe(loop.call_later, _SOON, self._forget)
            elif not self.live.held:
                loop.call_soon_threadsafe(self._hold, error, False)

        self.store.database.on_fault = fault
        self._task = asyncio.create_task(self._work(), name="storage")

    async def stop(self) -> None:
        """Stop watching, and hold no agent any longer: in a fault that lasts, writes fail at once."""
        await ended(self._task)
        over = await asyncio.to_thread(self._is_over) if self.live.held else False
        if over:
            self._go_on()
        self._sound.set()

    async def sound(self) -> None:
        """Return once no fault of the machine lasts, or the nexus stops."""
        # The caller's error may have come before `_hold` was called.
        await asyncio.sleep(0)
        await self._sound.wait()

    def is_passing(self, error: BaseException) -> bool:
        """Return whether an error is due to a fault of the machine, rather than to an agent, a game or a request.

        The end of a worker counts as one, as long as the world in it goes on from its log.

        What failed is to be repeated after `sound`. An error of code in this process that names a lack of files, memory
        or space is one if that lack is found, too; otherwise only now and then, as it may be over by now.
        """
        if is_passing(error) or isinstance(error, WorldInterruptedError):
            return True
        cause = lack(error)
        if cause is None:
            return False
        found = _found_lacking()
        if found is not None:
            self._hold(found, True)
        if self.live.held or self.now() - self._until < _SOON:
            return True
        if len(self._doubts) == _DOUBTS and self.now() - self._doubts[0] < _DOUBTED_FOR:
            return False
        self._doubts.append(self.now())
        _LOG.warning("This machine lacked something for a moment (%s); what failed is repeated.", _words(cause))
        return True

    def report(self) -> StorageReport:
        """Return the size and growth of the database."""
        database = self.store.database
        (began, first), (now, last) = (self._grown[0], self._grown[-1]) if self._grown else ((0.0, 0), (0.0, 0))
        growth = (last - first) * DAY / (now - began) if now > began else None
        return StorageReport(used_bytes(database), growth, free_bytes(database), self.limit, log_bytes(database))

    def _hold(self, error: Exception, lacking: bool) -> None:
        self._lacking = self._lacking or lacking
        if self.live.held or self.live.stopping:
            return
        if isinstance(error, StorageError):
            self.store.database.fault = error
            why = next((text for kind, text in _REASONS.items() if isinstance(error, kind)), str(error))
            if isinstance(error, StorageUnavailableError) and not self.store.database.is_sqlite:
                why = _AWAY
        else:
            why = f"This machine lacks something that the nexus needs ({_words(error)}); what was committed is kept."
        self._since = self.now()
        # A write too large for the little space that was free is not retried every second.
        self._pause = min(2 * self._pause, _LONGEST_PAUSE) if self._since - self._until < _SOON else TRY_AGAIN
        self._sound.clear()
        self.live.hold(why)
        told = str(error) if isinstance(error, StorageError) else why
        _LOG.error("%s The nexus holds its agents, and goes on by itself once that is over.", told)

    def _forget(self) -> None:
        self.store.database.fault = None

    def _go_on(self) -> None:
        self._until = self.now()
        seconds = round(self._until - self._since, 1)
        why, self._lacking = self.live.held, False
        _LOG.warning("The fault is over; the nexus goes on after %.0f seconds.", seconds)
        self.store.database.fault = None
        self._sound.set()
        self.live.release()
        with suppress(WsapError), self.nexus_store.change() as tx:
            tx.note(AgentsHeld(seconds=seconds, why=why))

    async def _work(self) -> None:
        while True:
            try:
                await self._watch()
            except Exception:  # it lacks a thread, for example; agents must not be held for ever
                _LOG.exception("The database can't be looked at; the nexus tries again.")
                await asyncio.sleep(_LONGEST_PAUSE)

    async def _watch(self) -> None:
        while True:
            if self.live.held:
                await asyncio.sleep(self._pause)
                if await asyncio.to_thread(self._is_over):
                    self._go_on()
            elif self.now() - self._measured >= EVERY:
                self._measured = self.now()
                await asyncio.to_thread(self.measure)
            else:
                await asyncio.sleep(TRY_AGAIN)

    def _is_over(self) -> bool:
        if self._lacking and _found_lacking() is not None:
            return False
        return can_write(self.store.database) and not self.store.writer.waits

    def _look_at_log(self) -> None:
        log = log_bytes(self.store.database) or 0
        if log > LOG_MOST and not self._told_of_log:
            _LOG.warning(
                "The write-ahead log of the database has grown to %d MiB, because a program has been reading the "
                "database for very long; it shrinks once that program ends.", log >> 20,
            )  # fmt: skip
        self._told_of_log = log > LOG_MOST

    def measure(self) -> None:
        """Measure the database, and prune it if it is above the limit."""
        try:
            self._look_at_log()
            used = used_bytes(self.store.database)
            grown = self._grown[-1][1] + max(0, used - self._used) if self._grown else 0
            self._grown.append((self.now(), grown))
            if self.limit is not None and used > self.limit:
                prune(self.store.database, 0.0, limit=self.limit, now=self.nexus_store.wall_clock())
                used = used_bytes(self.store.database)
            self._used = used
        except WsapError as error:  # retried in a minute
            _LOG.warning("The database can't be measured or pruned: %s", error)


def _found_lacking() -> Exception | None:
    """Return the error at using a few files, some memory and a thread, or None."""
    files: list[int] = []
    try:
        with tempfile.TemporaryFile() as file:
            file.write(bytes(4096))
        files.extend(os.open(os.devnull, os.O_RDONLY) for _ in range(_SPARE_FILES))
        bytearray(_SPARE_BYTES)
        threading.Thread(target=lambda: None).start()
    except (OSError, MemoryError, RuntimeError) as error:
        return error if lack(error) is not None else None
    finally:
        for file_number in files:
            os.close(file_number)
    return None


def _words(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return "not enough memory"
    return (error.strerror if isinstance(error, OSError) else "") or str(error)
