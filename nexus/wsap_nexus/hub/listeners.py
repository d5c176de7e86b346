"""Listeners: they receive events after their commit, each at its own pace, across restarts."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from wsap_core.errors import WsapError
from wsap_core.factories import load
from wsap_core.host import PluginHost
from wsap_core.untrusted import single_line
from wsap_nexus import hookspecs
from wsap_nexus.hookspecs import Listener, ListenerSpec
from wsap_nexus.store.errors import is_passing
from wsap_nexus.store.events import NexusEvent
from wsap_nexus.store.events.nexus import ListenerFailed
from wsap_nexus.store.log.eventlog import TRY_AGAIN
from wsap_nexus.store.nexus_store import NexusStore
from wsap_nexus.tasks import ended

SECONDS = 60.0
"""Time limit in seconds of a plugin's listener for one event."""
GRACE = 5.0
"""Seconds that plugins' listeners get for remaining events when the nexus stops; the rest follow at its next start."""
KEEP_EVERY = 1.0
"""Interval in seconds at which the position of a busy listener is stored."""
_PAGE = 100

_LOG = logging.getLogger(__name__)

OnEvent = Callable[[NexusEvent], Awaitable[None]]


@dataclass(eq=False)
class Delivery:
    """Delivers the events of a nexus to one listener, in its own task.

    Args:
        kinds: the kinds of events to deliver; empty for all.
        at_once: maximum number of events delivered concurrently.
        seconds: time limit for one event; None for no limit.
        on_failure: called once, at the first exception or timeout.
        new_after: a new listener starts after the newest event of this kind; None to start with the next event.
    """

    nexus_store: NexusStore
    name: str
    on_event: OnEvent
    kinds: Sequence[str] = ()
    at_once: int = 1
    seconds: float | None = SECONDS
    on_failure: Callable[[str, BaseException], None] | None = None
    new_after: str | None = None

    def __post_init__(self) -> None:
        self._capacity = asyncio.Semaphore(self.at_once)
        self._fresh = asyncio.Event()
        self._closing = False
        self._read = self._kept = 0
        self._kept_at = time.monotonic()
        self._open: dict[int, asyncio.Task[None]] = {}
        self._task: asyncio.Task[None] | None = None
        self._stop: Callable[[], None] = lambda: None

    def start(self) -> None:
        """Start delivering, from the first event not delivered yet."""
        with self.nexus_store.change() as tx:
            self._read = self._kept = tx.place_of_listener(self.name, new_after=self.new_after)
        loop = asyncio.get_running_loop()

        def heard(event: NexusEvent) -> None:
            if (not self.kinds or event.kind in self.kinds) and not loop.is_closed():
                loop.call_soon_threadsafe(self._fresh.set)

        self._stop = self.nexus_store.listen(heard)
        self._task = asyncio.create_task(self._deliver(), name=f"listener {self.name}")

    async def aclose(self, grace: float = 0.0) -> None:
        """Deliver remaining events for up to `grace` seconds, cancel the others, and store the position."""
        self._stop()
        self._closing = True
        self._fresh.set()
        if self._task is not None:
            if grace:
                await asyncio.wait({self._task}, timeout=grace)
            await ended(self._task)

    @property
    def delivered(self) -> int:
        """The sequence number up to which all events are delivered."""
        return min(self._open, default=self._read + 1) - 1

    async def _deliver(self) -> None:
        try:
            while True:
                self._fresh.clear()
                if await self._deliver_page():
                    continue
                if self._closing and not self._open:
                    return
                due = KEEP_EVERY if self.delivered > self._kept else None
                try:
                    async with asyncio.timeout(due):
                        await self._fresh.wait()
                except TimeoutError:
                    self._keep()
        finally:
            await ended(*self._open.values())
            self._keep()

    async def _deliver_page(self) -> int:
        """Start delivering the next events, and return their number."""
        try:
            with self.nexus_store.look() as tx:
                events = tx.events(after=self._read, kinds=self.kinds, limit=_PAGE)
        except WsapError as error:
            _LOG.warning("The listener %s can't read the log: %s", self.name, error)
            return 0
        for event in events:
            await self._capacity.acquire()
            if time.monotonic() - self._kept_at >= KEEP_EVERY:
                self._keep()
            self._read = event.seq
            task = asyncio.create_task(self._tell(event), name=f"listener {self.name} {event.seq}")
            self._open[event.seq] = task
            task.add_done_callback(partial(self._told, event.seq))
        return len(events)

    def _told(self, seq: int, task: asyncio.Task[None]) -> None:
        self._capacity.release()
        if not task.cancelled():  # a cancelled one was not delivered
            del self._open[seq]
            self._fresh.set()

    async def _tell(self, event: NexusEvent) -> None:
        limit = asyncio.timeout(self.seconds)
        try:
            async with limit:
                await self.on_event(event)
        except Exception as error:  # a failing listener stops nothing, not even its own deliveries
            if is_passing(error):
                await asyncio.sleep(TRY_AGAIN)
                await self._tell(event)
                return
            _LOG.debug("The listener %s failed.", self.name, exc_info=error)
            report, self.on_failure = self.on_failure, None
            if report is not None:
                report(self.name, TimeoutError(f"took longer than {self.seconds:g} s") if limit.expired() else error)

    def _keep(self) -> None:
        if self.delivered <= self._kept:
            return
        try:
            with self.nexus_store.change() as tx:
                tx.keep_place_of_listener(self.name, self.delivered)
        except WsapError as error:  # another nexus has taken over, or the disk is full: some events are redelivered
            _LOG.warning("The position of the listener %s is not stored: %s", self.name, error)
            return
        self._kept, self._kept_at = self.delivered, time.monotonic()


class PluginListeners:
    """The listeners that plugins offer."""

    def __init__(self, nexus_store: NexusStore, host: PluginHost) -> None:
        self._nexus_store = nexus_store
        self._host = host
        self._deliveries: list[Delivery] = []

    def start(self) -> None:
        """Create every listener that plugins offer, and start its delivery."""
        offered = self._host.add_hook(hookspecs, "wsap_listeners", ListenerSpec, "listener")
        broken: list[tuple[str, Exception]] = []
        for name in offered.names():
            spec = offered.get(name)
            try:
                listener: Listener = load(spec.factory)()
                on_event = listener.on_event
            except Exception as error:  # a plugin's own code
                broken.append((name, error))
                continue
            delivery = Delivery(self._nexus_store, name, on_event, kinds=spec.kinds, on_failure=self._report)
            delivery.start()
            self._deliveries.append(delivery)
        for name, fault in broken:
            self._report(name, fault)

    async def aclose(self) -> None:
        """Deliver remaining events within `GRACE` seconds, and stop."""
        await asyncio.gather(*(delivery.aclose(GRACE) for delivery in self._deliveries))

    def _report(self, name: str, error: BaseException) -> None:
        text = single_line(f"{type(error).__name__}: {error}")[:500]
        _LOG.warning("The listener %s failed; this is reported once: %s", name, text, exc_info=error)
        with contextlib.suppress(WsapError), self._nexus_store.change() as tx:
            tx.note(ListenerFailed(listener=name, error=text))
