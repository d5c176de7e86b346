"""Actions, the action space, and the results of actions."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from wsap_core.protocol.base import LEFT_OUT, Part, brief_repr
from wsap_core.protocol.observation import Observation
from wsap_core.protocol.words import ENGLISH, Words
from wsap_core.untrusted import single_line

TOOL = "tool"
"""The category of actions that look something up or write a note: they return their result at once in
`ActionResult.message`, take no game step and end no turn."""

_INTEGER_RANGE = re.compile(r"\s*(-?\d+)\s*-\s*(-?\d+)\s*")


@dataclass(frozen=True)
class ParamDef(Part):
    """One parameter of an action or tool."""

    name: str
    """The key of its value in `Action.parameters`."""
    spec: str = ""
    """An enumeration (`left|right`), an integer range (`1-10`, inclusive), or a description of free text."""
    optional: bool = False
    """Whether it may be left out."""
    schema: Mapping[str, Any] | None = None
    """A JSON Schema (see `wsap_core.protocol.values`) instead of `spec`, for fractions, lists, coordinates, objects."""
    description: str = ""
    """What it means, for a reader."""

    def choices(self) -> tuple[str, ...] | None:
        """Return the allowed words of an enumeration, or None if it is not one."""
        if self.schema is not None:
            words = self.schema.get("enum", ())
            plain = bool(words) and self.schema.get("type") == "string" and set(self.schema) <= {"type", "enum"}
            return tuple(words) if plain else None
        if "|" not in self.spec:
            return None
        return tuple(word.strip() for word in self.spec.split("|"))

    def integer_range(self) -> tuple[int, int] | None:
        """Return the bounds of an integer range, inclusive, or None if it is not one."""
        match = None if self.schema is not None else _INTEGER_RANGE.fullmatch(self.spec)
        if match is None:
            return None
        low, high = int(match[1]), int(match[2])
        return (low, high) if low <= high else (high, low)

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the value."""
        if self.schema is not None:
            return dict(self.schema)
        if (choices := self.choices()) is not None:
            return {"type": "string", "enum": list(choices)}
        if (bounds := self.integer_range()) is not None:
            return {"type": "integer", "minimum": bounds[0], "maximum": bounds[1]}
        return {"type": "string"}


@dataclass(frozen=True)
class ActionDef(Part):
    """An action that a game declares."""

    name: str
    """Such as "move_north"."""
    description: str = ""
    parameters: Sequence[ParamDef] = ()
    preconditions: Sequence[str] = ()
    """When it is legal, for a reader: "Must be near interactable object"."""
    category: str = "general"
    """"movement", "combat", "crafting", "meta", "tool" (see `TOOL`); a game may use other words."""
    unlisted: bool = False
    """Whether it is left out of the seat's list of actions, such as an action of another role; it is legal
    nevertheless when an observation offers it."""

    @property
    def is_tool(self) -> bool:
        """Whether its category is `TOOL`."""
        return self.category == TOOL

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the object of its parameters."""
        return {
            "type": "object",
            "properties": {p.name: p.json_schema() for p in self.parameters},
            "required": [p.name for p in self.parameters if not p.optional],
            "additionalProperties": False,
        }


@dataclass(frozen=True)
class ActionSpace(Part):
    """All actions of a world. Declared once; the observation says which are legal now."""

    actions: Sequence[ActionDef] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the actions, in order."""
        return tuple(action.name for action in self.actions)

    def find(self, name: str) -> ActionDef | None:
        """Return the declared action of that name, or None."""
        return next((action for action in self.actions if action.name == name), None)

    def listed(self) -> ActionSpace:
        """Return the action space without its unlisted actions."""
        return ActionSpace([action for action in self.actions if not action.unlisted])

    def merged(self, other: ActionSpace) -> ActionSpace:
        """Return the action space with the other's actions added, except those whose names it has already."""
        own = set(self.names)
        return ActionSpace((*self.actions, *(a for a in other.actions if a.name not in own)))

    def worded(self, words: Words) -> ActionSpace:
        """Return the action space with its texts translated."""
        if words is ENGLISH:
            return self
        return ActionSpace([_worded(action, words) for action in self.actions])

    def to_text(self, words: Words = ENGLISH) -> str:
        """Return one line for each action, for a language model."""
        return "\n".join(_action_line(action, words) for action in self.actions)


@dataclass(frozen=True)
class Action(Part):
    """An agent's choice."""

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Values by parameter name."""
    reasoning: str | None = None
    """Why the agent chose it; for logs and viewers, not part of the trajectory hash."""


@dataclass(frozen=True)
class ActionResult(Part):
    """The result of an action."""

    success: bool
    """Whether it worked. A refusal is False with a message, never an exception."""
    message: str = ""
    """What happened, for the agent to read."""
    reward: float = 0.0
    """Finite, from -1e15 to 1e15."""
    achievements: Sequence[str] = ()
    """Names of the achievements that this action unlocked."""
    done: bool = False
    """Whether this seat's episode is over; stays True until a reset or respawn."""
    observation: Observation = field(default_factory=Observation)
    """The state after the action."""
    outcome: Literal["done", "failed", "unknown"] = field(default="done", metadata=LEFT_OUT)
    """The outcome of an action that the world accepted: `failed` if it was started without effect, `unknown` if it
    can't be determined, for example because the game's process was lost during it; it is not repeated."""
    truncated: bool = field(default=False, metadata=LEFT_OUT)
    """Whether the episode ended at a limit of steps or time rather than by the rules of the game; only with `done`."""

    def __repr__(self) -> str:
        return brief_repr(self)


def _worded(action: ActionDef, words: Words) -> ActionDef:
    return replace(
        action,
        description=words.say(action.description),
        parameters=[replace(p, spec=words.say(p.spec)) for p in action.parameters],
        preconditions=[words.say(condition) for condition in action.preconditions],
    )


def _action_line(action: ActionDef, words: Words) -> str:
    signature = ", ".join(_parameter(p) for p in action.parameters)
    line = f"- {single_line(action.name)}" + (f"({signature})" if signature else "")
    if action.description:
        line += f": {single_line(action.description)}"
    if action.preconditions:
        line += words.say(f" [requires: {'; '.join(single_line(p) for p in action.preconditions)}]")
    return line


def _parameter(parameter: ParamDef) -> str:
    if parameter.schema is None or parameter.spec:  # with a schema, `spec` says the same in words
        kind = single_line((parameter.schema and parameter.description) or parameter.spec)
    else:
        kind = json.dumps(dict(parameter.schema))
    name = single_line(parameter.name)
    return name + ("?" if parameter.optional else "") + (f": {kind}" if kind not in ("", name) else "")
