"""Python's collector of cycles, told that a process plays for long."""

from __future__ import annotations

import gc

YOUNG = 20_000
"""New objects between two collections of the youngest; Python's own figure is 700, or 2,000."""


def calm_collector() -> None:
    """Look for cycles of garbage less often, and never among what is there already.

    A decision makes thousands of objects, and nearly all of them go by themselves as soon as nobody
    holds them. Looking through all that is alive for cycles, many times a second, took a quarter of the
    processor time of 500 agents whose replies are streamed. For a process of our own: it holds
    for the whole of it.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, 20, 50)
