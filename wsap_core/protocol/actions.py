"""What an agent can do, what it does, and what comes of it."""

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
"""The category of actions that look something up or note it: carried out at once, with the result in
`ActionResult.message`; they take no game step and end no turn."""

_INTEGER_RANGE = re.compile(r"\s*(-?\d+)\s*-\s*(-?\d+)\s*")


@dataclass(frozen=True)
class ParamDef(Part):
    """One parameter of an action or tool.

    The second field says what it may be: an enumeration (`"left|right"`), an integer range
    (`"1-10"`, both ends included), or anything else, which is a description of free text.
    A `schema` (a JSON Schema, see `wsap_core.protocol.values`) takes its place for numbers with
    fractions, lists, coordinates and objects.
    """

    name: str
    spec: str = ""
    """`a|b|c`, `1-10`, or a description of free text."""
    optional: bool = False
    """True if the action works without it."""
    schema: Mapping[str, Any] | None = None
    """A JSON Schema for the value, where `spec` can't say it."""
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
        """Return the lowest and highest integer allowed, or None if it is not an integer range."""
        match = None if self.schema is not None else _INTEGER_RANGE.fullmatch(self.spec)
        if match is None:
            return None
        low, high = int(match[1]), int(match[2])
        return (low, high) if low <= high else (high, low)

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the value, for constrained decoding and for validation."""
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
    """What the agent says to do it: "move_north"."""
    description: str = ""
    """What it does."""
    parameters: Sequence[ParamDef] = ()
    preconditions: Sequence[str] = ()
    """When it is valid, for a reader: "Must be near interactable object"."""
    category: str = "general"
    """"movement", "combat", "crafting", "meta", "tool" (see `TOOL`); a game may use other words."""
    unlisted: bool = False
    """True if a seat is not told of it beforehand, such as what only another role can do; it is legal all the same
    where an observation offers it."""

    @property
    def is_tool(self) -> bool:
        """Whether it only looks something up or notes it: no game step, no end of the turn."""
        return self.category == TOOL

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of this action's parameters object."""
        return {
            "type": "object",
            "properties": {p.name: p.json_schema() for p in self.parameters},
            "required": [p.name for p in self.parameters if not p.optional],
            "additionalProperties": False,
        }


@dataclass(frozen=True)
class ActionSpace(Part):
    """All actions of a world and what they mean. Declared once; what is legal now is in the observation."""

    actions: Sequence[ActionDef] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The declared names, in the order of declaration."""
        return tuple(action.name for action in self.actions)

    def find(self, name: str) -> ActionDef | None:
        """Return the declared action of that name, or None."""
        return next((action for action in self.actions if action.name == name), None)

    def listed(self) -> ActionSpace:
        """Return the actions that a seat is told of beforehand."""
        return ActionSpace([action for action in self.actions if not action.unlisted])

    def merged(self, other: ActionSpace) -> ActionSpace:
        """Return a space with the other's actions added, keeping our own where names are equal."""
        own = set(self.names)
        return ActionSpace((*self.actions, *(a for a in other.actions if a.name not in own)))

    def worded(self, words: Words) -> ActionSpace:
        """Return the actions described in other words, where these have them."""
        if words is ENGLISH:
            return self
        return ActionSpace([_worded(action, words) for action in self.actions])

    def to_text(self, words: Words = ENGLISH) -> str:
        """Return a description of all actions for a language model, one line each."""
        return "\n".join(_action_line(action, words) for action in self.actions)


@dataclass(frozen=True)
class Action(Part):
    """What the agent sends back."""

    name: str
    """The declared action's name."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Values by parameter name."""
    reasoning: str | None = None
    """Why the agent chose this; for logs and viewers, not part of the trajectory hash."""


@dataclass(frozen=True)
class ActionResult(Part):
    """Feedback after an action."""

    success: bool
    """Whether it worked. A refusal is False with a message, never an exception."""
    message: str = ""
    """What happened, for the agent to read."""
    reward: float = 0.0
    """Numerical feedback, finite."""
    achievements: Sequence[str] = ()
    """Names of achievements newly unlocked by this action."""
    done: bool = False
    """True when this seat's episode is over; stays True until reset or respawn."""
    observation: Observation = field(default_factory=Observation)
    """The state after the action."""
    outcome: Literal["done", "failed", "unknown"] = field(default="done", metadata=LEFT_OUT)
    """What became of an action that the world took: `failed` if it came to nothing after it was begun, `unknown` if
    nobody knows, such as when a game in another process was lost in the middle of it; it is not done again."""

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
    if parameter.schema is None or parameter.spec:  # beside a schema they say the same in words
        kind = single_line((parameter.schema and parameter.description) or parameter.spec)
    else:
        kind = json.dumps(dict(parameter.schema))
    name = single_line(parameter.name)
    return name + ("?" if parameter.optional else "") + (f": {kind}" if kind not in ("", name) else "")
