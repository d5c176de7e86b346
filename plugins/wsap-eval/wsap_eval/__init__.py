"""Evaluations: entrants and games on the same seeds, with intervals, failures and cost."""

from __future__ import annotations

__all__: list[str] = []
