"""The migrations."""

from __future__ import annotations
