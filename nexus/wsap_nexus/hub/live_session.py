"""One agent's stay in one world, as it is lived: what it has done, what is around it, and when it ends."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from wsap_core.protocol import ActionResult
from wsap_core.protocol.wire import Codec
from wsap_nexus.agents.exit_rules import Condition, facts_of, parse_condition
from wsap_nexus.runs.controls import Controls
from wsap_nexus.runs.logged import read_step
from wsap_nexus.runs.observers import StepTaken
from wsap_nexus.runs.tally import SeatTally
from wsap_nexus.store.entities import SessionRecord
from wsap_nexus.store.records import EventRecord

SHUTDOWN = "shutdown"
"""Why a stay ends that goes on when the nexus is started again."""


@dataclass
class SessionStats:
    """What was done in a session: the evidence for skills, and its totals."""

    done: Counter[str] = field(default_factory=Counter)
    """`achievement:NAME` and `action:NAME` -> how often, with success."""
    steps: int = 0
    reward: float = 0.0

    @classmethod
    def of(cls, tally: SeatTally) -> SessionStats | None:
        """Return what was done in the session of a seat by its totals; None if an earlier version recorded these."""
        return None if tally.worked is None else cls(tally.worked.copy(), tally.steps, tally.reward)

    def add(self, action: str, success: bool, reward: float, achievements: Iterable[str]) -> None:
        """Count one step."""
        self.steps += 1
        self.reward += reward
        if success:
            self.done[f"action:{action}"] += 1
        for name in achievements:
            self.done[f"achievement:{name}"] += 1

    @property
    def achievements(self) -> list[str]:
        """What was achieved, sorted."""
        return sorted(key.partition(":")[2] for key in self.done if key.startswith("achievement:"))

    def count_logged(self, event: EventRecord, codec: Codec | None = None) -> ActionResult:
        """Count a step from the log and return its result; WireError if the event is no step."""
        step = read_step(event.seq, event.episode, event.step or 0, event.body, codec or Codec())
        self.add(step.action.name, step.result.success, step.result.reward, step.result.achievements)
        return step.result


@dataclass(eq=False)
class LiveSession:
    """An open session, being played. `stats`: what was done before, in a session that is resumed."""

    session: SessionRecord
    seat_name: str
    controls: Controls
    on_step: Callable[[LiveSession, StepTaken], None]
    stats: SessionStats = field(default_factory=SessionStats)
    stopped: str | None = field(default=None, init=False)
    """Why it was asked to end, if it was."""
    catching_up: bool = field(default=False, init=False)
    """Whether recorded decisions are being gone through again: until that is done, the world is not
    yet where the log is, and must not be left."""
    home: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    """Set once nobody plays it any more: its agent is back, or the nexus has stopped."""
    last: StepTaken | None = field(default=None, init=False)
    """The newest decision."""

    def __post_init__(self) -> None:
        text = self.session.terms.exit_when
        self._exit: Condition | None = parse_condition(text) if text else None

    def stop(self, reason: str, *, at_once: bool = False) -> None:
        """End it before the next decision; `at_once` even before the world is where the log is, to go on later."""
        self.stopped = reason if at_once else self.stopped or reason
        if self.catching_up and not at_once:
            self.controls.finish()
        else:
            self.controls.stop()

    def observe(self, step: StepTaken) -> None:
        """Count a decision, and see whether the exit condition holds now."""
        if step.seat != self.seat_name:
            return
        self.last = step
        self.catching_up = False
        result = step.result
        self.stats.add(step.action.name, result.success, result.reward, result.achievements)
        self._see_whether_to_leave(result)
        self.on_step(self, step)

    def take_up(self, last: ActionResult | None) -> None:
        """Go on after the last recorded decision: if its result met the exit condition, nothing more is decided.

        Call it before play begins.
        """
        if last is None:
            return
        self.catching_up = True
        self._see_whether_to_leave(last)

    def _see_whether_to_leave(self, result: ActionResult) -> None:
        if self._exit is None or result.done:
            return
        facts = facts_of(
            result.observation,
            steps=self.stats.steps,
            reward=self.stats.reward,
            achievements=self.stats.achievements,
        )
        if self._exit(facts):
            self.stop("condition")
