"""A world of rounds that are written down beforehand, for tests of the barrier."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

from wsap_core import Action, ActionResult, Barrier, Observation

SEATS = ("a", "b", "c", "d")


@dataclass
class Script:
    """A world that goes through rounds written down beforehand, and gives a result when its seat is named next."""

    named: Sequence[Sequence[str]]
    at: int = 0
    resolved: list[dict[str, str]] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    """Who was given a result, in order of rounds."""
    holds_back: bool = True
    waiting: list[str] = field(default_factory=list)
    asked: int = 0
    turns: int = 0
    """Turns of the event loop that it takes to resolve a round."""
    busy: bool = False

    def barrier(self) -> Barrier:
        resolve = self.resolve_slowly if self.turns else self.resolve
        return Barrier(SEATS, resolve, lambda s: Action("default"), observe=self.observe, expects=self.expects)

    def observe(self, seat: str) -> Observation:
        return Observation(step=self.at)

    def expects(self) -> Sequence[str]:
        self.asked += 1
        return self.named[self.at] if self.at < len(self.named) else ()

    async def resolve_slowly(self, actions: Mapping[str, Action]) -> Mapping[str, ActionResult]:
        assert not self.busy
        self.busy = True
        for _ in range(self.turns):
            await asyncio.sleep(0)
        self.busy = False
        return self.resolve(actions)

    def resolve(self, actions: Mapping[str, Action]) -> Mapping[str, ActionResult]:
        self.resolved.append({seat: action.name for seat, action in actions.items()})
        self.at += 1
        self.waiting += actions
        upcoming = self.expects()
        ready = [s for s in self.waiting if not self.holds_back or not upcoming or s in upcoming]
        self.waiting = [s for s in self.waiting if s not in ready]
        self.told += ready
        return {s: ActionResult(True, f"after {self.at}", done=not upcoming) for s in ready}


rounds_of_some = st.lists(st.sets(st.sampled_from(SEATS), min_size=1).map(sorted), min_size=1, max_size=8)
