"""Who waits for other seats of a world now, told to whoever plays the seat."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

TOLD_OF_WAITING: ContextVar[Callable[[bool], None] | None] = ContextVar("told of waiting", default=None)
"""Told True when a seat begins to wait for others, and False when it no longer does, where whoever plays the seat
wants to know: that of somebody who waits for the world it is this which is not a matter of time."""


class Waiting:
    """The seats that wait; they wait for others, except while the world itself is at work."""

    def __init__(self) -> None:
        self._told: list[Callable[[bool], None]] = []
        self._at_work = False

    def __bool__(self) -> bool:
        return bool(self._told)

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Count a seat as waiting, and tell whoever wants to know."""
        tell = TOLD_OF_WAITING.get() or (lambda waits: None)
        self._told.append(tell)
        tell(not self._at_work)
        try:
            yield
        finally:
            self._told.remove(tell)
            tell(False)

    def for_world(self, at_work: bool) -> None:
        """Say that the world is at work, or no longer is."""
        self._at_work = at_work
        for tell in self._told:
            tell(not at_work)
