"""A session in play: its statistics, its controls, and its end."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from wsap_core.errors import WireError
from wsap_core.protocol import ActionResult
from wsap_core.protocol.wire import Codec
from wsap_nexus.agents.exit_rules import Condition, facts_of, parse_condition
from wsap_nexus.runs.play.controls import Controls
from wsap_nexus.runs.play.observers import StepTaken
from wsap_nexus.runs.record.logged import read_step
from wsap_nexus.runs.record.tally import SeatTally, added
from wsap_nexus.store.entities import SessionRecord
from wsap_nexus.store.errors import UnreadableError
from wsap_nexus.store.records import EventRecord

SHUTDOWN = "shutdown"
"""The reason a session stops when the nexus does; it is resumed at the next start."""


@dataclass
class SessionStats:
    """A session's totals, and the evidence for skills."""

    done: Counter[str] = field(default_factory=Counter)
    """`achievement:NAME` and `action:NAME` -> number of successes."""
    steps: int = 0
    reward: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Return them as JSON-ready data."""
        return {"done": dict(sorted(self.done.items())), "steps": self.steps, "reward": self.reward}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> SessionStats:
        """Return the statistics of `to_json`; WireError if they are damaged."""
        try:
            done = Counter({str(name): int(times) for name, times in data["done"].items()})
            return cls(done, int(data["steps"]), float(data["reward"]))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise WireError(f"The saved statistics of a session are damaged: {error}.") from error

    @classmethod
    def of(cls, tally: SeatTally) -> SessionStats:
        """Return a session's statistics from its seat's tally."""
        return cls(tally.worked.copy(), tally.steps, tally.reward)

    def add(self, action: str, success: bool, reward: float, achievements: Iterable[str]) -> None:
        """Count one step."""
        self.steps += 1
        self.reward = added(self.reward, reward)
        if success:
            self.done[f"action:{action}"] += 1
        for name in achievements:
            self.done[f"achievement:{name}"] += 1

    @property
    def achievements(self) -> list[str]:
        """The names of achievements, sorted."""
        return sorted(key.partition(":")[2] for key in self.done if key.startswith("achievement:"))

    def count_logged(self, event: EventRecord, codec: Codec | None = None) -> ActionResult:
        """Count a logged step and return its result; WireError if the event is invalid."""
        step = read_step(event.seq, event.episode, event.step or 0, event.body, codec or Codec())
        self.add(step.action.name, step.result.success, step.result.reward, step.result.achievements)
        return step.result

    @classmethod
    def of_log(cls, events: Iterable[EventRecord]) -> SessionStats:
        """Return the statistics of logged steps as far as they can be read; of a damaged one only that it was made."""
        stats = cls()
        with suppress(UnreadableError):
            for event in events:
                try:
                    stats.count_logged(event)
                except WireError:
                    stats.steps += 1
        return stats


@dataclass(eq=False)
class LiveSession:
    """An open session in play; `stats` has the previous totals of a resumed session."""

    session: SessionRecord
    seat_name: str
    controls: Controls
    on_step: Callable[[LiveSession, StepTaken], None]
    stats: SessionStats = field(default_factory=SessionStats)
    stopped: str | None = field(default=None, init=False)
    """Why it was asked to end, if it was."""
    catching_up: bool = field(default=False, init=False)
    """Whether recorded decisions are being replayed: until then the world is behind the log, and must not be left."""
    home: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    """Set once it is no longer played: its agent is back, or the nexus has stopped."""
    insisted: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    """Set once a person wants it to end soon, whatever its world does."""
    leaving_since: float | None = field(default=None, init=False)
    """When its world was asked to let the agent go, in seconds of the monotonic clock; None before that."""
    last: StepTaken | None = field(default=None, init=False)
    """The latest step."""
    began: float = field(default_factory=time.monotonic, init=False)
    """When this process started to play it, in seconds of the monotonic clock."""

    def __post_init__(self) -> None:
        text = self.session.terms.exit_when
        self._exit: Condition | None = parse_condition(text) if text else None

    def stop(self, reason: str, *, at_once: bool = False) -> None:
        """End it before the next decision; `at_once` even during the replay, to be resumed later."""
        self.stopped = reason if at_once else self.stopped or reason
        if self.catching_up and not at_once:
            self.controls.finish()
        else:
            self.controls.stop()

    def observe(self, step: StepTaken) -> None:
        """Count a step, and stop the session if its exit condition holds."""
        if step.seat != self.seat_name:
            return
        self.last = step
        self.catching_up = False
        result = step.result
        self.stats.add(step.action.name, result.success, result.reward, result.achievements)
        self._see_whether_to_leave(result)
        self.on_step(self, step)

    def take_up(self, last: ActionResult | None, *, repeats: bool = True) -> None:
        """Continue after the last recorded result, or stop if it met the exit condition; call it before play.

        `repeats` is whether recorded decisions are replayed first, its own or those of others.
        """
        # Also without a result: a choice may be recorded whose result is still to come.
        self.catching_up = repeats
        if last is not None:
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
