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
from wsap_nexus.worlds.workers.carriers.pipe import WorkerPipe
from wsap_nexus.worlds.workers.keeper import MOST
from wsap_nexus.worlds.workers.link import Call, Carrier, OutputLog, WorkerLink

CREATION = 4.0
"""Multiple of the deadline for loading and creating a game."""
HELD = 1 / 3
"""Part of the deadline after which the other worlds of a worker are moved to another if one holds it."""
IDLE = 60.0
"""Seconds for which a worker without a world is kept while there are more workers than asked for."""

KILLS, MINUTE = 5, 60.0
"""So many signals that may come from outside within so many seconds count as one failure of the game."""


def sensible_workers() -> int:
    """Return the default number of workers: one per processor, at most four."""
    return max(1, min(4, os.cpu_count() or 1))


@dataclass(frozen=True)
class WorkerTimeouts:
    """The limits of workers."""

    deadline: float = 30.0
    """Seconds for one call of a game; a longer deadline of the game has precedence."""
    memory: int | None = None
    """The maximum bytes of a worker and the processes that its games have started; None for no limit."""

    @property
    def beat(self) -> float:
        """Seconds between heartbeats of a worker."""
        return min(1.0, self.deadline / 5)


class Resident(Protocol):
    """A world in a worker."""

    number: int

    @property
    def game(self) -> str:
        """The name of its game."""
        ...

    @property
    def is_suspect(self) -> bool:
        """Whether it was at work when its last worker ended, and has not got beyond that since."""
        ...

    @property
    def can_move(self) -> bool:
        """Whether it can be rebuilt in another worker while its own goes on."""
        ...

    def worker_lost(self, link: WorkerLink, why: str, *, to_blame: bool, at_work: bool = False) -> None:
        """Handle the loss of the worker.

        This world may be `to_blame` for it, or only have been `at_work`.
        """
        ...

    def game_failed(self, why: str) -> None:
        """Report a failure of the game for which no world is known to be to blame."""
        ...


class Machines(Protocol):
    """What runs workers."""

    @property
    def size(self) -> int:
        """The number of workers up to which a game gets more than one."""
        ...

    def carrier(self) -> Carrier:
        """Return a carrier for a new worker."""
        ...


@dataclass(frozen=True)
class ThisMachine:
    """Runs `size` workers as processes of this machine."""

    size: int

    def carrier(self) -> WorkerPipe:
        """Return a carrier for a new worker."""
        return WorkerPipe()


