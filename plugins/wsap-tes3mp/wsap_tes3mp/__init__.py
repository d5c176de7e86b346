"""Morrowind, and any engine in its place, through the Perception/Command protocol (seed 001)."""

from __future__ import annotations
