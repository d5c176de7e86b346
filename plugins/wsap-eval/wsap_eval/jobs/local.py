"""The driver's side of worker processes: hands out episodes, and replaces workers that died."""

from __future__ import annotations

import asyncio
import os
import pickle
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from wsap_core.errors import WsapError
from wsap_eval.jobs.frames import HEADER, Ended, Reply, Setup, Stop, framed
from wsap_eval.jobs.together import first_error_ends
from wsap_eval.plan import Job
from wsap_eval.play import failed
from wsap_eval.records import EpisodeKey, EpisodeRecord

TRIES = 3
"""How many workers may die of an episode before it counts as failed."""
UNREADY = 5
"""How many may die in a row before they are ready to play."""
GRACE = 5.0
"""Seconds in which a worker has to end once it was told to."""


def cpus() -> int:
    """Return the processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


async def play_in_workers(
    jobs: Iterator[Job], setup: Setup, keep: Callable[[EpisodeRecord], None], *, workers: int
) -> None:
    """Play episodes in worker processes, one at a time in each.

    A worker that dies is replaced, and its episode gone on with; one of which `TRIES` workers died is failed.

    Raises:
        WsapError: nothing can be recorded, an entrant or game can't be played like this at all, or no worker can be
            started.
    """
    deaths = Counter[EpisodeKey]()
    await first_error_ends(_keep_busy(jobs, deaths, setup, keep) for _ in range(workers))


async def _keep_busy(
    jobs: Iterator[Job], deaths: Counter[EpisodeKey], setup: Setup, keep: Callable[[EpisodeRecord], None]
) -> None:
    job, unready = next(jobs, None), 0
    while job is not None:
        async with _Worker() as worker:
            worker.send(setup)
            if await worker.receive() is None:
                unready += 1
                if unready >= UNREADY:
                    raise WsapError(f"Worker processes end before they have begun, {worker.how}; try --jobs 1.")
                continue
            unready = 0
            while job is not None:
                worker.send(job)
                record = await worker.receive()
                if isinstance(record, EpisodeRecord):
                    keep(record)
                    job = next(jobs, None)
                    continue
                deaths[job.key] += 1
                if deaths[job.key] == TRIES:
                    keep(failed(job, f"{TRIES} worker processes ended in the middle of it, the last {worker.how}"))
                    job = next(jobs, None)
                break


class _Worker:
    """A worker process, to be used within a block; it is stopped at its end."""

    async def __aenter__(self) -> _Worker:
        # The import path is this process's own, and not what a worker finds in its working directory.
        path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "wsap_eval.jobs.worker"),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, env={**os.environ, "PYTHONPATH": path},
            process_group=0,  # Ctrl-C at a terminal is for the driver alone, also while a worker starts
        )  # fmt: skip
        self.how = ""
        """How it ended, in words; empty before it did."""
        return self

    async def __aexit__(self, *error: object) -> None:
        self.send(Stop())
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(GRACE):
                    await self._process.wait()
        finally:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()

    def send(self, message: Setup | Job | Stop) -> None:
        """Send something; a worker that died gets nothing, and `receive` tells of it."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.write(framed(message))

    async def receive(self) -> Reply | None:
        """Return what it sends next; None if it died.

        Raises:
            WsapError: what ended it, and has to end the evaluation.
        """
        assert self._process.stdout is not None
        try:
            head = await self._process.stdout.readexactly(HEADER.size)
            reply: Reply = pickle.loads(await self._process.stdout.readexactly(HEADER.unpack(head)[0]))  # noqa: S301
        except (asyncio.IncompleteReadError, OSError):
            code = await self._process.wait()
            self.how = f"with exit status {code}" if code >= 0 else f"by signal {-code}"
            return None
        if isinstance(reply, Ended):
            raise reply.error()
        return reply
