"""What `wsap doctor` finds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """What one look at the machine came to."""

    check: str
    """What was looked at."""
    status: str
    """"ok", "warning" (it works, with a remark) or "problem"."""
    detail: str
    """One sentence or figure."""
    hint: str = ""
    """What to do about it."""
