"""The findings of `wsap doctor`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """The result of one check."""

    check: str
    """The name of the check."""
    status: str
    """"ok", "warning" (it works, with a remark) or "problem"."""
    detail: str
    """One sentence or figure."""
    hint: str = ""
    """How to fix it."""
