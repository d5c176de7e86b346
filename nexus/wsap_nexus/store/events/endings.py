"""Why sessions end: stored reasons and their texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from wsap_core.untrusted import single_line

WORLD_FAILED: Final = "world_failed"
"""The world failed."""
FAILED: Final = "failed"
"""Another agent in the session's world failed for good."""
GAME_OFFLINE: Final = "game_offline"
"""The game was taken offline although the world was intact."""
SILENT: Final = "silent"
"""The agent's client said nothing while others waited for it."""
INTERRUPTED: Final = "interrupted"
"""The run, outside the nexus, was stopped, paused by a budget, or killed."""
RUN_FAILED: Final = "run_failed"
"""The run, outside the nexus, failed."""

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
    SILENT: "its client said nothing",
    INTERRUPTED: "the run was interrupted",
    RUN_FAILED: "the run failed",
}
"""Stored reason -> its text after "ended: "."""


def why_ended(reason: str | None) -> str:
    """Return the text of a stored reason; an unknown reason of a newer version as it is."""
    if reason is None:
        return "for an unknown reason"
    return ENDINGS.get(reason) or single_line(reason.replace("_", " "))[:80]
