"""A tick: one step of a world that lives by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from wsap_core.protocol.base import Part
from wsap_core.protocol.values import JsonValue


@dataclass(frozen=True)
class Tick(Part):
    """What one tick of a world did. All of it is recorded, and part of the trajectory hash."""

    number: int
    """Which tick of the world it is, from 1."""
    body: Mapping[str, JsonValue] = field(default_factory=dict)
    """What happened and what changed, in the world's own words; no clocks and no run ids."""
    summary: str = ""
    """One line about it, for people."""
    done: bool = False
    """Whether the world has come to its end."""
