"""The pool of workers: placement of worlds, timeouts, and blame for lost workers."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from wsap_core.errors import WorldError
from wsap_nexus.tasks import ended
from wsap_nexus.worlds.workers.pipe import Call, OutputLog, WorkerPipe

CREATION = 4.0
"""Multiple of the deadline for loading and creating a game."""


def sensible_workers() -> int:
    """Return the default number of workers: one per processor, at most four."""
    return max(1, min(4, os.cpu_count() or 1))


@dataclass(frozen=True)
class WorkerTimeouts:
    """The limits of workers."""

    deadline: float = 30.0
    """Seconds for one call of a game; a longer deadline of the game has precedence."""
    memory: int | None = None
    """The maximum bytes of a worker; None for no limit."""

    @property
    def beat(self) -> float:
        """Seconds between heartbeats of a worker."""
        return min(1.0, self.deadline / 5)


class Resident(Protocol):
    """A world in a worker."""

    number: int

    def worker_lost(self, link: WorkerPipe, why: str, *, to_blame: bool) -> None:
        """Handle the loss of the worker, for which this world may be to blame."""
        ...


class WorkerPool:
    """Up to `size` worker processes, each started on first use; `logs` is the folder for the output of games."""

    def __init__(self, size: int, timeouts: WorkerTimeouts | None = None, *, logs: Path | None = None) -> None:
        self.size = max(1, size)
        """The maximum number of workers."""
        self.timeouts = timeouts or WorkerTimeouts()
        self.started = 0
        """Processes started in total."""
        self._logs = logs
        self._links: dict[int, WorkerPipe] = {}
        self._starting: dict[int, asyncio.Task[None]] = {}
        self._residents: dict[int, Resident] = {}
        self._numbers = itertools.count(1)
        self._watch: asyncio.Task[None] | None = None

    @property
    def links(self) -> Sequence[WorkerPipe]:
        """The current workers."""
        return list(self._links.values())

    def new_number(self) -> int:
        """Return a new number for a world."""
        return next(self._numbers)

    async def place(self, resident: Resident) -> WorkerPipe:
        """Assign a world to an idle or new worker, else the one with the fewest worlds, and return the worker.

        Raises:
            WorldError: the worker can't be started.
        """
        self._residents[resident.number] = resident
        slot = self._choose()
        if slot not in self._links:
            link = self._links[slot] = WorkerPipe(f"worker-{slot}", self._output(slot), self._lost)
            # A separate task: others may wait for it after the first caller was cancelled.
            self._starting[slot] = asyncio.create_task(self._start(slot, link), name=f"start {link.name}")
        link = self._links[slot]
        link.worlds.add(resident.number)
        if slot in self._starting:
            await asyncio.shield(self._starting[slot])
        return link

    async def _start(self, slot: int, link: WorkerPipe) -> None:
        try:
            await link.start(self.timeouts.beat)
            self.started += 1
        except WorldError:
            self._links.pop(slot, None)
            raise
        finally:
            self._starting.pop(slot, None)
        if self._watch is None or self._watch.done():
            self._watch = asyncio.create_task(self._keep_watch(), name="watch over workers")

    def leave(self, resident: Resident) -> None:
        """Forget a world."""
        self._residents.pop(resident.number, None)
        for link in self.links:
            link.worlds.discard(resident.number)

    async def close(self) -> None:
        """End all workers."""
        await ended(self._watch)
        await asyncio.gather(*self._starting.values(), return_exceptions=True)
        await asyncio.gather(*(link.close() for link in self.links))
        self._links.clear()

    # --- inside -------------------------------------------------------------------------------------

    def _choose(self) -> int:
        # The slot of an idle worker, else a free slot, else that of the worker with the fewest worlds.
        alive = [slot for slot, link in self._links.items() if link.why_killed is None]
        alive.sort(key=lambda slot: (len(self._links[slot].worlds), slot))
        if alive and (not self._links[alive[0]].worlds or len(alive) >= self.size):
            return alive[0]
        return next(slot for slot in itertools.count(1) if slot not in self._links)

    def _output(self, slot: int) -> OutputLog:
        return OutputLog(None if self._logs is None else self._logs / f"worker-{slot}.log")

    def _lost(self, link: WorkerPipe, why: str) -> None:
        for slot, known in list(self._links.items()):
            if known is link:
                del self._links[slot]
        blamed = self._blamed(link)
        for number in sorted(link.worlds):
            resident = self._residents.get(number)
            if resident is not None:
                resident.worker_lost(link, why, to_blame=number == blamed)

    @staticmethod
    def _blamed(link: WorkerPipe) -> int | None:
        # The world that a lost worker was running: the accused, else the marked, else the only one called. No world is
        # to blame for a process that was ended from outside.
        if link.accused is not None:
            return link.accused
        if link.ended_from_outside:
            return None
        if link.mark.world:
            return link.mark.world
        asked = {call.world for call in link.calls.values() if call.begun or len(link.calls) == 1}
        return asked.pop() if len(asked) == 1 else None

    async def _keep_watch(self) -> None:
        # If the nexus itself was blocked, at most two beats are counted: what arrived meanwhile has not been read yet.
        beat = self.timeouts.beat
        loop = asyncio.get_running_loop()
        before = loop.time()
        while True:
            await asyncio.sleep(beat)
            now = loop.time()
            passed, before = min(now - before, 2 * beat), now
            self.look(passed)

    def look(self, passed: float) -> None:
        """Add seconds to the waiting times, and kill workers that are too late or too large."""
        for link in self.links:
            self._look_at(link, passed)

    def _look_at(self, link: WorkerPipe, passed: float) -> None:
        link.silence += passed
        longest = max((c.deadline for c in link.calls.values() if c.deadline is not None), default=0.0)
        longest = max(longest, self.timeouts.deadline)
        if link.silence > longest + 2 * self.timeouts.beat:
            link.kill(f"it did not respond for {longest:g} s")
            return
        for call in link.calls.values():
            if self._is_late(call, passed):
                link.kill(f"a call was not answered within {call.deadline:g} s", accused=call.world)
                return
        limit = self.timeouts.memory
        if limit is not None and link.memory is not None and link.memory > limit:
            alone = next(iter(link.worlds)) if len(link.worlds) == 1 else None
            link.kill(f"it used {link.memory // 2**20} MiB of memory, more than the limit of {limit // 2**20}", alone)

    @staticmethod
    def _is_late(call: Call, passed: float) -> bool:
        if call.deadline is None or not call.begun:
            return False
        call.waited += passed
        return call.waited > call.deadline
