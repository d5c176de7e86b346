"""Measures whether learning in one game helps an agent in another."""

from __future__ import annotations
