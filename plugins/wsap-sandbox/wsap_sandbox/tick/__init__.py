"""One tick: what each asker may know, who is asked when, how replies are read, and what they change."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """How ticks are carried out."""

    concurrency: int = 16
    """Most calls to models at one time."""
    overlap: bool = False
    """Whether a tick ends before its story is told, so that the next one can begin."""
    text: int = 300
    """Most characters of one text that a model gives; stories and summaries may have three times as many."""
    compact: bool = False
    """Short prompts, for models with small contexts."""
