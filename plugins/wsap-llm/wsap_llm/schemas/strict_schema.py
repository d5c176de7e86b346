"""The subset of JSON Schema of OpenAI's strict structured outputs, and the conversion of schemas to it.

By the guide "Structured Outputs", section "Supported schemas", as of 2026:

- the root is an object, not `anyOf`;
- every object has `additionalProperties: false` and requires all of its properties; optional ones may be null instead;
- types are string, number, integer, boolean, object, array and null, with `enum`, `const` and `anyOf`;
- supported are bounds and `multipleOf` of numbers, `minItems` and `maxItems` of lists, and `pattern` and `format` of
  texts; `default`, `minLength`, `maxLength`, `prefixItems`, `allOf`, `oneOf`, `not` and conditions are refused;
- at most 5,000 properties, 10 levels, 1,000 values in enumerations, 120,000 characters in names and values, and 15,000
  in one enumeration of more than 250 texts.

Not in the guide, but required by the server: objects in an `anyOf` must not start with the same property, unless its
value distinguishes them (openai/openai-python#2193).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from wsap_core.protocol.values import JsonValue

JsonSchema = dict[str, JsonValue]

MOST_PROPERTIES = 5_000
MOST_LEVELS = 10
MOST_VALUES = 1_000
MOST_CHARACTERS = 120_000
LONG_ENUMERATION = 250
MOST_IN_LONG = 15_000
_TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
_TEXT = frozenset({"pattern", "format"})
_NUMBERS = frozenset({"multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
_LISTS = frozenset({"items", "minItems", "maxItems"})
_OBJECTS = frozenset({"properties", "required", "additionalProperties"})
_KNOWN = frozenset({"type", "enum", "const", "anyOf", "title", "description"}) | _TEXT | _NUMBERS | _LISTS | _OBJECTS
_NULL: JsonSchema = {"type": "null"}
_SCALARS = ("string", "number", "boolean", "null")
_NAMES: Mapping[type, str] = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}


WRAPPER = "reply"
"""The property of the wrapping object."""


def wrapped(schema: Mapping[str, JsonValue]) -> JsonSchema:
    """Return a schema in the subset for an object that wraps a value of the given schema."""
    outer = {"type": "object", "properties": {WRAPPER: schema}, "required": [WRAPPER], "additionalProperties": False}
    return strict_schema(outer)


def unwrapped(text: str) -> str:
    """Return a reply to a wrapped schema without the wrapping object and null members; any other text unchanged."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(found, dict) or list(found) != [WRAPPER] or not isinstance(found[WRAPPER], dict):
        return text
    return json.dumps({name: value for name, value in found[WRAPPER].items() if value is not None}, ensure_ascii=False)


def or_text(schema: Mapping[str, JsonValue]) -> JsonSchema:
    """Return the schema of a value, or that of a text with its JSON if the subset can't describe it.

    The subset has neither objects with any members nor values of any type.
    """
    if not _is_open(schema):
        return dict(schema)
    kinds = schema.get("type", list(_SCALARS))
    plain = [kind for kind in ([kinds] if isinstance(kinds, str) else kinds) if kind in _SCALARS and kind != "string"]
    return {"type": ["string", *plain] if plain else "string"}


def _is_open(schema: JsonValue) -> bool:
    if not isinstance(schema, Mapping):
        return schema is not False
    if "const" in schema or "enum" in schema:
        return False
    kinds = schema.get("type")
    if kinds is None:
        return True
    kinds = [kinds] if isinstance(kinds, str) else kinds
    parts: list[JsonValue] = []
    if "object" in kinds:
        parts += [schema.get("additionalProperties", True), *schema.get("properties", {}).values()]
    if "array" in kinds:
        parts += [schema.get("items", True), *schema.get("prefixItems", ())]
    return any(map(_is_open, parts))


def strict_schema(schema: Mapping[str, JsonValue]) -> JsonSchema:
    """Return a schema within the subset that accepts all values of a schema from `wsap_llm.reply.schema.bounded`.

    Lengths of texts and the positions of `prefixItems` are left out, and optional members may be null, so that replies
    must be validated by the given schema. A root that is not an object must be wrapped before.
    """
    made = _within(schema)
    listed = [part for _, part, _ in _walk(made, "", 1) if isinstance(part, dict) and "enum" in part]
    if sum(len(part["enum"]) for part in listed) > MOST_VALUES:
        for part in listed:
            _shorten(part)
    return made


def _shorten(part: JsonSchema) -> None:
    """Replace an enumeration of consecutive whole numbers by a range."""
    values = part["enum"]
    if len(values) > 1 and {*map(type, values)} == {int} and values == list(range(values[0], values[-1] + 1)):
        del part["enum"]
        part |= {"minimum": values[0], "maximum": values[-1]}


def _within(schema: Mapping[str, JsonValue]) -> JsonSchema:
    if "anyOf" in schema:
        return {"anyOf": [_within(part) for part in schema["anyOf"]]}
    if "const" in schema or "enum" in schema:
        return _of_values(schema)
    kinds = schema.get("type", "string")
    made: JsonSchema = {"type": kinds}
    made |= {name: value for name, value in schema.items() if name in _TEXT | _NUMBERS | {"minItems", "maxItems"}}
    kinds = [kinds] if isinstance(kinds, str) else list(kinds)
    if "array" in kinds:
        made["items"] = _items(schema)
    if "object" in kinds:
        made |= _members(schema)
    return made


