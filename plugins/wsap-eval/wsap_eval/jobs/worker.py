"""The process of a worker: `python -m wsap_eval.jobs.worker`, started by the driver.

Its standard input and output are the pipes to the driver. It duplicates them first, and gives games an empty input and
standard error as output, so that no game can disturb the pipes. When the driver ends, however that happens, the pipe
ends, and so does this process at once, even in the middle of a game: what was recorded is gone on with.
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
from wsap_eval.plan import Game, Job, games_of
from wsap_eval.play import play_episode
from wsap_eval.records import EpisodeRecord

GRACE = 3.0
"""Seconds in which an episode that is broken off has to end."""
LOCKED = 10.0
"""Seconds to wait for a run that the worker of an earlier command, which is about to end, still holds."""


class NoSpending:
    """The limit of a process in which models may not be asked, because nobody there counts for all."""

    def reserve(self, worst: Usage) -> None:
        """Refuse.

        Raises:
            UsageError: always.
        """
        raise UsageError(
            "An agent or game asks a language model without saying so, and then no limit on spending can hold over "
            "several processes; add an option `model` to its spec, or play with --jobs 1."
        )

    def settle(self, worst: Usage, actual: Usage) -> None:
        """Do nothing."""

    def belongs_to(self, run_id: str) -> None:
        """Do nothing."""


def main() -> None:
    """Play what the driver sends, until it closes the pipe."""
    read_end, write_end = take_pipes()
    incoming, outgoing = os.fdopen(read_end, "rb"), os.fdopen(write_end, "wb")
    # Where process groups do not keep Ctrl-C at a terminal away: the driver stops its workers itself.
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
    """Play an episode, and wait a while where the process of an earlier command still holds its run.

    Raises:
        WsapError: as `play_episode`.
    """
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
    """Open what a process that is told of an evaluation plays with: services, and label -> game.

    Raises:
        WsapError: a game is not known here, or the database can't be used.
    """
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
        with suppress(RuntimeError):  # the loop has ended already, with an error that the driver was told of
            loop.call_soon_threadsafe(me.cancel)
        time.sleep(GRACE)
        os._exit(1)

    threading.Thread(target=listen, daemon=True).start()
    _send(outgoing, Ready())
    try:
        while True:
            job = await jobs.get()
            _send(outgoing, await play_patiently(services, games[job.key.game], job))
    except asyncio.CancelledError:
        return


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
