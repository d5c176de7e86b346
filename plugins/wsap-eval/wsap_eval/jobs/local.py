"""The driver of worker processes: distributes jobs and replaces dead workers."""

from __future__ import annotations

import asyncio
import os
import pickle
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Hashable
from contextlib import suppress
from pathlib import Path
from typing import Any

from wsap_core.errors import WsapError
from wsap_core.seams.agent import NO_USAGE
from wsap_eval.jobs.frames import HEADER, Ended, Stop, framed
from wsap_eval.jobs.together import first_error_ends
from wsap_eval.jobs.work import J, Jobs, R, Work

TRIES = 3
"""Worker deaths during a job after which it is lost."""
UNREADY = 5
"""Consecutive worker deaths before `Ready` after which the work ends."""
AHEAD = 64
"""Most jobs that a worker has at once, so that it need not wait for the driver and the disk if they are short."""
LEAD = 0.5
"""Seconds for which a worker has jobs, as fast as it plays them; one if that takes longer."""
GRACE = 5.0
"""Seconds until a stopped worker is killed."""


def cpus() -> int:
    """Return the number of CPUs available to this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


async def play_in_workers(jobs: Jobs[J], work: Work[J, R], keep: Callable[[R], None], *, workers: int) -> None:
    """Play jobs in worker processes, and pass their records to `keep`.

    A worker has one at a time, or as many as it plays in `LEAD` seconds, at most `AHEAD`. A dead worker is replaced
    and its job played again, up to `TRIES` times. Raises WsapError if workers can't be started, or jobs can't be
    played or recorded at all.
    """
    deaths = Counter[Hashable]()
    await first_error_ends(_keep_busy(jobs, deaths, work, keep) for _ in range(workers))


async def _keep_busy(jobs: Jobs[J], deaths: Counter[Hashable], work: Work[J, R], keep: Callable[[R], None]) -> None:
    again, unready = deque[J](), 0
    """Jobs of a dead worker."""
    first = await anext(jobs, None)
    while first is not None or again:
        if first is not None:
            again.append(first)
            first = None
        async with _Worker() as worker:
            worker.send(work)
            if await worker.receive() is None:
                unready += 1
                if unready >= UNREADY:
                    raise WsapError(f"Worker processes exit during startup, {worker.how}; try --jobs 1.")
                continue
            unready = 0
            lost = await _feed(worker, jobs, again, keep)
            if len(lost) == 1:  # else it is unknown which one it was: each is played alone
                deaths[lost[0].key] += 1
                if deaths[lost[0].key] == TRIES:
                    told = f"{TRIES} worker processes died during it, the last {worker.how}"
                    keep(work.lost(lost.pop(), told, NO_USAGE))
            again.extendleft(reversed(lost))
        if not again:
            first = await anext(jobs, None)


async def _feed(worker: _Worker, jobs: Jobs[J], again: deque[J], keep: Callable[[R], None]) -> list[J]:
    """Send jobs, those in `again` first and alone, until there are none; return those with which it died."""
    sent, most = dict[Hashable, J](), 1
    received, pace = time.monotonic(), LEAD
    while True:
        batch = list[J]()
        while len(sent) < (1 if again else most):
            job = again.popleft() if again else jobs.at_once()
            if job is None and not sent:
                job = await anext(jobs, None)
            if job is None:
                break
            sent[job.key] = job
            batch.append(job)
        if not sent:
            return []
        if batch:
            worker.send(tuple(batch))
        records = await worker.receive()
        if not isinstance(records, tuple):
            return list(sent.values())
        now = time.monotonic()
        for record in records:
            del sent[record.key]
            keep(record)
            # A mean over the last few, since those of one commit arrive together.
            pace += ((now - received) / len(records) - pace) / min(8, most + 1)
        received = now
        most = max(1, min(AHEAD, int(LEAD / pace))) if pace > 0 else AHEAD


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

    def send(self, message: Any) -> None:
        """Send a message (see `frames`); if the worker is dead, `receive` reports it."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.write(framed(message))

    async def receive(self) -> Any:
        """Return its next message (see `frames`); None if it died. Raises the WsapError of `Ended`."""
        assert self._process.stdout is not None
        try:
            head = await self._process.stdout.readexactly(HEADER.size)
            reply = pickle.loads(await self._process.stdout.readexactly(HEADER.unpack(head)[0]))  # noqa: S301
        except (asyncio.IncompleteReadError, OSError):
            code = await self._process.wait()
            self.how = f"with exit status {code}" if code >= 0 else f"by signal {-code}"
            return None
        if isinstance(reply, Ended):
            raise reply.error()
        return reply
