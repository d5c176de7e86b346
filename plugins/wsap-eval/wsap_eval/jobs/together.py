"""Work side by side in one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any


async def first_error_ends(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Return when all is done; the first error ends the rest, and is raised once that has ended."""
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            if not task.cancelling():  # a second time would break off how it ends
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
