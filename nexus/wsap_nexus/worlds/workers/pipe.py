"""The nexus' side of a worker: its process, open calls and output."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from wsap_core.errors import WorldError
from wsap_core.protocol.wire import dumps
from wsap_nexus.worlds.operations import Close, Operation
from wsap_nexus.worlds.workers.blame import BlameFile
from wsap_nexus.worlds.workers.frames import BEAT, DAMAGED, TAKEN, FrameReader, frame, request

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
BY_FORCE = 2.0
"""Seconds that a keeper has to end its worker; then both are killed."""
KEEPER = "wsap_nexus.worlds.workers.keeper"


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


class WorkerPipe(asyncio.SubprocessProtocol):
    """A worker process for worlds of one game; `on_lost` is called once, with the reason, when it has ended."""

    def __init__(self, name: str, game: str, output: OutputLog, on_lost: Callable[[WorkerPipe, str], None]) -> None:
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
        self.gone = False
        """Whether the process has ended."""
        self.why_killed: str | None = None
        """Why the nexus killed it, if it did."""
        self.accused: int | None = None
        """The world for whose call it was killed, if any."""
        self.mark = BlameFile.new()
        """Which world it is calling."""
        self.ended: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        """Done when the process has ended."""
        self._worker = 0
        self._output = output
        self._on_lost = on_lost
        self._reader = FrameReader()
        self._next = 1
        self._process: asyncio.SubprocessTransport | None = None
        self._pipe: asyncio.WriteTransport | None = None
        self._closing = False

    async def start(self, beat: float, memory: int | None) -> None:
        """Start the process, with `beat` seconds between heartbeats; WorldError if that fails.

        With its children it may use `memory` bytes.
        """
        loop = asyncio.get_running_loop()
        command = [sys.executable, "-m", KEEPER, str(self.mark.path), str(beat), str(memory or 0)]
        if sys.flags.isolated:
            command.insert(1, "-I")
        try:
            # Of its own session, so that signals to the nexus' process group do not end it before the nexus does.
            await loop.subprocess_exec(lambda: self, *command, start_new_session=True)
        except OSError as error:
            self.mark.close()
            raise WorldError(f"A worker process could not be started: {error.strerror or error}.") from error
        self._write(frame(0, dumps({"op": "hello", "path": [str(place) for place in sys.path]}).encode()))

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
        if not self.gone and self._process is not None and self.why_killed is None:
            self.why_killed, self.accused = why, accused
            with contextlib.suppress(ProcessLookupError):
                self._process.terminate()  # its keeper kills the others
            asyncio.get_running_loop().call_later(BY_FORCE, self._kill_by_force)

    def _kill_by_force(self) -> None:
        # The keeper does not end, as when a game has stopped it.
        if not self.gone and self._process is not None:
            self._kill_group()
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

    def give_up(self, world: int, why: str) -> None:
        """Kill the process because of one of its worlds."""
        self.kill(why, world)

    def _kill_group(self) -> None:
        # The worker and its children, except those that have left its process group.
        if self._worker:
            with contextlib.suppress(OSError):
                os.killpg(self._worker, signal.SIGKILL)

    async def close(self) -> None:
        """Let the process exit; kill it after `GOODBYE` seconds, or when it is stuck in a game."""
        if self.gone or self._process is None:
            return
        self._closing = True
        if self._pipe is not None:
            self._pipe.close()
        for seconds in (STUCK, GOODBYE - STUCK):
            await asyncio.wait({self.ended}, timeout=seconds)
            if self.ended.done():
                return
            if self.mark.world:
                break
        self.kill("it did not end")
        await self.ended

    @property
    def is_ending(self) -> bool:
        """Whether it takes no more worlds."""
        return self.gone or self._closing or self.why_killed is not None

    @property
    def ended_from_outside(self) -> bool:
        """Whether a signal ended the process that may come from outside: from a person, or a system short of memory."""
        code = None if self._process is None else self._process.get_returncode()
        return self.why_killed is None and not self.limit_exceeded and code is not None and -code in _FROM_OUTSIDE

    @property
    def pid(self) -> int | None:
        """The id of the worker's process, or of its keeper until the first heartbeat; None if it has ended."""
        if self.gone or self._process is None:
            return None
        return self._worker or self._process.get_pid()

    # --- called by asyncio ------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the process and its pipe."""
        self._process = cast(asyncio.SubprocessTransport, transport)
        self._pipe = cast("asyncio.WriteTransport | None", self._process.get_pipe_transport(0))

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Handle replies, heartbeats and the output of games."""
        if fd != 1:
            self._output.write(data)
            return
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

    def process_exited(self) -> None:
        """Report the end of the process, after reading its remaining output."""
        asyncio.get_running_loop().call_later(1.0, self._lose)  # a grandchild may keep the pipes open

    def connection_lost(self, exc: Exception | None) -> None:
        """Report the end of the process; its pipes are read to the end."""
        self._lose()

    def _lose(self) -> None:
        if self.gone:
            return
        self.gone = True
        code = None if self._process is None else self._process.get_returncode()
        if self.mark.excess and not self.why_killed:
            self.limit_exceeded = f"it used {self.mark.excess // 2**20} MiB of memory"
        elif self.mark.crowd and not self.why_killed:
            self.limit_exceeded = f"it had started {self.mark.crowd} processes"
        why = self.why_killed or self.limit_exceeded or _status(code)
        if code is not None and code < 0:
            self._kill_group()  # it may be the keeper that was killed
        if not self.ended.done():
            self.ended.set_result(None)
        if not self._closing:
            self._on_lost(self, why)
        self.mark.close()
        if self._process is not None:
            self._process.close()

    def _take_beat(self, beat: dict[str, Any]) -> None:
        if "ask" in beat:
            if (listener := self.listeners.get(beat["world"])) is not None:
                listener(beat)
            return
        self.mark.unlink()  # both have opened it
        self._worker = self._worker or self.mark.process  # before the first game is loaded, which could change it
        for number in beat["begun"]:
            call = self.calls.get(number)
            if call is not None and not call.begun:
                call.begun, call.waited = True, 0.0

    def _write(self, data: bytes) -> None:
        # Requests to an ending process are sent again to its successor.
        if self._pipe is not None and not self._pipe.is_closing() and not self.gone:
            self._pipe.write(data)


def _status(code: int | None) -> str:
    if code is None:
        return "its process ended"
    if code == DAMAGED:
        return "it damaged its process, which could not reply any more"
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"its process was ended by {signal.Signals(-code).name}"
    return f"its process ended with status {code}"
