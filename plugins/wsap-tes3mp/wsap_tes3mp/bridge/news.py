"""What the bridge tells whoever listens: perceptions that changed, outcomes, agents that came and went."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

_MOST = 1000
"""Events that wait for a listener; one that has more behind is cut off, and asks anew."""


@dataclass(frozen=True)
class Event:
    """Something that happened."""

    kind: str
    """`perception`, `outcome` or `agents`."""
    body: Mapping[str, JsonValue] = field(default_factory=dict)


Listener = asyncio.Queue[Event | None]
"""Whoever listens, with the events that wait for it; None is the end. Who is forgotten hears no more."""


class News:
    """The listeners of a bridge."""

    def __init__(self) -> None:
        self._listeners: weakref.WeakSet[Listener] = weakref.WeakSet()

    def __len__(self) -> int:
        """Return how many listen."""
        return len(self._listeners)

    def tell(self, event: Event | None) -> None:
        """Hand an event to everybody who listens; None ends all listening, as does being too far behind."""
        for listener in list(self._listeners):
            over = event is None or listener.qsize() >= _MOST
            listener.put_nowait(None if over else event)
            if over:
                self._listeners.discard(listener)

    def listen(self) -> Listener:
        """Return a listener that hears what happens from now on."""
        listener = Listener()
        self._listeners.add(listener)
        return listener
