"""The process of a worker, started by its keeper.

Its standard input and output are the pipes to the nexus. It duplicates them first and gives games an empty input and
standard error as output, so that no game can disturb the pipes. However the nexus ends, the pipe ends too, and then
this process; the keeper ends it if a game blocks it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable

from wsap_core.pipes import take_pipes
from wsap_nexus.worlds.workers.blame import BlameFile
from wsap_nexus.worlds.workers.frames import DAMAGED, FrameReader
from wsap_nexus.worlds.workers.host import WorldHost, read_hello

GRACE = 5.0
"""Seconds for closing worlds after the end of the pipe where no keeper ends the process."""
_PIECE = 1 << 20
_exit = os._exit  # before a game can replace it


def main(mark: BlameFile, beat: float) -> None:
    """Serve worlds until the nexus closes the pipe."""
    incoming, outgoing = take_pipes()
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        # The nexus handles signals to the process group and stops its workers itself.
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    try:
        asyncio.run(_serve(incoming, outgoing, mark, beat))
        status = 0
    except BaseException:  # none comes from a game as long as it has not damaged this process
        traceback.print_exc()
        status = DAMAGED
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        # A game's thread must not keep the process alive, nor what it has registered to be called at the end.
        _exit(status)


async def _serve(incoming: int, outgoing: int, mark: BlameFile, interval: float) -> None:
    def send(data: bytes) -> None:
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(outgoing, view) :]
        except OSError:
            _exit(0)  # the nexus is gone

    loop = asyncio.get_running_loop()
    host, reader = WorldHost(send, mark), FrameReader()
    ended: asyncio.Future[None] = loop.create_future()
    beating: list[asyncio.Task[None]] = []

    def take(piece: bytes) -> None:
        if ended.done():
            return
        if not piece:
            ended.set_result(None)
            return
        try:
            for number, content in reader.feed(piece):
                if beating:
                    host.receive(number, content)
                else:
                    read_hello(content)
                    beating.append(loop.create_task(_beat(host, interval)))
                    beating[0].add_done_callback(_end_without_beat)
        except Exception as error:  # not a message of the nexus
            ended.set_exception(error)

    _read(incoming, loop, take)
    await ended
    for task in beating:
        task.remove_done_callback(_end_without_beat)
        task.cancel()
    await host.close()


async def _beat(host: WorldHost, interval: float) -> None:
    while True:
        host.beat()
        await asyncio.sleep(interval)


def _end_without_beat(task: asyncio.Task[None]) -> None:
    # Only a game that has damaged this process ends it before the nexus does.
    _exit(DAMAGED)


def _read(incoming: int, loop: asyncio.AbstractEventLoop, take: Callable[[bytes], None]) -> None:
    # Calls `take` on the loop with each chunk; an empty one is the end.

    def in_thread() -> None:
        while True:
            piece = _piece(incoming)
            loop.call_soon_threadsafe(take, piece)
            if not piece:
                break
        time.sleep(GRACE)
        _exit(1)

    def on_readable() -> None:
        piece = _piece(incoming)
        if not piece:
            loop.remove_reader(incoming)
        take(piece)

    try:
        # If available, a reader without a thread takes half as long.
        loop.add_reader(incoming, on_readable)
    except NotImplementedError:
        threading.Thread(target=in_thread, daemon=True).start()


def _piece(incoming: int) -> bytes:
    try:
        return os.read(incoming, _PIECE)
    except OSError:
        return b""
