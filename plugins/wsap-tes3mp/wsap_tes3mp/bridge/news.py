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


class Listener:
    """Whoever listens; who is forgotten hears no more."""

    def __init__(self) -> None:
        self._waiting: asyncio.Queue[Event | None] = asyncio.Queue()

    def hear(self, event: Event | None) -> bool:
        """Keep an event until it is asked for; False from one that is too far behind, for whom it is over."""
        over = event is None or self._waiting.qsize() >= _MOST
        self._waiting.put_nowait(None if over else event)
        return not over

    async def next(self) -> Event | None:
        """Return the next event, waiting for it; None at the end."""
        return await self._waiting.get()


class News:
    """The listeners of a bridge."""

    def __init__(self) -> None:
        self._listeners: weakref.WeakSet[Listener] = weakref.WeakSet()

    def __len__(self) -> int:
        """Return how many listen."""
        return len(self._listeners)

    def tell(self, event: Event | None) -> None:
        """Hand an event to everybody who listens; None ends all listening."""
        for listener in list(self._listeners):
            if not listener.hear(event):
                self._listeners.discard(listener)

    def listen(self) -> Listener:
        """Return a listener that hears what happens from now on."""
        listener = Listener()
        self._listeners.add(listener)
        return listener
