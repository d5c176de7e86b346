"""The worker process, `python -m wsap_eval.jobs.worker`, started by the driver.

Its standard input and output are the pipes to the driver. It duplicates them first and gives games an empty input and
standard error as output, so that they can't disturb the pipes. When the driver ends, the pipe closes and this process
exits at once, even during a game; the recorded episode can be resumed.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import BinaryIO

from wsap_core.errors import StorageLockedError, UsageError, WsapError
from wsap_core.host import PluginHost
from wsap_core.pipes import take_pipes
from wsap_core.seams.agent import Usage
from wsap_core.seams.services import Services, runtime_services
from wsap_eval.jobs.frames import HEADER, Ended, Ready, Setup, Stop, framed
from wsap_eval.jobs.together import first_error_ends
from wsap_eval.plan import Game, Job, games_of
from wsap_eval.play import play_episode
from wsap_eval.records import EpisodeRecord

GRACE = 3.0
"""Seconds that an aborted episode has to end."""
AT_ONCE = 16
"""Most episodes side by side, so that one is played while others are committed."""
LOCKED = 10.0
"""Seconds to wait for a run locked by a worker of an earlier command that is about to end."""


class NoSpending:
    """A budget that forbids model calls, since a spending limit can't be shared between processes."""

    def reserve(self, worst: Usage) -> None:
        """Raise UsageError."""
        raise UsageError(
            "An agent or game calls a language model without declaring it, so spending can't be limited across "
            "processes; add an option `model` to its spec, or use --jobs 1."
        )

    def settle(self, worst: Usage, actual: Usage) -> None:
        """Do nothing."""

    def belongs_to(self, run_id: str) -> None:
        """Do nothing."""


def main() -> None:
    """Play the driver's episodes until it closes the pipe."""
    read_end, write_end = take_pipes()
    incoming, outgoing = os.fdopen(read_end, "rb"), os.fdopen(write_end, "wb")
    # The driver stops its workers itself; process groups do not always keep Ctrl-C away.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    setup = _read(incoming)
    assert isinstance(setup, Setup)
    try:
        _serve(setup, incoming, outgoing)
    except WsapError as error:
        _send(outgoing, Ended(type(error), str(error)))
    finally:
        sys.stderr.flush()
        os._exit(0)  # a game's thread must not keep the process alive


async def play_patiently(services: Services, game: Game, job: Job) -> EpisodeRecord:
    """Like `play_episode`, but wait up to `LOCKED` seconds if another process still locks the run."""
    deadline = time.monotonic() + LOCKED
    while True:
        try:
            return await play_episode(services, game, job)
        except StorageLockedError:
            if time.monotonic() > deadline:
                raise
        await asyncio.sleep(0.05)


@contextmanager
def opened(setup: Setup) -> Iterator[tuple[Services, dict[str, Game]]]:
    """Yield services and games (by label). Raises WsapError if a game is unknown or the database can't be used."""
    games = games_of(setup.suite, PluginHost.discovered())
    with runtime_services(setup.database, budgets=(NoSpending(),) * setup.limited) as services:
        yield services, games


def _serve(setup: Setup, incoming: BinaryIO, outgoing: BinaryIO) -> None:
    with opened(setup) as (services, games):
        asyncio.run(_play(services, games, incoming, outgoing))


async def _play(services: Services, games: Mapping[str, Game], incoming: BinaryIO, outgoing: BinaryIO) -> None:
    jobs: asyncio.Queue[Job] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    me = asyncio.current_task()
    assert me is not None

    def listen() -> None:
        while not isinstance(message := _read(incoming), Stop):
            assert isinstance(message, Job)
            loop.call_soon_threadsafe(jobs.put_nowait, message)
        with suppress(RuntimeError):  # the loop has already ended with an error that was reported
            loop.call_soon_threadsafe(me.cancel)
        time.sleep(GRACE)
        os._exit(1)

    threading.Thread(target=listen, daemon=True).start()

    async def work() -> None:
        while True:
            job = await jobs.get()
            _send(outgoing, await play_patiently(services, games[job.key.game], job))

    _send(outgoing, Ready())
    with suppress(asyncio.CancelledError):
        await first_error_ends(work() for _ in range(AT_ONCE))


def _read(incoming: BinaryIO) -> Setup | Job | Stop:
    head = incoming.read(HEADER.size)
    if len(head) == HEADER.size:
        size = HEADER.unpack(head)[0]
        content = incoming.read(size)
        if len(content) == size:
            message: Setup | Job | Stop = pickle.loads(content)  # noqa: S301  # from the driver
            return message
    os._exit(1)  # the driver is gone


def _send(outgoing: BinaryIO, message: Ready | EpisodeRecord | Ended) -> None:
    try:
        outgoing.write(framed(message))
        outgoing.flush()
    except OSError:
        os._exit(1)  # the driver is gone


if __name__ == "__main__":
    main()
