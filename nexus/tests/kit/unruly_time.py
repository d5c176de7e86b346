"""Time for the game in `unruly.py`: it says when it waits or hangs, and time passes as far as a pool counts it."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path
from typing import Any

from wsap_nexus.worlds.workers.link import WorkerLink
from wsap_nexus.worlds.workers.pool import WorkerPool


def put_unruly(folder: Path) -> Path:
    """Return a copy of the game in a folder, with a pipe by which it says that it waits or hangs."""
    if hasattr(os, "mkfifo"):
        os.mkfifo(folder / "at-it")
    return Path(shutil.copy(Path(__file__).with_name("unruly.py"), folder / "unruly.py"))


async def until_at_it(folder: Path) -> None:
    """Wait until a game in a worker has begun to wait, or to hang, once more."""
    pipe = os.open(folder / "at-it", os.O_RDWR | os.O_NONBLOCK)
    said = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(pipe, said.set)
    try:
        await said.wait()
        os.read(pipe, 1)
    finally:
        loop.remove_reader(pipe)
        os.close(pipe)


async def until_begun(link: WorkerLink) -> None:
    """Wait until a worker says that it has begun with a call."""
    heard, take = asyncio.Event(), link._take_beat

    def taken(beat: dict[str, Any]) -> None:
        take(beat)
        heard.set()

    link._take_beat = taken  # type: ignore[method-assign]
    while not any(call.begun for call in link.calls.values()):
        heard.clear()
        await heard.wait()


async def let_time_pass(pool: WorkerPool) -> None:
    """Have time pass for the workers, as far as the pool counts it, until one that hangs is ended."""
    link = pool.links[0]
    while link.why_killed is None:  # what it had said before may still come in
        pool.look(2 * pool.timeouts.deadline)
        await asyncio.sleep(0.01)
