"""The worker process, `python -m wsap_eval.jobs.worker`, started by the driver.

Its standard input and output are the pipes to the driver. It duplicates them first and gives games an empty input and
standard error as output, so that they can't disturb the pipes. When the driver ends, the pipe closes and this process
exits at once, even during a game; a recorded episode can be resumed.
"""

from __future__ import annotations

import asyncio
import gc
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, BinaryIO

from wsap_core.errors import WsapError
from wsap_core.pipes import take_pipes
from wsap_eval.jobs.frames import HEADER, Ended, Ready, Stop, framed
from wsap_eval.jobs.together import first_error_ends
from wsap_eval.jobs.work import J, R, Work

GRACE = 3.0
"""Seconds that what is aborted has to end."""
AT_ONCE = 64
"""Most jobs side by side, as many as the driver sends ahead, so that one is played while others are committed."""
YOUNG = 10_000
"""New objects between two collections of the youngest garbage; Python's default is 700 or 2,000."""


def main() -> None:
    """Play the driver's jobs until it closes the pipe."""
    read_end, write_end = take_pipes()
    incoming, outgoing = os.fdopen(read_end, "rb"), os.fdopen(write_end, "wb")
    # The driver stops its workers itself; process groups do not always keep Ctrl-C away.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    work = _read(incoming)
    try:
        _serve(work, incoming, outgoing)
    except WsapError as error:
        _send(outgoing, Ended(type(error), str(error)))
    finally:
        sys.stderr.flush()
        os._exit(0)  # a game's thread must not keep the process alive


def _serve(work: Work[J, R], incoming: BinaryIO, outgoing: BinaryIO) -> None:
    with work.opened() as play:
        # What is imported by now is never garbage, and a game leaves hundreds of objects that refer to each other.
        gc.collect()
        gc.freeze()
        gc.set_threshold(YOUNG, 20, 20)
        asyncio.run(_play(play, incoming, outgoing))


async def _play(play: Callable[[J], Coroutine[Any, Any, R]], incoming: BinaryIO, outgoing: BinaryIO) -> None:
    jobs: asyncio.Queue[J] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    me = asyncio.current_task()
    assert me is not None

    def take(batch: tuple[J, ...]) -> None:
        for job in batch:
            jobs.put_nowait(job)

    def listen() -> None:
        while not isinstance(message := _read(incoming), Stop):
            assert isinstance(message, tuple)
            loop.call_soon_threadsafe(take, message)
        with suppress(RuntimeError):  # the loop has already ended with an error that was reported
            loop.call_soon_threadsafe(me.cancel)
        time.sleep(GRACE)
        os._exit(1)

    threading.Thread(target=listen, daemon=True).start()

    ended = list[R]()

    def tell() -> None:
        if ended:
            _send(outgoing, tuple(ended))
            ended.clear()

    async def work() -> None:
        while True:
            job = await jobs.get()
            ended.append(await play(job))
            if len(ended) == 1:
                loop.call_soon(tell)  # after those that wait for the same commit

    _send(outgoing, Ready())
    try:
        with suppress(asyncio.CancelledError):
            await first_error_ends(work() for _ in range(AT_ONCE))
    finally:
        tell()


def _read(incoming: BinaryIO) -> Any:
    head = incoming.read(HEADER.size)
    if len(head) == HEADER.size:
        size = HEADER.unpack(head)[0]
        content = incoming.read(size)
        if len(content) == size:
            return pickle.loads(content)  # noqa: S301  # from the driver
    os._exit(1)  # the driver is gone


def _send(outgoing: BinaryIO, message: Any) -> None:
    try:
        outgoing.write(framed(message))
        outgoing.flush()
    except OSError:
        os._exit(1)  # the driver is gone


if __name__ == "__main__":
    main()
