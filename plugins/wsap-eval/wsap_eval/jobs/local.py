"""The driver of worker processes: distributes episodes and replaces dead workers."""

from __future__ import annotations

import asyncio
import os
import pickle
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from wsap_core.errors import WsapError
from wsap_eval.jobs.frames import HEADER, Ended, Jobs, Reply, Setup, Stop, framed
from wsap_eval.jobs.together import first_error_ends
from wsap_eval.plan import Job
from wsap_eval.play import failed
from wsap_eval.records import EpisodeKey, EpisodeRecord

TRIES = 3
"""Worker deaths during an episode after which it counts as failed."""
UNREADY = 5
"""Consecutive worker deaths before `Ready` after which the evaluation ends."""
GRACE = 5.0
"""Seconds until a stopped worker is killed."""


def cpus() -> int:
    """Return the number of CPUs available to this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


async def play_in_workers(jobs: Jobs, setup: Setup, keep: Callable[[EpisodeRecord], None], *, workers: int) -> None:
    """Play episodes in worker processes, one at a time in each, and pass their records to `keep`.

    A dead worker is replaced and its episode resumed, up to `TRIES` times. Raises WsapError if workers can't be
    started, or episodes can't be played or recorded at all.
    """
    deaths = Counter[EpisodeKey]()
    await first_error_ends(_keep_busy(jobs, deaths, setup, keep) for _ in range(workers))


async def _keep_busy(
    jobs: Jobs, deaths: Counter[EpisodeKey], setup: Setup, keep: Callable[[EpisodeRecord], None]
) -> None:
    job, unready = await anext(jobs, None), 0
    while job is not None:
        async with _Worker() as worker:
            worker.send(setup)
            if await worker.receive() is None:
                unready += 1
                if unready >= UNREADY:
                    raise WsapError(f"Worker processes exit during startup, {worker.how}; try --jobs 1.")
                continue
            unready = 0
            while job is not None:
                worker.send(job)
                record = await worker.receive()
                if isinstance(record, EpisodeRecord):
                    keep(record)
                    job = await anext(jobs, None)
                    continue
                deaths[job.key] += 1
                if deaths[job.key] == TRIES:
                    keep(failed(job, f"{TRIES} worker processes died during it, the last {worker.how}"))
                    job = await anext(jobs, None)
                break


class _Worker:
    """A worker process, stopped at the end of its context."""

    async def __aenter__(self) -> _Worker:
        # Uses this process's import path instead of the worker's working directory.
        path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "wsap_eval.jobs.worker"),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, env={**os.environ, "PYTHONPATH": path},
            process_group=0,  # Ctrl-C at a terminal reaches only the driver, even while a worker starts
        )  # fmt: skip
        self.how = ""
        """How it ended; empty while it runs."""
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
        """Send a message; if the worker is dead, `receive` reports it."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.write(framed(message))

    async def receive(self) -> Reply | None:
        """Return its next message; None if it died. Raises the WsapError of `Ended`."""
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
