"""The process of a worker: `python -m wsap_nexus.worlds.workers.main MARK BEAT`, started by the nexus.

Its standard input and output are the pipes to the nexus. It duplicates them first and gives games an empty input and
standard error as output, so that no game can disturb the pipes. However the nexus ends, the pipe ends too, and then
this process, even if a game blocks it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from wsap_core.pipes import take_pipes
from wsap_nexus.worlds.workers.blame import BlameFile
from wsap_nexus.worlds.workers.frames import FrameReader
from wsap_nexus.worlds.workers.host import WorldHost, read_hello

GRACE = 5.0
"""Seconds for closing worlds after the end of the pipe; then the process exits."""
_PIECE = 1 << 20


def main() -> None:
    """Serve worlds until the nexus closes the pipe."""
    incoming, outgoing = take_pipes()
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        # The nexus handles signals to the process group and stops its workers itself.
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    mark = BlameFile(Path(sys.argv[1]))
    try:
        asyncio.run(_serve(incoming, outgoing, mark, float(sys.argv[2])))
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        # A game's thread must not keep the process alive.
        os._exit(0)


async def _serve(incoming: int, outgoing: int, mark: BlameFile, interval: float) -> None:
    def send(data: bytes) -> None:
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(outgoing, view) :]
        except OSError:
            os._exit(0)  # the nexus is gone

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
        except Exception as error:  # not a message of the nexus
            ended.set_exception(error)

    _read(incoming, loop, take)
    await ended
    for task in beating:
        task.cancel()
    await host.close()


async def _beat(host: WorldHost, interval: float) -> None:
    while True:
        host.beat()
        await asyncio.sleep(interval)


def _read(incoming: int, loop: asyncio.AbstractEventLoop, take: Callable[[bytes], None]) -> None:
    # Calls `take` on the loop with each chunk; an empty one is the end.

    def in_thread() -> None:
        while True:
            piece = _piece(incoming)
            loop.call_soon_threadsafe(take, piece)
            if not piece:
                break
        time.sleep(GRACE)
        os._exit(1)

    def until_hung_up() -> None:
        import select

        poll = select.poll()
        poll.register(incoming, 0)  # reports only the closing of the other end
        poll.poll()
        time.sleep(GRACE)
        os._exit(1)

    def on_readable() -> None:
        piece = _piece(incoming)
        if not piece:
            loop.remove_reader(incoming)
        take(piece)

    try:
        # If available, a reader without a thread takes half as long.
        loop.add_reader(incoming, on_readable)
        threading.Thread(target=until_hung_up, daemon=True).start()
    except NotImplementedError:
        threading.Thread(target=in_thread, daemon=True).start()


def _piece(incoming: int) -> bytes:
    try:
        return os.read(incoming, _PIECE)
    except OSError:
        return b""


if __name__ == "__main__":
    main()
