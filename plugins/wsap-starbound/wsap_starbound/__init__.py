"""Planets to dig, build and explore, and a ship between them, as a world of the Wild Spaces Agent Protocol."""

from __future__ import annotations
