"""What environments of others tell and take, as observations and actions of this protocol. All of it is untrusted."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from wsap_core.errors import PluginError
from wsap_core.protocol import (
    AVATAR_ACTIONS,
    Action,
    ActionAvailability,
    ActionDef,
    ActionSpace,
    Observation,
    Possible,
    TextBlock,
    View,
)
from wsap_core.protocol.observation import render_observation
from wsap_core.untrusted import single_line, strip_control
from wsap_core.worlds.legality import wrong_parameter
from wsap_llm.kit import UnusableToolError, parameters_of

# Any, in this module: JSON.

LONGEST = 7000
"""Maximum characters of a text."""
SHORT = 200
"""Maximum characters of a text that is told among the numbers."""
OWN = {"metadata", "legal_actions", "state", "success", "message"}
"""What WSAP's own server tells that is no part of what is seen."""
MOST_NUMBERS = 256
"""Maximum number of numbers in one value."""
LONGEST_WORD = 1000
"""Maximum characters of a text without a space."""
MOST_ACTIONS = 200
"""Maximum number of actions."""
ACT = "act"
"""The action of an environment that has only one, with fields."""

_NAME = re.compile(r"[A-Za-z_][\w.-]{0,63}", re.ASCII)

Form = Literal["fields", "named", "tools"]
"""How an environment takes actions: as the fields of one object; as a name with parameters, as WSAP's own server does;
or as calls of tools."""


@dataclass(frozen=True, kw_only=True)
class ForeignObservation(Observation):
    """An observation with a text that an environment has written."""

    text: str = ""

    def to_text(self) -> str:
        """Return the observation as text, with the environment's own."""
        return render_observation(self, extra_sections=[("STATE", self.text)])

    def to_view(self) -> View:
        """Return the text as a view."""
        return View([TextBlock(self.text)]) if self.text else View()


def form_of(schema: Mapping[str, Any]) -> Form:
    """Return how an environment takes actions, by their JSON Schema."""
    fields = schema.get("properties")
    if not isinstance(fields, Mapping):
        return "fields"
    if {"tool_name", "arguments"} <= fields.keys():
        return "tools"
    named = fields.get("action")
    if isinstance(named, Mapping) and isinstance(named.get("enum"), list) and "parameters" in fields:
        return "named"
    return "fields"


def space_of(form: Form, schema: Mapping[str, Any], tools: object, name: str) -> ActionSpace:
    """Return the actions of an environment; PluginError if none can be taken.

    Args:
        schema: the JSON Schema of its actions.
        tools: with the form "tools", the list of its tools.
        name: the environment, for the error.
    """
    found: list[ActionDef] = []
    for action, description, parameters in _declared(form, schema, tools):
        try:
            definition = ActionDef(action, single_line(description)[:500], tuple(parameters_of(parameters)))
        except UnusableToolError:
            continue
        if not any(wrong_parameter(parameter) for parameter in definition.parameters):
            found.append(definition)
    if not found:
        raise PluginError(f"{name} takes no action that can be described in words and numbers; write an adapter.")
    return ActionSpace(tuple(found[:MOST_ACTIONS]))


def _declared(form: Form, schema: Mapping[str, Any], tools: object) -> list[tuple[str, str, Mapping[str, Any]]]:
    """Return each action with its description and the JSON Schema of its parameters."""
    if form == "tools":
        listed = [tool for tool in _list(tools) if isinstance(tool, dict) and _is_name(tool.get("name"))]
        about = [str(tool.get("description") or "") for tool in listed]
        takes = [_object(tool.get("input_schema") or tool.get("inputSchema")) for tool in listed]
        return [(tool["name"], told, schema) for tool, told, schema in zip(listed, about, takes, strict=True)]
    if form == "named":
        parts = _object(schema.get("$defs"))
        described = str(schema["properties"]["action"].get("description") or "")
        told = dict(part.split(": ", 1) for part in described.split("; ") if ": " in part)
        names = filter(_is_name, schema["properties"]["action"]["enum"])
        # What a body does anywhere, such as to inspect itself, is no action of the game.
        own = [name for name in names if name not in AVATAR_ACTIONS.names]
        return [(name, told.get(name, ""), _object(parts.get(name))) for name in own]
    fields = {key: value for key, value in _object(schema.get("properties")).items() if key != "metadata"}
    required = [key for key in schema.get("required") or () if key in fields]
    return [(ACT, str(schema.get("description") or ""), {**schema, "properties": fields, "required": required})]


def data_of(form: Form, action: Action) -> dict[str, Any]:
    """Return an action as its environment takes it."""
    given = dict(action.parameters)
    if form == "tools":
        return {"type": "call_tool", "tool_name": action.name, "arguments": given}
    return {"action": action.name, "parameters": given} if form == "named" else given


def is_told(value: object) -> bool:
    """Return whether words can tell a value: it is no picture, such as an array of many numbers or encoded bytes."""
    if isinstance(value, str):
        return len(value) <= LONGEST_WORD or any(map(str.isspace, value[:LONGEST_WORD]))
    if isinstance(value, dict):
        return all(map(is_told, value.values()))
    return not isinstance(value, list) or (_count(value) <= MOST_NUMBERS and all(map(is_told, value)))


def _count(value: list[Any]) -> int:
    """Return how many numbers a list has, at any depth."""
    return sum(_count(each) if isinstance(each, list) else isinstance(each, int | float) for each in value)


def told_of(seen: Mapping[str, Any], form: Form) -> dict[str, Any]:
    """Return what an observation tells of the state: without what is empty, or about the protocol."""
    own = OWN if form == "named" else {"metadata", "tool_name"}
    return {name: value for name, value in seen.items() if name not in own and value not in (None, "", [], {})}


def observed(told: Mapping[str, Any], form: Form, space: ActionSpace, step: int, *, done: bool) -> ForeignObservation:
    """Return what an environment tells: short values by name, and longer ones as text; pictures are left out."""
    status: dict[str, Any] = {}
    texts: list[str] = []
    for name, value in told_of(told, form).items():
        key = single_line(name)[:60]
        if not is_told(value):
            texts.append(f"{key}: (a picture or other large array, not shown)")
            continue
        if isinstance(value, bool | int | float):
            status[key] = value
        elif isinstance(value, str) and "\n" not in value and len(value) <= SHORT:
            status[key] = strip_control(value)
        else:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)
            texts.append(text if key == "text" else f"{key}:\n{text}")
    return ForeignObservation(
        status=status,
        step=step,
        text=strip_control("\n\n".join(texts))[:LONGEST].strip(),
        available_actions=_available(told.get("legal_actions"), form, space, done=done),
    )


def _available(told: object, form: Form, space: ActionSpace, *, done: bool) -> list[ActionAvailability]:
    if done:
        return [ActionAvailability(name, False, "the game is over") for name in space.names]
    if form != "named" or not isinstance(told, list):
        return [ActionAvailability(name) for name in space.names]
    legal = {
        each["action"]: _object(each.get("choices"))
        for each in told
        if isinstance(each, dict) and isinstance(each.get("action"), str)
    }
    return [_one(name, legal.get(name)) for name in space.names]


def _one(name: str, choices: Mapping[str, Any] | None) -> ActionAvailability:
    if choices is None:
        return ActionAvailability(name, False, "it is not possible now")
    words = {key: [str(value) for value in _list(values)] for key, values in choices.items()}
    return Possible(name, choices=words) if words else ActionAvailability(name)


def _is_name(name: object) -> bool:
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
