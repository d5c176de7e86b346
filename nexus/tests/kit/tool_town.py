"""A town whose days one person talks through: with tools, observations in its own words, and seats by an option."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wsap_core.errors import ConfigError
from wsap_core.protocol import TOOL, Action, ActionDef, ActionResult, ActionSpace, Observation, ParamDef
from wsap_core.seams.context import Context
from wsap_core.specs import AdapterSpec
from wsap_core.worlds.legality import check_action, index_actions

WILL = 'Player 3\'s Will: "I am the Doctor. N1 heal Player 5. N2 heal Player 1."'
SPACE = ActionSpace(
    [
        ActionDef("check_will", "A dead player's will", [ParamDef("player", "a name")], category=TOOL),
        ActionDef("notebook", "Write a note", [ParamDef("text", "the note")], category=TOOL),
        ActionDef("speak", "Say something", [ParamDef("text", "what to say")]),
        ActionDef("wait", "Stay silent"),
    ]
)
DECLARED = index_actions(SPACE)


@dataclass(frozen=True)
class Day(Observation):
    """A day as the town tells it."""

    told: str = ""

    def to_text(self) -> str:
        return self.told


class ToolTown:
    """Lasts as many days as the option `days` says, 4."""

    game_description = "A town of hidden roles."
    action_space = SPACE

    def __init__(self, context: Context) -> None:
        self.days = int(context.config.get("days", 4))
        context.config.get("players")
        self.day, self.notes = 0, 0

    def observe(self) -> Day:
        return Day(step=self.day, told=f"Day {self.day}\n- Player 3 [DEAD] - Role: Doctor\nNotes: {self.notes}")

    def act(self, action: Action) -> ActionResult:
        action, reason = check_action(action, DECLARED)
        if reason:
            return ActionResult(False, reason, observation=self.observe())
        if action.name == "check_will":
            known = action.parameters["player"] == "Player 3"
            return ActionResult(known, WILL if known else "Nobody of that name is dead.", observation=self.observe())
        if action.name == "notebook":
            self.notes += 1
            return ActionResult(True, f"Noted, as number {self.notes}.", observation=self.observe())
        self.day += 1
        return ActionResult(True, "So be it.", done=self.day >= self.days, observation=self.observe())

    def reset(self, seed: int | None = None) -> Day:
        self.day, self.notes = 0, 0
        return self.observe()

    def snapshot(self) -> bytes:
        return json.dumps([self.day, self.notes]).encode()

    def restore(self, data: bytes) -> None:
        self.day, self.notes = json.loads(data)


def players(options: Mapping[str, Any]) -> int:
    """How many seats there are: the option `players`, 1."""
    given = options.get("players", 1)
    if not isinstance(given, int):
        raise ConfigError(f"The option players={given!r} of tool-town must be a whole number.")
    return given


SPEC = AdapterSpec(
    "tool-town",
    "A town with tools.",
    ToolTown,
    title="Tool Town",
    abilities=("seed", "snapshot"),
    wire_types=(Day,),
    complete_turns=True,
    objective="Your goal is to find out who lies.",
)
