"""Ticks: what each prompt contains, the order of calls, and how replies are read and applied."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """Settings of ticks."""

    concurrency: int = 16
    """Maximum concurrent model calls."""
    overlap: bool = False
    """Whether the next tick starts while this tick's story is still being told."""
    text: int = 300
    """Maximum characters of each text in a reply; three times as many for stories and summaries."""
    compact: bool = False
    """Short prompts, for models with small contexts."""
