"""How far a decision carries: for one step, for several until something changes, or for the rest of a rhythm.

A model that takes seconds to answer need not be asked at each step. What it decides is carried out
for as many steps as it asked for (see `wsap_llm.reply.steps`) or as its cadence says, and it is
asked again when something happened that is news (see `wsap_llm.changes`). Each step is one of
the game, of the log and of the count like any other; only the first has the model's usage.

    decision ── times, until ──> repeat the action while it goes well
                                 ├── all steps done ───────────────> ask
                                 ├── news within `until` ──────────> ask, or with a cadence:
                                 │                                   ├── news within `wake` ──> ask
                                 │                                   └── else the quiet action for the rest
                                 └── the episode is over ──────────> ask
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from wsap_core.errors import ConfigError, SnapshotError, WireError
from wsap_core.protocol import Action, ActionDef, ActionResult, AgentMessage, Event, Observation
from wsap_core.protocol.wire import Codec, encode
from wsap_core.untrusted import harmless
from wsap_llm.changes import Change, Outcome, Seen, changes, within
from wsap_llm.prompts import Prompts
from wsap_llm.reply.steps import CONDITIONS, NOTHING_SAID, Condition, Steps, repeatable

__all__ = ["EVERY_STEP", "Pace", "PaceOptions", "Thinking", "Wake", "fallback_action", "quiet_action"]

Wake = Literal["blocked", "hurt", "change", "never"]
"""What has a model asked before its time; `never` for nothing but the end of the episode."""
Thinking = bool | Literal["auto"] | None
"""Whether a model is asked to think before it decides; None for its own default."""
WAKES: tuple[Wake, ...] = (*CONDITIONS, "never")
QUIET = ("noop", "wait", "pass", "inspect_self")
"""Actions that do nothing, in the order of preference."""
LOOKS, LEAVES = "inspect_self", "jack_out"
DECIDING = ("decide", "tool", "re-ask")
"""Purposes of the requests that make up one decision."""
MOST_MISSED = 24
"""Events, and messages, of steps without a decision that are kept for the next one."""
MOST_EVERY = 1000
"""The longest rhythm, in steps."""


@dataclass(frozen=True)
class PaceOptions:
    """When a model is asked.

    Raises:
        ConfigError: a value is out of range.
    """

    every: int = 1
    """Steps that a decision stands for at least, 1 to 1000: what is decided without a number of steps is
    repeated so often."""
    wake: Wake = "change"
    """What has the model asked before these steps are done. Until then, where the action can't be
    repeated any more, a quiet action is taken."""

    def __post_init__(self) -> None:
        if not 1 <= self.every <= MOST_EVERY:
            raise ConfigError(f"A decision stands for 1 to {MOST_EVERY} steps, not {self.every}.")
        if self.wake not in WAKES:
            raise ConfigError(f"There is no condition {self.wake!r} to wake at; there are: {', '.join(WAKES)}.")


EVERY_STEP = PaceOptions()
"""A decision for each step."""


@dataclass(frozen=True)
class _Stretch:
    """A decision that is being carried out."""

    action: Action
    times: int
    """Steps that the action is for."""
    until: Condition
    hold: int
    """Steps until the model is asked again, at least `times`."""
    movement: bool
    done: int = 1
    repeated: int = 1
    repeating: bool = True


class Pace:
    """Tells for each step whether to go on with the last decision, and what happened meanwhile.

    Args:
        options: the cadence.
        thinking: whether the model is asked to think; "auto" for only where something happened.
        fallback: the quiet action, if it is declared.
    """

    def __init__(
        self, options: PaceOptions = EVERY_STEP, *, thinking: Thinking = None, fallback: str | None = None
    ) -> None:
        self._options = options
        self._fallback = fallback
        self._thinking = thinking
        self.clear()

    def clear(self) -> None:
        """Forget everything: a session begins."""
        self._stretch: _Stretch | None = None
        self._ended: _Stretch | None = None
        self._why: tuple[str, ...] = ()
        self._seen: Seen | None = None
        self._outcome: Outcome | None = None
        self._missed: Observation = Observation()
        self._left_out = 0
        self.news = True
        """Whether something happened since the last decision; True before the first."""

    def go_on(self, observation: Observation, legal: Sequence[ActionDef]) -> Action | None:
        """Return the action that goes on with the last decision, or None to ask for a new one."""
        stretch, seen = self._stretch, self._seen
        if seen is None:
            return None
        found = changes(seen, observation, legal, outcome=self._outcome, action=_repeated(stretch))
        self._seen = seen.after(observation, legal)
        self.news = self.news or bool(found)
        if stretch is None:
            return None
        action = None if self._over() else self._next(stretch, found, legal)
        if action is None:
            self._ended, self._stretch = stretch, None
            self._why = tuple(change.text for change in found)
            return None
        self._miss(observation)
        return action

    def begin(
        self,
        observation: Observation,
        legal: Sequence[ActionDef],
        action: Action,
        steps: Steps = NOTHING_SAID,
    ) -> None:
        """Take a new decision.

        Args:
            observation: that it was made on.
            legal: the actions that were possible.
            action: what was decided.
            steps: how far the model wants it carried.
        """
        every = self._options.every
        definition = next((a for a in legal if a.name == action.name), None)
        wanted = max(1, every if steps.times is None else steps.times)
        if definition is None or not repeatable(definition):
            wanted = 1
        hold = max(wanted, every)
        self._stretch = self._ended = None
        self._why, self._missed, self._left_out = (), Observation(), 0
        self._outcome, self.news = None, False
        self._seen = Seen.at(observation, legal) if hold > 1 or self._thinking == "auto" else None
        if hold > 1:
            movement = definition is not None and definition.category == "movement"
            self._stretch = _Stretch(action, wanted, steps.until, hold, movement)

    def note(self, result: ActionResult) -> None:
        """Take in what came of the last step."""
        if self._seen is not None:
            self._outcome = Outcome.of(result)

    def thinking(self, purpose: str) -> bool | None:
        """Return whether the model is asked to think for a purpose; None for its own default.

        With "auto", that is where something happened since the last decision, and for whatever is
        not a decision, such as a plan.
        """
        if self._thinking == "auto":
            return self.news if purpose in DECIDING else True
        return self._thinking

    def caught_up(self, observation: Observation) -> Observation:
        """Return an observation with the events and messages of the steps for which nobody was asked."""
        missed = self._missed
        if not missed.recent_events and not missed.messages:
            return observation
        return replace(
            observation,
            recent_events=(*missed.recent_events, *observation.recent_events),
            messages=(*missed.messages, *observation.messages),
        )

    def put_off(self, told: Observation) -> None:
        """Show the events and messages of an observation, and no others, with the next decision besides its own."""
        self._missed = Observation(recent_events=told.recent_events, messages=told.messages)

    def report(self, prompts: Prompts) -> str:
        """Return how far the last decision was carried out and why no further; empty if it was for one step."""
        ended = self._ended
        if ended is None:
            return ""
        return prompts.render(
            "steps_report",
            action=ended.action.name,
            done=ended.repeated,
            times=ended.times,
            quiet=ended.done - ended.repeated,
            why=[harmless(text, 240) for text in self._why],
            left_out=self._left_out,
        )

    def snapshot(self) -> dict[str, Any]:
        """Return its state as JSON-ready data."""
        return {
            "stretch": _stretch_json(self._stretch),
            "ended": _stretch_json(self._ended),
            "why": list(self._why),
            "seen": None if self._seen is None else self._seen.to_json(),
            "outcome": None if self._outcome is None else asdict(self._outcome),
            "events": encode(self._missed.recent_events),
            "messages": encode(self._missed.messages),
            "left_out": self._left_out,
            "news": self.news,
        }

    def restore(self, data: Mapping[str, Any] | None) -> None:
        """Go on where the snapshot was taken; None is one from before there was a pace.

        Raises:
            SnapshotError: the data is damaged; nothing has changed.
        """
        if data is None:
            self.clear()
            return
        try:
            stretch, ended = _stretch_from(data["stretch"]), _stretch_from(data["ended"])
            seen = None if data["seen"] is None else Seen.from_json(data["seen"])
            outcome = None if data["outcome"] is None else _outcome_from(data["outcome"])
            codec = Codec()
            events = [codec.decode(Event, event) for event in data["events"]]
            messages = [codec.decode(AgentMessage, message) for message in data["messages"]]
            why, left_out, news = tuple(map(str, data["why"])), int(data["left_out"]), bool(data["news"])
        except (KeyError, TypeError, ValueError, AttributeError, WireError) as error:
            raise SnapshotError(f"The snapshot of a decision's steps is damaged: {error}.") from error
        self._stretch, self._ended, self._why, self._seen, self._outcome = stretch, ended, why, seen, outcome
        self._missed = Observation(recent_events=events, messages=messages)
        self._left_out, self.news = left_out, news

    def _over(self) -> bool:
        return self._outcome is not None and self._outcome.done

    def _next(self, stretch: _Stretch, found: Sequence[Change], legal: Sequence[ActionDef]) -> Action | None:
        """Return the stretch's next action and count it, or None at its end."""
        if stretch.done >= stretch.hold:
            return None
        stopped = stretch.repeating and within(found, stretch.until)
        if stretch.done >= self._options.every:
            if stopped:
                return None
        elif self._options.wake != "never" and within(found, self._options.wake):
            return None
        repeating = stretch.repeating and not stopped and stretch.repeated < stretch.times
        quiet = None if repeating else quiet_action(legal, self._fallback)
        if not repeating and quiet is None:
            return None
        step = stretch.done + 1
        repeated = stretch.repeated + repeating
        self._stretch = replace(stretch, done=step, repeated=repeated, repeating=repeating)
        if quiet is not None:
            return Action(quiet, reasoning=f"(step {step} of {stretch.hold}: quiet until the next decision)")
        return replace(stretch.action, reasoning=f"(step {step} of {stretch.hold})")

    def _miss(self, observation: Observation) -> None:
        known = {(e.type, e.description, e.source) for e in self._missed.recent_events}
        fresh = [e for e in observation.recent_events if (e.type, e.description, e.source) not in known]
        events = (*self._missed.recent_events, *fresh)
        messages = (*self._missed.messages, *observation.messages)
        self._left_out += max(0, len(events) - MOST_MISSED) + max(0, len(messages) - MOST_MISSED)
        self._missed = Observation(recent_events=events[-MOST_MISSED:], messages=messages[-MOST_MISSED:])


