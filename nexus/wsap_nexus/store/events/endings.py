"""Why sessions end: the reasons that are stored, and how each is told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from wsap_core.untrusted import single_line

WORLD_FAILED: Final = "world_failed"
"""Why a session ends whose world failed."""
FAILED: Final = "failed"
"""Why a session ends in which another agent failed for good."""
GAME_OFFLINE: Final = "game_offline"
"""Why a session ends whose game was taken offline while its world was well."""
INTERRUPTED: Final = "interrupted"
"""Why a session of a run outside the nexus ends that was stopped, paused by a budget, or killed."""
RUN_FAILED: Final = "run_failed"
"""Why a session of a run outside the nexus ends that failed."""

ENDINGS: Mapping[str, str] = {
    "jack_out": "by choice",
    "exit_game": "by choice",
    "death": "the avatar died",
    "finished": "the game was over",
    "condition": "the exit condition was met",
    "step_limit": "the step limit was reached",
    "kicked": "recalled",
    FAILED: "another agent failed",
    WORLD_FAILED: "the world failed",
    GAME_OFFLINE: "the game was taken offline",
    INTERRUPTED: "the run was interrupted",
    RUN_FAILED: "the run failed",
}
"""Each reason that a session can end for, as stored -> as told, after "ended: "."""


def why_ended(reason: str | None) -> str:
    """Return how a stored reason is told; one of a newer version as it is stored."""
    if reason is None:
        return "for an unknown reason"
    return ENDINGS.get(reason) or single_line(reason.replace("_", " "))[:80]
