"""Decides when an agent is asked for a plan: at the start of an episode, and when its goals change."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from wsap_core.errors import WireError
from wsap_core.protocol import Goal
from wsap_core.protocol.wire import dumps

GAP = 10
"""Minimum number of decisions between two plans."""
MOST_GAP = 1000
"""Maximum gap for goals that come and go."""
REMEMBERED = 16
"""Number of goal sets remembered as planned for."""


class GoalWatch:
    """Decides when to plan, by goals and numbers of decisions only, so that the same steps give the same plans.

    Goals have changed when the set of their ids, types and descriptions has, regardless of order, progress and hints.
    After a plan at least `gap` decisions pass before the next. When goals return that were planned for before, the
    gap doubles, up to `MOST_GAP`, so that goals flapping between two states cost fewer and fewer plans. New goals
    reset it.
    """

    def __init__(self, gap: int = GAP) -> None:
        self._gap = gap
        self._marked: tuple[list[tuple[str, str, str]], str] = ([], "")
        self.begin()

    def begin(self) -> None:
        """Start an episode: a plan is due at the next decision."""
        self._planned: str | None = None
        self._seen: list[str] = []
        self._since = 0
        self._wait = self._gap

    def due(self, goals: Sequence[Goal]) -> bool:
        """Return whether to plan for these goals now; call it once before each decision."""
        mark = self._mark(goals)
        if self._planned is not None:
            self._since += 1
            if mark == self._planned or self._since < self._wait:
                return False
            self._wait = min(2 * self._wait, MOST_GAP) if mark in self._seen else self._gap
        self._planned, self._since = mark, 0
        self._seen = [*(old for old in self._seen if old != mark), mark][-REMEMBERED:]
        return True

    def _mark(self, goals: Sequence[Goal]) -> str:
        named = _named(goals)
        if not self._marked[1] or named != self._marked[0]:  # goals rarely change, and hashing is slow
            self._marked = (named, mark_of(goals))
        return self._marked[1]

    def state(self) -> dict[str, Any]:
        """Return the state as JSON-ready data."""
        return {"planned": self._planned, "seen": list(self._seen), "since": self._since, "wait": self._wait}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore a state; WireError if it is invalid."""
        try:
            planned, seen = state["planned"], [str(mark) for mark in state["seen"]]
            since, wait = int(state["since"]), int(state["wait"])
        except (KeyError, TypeError, ValueError) as error:
            raise WireError(f"The recorded goals of an agent are damaged: {error}.") from error
        self._planned, self._seen = None if planned is None else str(planned), seen
        self._since, self._wait = since, wait


def mark_of(goals: Iterable[Goal]) -> str:
    """Return a short hash of goals, independent of their order and progress."""
    return hashlib.sha256(dumps(_named(goals)).encode()).hexdigest()[:16]


def _named(goals: Iterable[Goal]) -> list[tuple[str, str, str]]:
    return sorted((goal.id, goal.type, goal.description) for goal in goals)
