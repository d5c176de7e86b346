"""The nexus' side of a worker: its open calls, its questions, and the output of its games."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from wsap_core.protocol.wire import dumps
from wsap_nexus.worlds.operations import Close, Operation
from wsap_nexus.worlds.workers.blame import Mark
from wsap_nexus.worlds.workers.frames import BEAT, DAMAGED, TAKEN, FrameReader, frame, request

# Any, in this module: JSON.

LONGEST = 1_000_000
"""The maximum bytes of a file; one older file is kept."""


class OutputLog:
    """Appends to a file and rotates it when full, keeping at least the last `limit` bytes; no path discards output."""

    def __init__(self, path: Path | None, limit: int = LONGEST) -> None:
        self.path = path
        self._limit = limit
        self._size = 0
        if path is not None:
            with contextlib.suppress(OSError):
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._size = path.stat().st_size if path.exists() else 0

    def write(self, data: bytes) -> None:
        """Append bytes; disk errors are ignored."""
        if self.path is None or not data:
            return
        data = data[-self._limit :]
        with contextlib.suppress(OSError):
            if self._size + len(data) > self._limit:
                self.path.replace(self.path.with_name(self.path.name + ".1"))
                self._size = 0
            with self.path.open("ab") as file:
                file.write(data)
            self._size += len(data)


_FROM_OUTSIDE = frozenset(
    int(getattr(signal, name))
    for name in ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT")
    if hasattr(signal, name)
)
GOODBYE = 10.0
"""Seconds that a worker has to exit."""
STUCK = 1.0
"""Seconds after which it is killed instead if a game is at work that does not return."""


@dataclass(frozen=True)
class End:
    """How the process of a worker ended."""

    code: int | None = None
    """Its exit status, negative for a signal; None if it is not known."""
    lost: str = ""
    """Why it can't be reached any more, if that is all that is known: `its node was lost`."""

    @property
    def is_from_outside(self) -> bool:
        """Whether something ended it that may come from outside: a person, the system, or the loss of its machine."""
        return bool(self.lost) or (self.code is not None and -self.code in _FROM_OUTSIDE)

    def __str__(self) -> str:
        if self.lost or self.code is None:
            return self.lost or "its process ended"
        if self.code == DAMAGED:
            return "it damaged its process, which could not reply any more"
        if self.code < 0:
            with contextlib.suppress(ValueError):
                return f"its process was ended by {signal.Signals(-self.code).name}"
        return f"its process ended with status {self.code}"


class Hears(Protocol):
    """What a carrier tells."""

    def heard(self, data: bytes) -> None:
        """Take bytes of the worker's messages."""
        ...

    def printed(self, data: bytes) -> None:
        """Take output of games."""
        ...

    def has_ended(self, end: End) -> None:
        """Take the end of the process, after all that it sent."""
        ...


class Carrier(Protocol):
    """Starts the process of a worker, carries bytes to it and from it, and ends it."""

    @property
    def mark(self) -> Mark:
        """What is known of the worker without its help."""
        ...

    @property
    def pid(self) -> int:
        """The id of its process; 0 if that is not known."""
        ...

    @property
    def where(self) -> str:
        """The other machine that it is on; empty for this one."""
        ...

    async def start(self, hears: Hears, beat: float, memory: int | None) -> None:
        """Start the process, with `beat` seconds between heartbeats; with its children it may use `memory` bytes.

        Raises:
            WorldError: that fails.
        """
        ...

    def write(self, data: bytes) -> None:
        """Send bytes; without effect once the process has ended."""
        ...

    def finish(self) -> None:
        """Tell the process that no more comes, so that it exits."""
        ...

    def kill(self) -> None:
        """Kill the process, and those that its games have started."""
        ...

    def close(self) -> None:
        """Free what is held for it, after its end."""
        ...


@dataclass
class Call:
    """An open call to a worker."""

    world: int
    on_reply: Callable[[bytes], None]
    deadline: float | None
    """Seconds that it may take once started; None if it may wait for other seats."""
    waited: float = 0.0
    """Seconds since the worker reported its start, or without its start while the worker shows signs of life."""
    begun: bool = False


