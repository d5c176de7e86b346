"""Alembic migrations, shipped in the package."""

from __future__ import annotations
