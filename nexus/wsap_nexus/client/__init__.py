"""Clients of a nexus over HTTP: `NexusClient`, and `AsyncNexusClient` with the same methods as coroutines.

with NexusClient("http://127.0.0.1:9998", token) as nexus:
    arrived = nexus.enter("eve", "crafter")
    result = nexus.act("eve", Action("move_left"))
"""

from __future__ import annotations

from wsap_nexus.client.awaited import AsyncNexusClient
from wsap_nexus.client.blocking import NexusClient
from wsap_nexus.client.here import here
from wsap_nexus.client.parts import (
    Entered,
    Event,
    Left,
    NoAnswerError,
    RefusedError,
    Registration,
    Seen,
    StillPendingError,
    Whole,
)
from wsap_nexus.http.retries import Retries
from wsap_nexus.store.entities import Answered, DiaryEntry, Exchange

__all__ = [
    "Answered",
    "AsyncNexusClient",
    "DiaryEntry",
    "Entered",
    "Event",
    "Exchange",
    "Left",
    "NexusClient",
    "NoAnswerError",
    "RefusedError",
    "Registration",
    "Retries",
    "Seen",
    "StillPendingError",
    "Whole",
    "here",
]
