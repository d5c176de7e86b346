"""Turns of the event loop, and the cancellation of asyncio tasks."""

from __future__ import annotations

import asyncio
from typing import Any

TURNS = 20
"""Turns of the event loop after which every woken task has run."""


async def ended(*tasks: asyncio.Future[Any] | None) -> None:
    """Cancel tasks and wait for their end; their results and errors are ignored."""
    known = [task for task in tasks if task is not None]
    for task in known:
        task.cancel()
    await asyncio.gather(*known, return_exceptions=True)
