"""Time for the game in `unruly.py`: it says when it waits or hangs, and time passes as far as a pool counts it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from wsap_nexus.worlds.workers.pool import WorkerPool


async def until_at_it(folder: Path, times: int) -> None:
    """Wait until a game in a worker has begun to wait, or to hang, for the so manieth time."""
    file = folder / "at-it"
    while not file.exists() or file.stat().st_size < times:  # noqa: ASYNC110  # another process says so in its time
        await asyncio.sleep(0.01)


async def let_time_pass(pool: WorkerPool) -> None:
    """Have time pass for the workers, as far as the pool counts it, until one that hangs is ended."""
    link = pool.links[0]
    while link.why_killed is None:  # what it had said before may still come in
        pool.look(2 * pool.timeouts.deadline)
        await asyncio.sleep(0.01)
