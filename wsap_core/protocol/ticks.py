"""Ticks: the time steps of worlds that live."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from wsap_core.protocol.base import Part
from wsap_core.protocol.values import JsonValue


@dataclass(frozen=True)
class Tick(Part):
    """The result of one tick of a world. All of it is recorded and part of the trajectory hash."""

    number: int
    """From 1 to 2**31 - 1."""
    body: Mapping[str, JsonValue] = field(default_factory=dict)
    """What happened and changed, in the world's own format, without clock times and run ids."""
    summary: str = ""
    """One line for people."""
    done: bool = False
    """Whether the world has ended."""
