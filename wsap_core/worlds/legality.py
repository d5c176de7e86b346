"""Checks actions and their parameters against the declared action space, before the game sees them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from wsap_core.protocol import Action, ActionDef, ActionSpace, ParamDef
from wsap_core.protocol.subset import check_schema
from wsap_core.protocol.values import json_or_text, validate_value

_NUMERIC = re.compile(r"[-+.,:\d\s\u2013]*\d[-+.,:\d\s\u2013]*")
_TYPE_NAMES = frozenset({"int", "integer", "float", "number", "double", "bool", "boolean", "list", "array", "dict"})


def index_actions(space: ActionSpace) -> dict[str, ActionDef]:
    """Return the actions by name."""
    return {action.name: action for action in space.actions}


def wrong_parameter(parameter: ParamDef) -> str:
    """Return what is wrong with the declaration of a parameter; "" if nothing is. It may be a misspelt range or the
    name of a type, which would mean any text, or a JSON Schema with a type that does not exist."""
    if parameter.schema is not None:
        return check_schema(parameter.schema, only="type") or ""
    spec = parameter.spec.strip()
    ranged = parameter.integer_range()
    if _NUMERIC.fullmatch(spec) and (ranged is None or str(ranged[0]) != spec.removeprefix("+")[: len(str(ranged[0]))]):
        return f"{spec!r} is no range; write whole numbers as '1-10', and others as schema={{'type': 'number'}}."
    if spec.lower() in _TYPE_NAMES:
        return f"{spec!r} is no type, but words for people; use '1-10', 'yes|no', or schema={{'type': ...}}."
    return ""


def check_action(action: Action, declared: Mapping[str, ActionDef]) -> tuple[Action, str]:
    """Return the action with its parameters in declared form, and why it is refused (empty if it is not). Integers may
    be written as text, and words of an enumeration in any case."""
    definition = declared.get(action.name)
    if definition is None:
        return action, _unknown(action.name, declared)
    if not definition.parameters and not action.parameters:
        return action, ""
    parameters, reason = check_parameters(definition, action.parameters)
    if reason:
        return action, reason
    return (action if parameters == action.parameters else replace(action, parameters=parameters)), ""


def check_parameters(definition: ActionDef, given: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Return the parameters in declared form, and the first problem (empty if there is none)."""
    accepted: dict[str, Any] = {}
    known = {p.name for p in definition.parameters}
    for name in sorted(given):
        if name not in known:
            takes = ", ".join(p.name for p in definition.parameters) or "none"
            return accepted, f"{definition.name} has no parameter {name!r}; it takes: {takes}."
    for parameter in definition.parameters:
        if parameter.name not in given or (given[parameter.name] is None and parameter.optional):
            if not parameter.optional:
                return accepted, f"{definition.name} needs {parameter.name!r} ({_expected(parameter)})."
            continue
        value = _tolerant(given[parameter.name], parameter)
        if problem := validate_value(value, parameter.json_schema()):
            return accepted, (
                f"{definition.name}: {parameter.name!r} is not right: {problem} (expected {_expected(parameter)})."
            )
        accepted[parameter.name] = value
    return accepted, ""


def narrowed(definition: ActionDef, choices: Mapping[str, Sequence[str]]) -> ActionDef:
    """Return an action whose parameters in `choices` accept only these words, or what they are in JSON if the parameter
    is no text."""
    narrow = (_narrow(p, choices[p.name]) if choices.get(p.name) else p for p in definition.parameters)
    return replace(definition, parameters=tuple(narrow)) if choices else definition


def _narrow(parameter: ParamDef, words: Sequence[str]) -> ParamDef:
    kind = parameter.json_schema().get("type", "string")
    values = list(words) if kind == "string" else [json_or_text(word) for word in words]
    return replace(parameter, schema={"type": kind, "enum": values})


def _tolerant(value: Any, parameter: ParamDef) -> Any:
    if isinstance(value, str):
        if parameter.json_schema().get("type") == "integer":
            digits = value.strip()
            return int(digits) if digits.removeprefix("-").isdecimal() and len(digits) < 20 else value
        alike = [word for word in parameter.choices() or () if word.lower() == value.strip().lower()]
        return value if value in alike or not alike else alike[0]
    elif isinstance(value, float) and value.is_integer() and parameter.integer_range() is not None:
        return int(value)
    elif isinstance(value, Mapping | list):
        return _filled(value, parameter.json_schema())
    return value


def _filled(value: Any, schema: Any) -> Any:
    """Return a value without null members that are optional: OpenAI's strict mode can't omit them."""
    if not isinstance(schema, Mapping):
        return value
    if isinstance(value, Mapping):
        parts: Mapping[str, Any] = schema.get("properties", {})
        optional = parts.keys() - set(schema.get("required", ()))
        return {
            name: _filled(item, parts.get(name))
            for name, item in value.items()
            if item is not None or name not in optional or validate_value(None, parts[name]) is None
        }
    if isinstance(value, list):
        first = schema.get("prefixItems", ())
        return [_filled(item, first[i] if i < len(first) else schema.get("items")) for i, item in enumerate(value)]
    return value


def _expected(parameter: ParamDef) -> str:
    if words := parameter.json_schema().get("enum"):
        return "one of " + ", ".join(map(str, words))
    if (bounds := parameter.integer_range()) is not None:
        return f"a whole number from {bounds[0]} to {bounds[1]}"
    return parameter.spec or str(parameter.json_schema().get("type", "text"))


def _unknown(name: str, declared: Mapping[str, ActionDef]) -> str:
    near = difflib.get_close_matches(str(name), declared, n=2, cutoff=0.6)
    if near:
        return f"There is no action {name!r} here. Did you mean {' or '.join(near)}?"
    some = ", ".join(list(declared)[:20])
    return f"There is no action {name!r} here. There are: {some}{', ...' if len(declared) > 20 else ''}."
