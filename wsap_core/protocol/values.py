"""Validates parameters of actions and tools against a small subset of JSON Schema 2020-12.

Validation runs several times per decision on replies of models, so it takes time linear in the value (no `pattern`, no
references), and explains in a sentence what is wrong. `wsap_core.protocol.subset` checks schemas.

    type                                           a word or a list of words
    enum, const                                    1 and 1.0 are equal, 1 and true are not
    minimum, maximum, exclusiveMinimum,
    exclusiveMaximum                               numbers
    minLength, maxLength                           text, in Unicode characters
    items, prefixItems, minItems, maxItems         lists (and tuples)
    properties, required, additionalProperties     objects (mappings)
    title, description, default, examples,
    $comment                                       no effect

The schema `true` accepts every value, `false` none.
"""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from wsap_core.protocol.lines import plural

JsonValue: TypeAlias = Any
"""JSON-ready data of unchecked shape."""

Schema = Mapping[str, Any] | bool
"""A JSON Schema within the subset."""


def json_or_text(text: str) -> JsonValue:
    """Return the value of a text that is JSON, else the text itself."""
    try:
        return json.loads(text, parse_constant=str)  # NaN and the like are words
    except (ValueError, RecursionError):
        return text


_NAMES = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "null": "null",
    "number": "a number",
    "object": "an object",
    "string": "text",
}
_SHOWN = 60


def validate_value(value: Any, schema: Schema, name: str = "value") -> str | None:
    """Return why JSON-ready data does not fit a schema, in one sentence, or None if it fits.

    Tuples are lists; NaN and infinities fit no type; unknown keywords are ignored. The sentence calls the value `name`;
    with an empty name, parts of an object are called `direction`, `path[2]`, `target.x`.
    """
    if schema is True:
        return None
    if schema is False:
        return f"{name or 'It'} must be left out."
    reason = _wrong_type(value, schema, name) or _wrong_choice(value, schema, name)
    if reason:
        return reason
    if isinstance(value, str):
        return _wrong_text(value, schema, name)
    if is_number(value):
        return _wrong_number(value, schema, name)
    if isinstance(value, Mapping):
        return _wrong_object(value, schema, name)
    if isinstance(value, list | tuple):
        return _wrong_list(value, schema, name)
    return None


def is_number(value: Any) -> bool:
    """Return whether a value is a number, and not a boolean."""
    return isinstance(value, int | float) and not isinstance(value, bool)


_IS: dict[str, Callable[[Any], bool]] = {
    "array": lambda v: isinstance(v, list | tuple),
    "boolean": lambda v: isinstance(v, bool),
    # JSON Schema does not distinguish 3.0 from 3.
    "integer": lambda v: is_number(v) and (isinstance(v, int) or v.is_integer()),
    "null": lambda v: v is None,
    "number": lambda v: is_number(v) and (isinstance(v, int) or math.isfinite(v)),
    "object": lambda v: isinstance(v, Mapping),
    "string": lambda v: isinstance(v, str),
}


def _wrong_type(value: Any, schema: Mapping[str, Any], name: str) -> str | None:
    wanted = schema.get("type")
    if wanted is None:
        return None
    words = (wanted,) if isinstance(wanted, str) else tuple(wanted)
    if any(_IS[word](value) for word in words):
        return None
    if words in (("integer",), ("number",)):
        kind = _NAMES[words[0]] + _range(schema)
    elif words == ("string",) and isinstance(schema.get("enum"), list | tuple):
        return _not_among(value, schema["enum"], name)
    else:
        kind = " or ".join(_NAMES[word] for word in words)
    return f"{_it(name)} must be {kind}, not {shown(value)}."


def _wrong_choice(value: Any, schema: Mapping[str, Any], name: str) -> str | None:
    if "const" in schema and not same_json(value, schema["const"]):
        return f"{_it(name)} must be {shown(schema['const'])}, not {shown(value)}."
    if "enum" in schema and not any(same_json(value, choice) for choice in schema["enum"]):
        return _not_among(value, schema["enum"], name)
    return None


def _not_among(value: Any, choices: Sequence[Any], name: str) -> str:
    listed = ", ".join(shown(choice) for choice in choices[:20]) + (", ..." if len(choices) > 20 else "")
    sentence = f"{_it(name)} must be one of {listed}, not {shown(value)}"
    words = [choice for choice in choices if isinstance(choice, str)]
    close = difflib.get_close_matches(value[:100], words, n=1) if isinstance(value, str) else []
    return sentence + (f"; did you mean {close[0]!r}?" if close else ".")


