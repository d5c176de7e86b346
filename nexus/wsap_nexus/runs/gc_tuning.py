"""Garbage-collector settings for long-running processes."""

from __future__ import annotations

import gc
import time
from typing import NoReturn

from wsap_core.seams.clock import Clock

YOUNG = 20_000
"""New objects between two collections of the youngest generation; Python's default is 700 or 2,000."""
EVERY = 30.0
"""Minimum seconds between two full collections."""
SHARE = 0.01
"""Maximum share of the time spent on full collections."""


def tune_gc() -> None:
    """Collect garbage less often in this process, and never scan the objects that exist already.

    A decision makes thousands of objects, nearly all freed by reference counting. Scanning all live objects for
    cycles many times a second took a quarter of the CPU time of 500 agents with streamed replies. Old objects are
    left to `collect_regularly`.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, 20, 50)


async def collect_regularly(clock: Clock) -> NoReturn:
    """Collect all garbage twice a minute, or less often if that takes long.

    A finished game is old garbage, since its world and its seats refer to each other. With the settings of `tune_gc`
    alone it would stay for hours: tens of megabytes a minute with thirty agents.
    """
    while True:
        began = time.perf_counter()
        gc.collect()
        await clock.sleep(max(EVERY, (time.perf_counter() - began) / SHARE))
