"""Garbage-collector settings for long-running processes."""

from __future__ import annotations

import gc
import time
from typing import NoReturn

from wsap_core.seams.clock import Clock

YOUNG = 20_000
"""New objects between two collections of the youngest; Python's own figure is 700, or 2,000."""
EVERY = 30.0
"""Seconds between two collections of everything, at least."""
SHARE = 0.01
"""Most of the time that those may take: 1 %."""


def tune_gc() -> None:
    """Collect garbage less often, and never scan the objects that exist already.

    A decision makes thousands of objects, nearly all freed by reference counting. Scanning all live objects for
    cycles, many times a second, took a quarter of the processor time of 500 agents with streamed replies. The
    settings hold for the whole process, and leave it to `collect_regularly` to scan what has lived for long.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, 20, 50)


async def collect_regularly(clock: Clock) -> NoReturn:
    """Collect all garbage twice a minute, or less often where that takes long.

    A game that is over is garbage that has lived for long: its world and its seats refer to each other. By the
    settings above it would stay for hours, tens of megabytes a minute with thirty agents.
    """
    while True:
        began = time.perf_counter()
        gc.collect()
        await clock.sleep(max(EVERY, (time.perf_counter() - began) / SHARE))