def _wrong_number(value: float, schema: Mapping[str, Any], name: str) -> str | None:
    fits = (
        ("minimum" not in schema or value >= schema["minimum"])
        and ("maximum" not in schema or value <= schema["maximum"])
        and ("exclusiveMinimum" not in schema or value > schema["exclusiveMinimum"])
        and ("exclusiveMaximum" not in schema or value < schema["exclusiveMaximum"])
    )
    return None if fits else f"{_it(name)} must be a number{_range(schema)}, not {shown(value)}."


def _wrong_text(value: str, schema: Mapping[str, Any], name: str) -> str | None:
    low, high = schema.get("minLength", 0), schema.get("maxLength", math.inf)
    if low <= len(value) <= high:
        return None
    return f"{_it(name)} must be {_amount(low, high, 'character')} long, not {len(value)}."


def _wrong_list(value: Sequence[Any], schema: Mapping[str, Any], name: str) -> str | None:
    low, high = schema.get("minItems", 0), schema.get("maxItems", math.inf)
    if not low <= len(value) <= high:
        return f"{_it(name)} must have {_amount(low, high, 'item')}, not {len(value)}."
    prefix: Sequence[Schema] = schema.get("prefixItems", ())
    rest: Schema = schema.get("items", True)
    for index, item in enumerate(value):
        part = prefix[index] if index < len(prefix) else rest
        if part is False:
            return f"{_it(name)} must have at most {plural(index, 'item')}, not {len(value)}."
        if reason := validate_value(item, part, f"{name or 'item'}[{index}]"):
            return reason
    return None


def _wrong_object(value: Mapping[Any, Any], schema: Mapping[str, Any], name: str) -> str | None:
    properties: Mapping[str, Schema] = schema.get("properties", {})
    rest: Schema = schema.get("additionalProperties", True)
    for key, item in value.items():
        if not isinstance(key, str):
            return f"{_it(name)} must have text keys, not {shown(key)}."
        if key in properties:
            reason = validate_value(item, properties[key], child_name(name, key))
        elif rest is False:
            reason = _unknown_key(key, properties, name)
        else:
            reason = validate_value(item, rest, child_name(name, key))
        if reason:
            return reason
    # Last, because a misspelt key explains more than the missing one.
    missing = (key for key in schema.get("required", ()) if key not in value)
    return next((f"{child_name(name, key)} is missing." for key in missing), None)


def _unknown_key(key: str, known: Mapping[str, Any], name: str) -> str:
    sentence = f"{child_name(name, key)} is not known"
    if not known:
        return f"{sentence}; nothing belongs here."
    close = difflib.get_close_matches(key[:100], known, n=1)
    return f"{sentence}; did you mean {close[0]!r}?" if close else f"{sentence}; known: {', '.join(known)}."


def same_json(one: Any, other: Any) -> bool:
    """Return whether two JSON-ready values are equal in JSON Schema: 1 equals 1.0, but not true."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same_json, one, other))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same_json(one[k], other[k]) for k in one)
    return bool(one == other)


def _it(name: str) -> str:
    return name or "It"


def child_name(name: str, key: str) -> str:
    """Return the name of a part of an object, for a sentence."""
    part = key if len(key) <= _SHOWN and key.isprintable() else shown(key)
    return f"{name}.{part}" if name else part


def shown(value: Any) -> str:
    """Return a value for a sentence: short, on one line, safe for terminals."""
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return repr(value if len(value) <= _SHOWN else value[: _SHOWN - 3] + "...")
    if is_number(value):
        # Python does not format integers of thousands of digits.
        return str(value) if isinstance(value, float) or abs(value) < 10**18 else "a very large number"
    return f"a {type(value).__name__}"


def _amount(low: float, high: float, unit: str) -> str:
    if low == high:
        return plural(low, unit)
    if high == math.inf:
        return f"at least {plural(low, unit)}"
    return f"{low} to {plural(high, unit)}" if low else f"at most {plural(high, unit)}"


def _range(schema: Mapping[str, Any]) -> str:
    if "minimum" in schema and "maximum" in schema:
        return f" from {shown(schema['minimum'])} to {shown(schema['maximum'])}"
    words = {
        "minimum": "of at least",
        "maximum": "of at most",
        "exclusiveMinimum": "greater than",
        "exclusiveMaximum": "less than",
    }
    parts = [f"{word} {shown(schema[key])}" for key, word in words.items() if key in schema]
    return " " + " and ".join(parts) if parts else ""