class WorkerLink:
    """A worker for worlds of one game; `on_lost` is called once, with the reason, when its process has ended."""

    def __init__(
        self, name: str, game: str, carrier: Carrier, output: OutputLog, on_lost: Callable[[WorkerLink, str], None]
    ) -> None:
        self.name = name
        self.game = game
        self.worlds: set[int] = set()
        """The numbers of its worlds."""
        self.listeners: dict[int, Callable[[dict[str, Any]], None]] = {}
        """What gets the questions of worlds to the nexus, by their numbers."""
        self.calls: dict[int, Call] = {}
        """Open calls by number."""
        self.silence = 0.0
        """Seconds since its last message, counted by the pool."""
        self.idle = 0.0
        """Seconds without a world, counted by the pool."""
        self.limit_exceeded = ""
        """What its keeper ended it for, if it did: `it used 414 MiB of memory`."""
        self.end: End | None = None
        """How the process has ended; None while it runs."""
        self.why_killed: str | None = None
        """Why the nexus killed it, if it did."""
        self.accused: int | None = None
        """The world for whose call it was killed, if any."""
        self.ended: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        """Done when the process has ended."""
        self._carrier = carrier
        self._output = output
        self._on_lost = on_lost
        self._reader = FrameReader()
        self._next = 1
        self._started = False
        self._closing = False

    async def start(self, beat: float, memory: int | None) -> None:
        """Start the process, with `beat` seconds between heartbeats; WorldError if that fails.

        With its children it may use `memory` bytes.
        """
        await self._carrier.start(self, beat, memory)
        self._started = True
        if self._carrier.where:
            self.printed(f"--- on {self._carrier.where}\n".encode())

    def call(
        self, world: int, operation: Operation[Any], on_reply: Callable[[bytes], None], deadline: float | None
    ) -> int:
        """Send an operation and return its number; `on_reply` gets the content of the reply, if one comes.

        Raises:
            WireError: it can't be sent.
        """
        number, self._next = self._next, self._next + 1
        sent = frame(number, request(operation, world))
        self.calls[number] = Call(world, on_reply, deadline)
        self._write(sent)
        return number

    def take_back(self, number: int) -> None:
        """Request the cancellation of a call."""
        if number in self.calls:
            self._write(frame(0, dumps({"op": "cancel", "call": number}).encode()))

    def tell(self, content: bytes) -> None:
        """Send a message that has no reply."""
        self._write(frame(0, content))

    def let_go(self, world: int) -> None:
        """Have a world closed and ignore the replies to its calls; it goes on elsewhere."""
        self.worlds.discard(world)
        self.calls = {number: call for number, call in self.calls.items() if call.world != world}
        number, self._next = self._next, self._next + 1
        self._write(frame(number, request(Close(), world)))

    def kill(self, why: str, accused: int | None = None) -> None:
        """Kill the process, and those that its games have started."""
        if not self.gone and self._started and self.why_killed is None:
            self.why_killed, self.accused = why, accused
            self._carrier.kill()

    def give_up(self, world: int, why: str) -> None:
        """Kill the process because of one of its worlds."""
        self.kill(why, world)

    async def close(self) -> None:
        """Let the process exit; kill it after `GOODBYE` seconds, or when it is stuck in a game."""
        if self.gone or not self._started:
            return
        self._closing = True
        self._carrier.finish()
        for seconds in (STUCK, GOODBYE - STUCK):
            await asyncio.wait({self.ended}, timeout=seconds)
            if self.ended.done():
                return
            if self.mark.world:
                break
        self.kill("it did not end")
        await self.ended

    @property
    def mark(self) -> Mark:
        """Which world it is calling."""
        return self._carrier.mark

    @property
    def where(self) -> str:
        """The other machine that it is on; empty for this one."""
        return self._carrier.where

    @property
    def gone(self) -> bool:
        """Whether the process has ended."""
        return self.end is not None

    @property
    def is_ending(self) -> bool:
        """Whether it takes no more worlds."""
        return self.gone or self._closing or self.why_killed is not None

    @property
    def ended_from_outside(self) -> bool:
        """Whether what ended the process may come from outside: from a person, a system short of memory, a node."""
        return not self.why_killed and not self.limit_exceeded and self.end is not None and self.end.is_from_outside

    @property
    def pid(self) -> int | None:
        """The id of the worker's process, or of its keeper until the first heartbeat; None if it has ended."""
        return None if self.gone or not self._started else self._carrier.pid

    # --- told by the carrier ----------------------------------------------------------------------

    def heard(self, data: bytes) -> None:
        """Handle replies and heartbeats."""
        self.silence = 0.0
        try:
            for number, content in self._reader.feed(data):
                if number == BEAT:
                    self._take_beat(json.loads(content))
                elif content == TAKEN:
                    if number in self.calls:
                        self.calls[number].on_reply(content)
                else:
                    waiting = self.calls.pop(number, None)
                    if waiting is not None:
                        waiting.on_reply(content)
        except Exception:  # whatever it sent, it harms nothing but itself
            self.kill("it sent an invalid message")

    def printed(self, data: bytes) -> None:
        """Keep the output of games."""
        self._output.write(data)

    def has_ended(self, end: End) -> None:
        """Report the end of the process."""
        if self.gone:
            return
        self.end = end
        if self.mark.excess and not self.why_killed:
            self.limit_exceeded = f"it used {self.mark.excess // 2**20} MiB of memory"
        elif self.mark.crowd and not self.why_killed:
            self.limit_exceeded = f"it had started {self.mark.crowd} processes"
        why = self.why_killed or self.limit_exceeded or str(end)
        if not self.ended.done():
            self.ended.set_result(None)
        if not self._closing:
            self._on_lost(self, why)
        self._carrier.close()

    def _take_beat(self, beat: dict[str, Any]) -> None:
        if "ask" in beat:
            if (listener := self.listeners.get(beat["world"])) is not None:
                listener(beat)
            return
        for number in beat["begun"]:
            call = self.calls.get(number)
            if call is not None and not call.begun:
                call.begun, call.waited = True, 0.0

    def _write(self, data: bytes) -> None:
        # Requests to an ending process are sent again to its successor.
        if self._started and not self.gone and not self._closing:
            self._carrier.write(data)
