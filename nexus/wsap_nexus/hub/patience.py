"""The time that a game in another process has to let an agent in or out, and how a person cuts it short."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from wsap_nexus.errors import WorldFailedError
from wsap_nexus.tasks import ended

T = TypeVar("T")

PASSAGE = 60.0
"""Seconds that a remote game has to let an agent in or out, over all calls that this takes."""
INSISTED = 10.0
"""Seconds that it has for that once a person wants the agent back."""


async def within(passage: Coroutine[Any, Any, T], what: str, insisted: Sequence[asyncio.Event], *, remote: bool) -> T:
    """Return the result of a passage into or out of a world, which is given up when its time is over.

    Args:
        what: for the error: "Far quarry did not let 'eve' go".
        insisted: set when a person wants one of the agents back.
        remote: whether the game is in another process; otherwise it takes its time, as its calls are limited.

    Raises:
        WorldFailedError: the time is over.
        WsapError: raised by the passage.
    """
    if not remote:
        return await passage
    loop = asyncio.get_running_loop()
    passing = asyncio.create_task(passage)
    told = [asyncio.create_task(event.wait()) for event in insisted]
    began = loop.time()
    try:
        await asyncio.wait({passing, *told}, timeout=PASSAGE, return_when=asyncio.FIRST_COMPLETED)
        if not passing.done() and any(each.done() for each in told):
            await asyncio.wait({passing}, timeout=INSISTED)
        if not passing.done():
            raise WorldFailedError(f"{what} within {loop.time() - began:.0f} s.")
        return passing.result()
    finally:
        await ended(passing, *told)
