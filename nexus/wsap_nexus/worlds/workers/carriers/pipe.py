"""A worker as a process of this machine, which is reached by its pipes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from wsap_core.errors import WorldError
from wsap_core.protocol.wire import dumps
from wsap_nexus.worlds.workers.blame import BlameFile
from wsap_nexus.worlds.workers.frames import frame
from wsap_nexus.worlds.workers.keeper import ASIDE
from wsap_nexus.worlds.workers.link import End, Hears

BY_FORCE = 2.0
"""Seconds that a keeper has to end its worker; then both are killed."""
KEEPER = "wsap_nexus.worlds.workers.keeper"


class WorkerPipe(asyncio.SubprocessProtocol):
    """A `Carrier` to a process of this machine.

    It finds games on the import `path`, by default that of this process. Its keeper stands `aside` if this process may
    kill its children before it ends.
    """

    where = ""

    def __init__(self, path: Sequence[str | Path] | None = None, *, aside: bool = False) -> None:
        self.mark = BlameFile.new()
        self._path = sys.path if path is None else path
        self._aside = aside
        self._worker = 0
        self._hears: Hears | None = None
        self._process: asyncio.SubprocessTransport | None = None
        self._pipe: asyncio.WriteTransport | None = None
        self._has_ended = False

    async def start(self, hears: Hears, beat: float, memory: int | None) -> None:
        """Start the process; WorldError if that fails."""
        self._hears = hears
        loop = asyncio.get_running_loop()
        command = [sys.executable, "-m", KEEPER, str(self.mark.path), str(beat), str(memory or 0)]
        command += [ASIDE] * self._aside
        if sys.flags.isolated:
            command.insert(1, "-I")
        try:
            # Of its own session, so that signals to the nexus' process group do not end it before the nexus does.
            await loop.subprocess_exec(lambda: self, *command, start_new_session=True)
        except OSError as error:
            self.mark.close()
            raise WorldError(f"A worker process could not be started: {error.strerror or error}.") from error
        self.write(frame(0, dumps({"op": "hello", "path": [str(place) for place in self._path]}).encode()))

    def write(self, data: bytes) -> None:
        """Send bytes."""
        if self._pipe is not None and not self._pipe.is_closing() and not self._has_ended:
            self._pipe.write(data)

    def finish(self) -> None:
        """Close the pipe, so that the process exits."""
        if self._pipe is not None:
            self._pipe.close()

    def kill(self) -> None:
        """Kill the process, and those that its games have started."""
        if self._process is not None and not self._has_ended:
            with contextlib.suppress(ProcessLookupError):
                self._process.terminate()  # its keeper kills the others
            asyncio.get_running_loop().call_later(BY_FORCE, self._kill_by_force)

    def _kill_by_force(self) -> None:
        # The keeper does not end, as when a game has stopped it.
        if not self._has_ended and self._process is not None:
            self._kill_group()
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

    def _kill_group(self) -> None:
        # The worker and its children, except those that have left its process group.
        if self._worker:
            with contextlib.suppress(OSError):
                os.killpg(self._worker, signal.SIGKILL)

    def close(self) -> None:
        """Close the pipes and the shared memory."""
        self.mark.close()
        if self._process is not None:
            self._process.close()

    @property
    def pid(self) -> int:
        """The id of the worker's process, or of its keeper until the first message."""
        return self._worker or (0 if self._process is None else self._process.get_pid())

    # --- called by asyncio ------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the process and its pipe."""
        self._process = cast(asyncio.SubprocessTransport, transport)
        self._pipe = cast("asyncio.WriteTransport | None", self._process.get_pipe_transport(0))

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Pass on messages and the output of games."""
        if self._hears is None:
            return
        if fd != 1:
            self._hears.printed(data)
            return
        if not self._worker:
            self.mark.unlink()  # both have opened it
            self._worker = self.mark.process  # before the first game is loaded, which could change it
        self._hears.heard(data)

    def process_exited(self) -> None:
        """Report the end of the process, after reading its remaining output."""
        asyncio.get_running_loop().call_later(1.0, self._lose)  # a grandchild may keep the pipes open

    def connection_lost(self, exc: Exception | None) -> None:
        """Report the end of the process; its pipes are read to the end."""
        self._lose()

    def _lose(self) -> None:
        if self._has_ended:
            return
        self._has_ended = True
        code = None if self._process is None else self._process.get_returncode()
        if code is not None and code < 0:
            self._kill_group()  # it may be the keeper that was killed
        if self._hears is not None:
            self._hears.has_ended(End(code))
