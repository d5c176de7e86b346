"""Repeats a decision for several steps.

A model that takes seconds to reply need not be asked at each step. Its action is repeated for the number of steps that
it gave (see `wsap_llm.reply.steps`) until that number is reached, a change matches its condition `until` (see
`wsap_llm.decision.changes`) or the episode is over; then the model is asked again. Each repetition counts and is logged
as a normal step; only the first has the model's usage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from wsap_core.errors import SnapshotError, WireError
from wsap_core.protocol import Action, ActionDef, ActionResult, Observation
from wsap_core.protocol.values import JsonValue
from wsap_core.protocol.wire import Codec, encode
from wsap_core.untrusted import sanitize
from wsap_llm.decision.changes import ObservationDigest, Outcome, changed, within
from wsap_llm.prompts import Prompts
from wsap_llm.reply.steps import NOTHING_SAID, Condition, Steps, repeatable


@dataclass(frozen=True)
class _Repetition:
    """A decision that is being repeated, or was."""

    action: Action
    times: int
    until: Condition
    movement: bool
    done: int = 1

    @property
    def repeated(self) -> ActionDef | None:
        """The action as `changed` needs it; None once all steps are done."""
        if self.done >= self.times:
            return None
        return ActionDef(self.action.name, category="movement" if self.movement else "general")


@dataclass(frozen=True)
class _State:
    """The state of a cadence, JSON-ready for the agent's snapshot."""

    stretch: _Repetition | None = None
    """The decision that is being repeated; None if the model is asked next."""
    ended: _Repetition | None = None
    """The decision that ended last, until there is a new one."""
    why: tuple[str, ...] = ()
    """The reasons why it ended early."""
    seen: ObservationDigest | None = None
    outcome: Outcome | None = None
    """Of the last step."""


class Cadence:
    """Decides at each step whether to repeat the last action."""

    def __init__(self) -> None:
        self._state = _State()

    def next_action(self, observation: Observation, legal: Sequence[ActionDef]) -> Action | None:
        """Return the action that continues the last decision, or None if a new one is needed."""
        state = self._state
        current, seen = state.stretch, state.seen
        if current is None or seen is None:
            return None
        found = changed(seen, observation, legal, outcome=state.outcome, action=current.repeated)
        over = state.outcome is not None and state.outcome.done
        if over or current.done >= current.times or within(found, current.until):
            self._state = replace(state, stretch=None, ended=current, why=tuple(each.text for each in found))
            return None
        step = current.done + 1
        self._state = replace(state, stretch=replace(current, done=step), seen=seen.after(observation, legal))
        return replace(current.action, reasoning=f"(step {step} of {current.times})")

    def begin(
        self, observation: Observation, legal: Sequence[ActionDef], action: Action, steps: Steps = NOTHING_SAID
    ) -> None:
        """Start a new decision, with the number of steps that the model gave."""
        definition = next((a for a in legal if a.name == action.name), None)
        if definition is None or not repeatable(definition) or (times := max(1, steps.times or 1)) == 1:
            self._state = _State()
            return
        repetition = _Repetition(action, times, steps.until, definition.category == "movement")
        self._state = _State(repetition, seen=ObservationDigest.at(observation, legal))

    def note(self, result: ActionResult) -> None:
        """Store the result of the last step."""
        if self._state.seen is not None:
            self._state = replace(self._state, outcome=Outcome.of(result))

    def report(self, prompts: Prompts, left_out: int = 0) -> str:
        """Return how many steps of the last decision were taken and why it ended; empty if it was for one step.
        `left_out` is the number of events of these steps that are not shown to the model."""
        ended = self._state.ended
        if ended is None:
            return ""
        return prompts.render(
            "steps_report",
            action=ended.action.name,
            done=ended.done,
            times=ended.times,
            why=[sanitize(prompts.words.say(text), 240) for text in self._state.why],
            left_out=left_out,
        )

    def snapshot(self) -> dict[str, JsonValue]:
        """Return the state as JSON-ready data."""
        state: dict[str, JsonValue] = encode(self._state)
        return state

    def restore(self, data: object) -> None:
        """Continue from a snapshot. Raises SnapshotError, without changes, if the data is damaged."""
        try:
            self._state = Codec().decode(_State, data, where="state of a decision's steps")
        except WireError as error:
            raise SnapshotError(f"The snapshot of a decision's steps is damaged: {error}") from error
