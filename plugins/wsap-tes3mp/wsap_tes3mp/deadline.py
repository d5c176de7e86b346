"""Deadlines on a clock that is handed in."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from wsap_core.seams.clock import Clock

T = TypeVar("T")


async def within(clock: Clock, seconds: float | None, work: Awaitable[T]) -> T:
    """Return what the work gives, or cancel it after so many seconds on a clock; None for no limit, and no task for it.

    Raises:
        TimeoutError: it took longer.
    """
    if seconds is None:
        return await work
    task = asyncio.ensure_future(work)
    late = asyncio.ensure_future(clock.sleep(seconds))
    try:
        await asyncio.wait({task, late}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise TimeoutError(f"no answer within {seconds:g} s")
    finally:
        for each in (task, late):
            each.cancel()
