"""Concurrent work in one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any


async def first_error_ends(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Wait for all coroutines; the first error cancels the others and is raised after they have ended."""
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            if not task.cancelling():  # a second cancellation would interrupt its cleanup
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
