"""Jobs as tasks of a Ray cluster, which restarts them elsewhere if a node is lost; results return to the driver."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from functools import cache
from typing import Any

from wsap_core.errors import MissingServiceError, UsageError, WsapError
from wsap_core.installing import install_line
from wsap_core.pipes import output_to_stderr
from wsap_core.seams.agent import Usage
from wsap_core.untrusted import error_line, single_line
from wsap_eval.jobs.frames import Ended
from wsap_eval.jobs.together import first_error_ends
from wsap_eval.jobs.work import J, Jobs, R, Work

TRIES = 4
"""Maximum attempts at a job if nodes or processes are lost during it."""


async def play_on_ray(jobs: Jobs[J], work: Work[J, R], keep: Callable[[R], None], *, where: str) -> None:
    """Play jobs on a Ray cluster, two at a time per CPU, and pass their records to `keep`.

    `where` is `ray://HOST:PORT`, or "ray" for the cluster of RAY_ADDRESS, else a local one. Raises MissingServiceError
    if Ray is not installed; UsageError if the cluster can't be reached; WsapError if a job can't be played.
    """
    if where != "ray" and not where.startswith("ray://"):
        raise UsageError(f"--on takes ray or ray://HOST:PORT, not {single_line(where)[:80]!r}.")
    try:
        ray: Any = importlib.import_module("ray")  # Any: Ray is optional
    except ModuleNotFoundError:
        raise MissingServiceError(f"--on ray needs Ray; install it with: {install_line('wsap-eval[ray]')}") from None
    with output_to_stderr():  # Ray tells of lost nodes on standard output
        await _play(ray, jobs, work.elsewhere(), keep, where)


async def _play(ray: Any, jobs: Jobs[J], given: Work[J, R], keep: Callable[[R], None], where: str) -> None:
    # Any: Ray is optional
    own = not ray.is_initialized()
    if own:
        try:
            ray.init(None if where == "ray" else where, log_to_driver=False, configure_logging=False)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise UsageError(f"There is no Ray cluster at {where!r}: {error_line(error, 200)}") from error
    task = ray.remote(max_retries=TRIES - 1)(_job)

    async def work() -> None:
        async for job in jobs:
            try:
                reply = await task.remote(given, job)
            except ray.exceptions.RayError as error:
                reason = f"lost {TRIES} times with its node or process ({type(error).__name__})"
                keep(given.lost(job, reason, Usage(cost=None)))
                continue
            if isinstance(reply, Ended):
                raise reply.error()
            keep(reply)

    try:
        await first_error_ends(work() for _ in range(2 * max(1, int(ray.cluster_resources().get("CPU", 1)))))
    finally:
        if own:
            ray.shutdown()


_OPENED: list[tuple[Any, Callable[[Any], Coroutine[Any, Any, Any]]]] = []
"""The work that this process of a node has opened, with what plays it. Any: any work, with its jobs and records."""
_FOR_LIFE = ExitStack()


def _job(work: Work[J, R], job: J) -> R | Ended:
    try:
        return _loop().run_until_complete(_opened(work)(job))
    except WsapError as error:
        return Ended(type(error), str(error))


def _opened(work: Work[J, R]) -> Callable[[J], Coroutine[Any, Any, R]]:
    for known, play in _OPENED:
        if known == work:
            return play
    play = _FOR_LIFE.enter_context(work.opened())
    _OPENED.append((work, play))
    return play


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """Return this process's event loop, to which models are bound."""
    return asyncio.new_event_loop()
