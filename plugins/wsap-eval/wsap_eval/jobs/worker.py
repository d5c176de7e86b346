"""The worker process, `python -m wsap_eval.jobs.worker`, started by the driver.

Its standard input and output are the pipes to the driver. It duplicates them first and gives games an empty input and
standard error as output, so that they can't disturb the pipes. When the driver ends, the pipe closes and this process
exits at once, even during a game; the recorded episode can be resumed.
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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import BinaryIO

from wsap_core.errors import StorageLockedError, UsageError, WsapError
from wsap_core.host import PluginHost
from wsap_core.pipes import take_pipes
from wsap_core.seams.agent import Usage
from wsap_core.seams.services import Services, runtime_services
from wsap_eval.apart import BEFORE, differences
from wsap_eval.conditions import Conditions
from wsap_eval.jobs.frames import HEADER, Batch, Ended, Ready, Reply, Setup, Stop, framed
from wsap_eval.jobs.together import first_error_ends
from wsap_eval.metrics import warned_once
from wsap_eval.plan import Game, Job, games_of
from wsap_eval.play import play_episode
from wsap_eval.records import EpisodeRecord

GRACE = 3.0
"""Seconds that an aborted episode has to end."""
AT_ONCE = 64
"""Most episodes side by side, as many as the driver sends ahead, so that one is played while others are committed."""
YOUNG = 10_000
"""New objects between two collections of the youngest garbage; Python's default is 700 or 2,000."""
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


@dataclass(frozen=True)
class Table:
    """What plays the episodes of a setup in a process."""

    services: Services
    games: Mapping[str, Game]
    """By label."""
    conditions: Conditions


async def play_patiently(table: Table, job: Job) -> EpisodeRecord:
    """Like `play_episode`, but wait up to `LOCKED` seconds if another process still locks the run.

    Raises UsageError also if the episode would be played under other conditions here than in the driver.
    """
    deadline = time.monotonic() + LOCKED
    _refuse_others(job, table.conditions.here(job))
    while True:
        try:
            return await play_episode(table.services, table.games[job.key.game], job)
        except StorageLockedError:
            if time.monotonic() > deadline:
                raise
        await asyncio.sleep(0.05)


def _refuse_others(job: Job, here: Mapping[str, str]) -> None:
    """Raise UsageError if this process would play an episode under other conditions than those it has, if any."""
    if job.conditions and here != job.conditions:
        told = ", ".join(differences(job.conditions, here, BEFORE))
        raise UsageError(
            f"{job.key.game!r} is no longer what the command began with, or another version on this machine: {told}. "
            "Don't edit files while they are played, and install the same versions on all machines; then run the "
            "command again."
        )


@contextmanager
def opened(setup: Setup) -> Iterator[Table]:
    """Yield what plays the episodes. Raises WsapError if a game is unknown or the database can't be used."""
    host = PluginHost.discovered()
    games = games_of(setup.suite, host)
    with runtime_services(setup.database, budgets=(NoSpending(),) * setup.limited) as services:
        yield Table(services, games, Conditions(games, host))


def _serve(setup: Setup, incoming: BinaryIO, outgoing: BinaryIO) -> None:
    with opened(setup) as table, warned_once():
        # What is imported by now is never garbage, and an episode leaves hundreds of objects that refer to each other.
        gc.collect()
        gc.freeze()
        gc.set_threshold(YOUNG, 20, 20)
        asyncio.run(_play(table, incoming, outgoing))


async def _play(table: Table, incoming: BinaryIO, outgoing: BinaryIO) -> None:
    jobs: asyncio.Queue[Job] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    me = asyncio.current_task()
    assert me is not None

    def take(batch: Batch) -> None:
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

    ended = list[EpisodeRecord]()

    def tell() -> None:
        if ended:
            _send(outgoing, tuple(ended))
            ended.clear()

    async def work() -> None:
        while True:
            job = await jobs.get()
            ended.append(await play_patiently(table, job))
            if len(ended) == 1:
                loop.call_soon(tell)  # after those that wait for the same commit

    _send(outgoing, Ready())
    try:
        with suppress(asyncio.CancelledError):
            await first_error_ends(work() for _ in range(AT_ONCE))
    finally:
        tell()


def _read(incoming: BinaryIO) -> Setup | Batch | Stop:
    head = incoming.read(HEADER.size)
    if len(head) == HEADER.size:
        size = HEADER.unpack(head)[0]
        content = incoming.read(size)
        if len(content) == size:
            message: Setup | Batch | Stop = pickle.loads(content)  # noqa: S301  # from the driver
            return message
    os._exit(1)  # the driver is gone


def _send(outgoing: BinaryIO, message: Reply) -> None:
    try:
        outgoing.write(framed(message))
        outgoing.flush()
    except OSError:
        os._exit(1)  # the driver is gone


if __name__ == "__main__":
    main()
