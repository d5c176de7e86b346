"""A room that repeats what you say: a minimal example of a game."""

from __future__ import annotations

import json

from wsap_core.errors import ConfigError, SnapshotError
from wsap_core.protocol import Action, ActionDef, ActionResult, ActionSpace, Event, Location, Observation, ParamDef
from wsap_core.protocol.views import TextBlock, View
from wsap_core.seams.context import Context
from wsap_core.worlds.legality import check_action, index_actions

_SPACE = ActionSpace(
    (
        ActionDef("speak", "Say something and hear it again", (ParamDef("text", "what to say"),), (), "talk"),
        ActionDef("wait", "Listen", (), (), "wait"),
    )
)
_DECLARED = index_actions(_SPACE)


class EchoWorld:
    """Repeats what is said, and ends after `length` steps (an option, by default 20)."""

    def __init__(self, context: Context) -> None:
        try:
            self._length = int(context.config.get("length", 20))
        except (TypeError, ValueError):
            given = context.config.get("length")
            raise ConfigError(f"The option length={given!r} of echo must be a whole number.") from None
        if self._length < 1:
            raise ConfigError(f"The option length={self._length} of echo must be at least 1.")
        self._step = 0
        self._heard = ""

    @property
    def game_description(self) -> str:
        """The room and its end."""
        return f"A quiet room with an echo. It closes after {self._length} steps."

    @property
    def action_space(self) -> ActionSpace:
        """Speak and wait."""
        return _SPACE

    def observe(self) -> Observation:
        """Return the room with the last echo."""
        events = (Event(f"The echo says: {self._heard}", "speech", "echo"),) if self._heard else ()
        return Observation(
            status={"steps left": self._length - self._step},
            location=Location((), "room", "In a quiet room"),
            recent_events=events,
            step=self._step,
        )

    def act(self, action: Action) -> ActionResult:
        """Echo what was said."""
        if self._step >= self._length:
            return ActionResult(False, "The room is closed.", done=True, observation=self.observe())
        action, reason = check_action(action, _DECLARED)
        if reason:
            return ActionResult(False, reason, observation=self.observe())
        self._step += 1
        self._heard = str(action.parameters.get("text", "")) if action.name == "speak" else ""
        return ActionResult(
            True,
            f"The echo says: {self._heard}" if self._heard else "It is quiet.",
            reward=1.0 if self._heard else 0.0,
            done=self._step >= self._length,
            observation=self.observe(),
        )

    def reset(self, seed: int | None = None) -> Observation:
        """Start again; the seed has no effect."""
        self._step, self._heard = 0, ""
        return self.observe()

    def render(self) -> View:
        """Return the room as text."""
        return View((TextBlock(self._heard or "(quiet)", "The room"),), "Echo")

    def snapshot(self) -> bytes:
        """Return the step and what was heard last."""
        return json.dumps({"step": self._step, "heard": self._heard}).encode()

    def restore(self, data: bytes) -> None:
        """Restore a snapshot; `SnapshotError` if it is damaged."""
        try:
            state = json.loads(data)
            step, heard = state["step"], state["heard"]
            if type(step) is not int or not 0 <= step <= self._length or not isinstance(heard, str):
                raise ValueError("the step or what was heard is invalid")
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise SnapshotError(f"The echo world's snapshot is damaged: {error}.") from error
        self._step, self._heard = step, heard
