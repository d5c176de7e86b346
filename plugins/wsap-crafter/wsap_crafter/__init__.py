"""Crafter as a text-native, reproducible world of the Wild Spaces Agent Protocol."""

from __future__ import annotations
