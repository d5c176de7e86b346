"""MiniGrid as a game of the Wild Spaces Agent Protocol."""

from __future__ import annotations
