"""Episodes as tasks of a Ray cluster, which restarts them elsewhere if a node is lost.

A node records runs in its own database unless the evaluation's database is a URL; results return to the driver.
"""

from __future__ import annotations

import asyncio
import importlib
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from wsap_core.errors import MissingServiceError, UsageError, WsapError
from wsap_core.installing import install_line
from wsap_core.pipes import output_to_stderr
from wsap_core.seams.agent import Usage
from wsap_core.untrusted import error_line, single_line
from wsap_eval.jobs.frames import Ended, Jobs, Setup
from wsap_eval.jobs.together import first_error_ends
from wsap_eval.jobs.worker import Table, opened, play_patiently
from wsap_eval.plan import Job
from wsap_eval.play import failed
from wsap_eval.records import EpisodeRecord

TRIES = 4
"""Maximum attempts at an episode if nodes or processes are lost during it."""


async def play_on_ray(jobs: Jobs, setup: Setup, keep: Callable[[EpisodeRecord], None], *, where: str) -> None:
    """Play episodes on a Ray cluster, two at a time per CPU, and pass their records to `keep`.

    `where` is `ray://HOST:PORT`, or "ray" for the cluster of RAY_ADDRESS, else a local one. Raises MissingServiceError
    if Ray is not installed; UsageError if the cluster can't be reached; WsapError if an episode can't be played.
    """
    if where != "ray" and not where.startswith("ray://"):
        raise UsageError(f"--on takes ray or ray://HOST:PORT, not {single_line(where)[:80]!r}.")
    try:
        ray: Any = importlib.import_module("ray")  # Any: Ray is optional
    except ModuleNotFoundError:
        raise MissingServiceError(f"--on ray needs Ray; install it with: {install_line('wsap-eval[ray]')}") from None
    with output_to_stderr():  # Ray tells of lost nodes on standard output
        await _play(ray, jobs, setup, keep, where)


async def _play(ray: Any, jobs: Jobs, setup: Setup, keep: Callable[[EpisodeRecord], None], where: str) -> None:
    # Any: Ray is optional
    own = not ray.is_initialized()
    if own:
        try:
            ray.init(None if where == "ray" else where, log_to_driver=False, configure_logging=False)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise UsageError(f"There is no Ray cluster at {where!r}: {error_line(error, 200)}") from error
    task = ray.remote(max_retries=TRIES - 1)(_episode)
    given = setup if "://" in setup.database else replace(setup, database="")

    async def work() -> None:
        async for job in jobs:
            try:
                reply = await task.remote(given, job)
            except ray.exceptions.RayError as error:
                reason = f"lost {TRIES} times with its node or process ({type(error).__name__})"
                keep(failed(job, reason, taken=Usage(cost=None)))
                continue
            if isinstance(reply, Ended):
                raise reply.error()
            keep(reply)

    try:
        await first_error_ends(work() for _ in range(2 * max(1, int(ray.cluster_resources().get("CPU", 1)))))
    finally:
        if own:
            ray.shutdown()


_OPENED: dict[str, Table] = {}
"""What this process of a node has opened, by setup."""
_FOR_LIFE = ExitStack()


def _episode(setup: Setup, job: Job) -> EpisodeRecord | Ended:
    try:
        return _loop().run_until_complete(play_patiently(_opened(setup), job))
    except WsapError as error:
        return Ended(type(error), str(error))


def _opened(setup: Setup) -> Table:
    told = f"{setup.database}\0{setup.limited}\0{setup.suite.model_dump_json()}"
    if told not in _OPENED:
        if not setup.database:
            folder = _FOR_LIFE.enter_context(tempfile.TemporaryDirectory())
            setup = replace(setup, database=str(Path(folder) / "runs.db"))
        _OPENED[told] = _FOR_LIFE.enter_context(opened(setup))
    return _OPENED[told]


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """Return this process's event loop, to which models are bound."""
    return asyncio.new_event_loop()
