"""One agent's stay in one world, as it is lived: what it has done, what is around it, and when it ends."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from wsap_nexus.hub.conditions import Condition, facts_of, parse_condition
from wsap_nexus.hub.records import SessionRecord
from wsap_nexus.runtime.controls import Controls
from wsap_nexus.runtime.loop import StepTaken
from wsap_nexus.storage.records import EventRecord


@dataclass
class Deeds:
    """What was done in a session: the evidence for skills, and its totals."""

    done: Counter[str] = field(default_factory=Counter)
    """`achievement:NAME` and `action:NAME` -> how often, with success."""
    steps: int = 0
    reward: float = 0.0

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

    def count_logged(self, event: EventRecord) -> None:
        """Count a step from the log."""
        step = json.loads(event.body)["step"]
        result = step["result"]
        self.add(step["action"]["name"], result["success"], result["reward"], result["achievements"])


class Stay:
    """An open session, being played.

    Args:
        session: its record.
        seat_name: the agent's seat in the world.
        deeds: what was done before, when it is gone on with.
        controls: what holds and stops its loop.
        on_step: told after each decision.
    """

    def __init__(
        self,
        session: SessionRecord,
        seat_name: str,
        *,
        deeds: Deeds,
        controls: Controls,
        on_step: Callable[[Stay, StepTaken], None],
    ) -> None:
        self.session = session
        self.seat_name = seat_name
        self.deeds = deeds
        self.controls = controls
        self.stopped: str | None = None
        """Why it was asked to end, if it was."""
        self.last: StepTaken | None = None
        """The newest decision."""
        self._on_step = on_step
        text = session.terms.exit_when
        self._exit: Condition | None = parse_condition(text) if text else None

    def stop(self, reason: str) -> None:
        """End it before the next decision."""
        self.stopped = self.stopped or reason
        self.controls.stop()

    def observe(self, step: StepTaken) -> None:
        """Count a decision, and see whether the exit condition holds now."""
        if step.seat != self.seat_name:
            return
        self.last = step
        result = step.result
        self.deeds.add(step.action.name, result.success, result.reward, result.achievements)
        if self._exit is not None and not result.done:
            facts = facts_of(
                result.observation,
                steps=self.deeds.steps,
                reward=self.deeds.reward,
                achievements=self.deeds.achievements,
            )
            if self._exit(facts):
                self.stop("condition")
        self._on_step(self, step)
