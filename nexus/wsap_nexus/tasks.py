"""Cancellation of asyncio tasks."""

from __future__ import annotations

import asyncio
from typing import Any


async def ended(*tasks: asyncio.Future[Any] | None) -> None:
    """Cancel tasks and wait for their end; their results and errors are ignored."""
    known = [task for task in tasks if task is not None]
    for task in known:
        task.cancel()
    await asyncio.gather(*known, return_exceptions=True)
