"""Alembic's scripts that bring a database up to date, shipped in the package."""

from __future__ import annotations
