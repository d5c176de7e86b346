"""MiniGrid's rooms, keys and doors as a world of the Wild Spaces Agent Protocol."""

from __future__ import annotations