class WorkerPool:
    """Worker processes, each for worlds of one game, and started on first use.

    There are up to as many as the `machines` have room for, and one more for each game in play that would have none,
    and for each suspect, which is rebuilt in a worker of its own. `logs` is the folder for the output of games.
    """

    def __init__(
        self, machines: int | Machines, timeouts: WorkerTimeouts | None = None, *, logs: Path | None = None
    ) -> None:
        self._machines = ThisMachine(max(1, machines)) if isinstance(machines, int) else machines
        self.timeouts = timeouts or WorkerTimeouts()
        self.started = 0
        """Processes started in total."""
        self._logs = logs
        self._links: dict[int, WorkerLink] = {}
        self._starting: dict[int, asyncio.Task[None]] = {}
        self._residents: dict[int, Resident] = {}
        self._numbers = itertools.count(1)
        self._watch: asyncio.Task[None] | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self._killed: dict[str, list[float]] = {}

    @property
    def size(self) -> int:
        """The number of workers up to which a game gets more than one."""
        return self._machines.size

    @property
    def links(self) -> Sequence[WorkerLink]:
        """The current workers."""
        return list(self._links.values())

    def new_number(self) -> int:
        """Return a new number for a world."""
        return next(self._numbers)

    async def place(self, resident: Resident) -> WorkerLink:
        """Assign a world to an idle or new worker of its game, else the one with the fewest worlds, and return it.

        Raises:
            WorldError: the worker can't be started.
        """
        self._residents[resident.number] = resident
        slot = self._choose(resident)
        if slot not in self._links:
            output = self._output(slot)
            output.write(f"--- worlds of the game {resident.game!r}\n".encode())
            carrier = self._machines.carrier()
            link = self._links[slot] = WorkerLink(f"worker-{slot}", resident.game, carrier, output, self._lost)
            # A separate task: others may wait for it after the first caller was cancelled.
            self._starting[slot] = asyncio.create_task(self._start(slot, link), name=f"start {link.name}")
        link = self._links[slot]
        link.worlds.add(resident.number)
        link.idle = 0.0
        if slot in self._starting:
            await asyncio.shield(self._starting[slot])
        return link

    async def _start(self, slot: int, link: WorkerLink) -> None:
        try:
            await link.start(self.timeouts.beat, self.timeouts.memory)
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

    def held_by(self, resident: Resident) -> WorkerLink | None:
        """Return the worker whose game has not returned for long from a call to this world; None if it has."""
        held = (link for link in self.links if link.mark.world == resident.number and self._is_held(link))
        return next(held, None)

    async def close(self) -> None:
        """End all workers."""
        await ended(self._watch)
        await asyncio.gather(*self._starting.values(), return_exceptions=True)
        await asyncio.gather(*self._closing, *(link.close() for link in self.links))
        self._links.clear()

    # --- inside -------------------------------------------------------------------------------------

    def _choose(self, resident: Resident) -> int:
        # A free slot for a suspect. Otherwise the slot of an idle worker of the game, else a free one while there are
        # fewer workers in use than asked for or the game has none, else that of its worker with the fewest worlds.
        free = next(slot for slot in itertools.count(1) if slot not in self._links)
        if resident.is_suspect:
            return free
        own = [slot for slot, link in self._links.items() if link.game == resident.game and self._takes_more(link)]
        own.sort(key=lambda slot: (len(self._links[slot].worlds), slot))
        if own and (not self._links[own[0]].worlds or self._in_use() >= self.size):
            return own[0]
        return free

    def _in_use(self) -> int:
        return sum(1 for link in self.links if link.worlds and not link.is_ending)

    def _takes_more(self, link: WorkerLink) -> bool:
        known = (self._residents.get(number) for number in link.worlds)
        suspect = any(resident is not None and resident.is_suspect for resident in known)
        return not link.is_ending and not suspect and not self._is_held(link)

    def _is_held(self, link: WorkerLink) -> bool:
        long = max(HELD * self.timeouts.deadline, 2 * self.timeouts.beat)
        return not link.is_ending and link.silence > long and bool(link.mark.world)

    def _move_others(self, link: WorkerLink) -> None:
        # One world holds the worker: the others need not wait until it is answered or killed.
        for number in sorted(link.worlds - {link.mark.world}):
            resident = self._residents.get(number)
            if resident is not None and resident.can_move:
                link.let_go(number)
                resident.worker_lost(link, "another world holds its worker", to_blame=False)

    def _output(self, slot: int) -> OutputLog:
        return OutputLog(None if self._logs is None else self._logs / f"worker-{slot}.log")

    def _lost(self, link: WorkerLink, why: str) -> None:
        for slot, known in list(self._links.items()):
            if known is link:
                del self._links[slot]
        if link.limit_exceeded:
            memory = self.timeouts.memory if link.mark.excess else None
            why += f", more than the limit of {MOST if memory is None else memory // 2**20}"
        at_work = self._at_work(link)
        # A world that was in it with others must exceed the limit alone before it is to blame.
        certain = not link.ended_from_outside and (not link.limit_exceeded or len(link.worlds) == 1)
        residents = [self._residents[number] for number in sorted(link.worlds) if number in self._residents]
        for resident in residents:
            own = resident.number == at_work
            resident.worker_lost(link, why, to_blame=own and certain, at_work=own)
        if residents and ((at_work is None and certain) or self._is_killed_often(link)):
            residents[0].game_failed(why)

    def _is_killed_often(self, link: WorkerLink) -> bool:
        # A game may also kill its process again and again while none of its worlds is at work, as from a thread. It has
        # no part in the loss of a machine, which takes several workers at once.
        if not link.ended_from_outside or (link.end is not None and link.end.lost):
            return False
        now = asyncio.get_running_loop().time()
        recent = [at for at in self._killed.get(link.game, ()) if now - at < MINUTE]
        self._killed[link.game] = [] if len(recent) + 1 >= KILLS else [*recent, now]
        return not self._killed[link.game]

    @staticmethod
    def _at_work(link: WorkerLink) -> int | None:
        # The world that a lost worker was running: the accused, else the marked, else the only one called, else, unless
        # it was ended from outside, its only one.
        if link.accused is not None:
            return link.accused
        if link.mark.world in link.worlds:
            return link.mark.world
        asked = {call.world for call in link.calls.values() if call.begun or len(link.calls) == 1}
        if len(asked) == 1:
            return asked.pop()
        alone = next(iter(link.worlds)) if len(link.worlds) == 1 else None
        return None if link.ended_from_outside else alone

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
        """Add seconds to the waiting times, kill workers that are too late, and end superfluous ones."""
        for slot, link in list(self._links.items()):
            self._look_at(link, passed)
            link.idle = 0.0 if link.worlds or slot in self._starting else link.idle + passed
            if link.idle > IDLE and len(self._links) > self.size and not link.is_ending:
                del self._links[slot]
                self._closing.add(asyncio.create_task(link.close(), name=f"end {link.name}"))
        self._closing = {task for task in self._closing if not task.done()}

    def _look_at(self, link: WorkerLink, passed: float) -> None:
        link.silence += passed
        longest = max((c.deadline for c in link.calls.values() if c.deadline is not None), default=0.0)
        longest = max(longest, self.timeouts.deadline)
        if link.silence > longest + 2 * self.timeouts.beat:
            link.kill(f"it did not respond for {longest:g} s")
            return
        if self._is_held(link):
            self._move_others(link)
        for call in link.calls.values():
            if self._is_late(link, call, passed):
                link.kill(f"a call was not answered within {call.deadline:g} s", accused=call.world)
                return

    def _is_late(self, link: WorkerLink, call: Call, passed: float) -> bool:
        # A call that has not begun waits for the others of a silent worker; if the worker is not silent, it was lost.
        if call.deadline is None and call.begun:
            return False
        if not call.begun and link.silence > 2 * self.timeouts.beat:
            return False
        call.waited += passed
        limit = self.timeouts.deadline if call.deadline is None else call.deadline
        return call.waited > (limit if call.begun else 2 * limit)
