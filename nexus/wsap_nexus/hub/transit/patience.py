"""The time that a game has to let an agent in or out, and how a person cuts it short."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from wsap_core.specs import AdapterSpec
from wsap_nexus.errors import WorldFailedError
from wsap_nexus.tasks import ended

T = TypeVar("T")

PASSAGE = 60.0
"""Seconds that a remote game has to let an agent in or out, over all calls that this takes."""
CALLS = 10
"""The time that any other game has for that, in times of the limit of one call."""
INSISTED = 10.0
"""Seconds that a game has for that once a person wants the agent back."""


def time_for_passage(spec: AdapterSpec, deadline: float, *, remote: bool) -> float:
    """Return the seconds that a game has to let an agent in or out; `deadline` is the limit of a call in a worker."""
    return PASSAGE if remote else CALLS * max(deadline, spec.deadline or 0.0)


async def within(seconds: float, passage: Coroutine[Any, Any, T], what: str, insisted: Sequence[asyncio.Event]) -> T:
    """Return the result of a passage into or out of a world, which is given up when its time is over.

    Args:
        seconds: see `time_for_passage`.
        what: for the error: "Far quarry did not let 'eve' go".
        insisted: set when a person wants one of the agents back.

    Raises:
        WorldFailedError: the time is over.
        WsapError: raised by the passage.
    """
    loop = asyncio.get_running_loop()
    passing = asyncio.create_task(passage)
    told = [asyncio.create_task(event.wait()) for event in insisted]
    began = loop.time()
    try:
        await asyncio.wait({passing, *told}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if not passing.done() and any(each.done() for each in told):
            await asyncio.wait({passing}, timeout=INSISTED)
        if not passing.done():
            raise WorldFailedError(f"{what} within {loop.time() - began:.0f} s.")
        return passing.result()
    finally:
        await ended(passing, *told)
