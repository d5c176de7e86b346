"""Tasks that are ended before whoever began them goes on."""

from __future__ import annotations

import asyncio
from typing import Any


async def ended(*tasks: asyncio.Future[Any] | None) -> None:
    """Cancel tasks, and return once they are over; what came of them is looked at no more."""
    known = [task for task in tasks if task is not None]
    for task in known:
        task.cancel()
    await asyncio.gather(*known, return_exceptions=True)
