"""Reports which seats currently wait for other seats of their world."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

TOLD_OF_WAITING: ContextVar[Callable[[bool], None] | None] = ContextVar("told of waiting", default=None)
"""Called with True when the seat that this task plays starts to wait for other seats, and with False when it stops."""


class Waiting:
    """The seats that wait: for others, or while the world is at work, for the world."""

    def __init__(self) -> None:
        self._told: list[Callable[[bool], None]] = []
        self._at_work = False

    def __bool__(self) -> bool:
        return bool(self._told)

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Count a seat as waiting within the block."""
        tell = TOLD_OF_WAITING.get() or (lambda waits: None)
        self._told.append(tell)
        tell(not self._at_work)
        try:
            yield
        finally:
            self._told.remove(tell)
            tell(False)

    def for_world(self, at_work: bool) -> None:
        """Set whether the world is at work."""
        self._at_work = at_work
        for tell in self._told:
            tell(not at_work)