def quiet_action(legal: Sequence[ActionDef], fallback: str | None = None) -> str | None:
    """Return the action that does least: the declared fallback if it is legal, one that waits, or None."""
    free = [a.name for a in legal if not a.is_tool and all(p.optional for p in a.parameters)]
    return next((name for name in (fallback, *QUIET) if name is not None and name in free), None)


def fallback_action(legal: Sequence[ActionDef], fallback: str | None, generator: random.Random) -> str:
    """Return the action that is taken where a reply can't be understood.

    The declared one if it is legal, else one that waits. Where a game has none, any that needs no
    parameters: one that only looks would be taken again and again, and a game in which others
    wait for a move would never end. For the same reason it is never a tool of the game, unless
    nothing else is legal.
    """
    legal = [a for a in legal if not a.is_tool] or legal
    names = [a.name for a in legal]
    if fallback in names:
        return str(fallback)
    free = [a.name for a in legal if all(p.optional for p in a.parameters)]
    waits = [name for name in QUIET if name in free and name != LOOKS]
    moves = [name for name in free if name not in (LOOKS, LEAVES)]
    if not waits and len(moves) > 1:
        return generator.choice(moves)
    return (waits or moves or [name for name in free if name != LEAVES] or free or names)[0]


def _repeated(stretch: _Stretch | None) -> ActionDef | None:
    """Return the action that is being repeated, as far as it matters for telling whether it got anywhere."""
    if stretch is None or not stretch.repeating or stretch.repeated >= stretch.times:
        return None
    return ActionDef(stretch.action.name, category="movement" if stretch.movement else "general")


def _stretch_json(stretch: _Stretch | None) -> dict[str, Any] | None:
    if stretch is None:
        return None
    return {**{key: getattr(stretch, key) for key in _NUMBERS}, "action": encode(stretch.action)}


_NUMBERS = ("times", "until", "hold", "movement", "done", "repeated", "repeating")


def _stretch_from(data: Mapping[str, Any] | None) -> _Stretch | None:
    if data is None:
        return None
    if data["until"] not in CONDITIONS:
        raise ValueError(f"there is no condition {data['until']!r}")
    return _Stretch(
        Codec().decode(Action, data["action"]),
        int(data["times"]),
        data["until"],
        int(data["hold"]),
        bool(data["movement"]),
        int(data["done"]),
        int(data["repeated"]),
        bool(data["repeating"]),
    )


def _outcome_from(data: Mapping[str, Any]) -> Outcome:
    return Outcome(
        bool(data["success"]), str(data["message"]), tuple(map(str, data["achievements"])), bool(data["done"])
    )