def _of_values(schema: Mapping[str, JsonValue]) -> JsonSchema:
    values = list(schema["enum"]) if "enum" in schema else [schema["const"]]
    names = sorted({_NAMES.get(type(value), "") for value in values})
    found = {"const": values[0]} if "const" in schema else {"enum": values}
    if "" in names:
        return found
    return {"type": names[0] if len(names) == 1 else names, **found}


def _items(schema: Mapping[str, JsonValue]) -> JsonSchema:
    rest = schema.get("items", True)
    parts = [*schema.get("prefixItems", ()), *([rest] if rest is not False else [])]
    several: list[JsonSchema] = []
    for part in parts:
        made = _within(part) if isinstance(part, Mapping) else {"type": "string"}
        if made not in several:
            several.append(made)
    if not several:
        return dict(_NULL)
    return several[0] if len(several) == 1 else {"anyOf": several}


def _members(schema: Mapping[str, JsonValue]) -> JsonSchema:
    needed = set(schema.get("required", ()))
    properties: JsonSchema = {}
    for name, part in schema.get("properties", {}).items():
        made = _within(part) if isinstance(part, Mapping) else {"type": "string"}
        if name not in needed:
            made = {"anyOf": [*(made["anyOf"] if list(made) == ["anyOf"] else [made]), dict(_NULL)]}
        properties[name] = made
    return {"properties": properties, "required": list(properties), "additionalProperties": False}


def strict_violation(schema: Mapping[str, JsonValue]) -> str | None:
    """Return a sentence why OpenAI's strict mode would refuse a schema; None if it would not."""
    if schema.get("type") != "object" or "anyOf" in schema:
        return "The root is not an object."
    parts = []
    for path, part, level in _walk(schema, "the root", 1):
        if (reason := _wrong(part)) is not None:
            return f"In {path}: {reason}"
        if level > MOST_LEVELS:
            return f"In {path}: objects and lists are nested deeper than {MOST_LEVELS} levels."
        parts.append(part)
    return _too_much(parts)


def _too_much(parts: Sequence[Mapping[str, JsonValue]]) -> str | None:
    values = [[*part.get("enum", ()), *([part["const"]] if "const" in part else [])] for part in parts]
    texts = [[value if isinstance(value, str) else json.dumps(value) for value in some] for some in values]
    names = [name for part in parts for name in part.get("properties", {})]
    listed = sum(len(part.get("enum", ())) for part in parts)
    characters = sum(map(len, names)) + sum(len(text) for some in texts for text in some)
    if len(names) > MOST_PROPERTIES:
        return f"There are {len(names)} properties, more than {MOST_PROPERTIES}."
    if listed > MOST_VALUES:
        return f"There are {listed} values in enumerations, more than {MOST_VALUES}."
    if characters > MOST_CHARACTERS:
        return f"Names and values have {characters} characters, more than {MOST_CHARACTERS}."
    long = any(len(some) > LONG_ENUMERATION and sum(map(len, some)) > MOST_IN_LONG for some in texts)
    return f"A long enumeration has more than {MOST_IN_LONG} characters." if long else None


def _walk(schema: JsonValue, path: str, level: int) -> Iterator[tuple[str, Mapping[str, JsonValue], int]]:
    """Yield every schema in a schema, itself first, with its path and level."""
    found = schema if isinstance(schema, Mapping) else {"(no object)": schema}
    yield path, found, level
    for name, part in found.get("properties", {}).items():
        yield from _walk(part, f"{path} / {name}", level + 1)
    if "items" in found:
        yield from _walk(found["items"], f"{path} / items", level + 1)
    for number, part in enumerate(found.get("anyOf", ()), 1):
        yield from _walk(part, f"{path} / choice {number}", level)


def _wrong(part: Mapping[str, JsonValue]) -> str | None:
    if unknown := sorted(part.keys() - _KNOWN):
        return f"{unknown[0]!r} is not allowed."
    if "anyOf" in part:
        return _alike(part["anyOf"])
    kinds = part.get("type")
    kinds = [kinds] if isinstance(kinds, str) else list(kinds or ())
    if not kinds or not _TYPES.issuperset(kinds):
        return "the type is missing or unknown."
    if "object" in kinds:
        if part.get("additionalProperties") is not False:
            return "additionalProperties is not false."
        if sorted(part.get("required", ())) != sorted(part.get("properties", {})):
            return "not all properties are required."
    if "array" in kinds and not isinstance(part.get("items"), Mapping):
        return "the items of the list have no schema."
    return None


def _alike(choices: Sequence[Mapping[str, JsonValue]]) -> str | None:
    """Return an error unless the first property distinguishes the objects of an `anyOf`."""
    firsts: list[tuple[str, tuple[str, ...]]] = []
    for choice in choices:
        properties = choice.get("properties", {})
        for name, part in list(properties.items())[:1]:
            values = part.get("enum", [part["const"]] if "const" in part else [])
            firsts.append((name, tuple(json.dumps(value) for value in values)))
    for number, (name, values) in enumerate(firsts):
        for other, others in firsts[:number]:
            if name == other and (not values or not others or set(values) & set(others)):
                return f"several objects of anyOf start with {name!r}, whose value does not distinguish them."
    return None
