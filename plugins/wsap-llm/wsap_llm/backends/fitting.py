"""Suggests a context length that fits the model and the memory of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wsap_core.seams.listing import ModelInfo

WANTED = 16_384
"""Tokens of context that hold a game's rules and a history of some 30 steps."""

STEP = 1024
"""A context limited by memory is rounded down to a multiple of this."""

SHARE = 0.85
"""The share of the memory for a model with its context; the rest is left to the system."""


@dataclass(frozen=True)
class Memory:
    """The memory into which models are loaded."""

    size: int
    """In bytes."""
    kind: str
    """"graphics memory" or "memory"."""


@dataclass(frozen=True)
class Fit:
    """A suggested context."""

    tokens: int
    reason: str
    """What limits it; empty if nothing does."""


def fit(info: ModelInfo, memory: Memory | None) -> Fit:
    """Return the suggested context of a model: `WANTED` tokens, or as many as the model and the memory allow. Weights
    and cache together take at most 85 % of the memory."""
    made_for = info.abilities.context
    if made_for is not None and made_for < WANTED:
        tokens, reason = made_for, f"the model supports at most {made_for}"
    else:
        tokens, reason = WANTED, ""
    room = _room(info, memory)
    if room is not None and memory is not None and tokens > room:
        return Fit(room, f"more does not fit into {memory.size / 1e9:.0f} GB of {memory.kind} with the model")
    return Fit(tokens, reason)


def _room(info: ModelInfo, memory: Memory | None) -> int | None:
    if memory is None or not info.weights or not info.context_bytes:
        return None
    left = memory.size * SHARE - info.weights
    return max(0, int(left / info.context_bytes) // STEP * STEP)


def memory_here() -> Memory | None:
    """Return this machine's graphics memory, or its main memory if `nvidia-smi` reports none."""
    command = shutil.which("nvidia-smi")
    if command is not None:
        try:
            done = subprocess.run(
                [command, "--query-gpu=memory.total", "--format=csv,noheader,nounits"],
                capture_output=True, text=True, timeout=5, check=True,
            )  # fmt: skip
            sizes = [int(line) * 1024 * 1024 for line in done.stdout.split()]
        except (OSError, ValueError, subprocess.SubprocessError):
            sizes = []
        if sizes:
            return Memory(sum(sizes), "graphics memory")
    try:
        return Memory(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), "memory")
    except (AttributeError, ValueError, OSError):
        return None  # not available on this system
