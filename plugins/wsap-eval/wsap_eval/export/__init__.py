"""Results in the formats of other tools; each writer is imported on first use."""

from __future__ import annotations
